"""Path capacity, and its hybrid with Chain for when queues grow (AMoS §6)."""

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from headgate.compiled import borrowing
from headgate.model.arrays import Ints
from headgate.model.events import Measured, StepFinished, StepStarted
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.model.plan import ALL, Step
from headgate.policies.interface import Policy, Selection, State
from headgate.policies.registry import policy_named, register
from headgate.policies.structures.selection import NO_UNIT, rank_changed, rank_pick, ranked


@register(
    "path-capacity",
    objective="mean response time when selectivities are equal",
    paper="AMoS §6",
    use="Paths differ in cost and results should come early.",
    avoid="Memory is short: tuples pile up in front of costly paths.",
)
class PathCapacity(Policy):
    """Tuples per second that a whole path can take, from stream to output: 1 / C̄ (AMoS §6).

    C̄ is the cost of a call on one tuple, so that a capacity does not depend on the length of the
    queue. At operator level all units of a path have its capacity, and the one nearest the output
    runs first, so that a tuple passes the whole path before the next one. A unit on several paths
    has the largest of their capacities.
    """

    def __init__(self) -> None:
        self._begins = self._entries = self._depth = np.zeros(0, dtype=np.int64)

    def prepare(self, units: Units) -> None:
        self._begins, self._entries, self._depth = paths_of(units)

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        rank = self._ranks(state.table)
        return list(map(Step, state.ready[np.argsort(rank[state.ready])].tolist()))

    def value(self, selectivity: float, cost_s: float, ideal_s: float) -> float:
        return 1.0 / cost_s

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        begins, entries, depth = paths_of(units)
        if learns:
            ready = np.zeros(len(table), dtype=np.bool_)
            return Selection((begins, entries, depth, ready), path_changed, path_pick)
        self._begins, self._entries, self._depth = begins, entries, depth
        return Selection(ranked(-self._ranks(table).astype(np.float64)), rank_changed, rank_pick)

    def _ranks(self, table: UnitTable) -> Ints:
        """Return the rank of each unit among all units."""
        capacities, firsts = np.empty(len(table)), np.empty(len(table), dtype=np.int64)
        for unit in range(len(table)):
            capacities[unit], firsts[unit] = capacity(table, self._begins, self._entries, unit)
        order = np.lexsort((-self._depth, firsts, -capacities))
        rank = np.empty(len(table), dtype=np.int64)
        rank[order] = np.arange(len(table))
        return rank


def paths_of(units: Units) -> tuple[Ints, Ints, Ints]:
    """Return the units that begin each unit's paths, from `begins[unit]` on, and its depth.

    At query level every unit is its own path.
    """
    entries_by_unit: list[set[int]] = [set() for _ in units.shapes]
    depth = np.zeros(len(units.shapes), dtype=np.int64)
    waiting = [(shape.number, shape.number, 0) for shape in units.shapes if shape.streams]
    if units.level == "query":
        waiting = [(shape.number, shape.number, 0) for shape in units.shapes]
    while waiting:
        unit, entry, steps = waiting.pop()
        if entry in entries_by_unit[unit] and steps <= depth[unit]:
            continue
        entries_by_unit[unit].add(entry)
        depth[unit] = max(depth[unit], steps)
        if units.level == "operator":
            waiting += [(fed, entry, steps + 1) for fed in units.shapes[unit].feeds]
    begins = np.cumsum([0, *(len(firsts) for firsts in entries_by_unit)])
    entries = np.array(
        [entry for firsts in entries_by_unit for entry in sorted(firsts)], dtype=np.int64
    )
    return begins, entries, depth


@borrowing
def capacity(table: UnitTable, begins: Ints, entries: Ints, unit: int) -> tuple[float, int]:
    """Return a unit's largest path capacity, −1 if unmeasured, and the first unit of that path."""
    largest, first = -1.0, unit
    for place in range(begins[unit], begins[unit + 1]):
        row = table[entries[place]]
        cost_s = row.overhead_s + row.tuple_cost_s
        if cost_s > 0.0 and 1.0 / cost_s > largest:
            largest, first = 1.0 / cost_s, entries[place]
    return largest, first


