"""Priorities by output rate; they do not change while a tuple waits (Sharaf §3.1)."""

from headgate.model.unit_table import Unit
from headgate.policies.priority import priority


@priority("hr", objective="mean response time", paper="Sharaf eq 3.1")
def highest_rate(unit: Unit, now_s: float) -> float:
    """Output rate of the segment: S / C̄ (Sharaf eq 3.1)."""
    return unit.selectivity / unit.cost_s


@priority("hnr", objective="mean slowdown", paper="Sharaf eq 3.4")
def normalised_rate(unit: Unit, now_s: float) -> float:
    """Output rate of the segment over the ideal time of its query: S / (C̄ T) (Sharaf eq 3.4)."""
    return unit.selectivity / (unit.cost_s * unit.ideal_s)
