"""The order of a query's conditions: the one that drops most for its cost is first (Sharaf §2)."""

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.model.arrays import Ints, moved_keys
from headgate.model.network.network import Condition

WORTH_IT = 0.9
"""A new order is used only if it costs at most this share of what the current order costs."""


@dataclass(frozen=True)
class ConditionFigures:
    """Estimates for a query's conditions: share of tuples that passes, and seconds per tuple."""

    selectivity: tuple[float, ...]
    cost_s: tuple[float, ...]


class ConditionOrders:
    """By unit, the order in which calls evaluate its conditions; as written until measured."""

    def __init__(self) -> None:
        self._order_by_unit: dict[int, tuple[int, ...]] = {}

    def of(self, units: Sequence[int]) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Return pairs of unit and order, for those of the units that were measured."""
        orders = self._order_by_unit
        return tuple((unit, orders[unit]) for unit in units if unit in orders)

    def improve(
        self, unit: int, figures: ConditionFigures | None, conditions: Sequence[Condition]
    ) -> None:
        """Change the order of a unit's conditions if the figures say that this pays."""
        if figures is not None and len(figures.cost_s) == len(conditions):
            written = tuple(range(len(conditions)))
            present = self._order_by_unit.get(unit, written)
            self._order_by_unit[unit] = better_order(figures, conditions, present)

    def text(
        self, unit: int, figures: ConditionFigures | None, conditions: Sequence[Condition]
    ) -> str | None:
        """Return the order of a unit's conditions and why; None without figures for them."""
        if figures is None or len(figures.cost_s) != len(conditions):
            return None
        order = self._order_by_unit.get(unit, range(len(conditions)))
        return order_text(figures, conditions, order)

    def moved(self, before: Ints) -> "ConditionOrders":
        """Return the orders after the units were rearranged.

        Args:
            before: for each unit, its row before; −1 for a new one.
        """
        orders = ConditionOrders()
        orders._order_by_unit = moved_keys(self._order_by_unit, before)
        return orders


def better_order(
    figures: ConditionFigures, conditions: Sequence[Condition], present: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the best order if it is enough better (`WORTH_IT`), else the current one."""
    best = best_order(figures, conditions)
    worth_it = expected_s(figures, best) <= WORTH_IT * expected_s(figures, present)
    return best if worth_it else present


def best_order(figures: ConditionFigures, conditions: Sequence[Condition]) -> tuple[int, ...]:
    """Return the order by (1 − s) / c, largest first, that causes no new runtime error.

    A condition that may fail stays after all conditions written before it: `10 / x > 2` after
    `x <> 0`, whatever it costs. A condition that never fails may move to an earlier place.
    The selectivities are assumed to be independent of each other.

    >>> figures = ConditionFigures((0.5, 0.1, 0.9), (4e-6, 1e-6, 1e-6))
    >>> best_order(figures, [Condition("f(a)", True), Condition("b", True), Condition("c", True)])
    (1, 0, 2)
    >>> best_order(figures, [Condition("x > 0", True), Condition("9 / x > 1", False)])
    (0, 1)
    """
    left = list(range(len(conditions)))
    order: list[int] = []
    while left:
        allowed = [index for index in left if conditions[index].never_fails or index == left[0]]
        best = max(allowed, key=lambda index: (_rank(figures, index), -index))
        left.remove(best)
        order.append(best)
    written = tuple(range(len(conditions)))
    return min(tuple(order), written, key=lambda choice: expected_s(figures, choice))


def expected_s(figures: ConditionFigures, order: Sequence[int]) -> float:
    """Return the expected cost of a tuple: conditions are tried in order until one is false."""
    total, reached = 0.0, 1.0
    for index in order:
        total += reached * figures.cost_s[index]
        reached *= figures.selectivity[index]
    return total


def order_text(
    figures: ConditionFigures, conditions: Sequence[Condition], order: Sequence[int]
) -> str:
    """Return the order of the conditions and the reasons for it, for `headgate explain`."""
    words = [
        f"{conditions[index].text} (passes {figures.selectivity[index]:.3g},"
        f" {figures.cost_s[index] * 1e6:.3g} µs a tuple)"
        for index in order
    ]
    written = expected_s(figures, range(len(order))) * 1e6
    now = expected_s(figures, order) * 1e6
    return f"{', then '.join(words)}; {now:.3g} µs a tuple, as written {written:.3g}"


def _rank(figures: ConditionFigures, index: int) -> float:
    return (1.0 - figures.selectivity[index]) / figures.cost_s[index]
