"""The order of a query's conditions: what drops most for its cost comes first (Sharaf §2)."""

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.model.network import Condition

WORTH_IT = 0.9
"""An order replaces the present one if a tuple is expected to cost at most this part of before."""


@dataclass(frozen=True)
class ConditionFigures:
    """What is known of a query's conditions: the part of tuples that passes, seconds per tuple."""

    selectivity: tuple[float, ...]
    cost_s: tuple[float, ...]


def better_order(
    figures: ConditionFigures, conditions: Sequence[Condition], present: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the best order if it is worth the change, else the present one."""
    best = best_order(figures, conditions)
    worth_it = expected_s(figures, best) <= WORTH_IT * expected_s(figures, present)
    return best if worth_it else present


def best_order(figures: ConditionFigures, conditions: Sequence[Condition]) -> tuple[int, ...]:
    """Return the order by (1 − s) / c, largest first, in which no condition fails that did not.

    A condition that may fail stays behind all that are written before it: `10 / x > 2` behind
    `x <> 0`, whatever it costs. One that never fails may come earlier than it is written.
    Selectivities are taken as independent of each other.

    >>> figures = ConditionFigures((0.5, 0.1, 0.9), (4e-6, 1e-6, 1e-6))
    >>> best_order(figures, [Condition("f(a)", True), Condition("b", True), Condition("c", True)])
    (1, 0, 2)
    >>> best_order(figures, [Condition("x > 0", True), Condition("9 / x > 1", False)])
    (0, 1)
    """
    left = list(range(len(conditions)))
    order: list[int] = []
    while left:
        may = [at for at in left if conditions[at].never_fails or at == left[0]]
        best = max(may, key=lambda at: (_rank(figures, at), -at))
        left.remove(best)
        order.append(best)
    written = tuple(range(len(conditions)))
    return min(tuple(order), written, key=lambda choice: expected_s(figures, choice))


def expected_s(figures: ConditionFigures, order: Sequence[int]) -> float:
    """Return the cost of a tuple if conditions are tried in an order until one does not hold."""
    total, reached = 0.0, 1.0
    for at in order:
        total += reached * figures.cost_s[at]
        reached *= figures.selectivity[at]
    return total


def order_text(
    figures: ConditionFigures, conditions: Sequence[Condition], order: Sequence[int]
) -> str:
    """Return the order and its reasons, for `explain`."""
    words = [
        f"{conditions[at].text} (passes {figures.selectivity[at]:.3g},"
        f" {figures.cost_s[at] * 1e6:.3g} µs a tuple)"
        for at in order
    ]
    written = expected_s(figures, range(len(order))) * 1e6
    now = expected_s(figures, order) * 1e6
    return f"{', then '.join(words)}; {now:.3g} µs a tuple, as written {written:.3g}"


def _rank(figures: ConditionFigures, at: int) -> float:
    return (1.0 - figures.selectivity[at]) / figures.cost_s[at]
