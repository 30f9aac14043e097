"""Oracles: output rates of the very tuples that wait, known beforehand (Sharaf §3.8.1.10)."""

from headgate.model.unit_table import Unit
from headgate.policies.interface import Policy
from headgate.policies.priority import PriorityPolicy
from headgate.policies.registry import register

NOT_FORESEEN = -1.0


def known_rate(unit: Unit, now_s: float) -> float:
    """Outputs among the pending tuples over the time that these take; −1 without foresight."""
    foreseen = unit.pending_outputs >= 0.0 and unit.pending_s > 0.0
    return unit.pending_outputs / unit.pending_s if foreseen else NOT_FORESEEN


def known_normalised_rate(unit: Unit, now_s: float) -> float:
    """Known output rate over the ideal time of the query; −1 without foresight."""
    foreseen = unit.pending_outputs >= 0.0 and unit.pending_s > 0.0 and unit.ideal_s > 0.0
    return unit.pending_outputs / (unit.pending_s * unit.ideal_s) if foreseen else NOT_FORESEEN


class _RateOracle(PriorityPolicy):
    def value(self, selectivity: float, cost_s: float, ideal_s: float) -> float:
        return selectivity / cost_s


class _NormalisedRateOracle(PriorityPolicy):
    def value(self, selectivity: float, cost_s: float, ideal_s: float) -> float:
        return selectivity / (cost_s * ideal_s)


@register(
    "hr-o",
    objective="mean response time, as far as it can be brought",
    paper="Sharaf §3.8.1.10",
    levels=("query",),
    engines=("simulation",),
    use="You ask what hr loses by guessing: it is the bound to compare with.",
    avoid="Anything is to run for real: it looks into tuples that were not processed yet.",
)
def rate_oracle() -> Policy:
    """As hr, but knows the outcome: outputs among the pending tuples / time to process them."""
    return _RateOracle(known_rate, "queue", foresees=True)


@register(
    "hnr-o",
    objective="mean slowdown, as far as it can be brought",
    paper="Sharaf §3.8.1.10",
    levels=("query",),
    engines=("simulation",),
    use="You ask what hnr loses by guessing: it is the bound to compare with.",
    avoid="Anything is to run for real: it looks into tuples that were not processed yet.",
)
def normalised_rate_oracle() -> Policy:
    """As hnr, but knows the outcome: outputs among the pending / (time to process them × T)."""
    return _NormalisedRateOracle(known_normalised_rate, "queue", foresees=True)
