"""Quality of service at constant cost per decision: buckets and a calendar (Aurora §6.2)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.compiled import inlined
from headgate.model.arrays import Floats, Ints
from headgate.model.events import Measured, StepFinished, StepStarted
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.model.plan import ALL, Step
from headgate.policies.interface import Policy, Selection, State
from headgate.policies.qos import (
    JointGraph,
    LatencyRanges,
    birth_s,
    joint_graphs_of,
    latency_ranges,
    range_at,
    ranges_at,
)
from headgate.policies.registry import register
from headgate.policies.structures.bit_sets import bit_sets, following, is_empty, put, take
from headgate.policies.structures.cache_fetch import fetch
from headgate.policies.structures.calendar import (
    ENTRY,
    calendar_queue,
    delete,
    fetch_day,
    fetch_neighbour,
    insert,
    instant,
    take_due,
)
from headgate.policies.structures.selection import NO_UNIT

OUT = -1
CACHE_LINE_BYTES = 64

BOX = np.dtype(
    [
        *ENTRY,  # its entry in the calendar
        ("born_s", np.float64),
        ("first", np.int32),  # its first range
        ("at", np.int32),  # its current range, −1 if it is not ready
    ]
)
"""What a decision needs to know of a box besides its row. It takes half a cache line, since with
100 000 boxes every box that is touched is a cache miss."""

RANGE = np.dtype(
    [
        ("from_s", np.float64),
        ("bucket", np.int32),
        ("last", np.int32),  # last range of the graph, in the row of its first range
    ]
)


@register(
    "qos-bucketed",
    objective="QoS delivered, at constant cost per decision",
    paper="Aurora §6.2",
    use="Thousands of boxes have QoS graphs, and a decision must not cost more for so many.",
    avoid="There are few boxes: qos is exact and then just as fast.",
)
class QosBucketed(Policy):
    """Buckets of gradient and slack, best first; boxes in turn inside a bucket (Aurora §6.2).

    The gradients of all graphs, from 0 to the steepest, are divided into `gradients` buckets. The
    slacks, from 0 to the longest stretch without a critical point, are divided into one bucket less
    than `slacks`, since the last bucket is for slack ∞. The boxes in a bucket count as equal: they
    are served by number, starting after the one that the bucket served last. So a single bucket is
    round robin.

    The latency ranges of every bucket are computed in advance for each QoS graph. A box then waits
    in a calendar queue for the instant at which it leaves its bucket, and costs nothing until then.

    Departs from the paper in one point: there, an execution queue is refilled from the buckets when
    it is about to run empty. Here each decision takes one box of the best bucket, because finding
    it costs no more than taking it from such a queue, whose order would be out of date.

    Args:
        gradients, slacks: the number of buckets of each.
        walk: charge a decision for every bucket from the best to the one that is not empty, as if
            they were visited in order (§6.3). This policy finds that bucket in constant time.
    """

    def __init__(self, gradients: int = 10, slacks: int = 10, walk: bool = False) -> None:
        if gradients < 1 or slacks < 1:
            raise ValueError("gradients and slacks of 1 or more buckets")
        self.gradients, self.slacks, self.walk = gradients, slacks, bool(walk)
        self._ranges = latency_ranges(np.zeros(0, dtype=np.int64), [], [])
        self._served_last = np.zeros(0, dtype=np.int64)
        self._planned = (NO_UNIT, OUT)

    def prepare(self, units: Units) -> None:
        self._ranges, numbers = bucket_ranges(units, self.gradients, self.slacks)
        self._served_last = np.full(len(numbers), NO_UNIT)
        self._planned = (NO_UNIT, OUT)

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        if not len(state.ready):
            return []
        indexes = ranges_at(self._ranges, state.table, state.ready, now_s)
        buckets = self._ranges.values[indexes]
        had_its_turn = state.ready <= self._served_last[buckets]
        order = np.lexsort((had_its_turn, buckets))
        self._planned = (int(state.ready[order[0]]), int(buckets[order[0]]))
        return list(map(Step, state.ready[order].tolist()))

    def hear(self, event: StepStarted | StepFinished | Measured) -> None:
        """Advance the turn of the bucket, if the unit that started is the planned one."""
        unit, bucket = self._planned
        if isinstance(event, StepStarted) and event.call.units[0] == unit:
            self._served_last[bucket] = unit

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        ranges, numbers = bucket_ranges(units, self.gradients, self.slacks)
        visits = numbers if self.walk else np.zeros_like(numbers)
        return Selection(_memory(ranges, visits), bucket_changed, bucket_pick)


def bucket_ranges(units: Units, gradients: int, slacks: int) -> tuple[LatencyRanges, Ints]:
    """Return the latency ranges of each unit, with buckets, and the place of each bucket.

    Buckets are numbered from the best, without those that no graph ever passes. Places count all.
    """
    places, graphs = joint_graphs_of(units)
    steepest = max((float(graph.utilities.max()) for graph in graphs), default=0.0)
    longest_s = max((longest_slack_s(graph) for graph in graphs), default=0.0)
    width_s = longest_s / max(1, slacks - 1)
    starts_s, numbers = [], []
    for graph in graphs:
        steepness = steepness_buckets(graph.utilities, steepest, gradients)
        from_s, piece, slack = slack_buckets(graph.bends_s, width_s, slacks)
        bucket = (gradients - 1 - steepness[piece]) * slacks + slack
        moves = np.flatnonzero(np.diff(bucket)) + 1
        starts_s.append(from_s[moves])
        numbers.append(bucket[np.concatenate([[0], moves])])
    passed = np.unique(np.concatenate([*numbers, np.zeros(0, dtype=np.int64)]))
    values = [np.searchsorted(passed, graph_numbers) for graph_numbers in numbers]
    return latency_ranges(places, starts_s, values), passed.astype(np.int64)


def steepness_buckets(utilities: Floats, steepest: float, gradients: int) -> Ints:
    """Return the gradient bucket of each utility, 0 for the flattest.

    >>> steepness_buckets(np.array([0.0, 0.4, 1.0]), steepest=1.0, gradients=4)
    array([0, 1, 3])
    """
    if steepest == 0.0:
        return np.zeros(len(utilities), dtype=np.int64)
    return np.minimum((utilities * gradients / steepest).astype(np.int64), gradients - 1)


def longest_slack_s(graph: JointGraph) -> float:
    """Return the longest stretch of a joint graph up to a critical point, from latency 0 on."""
    return float(np.diff(graph.bends_s, prepend=0.0).max(initial=0.0))


def slack_buckets(bends_s: Floats, width_s: float, slacks: int) -> tuple[Floats, Ints, Ints]:
    """Return the ranges of constant slack bucket: where each begins, its piece, its bucket.

    Before a bend, slack bucket k ends where k widths are left; after the last one, the slack is ∞.

    >>> from_s, piece, slack = slack_buckets(np.array([4.0, 5.0]), width_s=2.0, slacks=3)
    >>> [(float(s), int(p), int(k)) for s, p, k in zip(from_s, piece, slack)]
    [(-inf, 0, 1), (2.0, 0, 0), (4.0, 1, 0), (5.0, 2, 2)]
    """
    starts_s, pieces, buckets, begin_s = [], [], [], -np.inf
    for piece, bend_s in enumerate(bends_s):
        ends_s = bend_s - width_s * np.arange(max(1, slacks - 1) - 1, -1, -1)
        ends_s = ends_s[ends_s > begin_s]
        starts_s.append(np.concatenate([[begin_s], ends_s[:-1]]))
        buckets.append(np.arange(len(ends_s) - 1, -1, -1))
        pieces.append(np.full(len(ends_s), piece))
        begin_s = float(bend_s)
    starts_s.append(np.array([begin_s]))
    pieces.append(np.array([len(bends_s)]))
    buckets.append(np.array([slacks - 1]))
    return np.concatenate(starts_s), np.concatenate(pieces), np.concatenate(buckets)


def _memory(ranges: LatencyRanges, visits: Ints) -> tuple[Any, ...]:
    """Return the memory of the compiled selection: ranges, bit sets, turns, due boxes, calendar.

    The arrays are few, since compiled code passes each one as seven words in every call. There is
    a bit set of members for each bucket, and after them one of the buckets that have members. The
    turns hold the box served last in each bucket, then the number of boxes moved since the last
    decision, then the visits that finding each bucket costs. The calendar's entries are the boxes.
    """
    buckets = len(visits)
    boxes = _boxes(len(ranges.first))
    boxes["first"], boxes["at"] = ranges.first, OUT
    table = np.zeros(len(ranges.from_s), dtype=RANGE)
    table["from_s"], table["bucket"] = ranges.from_s, ranges.values
    table["last"][ranges.first] = ranges.last
    turns = np.concatenate([np.full(buckets, NO_UNIT), [0], visits])
    due = np.zeros(2 * len(boxes), dtype=np.int64)
    return (
        table,
        *bit_sets(buckets + 1, max(len(boxes), buckets)),
        turns,
        due,
        calendar_queue(boxes),
    )


def _boxes(count: int) -> NDArray[Any]:
    """Return box records, none of which crosses the boundary of a cache line."""
    room = np.zeros(count * BOX.itemsize + CACHE_LINE_BYTES, dtype=np.uint8)
    first = -room.ctypes.data % CACHE_LINE_BYTES
    return room[first : first + count * BOX.itemsize].view(BOX)


@inlined
def bucket_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    """Put a box into the bucket of its current latency.

    Its calendar entry stays in place if the box will leave the bucket later than the entry says.
    That is so after nearly every step and arrival, since the queue's mean arrival moves on. The
    entry is corrected when it falls due.
    """
    ranges, _, _, _, _, calendar = memory
    if not table[unit].ready:
        _move(memory, unit, OUT)
        return
    box = calendar[0][unit]
    born_s = birth_s(table[unit].mean_arrived_at_s, table[unit].remaining_s)
    box.born_s = born_s
    index = range_at(ranges.from_s, box.first, ranges[box.first].last, born_s, now_s)
    leaves_at_s = born_s + ranges[index + 1].from_s
    waits = leaves_at_s >= instant(calendar, unit)
    if not waits:
        fetch_day(calendar, leaves_at_s)
    _move(memory, unit, index)
    if not waits:
        delete(calendar, unit)
        insert(calendar, unit, leaves_at_s)


@inlined
def bucket_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    """Pick the next box of the best bucket, after moving the boxes whose instant has come."""
    _, members, levels, turns, _, calendar = memory
    boxes, buckets = calendar[0], (len(turns) - 1) // 2
    _move_due(memory, now_s)
    bucket = following(members, levels, buckets, 0)
    examined, turns[buckets] = turns[buckets] + 1, 0
    if bucket < 0:
        return NO_UNIT, 0, examined
    examined += turns[buckets + 1 + bucket]
    unit = following(members, levels, bucket, turns[bucket] + 1)
    if unit < 0:
        unit = following(members, levels, bucket, 0)
    turns[bucket] = unit
    soon = max(following(members, levels, bucket, unit + 1), 0)
    fetch(boxes, soon)
    fetch(table, soon)
    return unit, ALL, examined


@inlined
def _move_due(memory: Any, now_s: float) -> None:
    """Move the boxes whose calendar entry is due to the buckets that they are in by now."""
    ranges, members, _, _, due, calendar = memory
    boxes = calendar[0]
    goes_to = due[len(boxes) :]
    count = take_due(calendar, now_s, due)
    # In three rounds, so that the data of one box is fetched while the others are processed.
    for place in range(count):
        box = boxes[due[place]]
        index = box.at
        if index != OUT:
            while box.born_s + ranges[index + 1].from_s <= now_s:
                index += 1
            fetch(members[due[place] >> 6], ranges[index].bucket)
            fetch_day(calendar, box.born_s + ranges[index + 1].from_s)
        goes_to[place] = index
    for place in range(count):
        unit, index = due[place], goes_to[place]
        if index != OUT:
            _move(memory, unit, index)
            fetch_neighbour(calendar, boxes[unit].born_s + ranges[index + 1].from_s)
    for place in range(count):
        unit, index = due[place], goes_to[place]
        if index != OUT:
            leaves_at_s = boxes[unit].born_s + ranges[index + 1].from_s
            if leaves_at_s < np.inf:
                insert(calendar, unit, leaves_at_s)


@inlined
def _move(memory: Any, unit: int, index: int) -> None:
    """Move a box to a range, and to the bucket of that range."""
    ranges, members, levels, turns, _, calendar = memory
    box, buckets = calendar[0][unit], (len(turns) - 1) // 2
    before = box.at
    turns[buckets] += 1
    box.at = index
    if index == before:
        return
    if before != OUT:
        bucket = ranges[before].bucket
        take(members, levels, bucket, unit)
        if is_empty(members, levels, bucket):
            take(members, levels, buckets, bucket)
    if index != OUT:
        put(members, levels, ranges[index].bucket, unit)
        put(members, levels, buckets, ranges[index].bucket)
