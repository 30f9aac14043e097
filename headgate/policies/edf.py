"""Deadlines: earliest first, and a hybrid that ranks late queries by output rate (Sharaf §3.5)."""

from collections.abc import Sequence
from math import inf, isnan
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from headgate.compiled import borrowing
from headgate.model.arrays import Floats
from headgate.model.network.unit_table import Unit, UnitTable
from headgate.model.network.units import Units
from headgate.model.plan import ALL, Step
from headgate.policies.interface import Policy, Selection, State
from headgate.policies.priority import PriorityPolicy
from headgate.policies.rate import highest_rate
from headgate.policies.registry import register
from headgate.policies.structures.selection import BLOCK, LARGEST, NO_UNIT, SMALLEST, ordered

NOT_MEASURED = -1.0


def earliest_deadline(unit: Unit, now_s: float) -> float:
    """Rank by the deadline of the oldest tuple's result, earliest first: −D (Sharaf §3.5.1)."""
    return -unit.deadline_at_s


@register(
    "edf",
    objective="tardiness while the load is low",
    paper="Sharaf §3.5.1",
    use="Results have deadlines and the machine can meet all of them.",
    avoid="The machine is overloaded: it serves late results first and makes the rest late too.",
)
class EarliestDeadline(PriorityPolicy):
    """Earliest deadline first (Sharaf §3.5.1); a query without a deadline waits for all others."""

    def __init__(self) -> None:
        super().__init__(earliest_deadline, "queue")

    def value(self, selectivity: float, cost_s: float, ideal_s: float) -> float:
        return selectivity / cost_s


@register(
    "edf-hr",
    objective="tardiness",
    paper="Sharaf §3.5.2",
    use="Results have deadlines, such as window slides, and the load varies.",
    avoid="Queries have no deadlines: then it is the same as hr.",
)
class EarliestDeadlineOrRate(Policy):
    """Two lists: queries still in time, by deadline; the others, by output rate (Sharaf §3.5.2).

    A query is in the first list while t + C ≤ D, where C is the time for its tuples that arrived
    before the deadline D. The head of the second list runs iff it is done before the deadline of
    the head of the first, t + C < D. The thesis has no queries without a deadline. Here they are in
    the second list: they have nothing to miss, and run by rate while no deadline is in danger.
    """

    def __init__(self) -> None:
        self._by_rate = PriorityPolicy(highest_rate, "never")

    def prepare(self, units: Units) -> None:
        self._by_rate.prepare(units)

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        ready, rows = state.ready, state.table[state.ready]
        deadlines_s, done_s = rows["deadline_at_s"], now_s + rows["due"] * rows["cost_s"]
        in_time = (done_s <= deadlines_s) & (deadlines_s < inf)
        rates = np.nan_to_num(self._by_rate.values(state.table, ready, now_s), nan=NOT_MEASURED)
        first, second = np.flatnonzero(in_time), np.flatnonzero(~in_time)
        by_deadline = first[np.argsort(deadlines_s[first], kind="stable")]
        by_rate = second[np.argsort(-rates[second], kind="stable")]
        order = _merged(by_deadline, by_rate, deadlines_s, done_s)
        return [Step(int(ready[position])) for position in order]

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        all_units = np.arange(len(table))
        rates = np.nan_to_num(self._by_rate.values(table, all_units, 0.0), nan=NOT_MEASURED)
        changes = np.full(len(table), learns)
        shared = [shape.number for shape in units.shapes if len(shape.segments) > 1]
        changes[shared] = False
        memory = _memory(rates, changes, self._by_rate.function)
        return Selection(memory, hybrid_changed, hybrid_pick)


def _merged(
    by_deadline: NDArray[np.intp], by_rate: NDArray[np.intp], deadlines_s: Floats, done_s: Floats
) -> list[int]:
    """Merge two lists: take the head of one or the other, by the rule, until both are empty."""
    order: list[int] = []
    first, second = by_deadline.tolist()[::-1], by_rate.tolist()[::-1]
    while first and second:
        late_runs = done_s[second[-1]] < deadlines_s[first[-1]]
        order.append((second if late_runs else first).pop())
    return order + first[::-1] + second[::-1]


def _memory(rates: Floats, changes: NDArray[np.bool_], function: Any) -> tuple[Any, ...]:
    """Return the memory of the compiled selection.

    It has the rates, whether they change, and the function that computes them; then deadline, time
    needed and rate of the ready units; and the number of ready units. A unit that is not ready has
    no deadline and a rate below all others, so that it loses to every other unit without a test
    inside the loop.
    """
    count = len(rates)
    ready = np.full(count, inf), np.zeros(count), np.full(count, -inf)
    return (rates, changes, function, *ready, np.zeros(1, dtype=np.int64))


@borrowing
def hybrid_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    rates, changes, function, deadlines_s, needs_s, ready_rates, count = memory
    row = table[unit]
    if changes[unit]:
        rate = function(row, now_s)
        rates[unit] = NOT_MEASURED if isnan(rate) else rate
    count[0] -= ready_rates[unit] > -inf
    if row.ready:
        # −0 becomes 0, since their bits differ.
        deadlines_s[unit], ready_rates[unit] = row.deadline_at_s + 0.0, rates[unit] + 0.0
        needs_s[unit] = row.due * row.cost_s
        count[0] += 1
    else:
        deadlines_s[unit], needs_s[unit], ready_rates[unit] = inf, 0.0, -inf


@borrowing
def hybrid_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    _, _, _, deadlines_s, needs_s, rates, ready = memory
    least, most, count = LARGEST, ordered(-inf), len(rates)
    urgent_block, late_block = 0, 0
    for first in range(0, count, BLOCK):
        end = min(first + BLOCK, count)
        deadline, rate = _heads(deadlines_s[first:end], needs_s[first:end], rates[first:end], now_s)
        if deadline < least:
            least, urgent_block = deadline, first
        if rate > most:
            most, late_block = rate, first
    urgent, late = NO_UNIT, NO_UNIT
    if least < LARGEST:
        for unit in range(urgent_block, count):
            if ordered(deadlines_s[unit]) == least and now_s + needs_s[unit] <= deadlines_s[unit]:
                urgent = unit
                break
    if most > ordered(-inf):
        for unit in range(late_block, count):
            deadline_s = deadlines_s[unit]
            in_time = now_s + needs_s[unit] <= deadline_s and deadline_s < inf
            if ordered(rates[unit]) == most and not in_time:
                late = unit
                break
    if urgent < 0 or late < 0:
        return max(urgent, late), ALL, ready[0]
    return late if now_s + needs_s[late] < deadlines_s[urgent] else urgent, ALL, ready[0]


@numba.njit(forceinline=True)
def _heads(deadlines_s: Floats, needs_s: Floats, rates: Floats, now_s: float) -> tuple[int, int]:
    """Return the earliest deadline of the units in time and the highest rate of the others.

    Both are integers with the order of the floats: integers are compared in several lanes at once.
    """
    least, most = LARGEST, SMALLEST
    for unit in range(len(rates)):
        in_time = (now_s + needs_s[unit] <= deadlines_s[unit]) & (deadlines_s[unit] < inf)
        least = min(least, ordered(deadlines_s[unit]) if in_time else LARGEST)
        most = max(most, SMALLEST if in_time else ordered(rates[unit]))
    return least, most
