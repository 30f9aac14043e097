"""Progress charts of a network: its units in partitions of falling slope (BZ §3, §4)."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf, isnan
from typing import Any

import numpy as np

from headgate.compiled import compiled
from headgate.model.arrays import Floats, Ints
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units, UnitShape
from headgate.model.plan import Step
from headgate.policies.interface import Policy, Selection, State
from headgate.policies.structures.envelope import lower_envelope, slope_of
from headgate.policies.structures.selection import (
    earliest,
    ordered,
    rank_changed,
    rank_pick,
    ranked,
)

Readers = tuple[int, ...]
"""Units that read the same tuples from one buffer."""

Branches = Callable[[Readers], Iterable[Readers]]
"""How the units after a fork share its tuples: from one buffer, or each from its own."""

Drop = Callable[[Readers], float]
"""How far a chart falls when all of a tuple's readers have processed it."""


def shared_buffer(fed: Readers) -> Iterable[Readers]:
    """Return one buffer for all branches: the last one that reads a tuple frees it (BZ §4)."""
    return (fed,)


def own_buffers(fed: Readers) -> Iterable[Readers]:
    """Return one buffer for each branch of a fork, as in Chain (BZ §4)."""
    return ((unit,) for unit in fed)


@dataclass(frozen=True, slots=True)
class Flow:
    """What happens to one tuple of a unit's queue, on average.

    Args:
        outputs: results that leave the system.
        onward: for each fork after the unit, the units that read from it, and how many tuples come.
    """

    cost_s: float
    outputs: float
    onward: tuple[tuple[Readers, float], ...] = ()


def flows(units: Units, table: UnitTable) -> list[Flow]:
    """Return the flow of every unit by the current figures."""
    return [_flow(units, shape, table[shape.number]) for shape in units.shapes]


def _flow(units: Units, shape: UnitShape, row: np.void) -> Flow:
    if not shape.feeds:
        return Flow(float(row["tuple_cost_s"]), float(row["selectivity"]))
    tuples_out: list[float] = []
    for stage in shape.stages:
        tuples_in = 1.0 if stage.parent < 0 else tuples_out[stage.parent]
        tuples_out.append(tuples_in * units.graph.selectivity(stage.box, stage.side))
    exits = [
        position for position, stage in enumerate(shape.stages) if stage.queries or stage.fills
    ]
    total = sum(tuples_out[position] for position in exits)
    outputs, onward = 0.0, []
    for position in exits:
        # Only the total output of a call is measured; the boxes' figures tell how it divides.
        share = tuples_out[position] / total if total > 0 else 1.0 / len(exits)
        tuples, stage = float(row["box_selectivity"]) * share, shape.stages[position]
        outputs += tuples * len(stage.queries)
        if stage.fills:
            onward.append((stage.fills, tuples))
    return Flow(float(row["box_cost_s"]), outputs, tuple(onward))


@dataclass(frozen=True, slots=True)
class Partition:
    """Units that run as one, in the order of the chart; `time_s` and `drop` are for one tuple."""

    units: Readers
    time_s: float
    drop: float
    slope: float

    def reached_by(self, tuples: float) -> "Partition":
        return replace(self, time_s=self.time_s * tuples, drop=self.drop * tuples)


def partitions_of(
    entries: Iterable[Readers], flow: Sequence[Flow], drop: Drop, branches: Branches
) -> list[Partition]:
    """Cut the graph after each entry into partitions, from the outputs upward (BZ §4).

    The partitions after a unit, or after the units that share a buffer, are sorted by slope; then
    the chart of the unit and all of them is partitioned. Joined partitions are never separated.
    """

    @cache
    def partitions_from(readers: Readers) -> tuple[Partition, ...]:
        cost_s, fall = sum(flow[unit].cost_s for unit in readers), drop(readers)
        head = Partition(readers, cost_s, fall, slope_of(cost_s, fall))
        rest = [
            part.reached_by(tuples)
            for unit in readers
            for fed, tuples in flow[unit].onward
            for branch in branches(fed)
            for part in partitions_from(branch)
        ]
        return _normalised([head, *sorted(rest, key=_steepest_first)])

    return [part for readers in entries for part in partitions_from(readers)]


def _normalised(chart: Sequence[Partition]) -> tuple[Partition, ...]:
    """Join the partitions of a chart until it is convex (BZ §4)."""
    joined: list[Partition] = []
    for segment in lower_envelope([(part.time_s, part.drop) for part in chart]):
        parts = chart[segment.first : segment.end]
        units = tuple(dict.fromkeys(unit for part in parts for unit in part.units))
        # A single part keeps its slope: where no tuple comes, time and drop are both 0.
        slope = segment.slope if len(parts) > 1 else parts[0].slope
        if joined and slope > joined[-1].slope:
            slope = joined[-1].slope  # a rounding error: the envelope compared times and drops
        joined.append(Partition(units, segment.time_s, segment.drop, slope))
    return tuple(joined)


