"""Priorities that grow while a tuple waits (Sharaf §3.2)."""

from headgate.model.network.unit_table import Unit
from headgate.policies.priority import priority


@priority(
    "fcfs",
    objective="maximum response time",
    paper="Sharaf §3.2.1, AMoS §2.1",
    starves=False,
    changes="wait",
    aliases=("fifo",),
    use="No query may wait much longer than the others.",
    avoid="The mean matters: one costly query holds up all cheap ones.",
)
def longest_wait(unit: Unit, now_s: float) -> float:
    """Wait of the oldest pending tuple: W (Sharaf §3.2.1)."""
    return now_s - unit.head_arrived_at_s


@priority(
    "lsf",
    objective="maximum slowdown",
    paper="Sharaf eq 3.6",
    starves=False,
    changes="wait",
    use="No result may take many times longer than its query needs.",
    avoid="The mean matters: selectivity is ignored.",
)
def longest_stretch(unit: Unit, now_s: float) -> float:
    """Slowdown so far of the oldest pending tuple: W / T (Sharaf eq 3.6)."""
    return (now_s - unit.head_arrived_at_s) / unit.ideal_s


@priority(
    "brt",
    objective="ℓ2 norm of response time",
    paper="Sharaf eq 3.8",
    changes="wait",
    use="Mean and worst response time both matter.",
    avoid="Queries of very different length share the machine: see bsd.",
)
def balanced_response(unit: Unit, now_s: float) -> float:
    """Output rate times the wait: S W / C̄ (Sharaf eq 3.8)."""
    return unit.selectivity * (now_s - unit.head_arrived_at_s) / unit.cost_s


def balanced_slowdown(unit: Unit, now_s: float) -> float:
    """Rank by the normalized rate times the slowdown so far: S W / (C̄ T²) (Sharaf eq 3.7)."""
    return (unit.selectivity / (unit.cost_s * unit.ideal_s)) * (
        (now_s - unit.head_arrived_at_s) / unit.ideal_s
    )