@borrowing
def path_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    memory[3][unit] = table[unit].ready


@borrowing
def path_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    begins, entries, depth, ready = memory
    chosen, largest, first, examined = NO_UNIT, -1.0, -1, 0
    for unit in range(len(ready)):
        if not ready[unit]:
            continue
        value, begin = capacity(table, begins, entries, unit)
        examined += 1
        same = chosen >= 0 and value == largest
        nearer = same and begin == first and depth[unit] > depth[chosen]
        if chosen < 0 or value > largest or (same and begin < first) or nearer:
            chosen, largest, first = unit, value, begin
    return chosen, ALL, examined


@register(
    "threshold",
    objective="mean response time while memory suffices, memory when it does not",
    paper="AMoS §6",
    use="Results should come early, but queues must not overflow in a burst.",
    avoid="Queues are always long: then it is the same as chain.",
)
class Threshold(Policy):
    """Path capacity while few tuples wait, Chain above a threshold (AMoS §6).

    AMoS names the hybrid and leaves it to another paper. Here the total queue size decides, at
    every step again.

    Args:
        threshold_tuples: how many tuples may wait, in all queues together, before `above` decides.
        below, above: the two policies, by name or as objects.
    """

    def __init__(
        self,
        threshold_tuples: int = 1000,
        below: str | Policy = "path-capacity",
        above: str | Policy = "chain",
    ) -> None:
        if not threshold_tuples >= 0:
            raise ValueError("threshold_tuples of 0 or more")
        self.threshold_tuples = threshold_tuples
        self.below = policy_named(below) if isinstance(below, str) else below
        self.above = policy_named(above) if isinstance(above, str) else above
        for key, inner in (("below", self.below), ("above", self.above)):
            if not isinstance(inner, Policy):
                raise ValueError(f"{key}: the name of a policy, or a policy")
        self.foresees = self.below.foresees or self.above.foresees
        self._current = self.below

    @property
    def wake_at_s(self) -> float:  # type: ignore[override]  # follows the inner policies
        return min(self.below.wake_at_s, self.above.wake_at_s)

    def inside(self) -> Sequence[Policy]:
        return self.below, self.above

    def prepare(self, units: Units) -> None:
        self.below.prepare(units)
        self.above.prepare(units)

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        crowded = state.table["pending"].sum() > self.threshold_tuples
        self._current = self.above if crowded else self.below
        return self._current.plan(state, now_s)

    def hear(self, event: StepStarted | StepFinished | Measured) -> None:
        self.below.hear(event)
        self.above.hear(event)

    def may_fuse(self, table: UnitTable, unit: int, other: int) -> bool:
        return self._current.may_fuse(table, unit, other)

    def value(self, selectivity: float, cost_s: float, ideal_s: float) -> float:
        return self.below.value(selectivity, cost_s, ideal_s)

    def in_charge(self, now_s: float) -> Policy:
        return self._current.in_charge(now_s)

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        below = self.below.selection(units, table, learns=learns)
        above = self.above.selection(units, table, learns=learns)
        if below is None or above is None:
            return None
        memory = (
            (below.memory, below.changed, below.pick),
            (above.memory, above.changed, above.pick),
            np.zeros(len(table), dtype=np.int64),
            np.array([0, self.threshold_tuples], dtype=np.int64),
        )
        return Selection(memory, hybrid_changed, hybrid_pick)


@numba.njit
def hybrid_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    below, above, pending, counts = memory
    counts[0] += table[unit].pending - pending[unit]
    pending[unit] = table[unit].pending
    below[1](below[0], table, unit, now_s)
    above[1](above[0], table, unit, now_s)


@numba.njit
def hybrid_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    below, above, _, counts = memory
    if counts[0] > counts[1]:
        return above[2](above[0], table, now_s)
    return below[2](below[0], table, now_s)
