"""Quality of service: serve first what loses most by waiting, then what will soon (Aurora §6.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.compiled import borrowing, compiled, inlined
from headgate.model.arrays import Floats, Ints
from headgate.model.plan import ALL, Step
from headgate.model.qos_graph import QoSGraph
from headgate.model.unit_table import UnitTable
from headgate.model.units import Units
from headgate.policies.interface import Policy, Selection, State
from headgate.policies.registry import register
from headgate.policies.structures.selection import NOBODY

BEFORE_ALL_TIME_S = -1e300
LARGEST = 2**63 - 1


@dataclass(frozen=True)
class JointGraph:
    """What waiting costs a unit: the QoS graphs of all its queries together.

    `bends_s` are the critical points of all graphs; `utilities` has the sum of gradients before the
    first bend and behind each. So the next bend is the minimum of the queries' slacks, and the
    utility their sum (Aurora §6.1, footnote 2).
    """

    bends_s: Floats
    utilities: Floats


@dataclass(frozen=True)
class LatencyRanges:
    """Ranges of expected output latency, those of one joint graph behind each other.

    A unit's ranges are `first`, ..., `last`. A range reaches from its `from_s` to the next one's;
    the first of a graph begins at −∞, and behind its last stands an ∞ that is no range.
    """

    first: Ints
    last: Ints
    from_s: Floats
    values: NDArray[Any]


def joint_graph(graphs: Sequence[QoSGraph]) -> JointGraph:
    """Gives the joint graph of some queries; without any, waiting costs nothing for ever.

    >>> joint_graph([QoSGraph(((0, 1), (4, 1), (5, 0))), QoSGraph(((0, 1), (2, 0)))])
    JointGraph(bends_s=array([0., 2., 4., 5.]), utilities=array([0. , 0.5, 0. , 1. , 0. ]))
    """
    bends_s = np.unique(np.concatenate([[], *(graph.critical_s for graph in graphs)]))
    behind = [sum(graph.gradient(bend_s) for graph in graphs) for bend_s in bends_s]
    return JointGraph(bends_s, np.array([0.0, *behind]))


def joint_graphs_of(units: Units) -> tuple[Ints, list[JointGraph]]:
    """Gives each unit's place among the joint graphs, and these: equal ones are there once."""
    place_of: dict[tuple[Any, ...], int] = {}
    places = np.zeros(len(units), dtype=np.int64)
    graphs: list[JointGraph] = []
    for shape in units.shapes:
        queries = (units.network.paths[number].query for number in shape.queries)
        asked = sorted((query.qos for query in queries if query.qos), key=lambda qos: qos.points)
        key = tuple(graph.points for graph in asked)
        if key not in place_of:
            place_of[key] = len(graphs)
            graphs.append(joint_graph(asked))
        places[shape.number] = place_of[key]
    return places, graphs


def latency_ranges(
    places: Ints, starts_s: Sequence[Floats], values: Sequence[NDArray[Any]]
) -> LatencyRanges:
    """Puts the ranges of all joint graphs behind each other.

    Args:
        starts_s, values: by graph; where its ranges begin but for the first, and each one's value.
    """
    first = np.cumsum([0, *(len(each) + 1 for each in values)], dtype=np.int64)
    ends = [np.concatenate([[-np.inf], each_s, [np.inf]]) for each_s in starts_s]
    padded = [np.concatenate([each, each[-1:]]) for each in values]
    count = np.array([len(each) for each in values], dtype=np.int64)
    return LatencyRanges(
        first[places],
        first[places] + count[places] - 1,
        np.concatenate([*ends, []]),
        np.concatenate([*padded, []]).astype(values[0].dtype if values else np.float64),
    )


@register(
    "qos",
    objective="QoS delivered",
    paper="Aurora §6.1",
    use="Queries say by QoS graphs what a late result is worth to them.",
    avoid="The overload lasts: whose results are worth nothing any more waits for all others.",
)
class Qos(Policy):
    """The largest utility first, among equals the least slack (Aurora §6.1).

    The utility is −dQoS/dlatency at the expected output latency: what a second of waiting costs at
    present. The slack is the time to the next critical point, ∞ behind the last. The latency of a
    box is the mean wait of its queue, and the expected output latency adds the time that lies ahead
    of a tuple. A shared box has the sum of utilities and the minimum of slacks. Queries without a
    QoS graph have utility 0 and slack ∞, and so has a unit whose costs nobody knows yet.

    A bend of the graph is passed when the instant at which the expected output latency reaches it
    has come. So utilities are constant between instants, slacks order as instants do, and the loop
    and the compiled selection compare the same numbers.

    Departs from the paper where outputs of a shared box lie at different distances: all have the
    time ahead of the farthest.
    """

    tuples_a_step = ALL

    def __init__(self) -> None:
        self._ranges = latency_ranges(np.zeros(0, dtype=np.int64), [], [])

    def prepare(self, units: Units) -> None:
        self._ranges = _pieces(units)

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        utilities, due_at_s = self.p_tuples(state.table, state.ready, now_s)
        return list(map(Step, state.ready[np.lexsort((due_at_s, -utilities))].tolist()))

    def p_tuples(self, table: UnitTable, chosen: Ints, now_s: float) -> tuple[Floats, Floats]:
        """Gives the utility of each of some units, and the instant at which its slack ends."""
        ranges, found = self._ranges, ranges_at(self._ranges, table, chosen, now_s)
        born_s = births_s(table["mean_arrived_at_s"][chosen], table["remaining_s"][chosen])
        return ranges.values[found], born_s + ranges.from_s[found + 1]

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        return Selection(_memory(_pieces(units)), qos_changed, qos_pick)


