"""Quality of service at the price of a turn: buckets of p-tuples and a calendar (Aurora §6.2)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.compiled import inlined
from headgate.model.arrays import Floats, Ints
from headgate.model.events import Measured, StepFinished, StepStarted
from headgate.model.plan import ALL, Step
from headgate.model.unit_table import UnitTable
from headgate.model.units import Units
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
from headgate.policies.structures.selection import NOBODY

OUT = -1
CACHE_LINE_BYTES = 64

BOX = np.dtype(
    [
        *ENTRY,  # in the calendar
        ("born_s", np.float64),
        ("first", np.int32),  # of its ranges
        ("at", np.int32),  # the range that it is in, −1 where it is not ready
    ]
)
"""All that a decision needs of a box beside its row: half a cache line, since 100 000 boxes make
every box that is touched a cache miss."""

RANGE = np.dtype(
    [
        ("from_s", np.float64),
        ("bucket", np.int32),
        ("last", np.int32),  # of the graph that begins here
    ]
)


@register(
    "qos-bucketed",
    objective="QoS delivered, at constant cost a decision",
    paper="Aurora §6.2",
    use="There are thousands of boxes with QoS graphs, and decisions must not cost more for it.",
    avoid="There are few boxes: qos is exact and then as fast.",
)
class QosBucketed(Policy):
    """Buckets of gradient and slack, best first; inside a bucket in turn (Aurora §6.2).

    The gradients of all graphs, from 0 to the steepest, are divided into `gradients` buckets; the
    slacks, from 0 to the longest stretch without a critical point, into one bucket less than
    `slacks`, since slack ∞ has the last of them. What a bucket holds counts as equal: those boxes
    are served by number, beginning behind the one that the bucket served last. So one bucket for
    all is round robin.

    The latency ranges of every bucket are computed beforehand for each QoS graph. A box then waits
    in a calendar queue for the instant at which it leaves its bucket, and costs nothing until then.

    Departs from the paper in one point: there, an execution queue is refilled from the buckets when
    it is about to run empty. Here each decision takes one box of the best bucket, because finding
    it costs no more than taking it from such a queue, whose order would be out of date.
    """

    tuples_a_step = ALL

    def __init__(self, gradients: int = 10, slacks: int = 10) -> None:
        if gradients < 1 or slacks < 1:
            raise ValueError("gradients and slacks of 1 or more buckets")
        self.gradients, self.slacks = gradients, slacks
        self._ranges = latency_ranges(np.zeros(0, dtype=np.int64), [], [])
        self._served_last = np.zeros(0, dtype=np.int64)
        self._planned = (NOBODY, OUT)

    def prepare(self, units: Units) -> None:
        self._ranges, buckets = bucket_ranges(units, self.gradients, self.slacks)
        self._served_last = np.full(buckets, NOBODY)
        self._planned = (NOBODY, OUT)

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        if not len(state.ready):
            return []
        found = ranges_at(self._ranges, state.table, state.ready, now_s)
        buckets = self._ranges.values[found]
        had_its_turn = state.ready <= self._served_last[buckets]
        order = np.lexsort((had_its_turn, buckets))
        self._planned = (int(state.ready[order[0]]), int(buckets[order[0]]))
        return list(map(Step, state.ready[order].tolist()))

    def hear(self, event: StepStarted | StepFinished | Measured) -> None:
        """Moves the turn of the bucket on; a unit that nobody planned was not served in turn."""
        unit, bucket = self._planned
        if isinstance(event, StepStarted) and event.call.units[0] == unit:
            self._served_last[bucket] = unit

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        ranges, buckets = bucket_ranges(units, self.gradients, self.slacks)
        return Selection(_memory(ranges, buckets), bucket_changed, bucket_pick)


def bucket_ranges(units: Units, gradients: int, slacks: int) -> tuple[LatencyRanges, int]:
    """Gives the latency ranges of each bucket by unit, and the number of buckets.

    Buckets are numbered from the best; those that no graph ever passes have no number.
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
    values = [np.searchsorted(passed, each) for each in numbers]
    return latency_ranges(places, starts_s, values), len(passed)


def steepness_buckets(utilities: Floats, steepest: float, gradients: int) -> Ints:
    """Gives the gradient bucket of each utility, 0 for the flattest.

    >>> steepness_buckets(np.array([0.0, 0.4, 1.0]), steepest=1.0, gradients=4)
    array([0, 1, 3])
    """
    if steepest == 0.0:
        return np.zeros(len(utilities), dtype=np.int64)
    return np.minimum((utilities * gradients / steepest).astype(np.int64), gradients - 1)


def longest_slack_s(graph: JointGraph) -> float:
    """Gives the longest stretch of a joint graph up to a critical point, from latency 0 on."""
    return float(np.diff(graph.bends_s, prepend=0.0).max(initial=0.0))


