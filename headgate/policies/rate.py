"""Priorities that do not change while a tuple waits: output rate and ideal time (Sharaf §3.1)."""

from headgate.model.network.unit_table import Unit
from headgate.policies.priority import priority


@priority(
    "srpt",
    objective="mean response time when selectivities are equal",
    paper="Sharaf §3.1.5",
    changes="never",
    use="Costs differ and nearly every tuple passes.",
    avoid="Selectivities differ: it spends time on tuples that will be dropped.",
)
def shortest_remaining_time(unit: Unit, now_s: float) -> float:
    """Inverse of the remaining ideal time: 1 / T (Sharaf §3.1.5)."""
    return 1.0 / unit.remaining_s


@priority(
    "hr",
    objective="mean response time",
    paper="Sharaf eq 3.1",
    changes="never",
    use="The mean response time over all results matters, and all queries are equally important.",
    avoid="Rare results matter: queries of low selectivity wait for all others.",
)
def highest_rate(unit: Unit, now_s: float) -> float:
    """Output rate of the segment: S / C̄ (Sharaf eq 3.1)."""
    return unit.selectivity / unit.cost_s


@priority(
    "hnr",
    objective="mean slowdown",
    paper="Sharaf eq 3.4",
    changes="never",
    use="Users expect short queries to answer soon and accept that long ones take longer.",
    avoid="A bound on the worst wait is needed: see lsf and bsd.",
)
def normalised_rate(unit: Unit, now_s: float) -> float:
    """Output rate of the segment over the ideal time of its query: S / (C̄ T) (Sharaf eq 3.4)."""
    return unit.selectivity / (unit.cost_s * unit.ideal_s)
