"""Baselines for class quotas: output rate times class priority, and weighted turns (CQC §4.1)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from headgate.compiled import compiled
from headgate.model.arrays import Floats, Ints
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.model.plan import ALL
from headgate.policies.interface import Selection
from headgate.policies.priority import PriorityPolicy
from headgate.policies.rate import highest_rate
from headgate.policies.registry import register
from headgate.policies.round_robin import BoxRoundRobin
from headgate.policies.structures import selection as kernels


@register(
    "hr-class",
    objective="response time of important classes",
    paper="CQC §4.1",
    use="You want a baseline for cqc.",
    avoid="An important query has rare results: rates above P_H / P_N times its own come first.",
)
class ClassRate(PriorityPolicy):
    """Output rate times the priority of the class: P S / C̄ (CQC §4.1)."""

    def __init__(self) -> None:
        super().__init__(highest_rate, changes="never")
        self._priorities = np.zeros(0)

    def prepare(self, units: Units) -> None:
        super().prepare(units)
        self._priorities = class_priorities(units)

    def values(self, table: UnitTable, chosen: Any, now_s: float) -> Floats:
        values: Floats = super().values(table, chosen, now_s) * self._priorities[chosen]
        return values

    def priority_of(
        self, row: Any, unit: int, now_s: float, class_priorities: Sequence[float]
    ) -> float:
        rate = highest_rates.priority_of(row, unit, now_s, class_priorities)
        return rate * class_priorities[int(row["query_class"])]

    def rates(self, table: UnitTable, units: Ints, now_s: float) -> Floats | None:
        rates = super().rates(table, units, now_s)
        return None if rates is None else rates * self._priorities[units]

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        if not learns:
            return super().selection(units, table, learns=learns)
        if self._shared:
            return None
        ready = np.zeros(len(table), dtype=np.bool_)
        memory = (np.full(len(table), -np.inf), ready, class_priorities(units))
        return Selection(memory, class_rate_changed, kernels.value_pick)


highest_rates = PriorityPolicy(highest_rate, changes="never")
"""Only for `priority_of`, which uses no units."""


@compiled
def class_rate_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    values, ready, priorities = memory
    row = table[unit]
    ready[unit] = row.ready
    values[unit] = row.selectivity / row.cost_s * priorities[unit] if row.ready else -np.inf


@register(
    "wrr",
    objective="time by class priority",
    paper="CQC §4.1",
    starves=False,
    use="You want a baseline for cqc in which an overrun is never paid back.",
    avoid="Costs and selectivities inside a class differ: all its operators are treated alike.",
)
class WeightedRoundRobin(BoxRoundRobin):
    """Operators in turn by descending class priority, with slices in proportion to it (CQC §4.1).

    An operator takes the tuples that fit into T = k P / ΣP, at least one.

    Args:
        period_s: k; 1000 µs in the paper.
        tuples: the smallest number of tuples per turn, however short its slice; 1 in the paper.
            Where a call costs as much as thousands of tuples, as on Spark, no tuple fits into a
            slice.
    """

    def __init__(self, period_s: float = 0.001, tuples: int = 1) -> None:
        if not period_s > 0:
            raise ValueError("period_s above 0 seconds")
        super().__init__()
        self.take_at_least(tuples)
        self.tuples_a_step, self.train = ALL, "time slice"
        self.period_s = period_s
        self._places = np.zeros(0, dtype=np.int64)
        self._slices_s = np.zeros(0)

    def prepare(self, units: Units) -> None:
        super().prepare(units)
        priorities = class_priorities(units)
        total = sum(query_class.priority for query_class in units.network.classes)
        self._places = np.empty(len(units), dtype=np.int64)
        self._places[np.argsort(-priorities, kind="stable")] = np.arange(len(units))
        self._slices_s = self.period_s * priorities / total

    def places(self, chosen: Ints) -> Ints:
        return self._places[chosen]

    def slice_s(self, unit: int) -> float:
        return float(self._slices_s[unit])


def class_priorities(units: Units) -> Floats:
    """Return the priority of each unit's class."""
    classes = units.network.classes
    return np.array([classes[shape.query_class].priority for shape in units.shapes])