def _pieces(units: Units) -> LatencyRanges:
    places, graphs = joint_graphs_of(units)
    bends_s, utilities = [each.bends_s for each in graphs], [each.utilities for each in graphs]
    return latency_ranges(places, bends_s, utilities)


def births_s(mean_arrived_at_s: Floats, remaining_s: Floats) -> Floats:
    """Gives the birth of some units, as `birth_s` does of one."""
    born_s = mean_arrived_at_s - remaining_s
    return np.where(np.isnan(born_s), BEFORE_ALL_TIME_S, born_s)


def ranges_at(ranges: LatencyRanges, table: UnitTable, chosen: Ints, now_s: float) -> Ints:
    """Gives the range that each of some units is in."""
    born_s = births_s(table["mean_arrived_at_s"][chosen], table["remaining_s"][chosen])
    found: Ints = _ranges_at(ranges.first, ranges.last, ranges.from_s, chosen, born_s, now_s)
    return found


@compiled
def _ranges_at(
    first: Ints, last: Ints, from_s: Floats, chosen: Ints, born_s: Floats, now_s: float
) -> Ints:
    found = np.empty(len(chosen), dtype=np.int64)
    for place in range(len(chosen)):
        unit = chosen[place]
        found[place] = range_at(from_s, first[unit], last[unit], born_s[place], now_s)
    return found


@inlined
def birth_s(mean_arrived_at_s: float, remaining_s: float) -> float:
    """Gives the instant from which the expected output latency counts: eol = now − birth.

    Where figures are unknown, all critical points are long passed.
    """
    born_s = mean_arrived_at_s - remaining_s
    return BEFORE_ALL_TIME_S if np.isnan(born_s) else born_s


@inlined
def range_at(from_s: Floats, first: int, last: int, born_s: float, now_s: float) -> int:
    """Gives the last range whose beginning has come: the largest with birth + from ≤ now."""
    while first < last:
        middle = (first + last + 1) >> 1
        if born_s + from_s[middle] <= now_s:
            first = middle
        else:
            last = middle - 1
    return first


def _memory(ranges: LatencyRanges) -> tuple[Any, ...]:
    """Gives utility, end of slack, birth and range of each unit; what the ranges are; the rest.

    Who is not ready has utility −1 and no instant, and so loses to everybody without a test.
    Utilities and instants are also there as integers: the bits of floats order as the floats do
    that are not below 0, as utilities and instants to come are, and only integers are compared in
    several lanes at once (60 instead of 600 ns for 500 units).
    """
    count = len(ranges.first)
    utility, due_at_s = np.full(count, -1.0), np.full(count, np.inf)
    bits = utility.view(np.int64), due_at_s.view(np.int64)
    place = np.zeros(count), np.zeros(count, dtype=np.int64)
    constants = ranges.first, ranges.last, ranges.from_s, ranges.values.astype(np.float64)
    scalars = np.full(1, np.inf), np.zeros(1, dtype=np.int64)
    return (utility, due_at_s, *bits, *place, *constants, *scalars)


@borrowing
def qos_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    """Computes the p-tuple of a unit and when it changes."""
    utility, due_at_s, _, _, born_s, at, first, last, from_s, values, earliest_s, ready = memory
    ready[0] -= utility[unit] >= 0.0
    if not table[unit].ready:
        utility[unit], due_at_s[unit] = -1.0, np.inf
        return
    ready[0] += 1
    born_s[unit] = birth_s(table[unit].mean_arrived_at_s, table[unit].remaining_s)
    at[unit] = range_at(from_s, first[unit], last[unit], born_s[unit], now_s)
    utility[unit], due_at_s[unit] = values[at[unit]], born_s[unit] + from_s[at[unit] + 1]
    earliest_s[0] = min(earliest_s[0], due_at_s[unit])


@borrowing
def qos_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    """Compares all units, after those have moved on whose instant has come."""
    utility, due_at_s, gain, due, born_s, at, _, last, from_s, values, earliest_s, ready = memory
    if earliest_s[0] <= now_s:
        earliest_s[0] = np.inf
        for unit in range(len(due_at_s)):
            if due_at_s[unit] <= now_s:
                at[unit] = range_at(from_s, at[unit], last[unit], born_s[unit], now_s)
                utility[unit] = values[at[unit]]
                due_at_s[unit] = born_s[unit] + from_s[at[unit] + 1]
            earliest_s[0] = min(earliest_s[0], due_at_s[unit])
    if ready[0] == 0:
        return NOBODY, 0, 0
    best, least, chosen = gain[0], LARGEST, LARGEST
    for unit in range(len(gain)):
        best = max(best, gain[unit])
    for unit in range(len(gain)):
        least = min(least, due[unit] if gain[unit] == best else LARGEST)
    for unit in range(len(gain)):
        found = gain[unit] == best and due[unit] == least
        chosen = min(chosen, unit if found else LARGEST)
    return chosen, ALL, ready[0]