def _steepest_first(part: Partition) -> float:
    return inf if isnan(part.slope) else -part.slope


def memory_drop(flow: Sequence[Flow], bytes_in: Floats, branches: Branches) -> Drop:
    """Return the drop of a memory reduction chart: M_in − σ M_out, M_out of results 0 (BZ §3)."""

    def size(readers: Readers) -> float:
        return max(float(bytes_in[unit]) for unit in readers)

    def drop(readers: Readers) -> float:
        bytes_out = sum(
            tuples * size(branch)
            for unit in readers
            for fed, tuples in flow[unit].onward
            for branch in branches(fed)
        )
        return size(readers) - bytes_out

    return drop


@dataclass(frozen=True)
class Order:
    """The units in order of preference.

    Args:
        place: the position of each unit, from 0.
        turn: for each unit, the smallest place among the units that take turns with it. Where
            several units bring tuples into a partition, the one with the oldest tuple runs first.
    """

    place: Ints
    turn: Ints


def order_of(partitions: Iterable[Partition], units: Units) -> Order:
    """Order partitions by slope; inside one, a tuple passes through before the next (BZ §3.1).

    So a unit comes after all units that it feeds, and those that begin the partition come last. A
    unit in which several paths meet is in several partitions; it runs with the steepest of them.
    """
    place = np.zeros(len(units), dtype=np.int64)
    turn, seen = place.copy(), 0
    done: set[int] = set()
    for part in sorted(partitions, key=_steepest_first):
        members = [unit for unit in part.units if unit not in done]
        done.update(members)
        inner, first = _depth_first(members, units)
        for unit in inner:
            place[unit] = turn[unit] = seen
            seen += 1
        for position, unit in enumerate(first):
            place[unit], turn[unit] = seen + position, seen
        seen += len(first)
    return Order(place, turn)


def _depth_first(members: Sequence[int], units: Units) -> tuple[list[int], list[int]]:
    """Return the units that others of the partition feed, most downstream first; then the rest.

    Branches come in the order of the chart, so the steepest first.
    """
    position_of = {unit: position for position, unit in enumerate(members)}
    first = [unit for unit in members if position_of.keys().isdisjoint(units.shapes[unit].fed_by)]
    seen: dict[int, None] = {}

    def visit(unit: int) -> None:
        inside = position_of.keys() & set(units.shapes[unit].feeds)
        for fed in sorted(inside - seen.keys(), key=position_of.__getitem__):
            if fed not in seen:
                visit(fed)
        seen[unit] = None

    for unit in first:
        visit(unit)
    return [unit for unit in seen if unit not in first], first


class ChartPolicy(Policy):
    """A policy that runs the partition of steepest slope, depth first inside it (BZ §3.1, §4)."""

    cuts = True

    def __init__(self) -> None:
        self._units: Units | None = None
        self._order: tuple[int, Order] | None = None

    @abstractmethod
    def partitions(self, units: Units, table: UnitTable) -> list[Partition]:
        """Return the partitions of all units by the current figures."""

    def prepare(self, units: Units) -> None:
        self._units, self._order = units, None

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        order, ready = self._current_order(state), state.ready
        heads_s = state.table["head_arrived_at_s"][ready]
        best_first = np.lexsort((order.place[ready], heads_s, order.turn[ready]))
        return list(map(Step, ready[best_first].tolist()))

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        if learns:
            return None
        order = order_of(self.partitions(units, table), units)
        memory = ranked(-order.place.astype(np.float64))
        if len(np.unique(order.turn)) == len(units):
            return Selection(memory, rank_changed, rank_pick)
        by_place = np.argsort(order.place)
        ends = np.searchsorted(order.turn[by_place], order.turn[by_place], side="right")
        heads_s = np.full(len(units), np.inf)  # by place, so that a partition is contiguous
        return Selection((*memory, ends, heads_s), turn_changed, turn_pick)

    def _current_order(self, state: State) -> Order:
        if self._order is None or self._order[0] != state.figures:
            assert self._units is not None, "prepare comes before the first plan"
            parts = self.partitions(self._units, state.table)
            self._order = state.figures, order_of(parts, self._units)
        return self._order[1]


@compiled
def turn_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    rank, order, bits, first, _, heads_s = memory
    rank_changed((rank, order, bits, first), table, unit, now_s)
    row = table[unit]
    heads_s[rank[unit]] = row.head_arrived_at_s if row.ready else np.inf


@compiled
def turn_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    rank, order, bits, first, ends, heads_s = memory
    chosen, tuples, examined = rank_pick((rank, order, bits, first), table, now_s)
    if chosen < 0:
        return chosen, tuples, examined
    place = rank[chosen]
    end = ends[place]
    oldest = earliest(heads_s[place:end])
    while ordered(heads_s[place]) != oldest:
        place += 1
    return order[place], tuples, end - rank[chosen]
