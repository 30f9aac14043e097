"""Oracles: policies that know in advance what the waiting tuples will output (Sharaf §3.8.1.10)."""

from headgate.model.network.unit_table import Unit
from headgate.policies.interface import Policy
from headgate.policies.priority import PriorityPolicy
from headgate.policies.registry import register

NOT_FORESEEN = -1.0


def known_rate(unit: Unit, now_s: float) -> float:
    """Return the outputs of the pending tuples over the time they take; −1 without foresight."""
    foreseen = unit.pending_outputs >= 0.0 and unit.pending_s > 0.0
    return unit.pending_outputs / unit.pending_s if foreseen else NOT_FORESEEN


def known_normalised_rate(unit: Unit, now_s: float) -> float:
    """Return the known output rate over the ideal time of the query; −1 without foresight."""
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
    objective="mean response time, as a bound",
    paper="Sharaf §3.8.1.10",
    levels=("query",),
    engines=("simulation",),
    use="You want to know what hr loses by estimating: this is the bound to compare with.",
    avoid="Queries run for real: it needs the outcome of tuples that are not processed yet.",
)
def rate_oracle() -> Policy:
    """Like hr, with the outcome known: outputs of the pending tuples / time to process them."""
    return _RateOracle(known_rate, "queue", foresees=True)


@register(
    "hnr-o",
    objective="mean slowdown, as a bound",
    paper="Sharaf §3.8.1.10",
    levels=("query",),
    engines=("simulation",),
    use="You want to know what hnr loses by estimating: this is the bound to compare with.",
    avoid="Queries run for real: it needs the outcome of tuples that are not processed yet.",
)
def normalised_rate_oracle() -> Policy:
    """Like hnr, with the outcome known: outputs of the pending tuples / (time for them × T)."""
    return _NormalisedRateOracle(known_normalised_rate, "queue", foresees=True)
