"""Priorities that grow while a tuple waits (Sharaf §3.2)."""

from headgate.model.unit_table import Unit
from headgate.policies.priority import priority


@priority("fcfs", objective="maximum response time", paper="Sharaf §3.2.1", starves=False)
def longest_wait(unit: Unit, now_s: float) -> float:
    """Wait of the oldest pending tuple: W (Sharaf §3.2.1)."""
    return now_s - unit.head_arrived_at_s


@priority("bsd", objective="ℓ2 norm of slowdown", paper="Sharaf eq 3.7")
def balanced_slowdown(unit: Unit, now_s: float) -> float:
    """Normalised rate times the present slowdown: S W / (C̄ T²) (Sharaf eq 3.7).

    The thesis says that it avoids starvation. So it does once the load falls below what the machine
    can do; while an overload lasts, all waits grow alike and a small S / (C̄ T²) stays behind.
    """
    return (unit.selectivity / (unit.cost_s * unit.ideal_s)) * (
        (now_s - unit.head_arrived_at_s) / unit.ideal_s
    )