def slack_buckets(bends_s: Floats, width_s: float, slacks: int) -> tuple[Floats, Ints, Ints]:
    """Gives the ranges in which the slack bucket stays: where each begins, its piece, its bucket.

    Before a bend, slack bucket k ends where k widths are left; behind the last, the slack is ∞.

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


def _memory(ranges: LatencyRanges, buckets: int) -> tuple[Any, ...]:
    """Gives ranges; members of each bucket and the buckets that have any; turns; due; calendar.

    They are few arrays, since compiled code hands each over as seven words in every call. The set
    behind those of the buckets has the buckets with members. The turns are who was served last in
    each bucket, and behind them the boxes that were moved. The calendar's entries are the boxes.
    """
    boxes = _boxes(len(ranges.first))
    boxes["first"], boxes["at"] = ranges.first, OUT
    table = np.zeros(len(ranges.from_s), dtype=RANGE)
    table["from_s"], table["bucket"] = ranges.from_s, ranges.values
    table["last"][ranges.first] = ranges.last
    turns = np.full(buckets + 1, NOBODY)
    turns[-1] = 0
    due = np.zeros(2 * len(boxes), dtype=np.int64)
    return (
        table,
        *bit_sets(buckets + 1, max(len(boxes), buckets)),
        turns,
        due,
        calendar_queue(boxes),
    )


def _boxes(count: int) -> NDArray[Any]:
    """Gives records of which none lies across two cache lines."""
    room = np.zeros(count * BOX.itemsize + CACHE_LINE_BYTES, dtype=np.uint8)
    first = -room.ctypes.data % CACHE_LINE_BYTES
    return room[first : first + count * BOX.itemsize].view(BOX)


@inlined
def bucket_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    """Puts a box into the bucket of its present latency.

    Its calendar entry stays where it is when the box will leave the bucket later than the entry
    says, as nearly every step and arrival has it: the queue's mean arrival moves on. The entry is
    then set right when it falls due.
    """
    ranges, _, _, _, _, calendar = memory
    if not table[unit].ready:
        _move(memory, unit, OUT)
        return
    box = calendar[0][unit]
    born_s = birth_s(table[unit].mean_arrived_at_s, table[unit].remaining_s)
    box.born_s = born_s
    at = range_at(ranges.from_s, box.first, ranges[box.first].last, born_s, now_s)
    leaves_at_s = born_s + ranges[at + 1].from_s
    waits = leaves_at_s >= instant(calendar, unit)
    if not waits:
        fetch_day(calendar, leaves_at_s)
    _move(memory, unit, at)
    if not waits:
        delete(calendar, unit)
        insert(calendar, unit, leaves_at_s)


@inlined
def bucket_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    """Takes the next box of the best bucket, after those have moved on whose instant has come."""
    _, members, levels, turns, _, calendar = memory
    boxes, buckets = calendar[0], len(turns) - 1
    _move_due(memory, now_s)
    bucket = following(members, levels, buckets, 0)
    examined, turns[buckets] = turns[buckets] + 1, 0
    if bucket < 0:
        return NOBODY, 0, examined
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
    """Moves boxes whose calendar entry is due on to the buckets that they are in by now."""
    ranges, members, _, _, due, calendar = memory
    boxes = calendar[0]
    goes_to = due[len(boxes) :]
    count = take_due(calendar, now_s, due)
    # In three rounds, so that what a box needs is fetched while the others are looked at.
    for place in range(count):
        box = boxes[due[place]]
        at = box.at
        if at != OUT:
            while box.born_s + ranges[at + 1].from_s <= now_s:
                at += 1
            fetch(members[due[place] >> 6], ranges[at].bucket)
            fetch_day(calendar, box.born_s + ranges[at + 1].from_s)
        goes_to[place] = at
    for place in range(count):
        unit, at = due[place], goes_to[place]
        if at != OUT:
            _move(memory, unit, at)
            fetch_neighbour(calendar, boxes[unit].born_s + ranges[at + 1].from_s)
    for place in range(count):
        unit, at = due[place], goes_to[place]
        if at != OUT:
            leaves_at_s = boxes[unit].born_s + ranges[at + 1].from_s
            if leaves_at_s < np.inf:
                insert(calendar, unit, leaves_at_s)


@inlined
def _move(memory: Any, unit: int, at: int) -> None:
    """Moves a box on to a range, and to the bucket of that range."""
    ranges, members, levels, turns, _, calendar = memory
    box, buckets = calendar[0][unit], len(turns) - 1
    before = box.at
    turns[buckets] += 1
    box.at = at
    if at == before:
        return
    if before != OUT:
        bucket = ranges[before].bucket
        take(members, levels, bucket, unit)
        if is_empty(members, levels, bucket):
            take(members, levels, buckets, bucket)
    if at != OUT:
        put(members, levels, ranges[at].bucket, unit)
        put(members, levels, buckets, ranges[at].bucket)
