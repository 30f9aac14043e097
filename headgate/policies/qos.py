"""Quality of service: the unit that loses most by waiting runs first (Aurora §6.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.compiled import borrowing, compiled, inlined
from headgate.model.arrays import Floats, Ints
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.model.plan import ALL, Step
from headgate.model.qos_graph import QoSGraph
from headgate.policies.interface import Policy, Selection, State
from headgate.policies.registry import register
from headgate.policies.structures.selection import NO_UNIT

BEFORE_ALL_TIME_S = -1e300
LARGEST = 2**63 - 1


@dataclass(frozen=True)
class JointGraph:
    """What waiting costs a unit: the QoS graphs of all its queries combined.

    `bends_s` are the critical points of all graphs; `utilities` has the sum of gradients before the
    first bend and after each bend. So the time to the next bend is the minimum of the queries'
    slacks, and the utility is the sum of theirs (Aurora §6.1, footnote 2).
    """

    bends_s: Floats
    utilities: Floats


@dataclass(frozen=True)
class LatencyRanges:
    """Ranges of expected output latency of all joint graphs, one graph after the other.

    A unit's ranges are `first`, ..., `last`. A range reaches from its `from_s` to the next one's;
    the first range of a graph begins at −∞, and its last range is followed by an ∞ that only marks
    the end.
    """

    first: Ints
    last: Ints
    from_s: Floats
    values: NDArray[Any]


def joint_graph(graphs: Sequence[QoSGraph]) -> JointGraph:
    """Return the joint graph of several QoS graphs. Without any, waiting never costs anything.

    >>> joint_graph([QoSGraph(((0, 1), (4, 1), (5, 0))), QoSGraph(((0, 1), (2, 0)))])
    JointGraph(bends_s=array([0., 2., 4., 5.]), utilities=array([0. , 0.5, 0. , 1. , 0. ]))
    """
    bends_s = np.unique(np.concatenate([[], *(graph.critical_s for graph in graphs)]))
    gradients = [sum(graph.gradient(bend_s) for graph in graphs) for bend_s in bends_s]
    return JointGraph(bends_s, np.array([0.0, *gradients]))


def joint_graphs_of(units: Units) -> tuple[Ints, list[JointGraph]]:
    """Return the index of each unit's joint graph, and the joint graphs without duplicates."""
    place_of: dict[tuple[Any, ...], int] = {}
    places = np.zeros(len(units), dtype=np.int64)
    graphs: list[JointGraph] = []
    for shape in units.shapes:
        queries = (units.network.paths[number].query for number in shape.queries)
        qos_graphs = sorted(
            (query.qos for query in queries if query.qos), key=lambda qos: qos.points
        )
        key = tuple(graph.points for graph in qos_graphs)
        if key not in place_of:
            place_of[key] = len(graphs)
            graphs.append(joint_graph(qos_graphs))
        places[shape.number] = place_of[key]
    return places, graphs


def latency_ranges(
    places: Ints, starts_s: Sequence[Floats], values: Sequence[NDArray[Any]]
) -> LatencyRanges:
    """Join the ranges of all joint graphs into one list.

    Args:
        places: the index of each unit's joint graph.
        starts_s: for each graph, where its ranges begin, except the first.
        values: for each graph, the value of each range.
    """
    first = np.cumsum([0, *(len(graph_values) + 1 for graph_values in values)], dtype=np.int64)
    ends = [np.concatenate([[-np.inf], graph_starts_s, [np.inf]]) for graph_starts_s in starts_s]
    padded = [np.concatenate([graph_values, graph_values[-1:]]) for graph_values in values]
    count = np.array([len(graph_values) for graph_values in values], dtype=np.int64)
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
    use="Queries have QoS graphs that say what a late result is worth.",
    avoid="The overload lasts: a query whose results have lost all worth waits for all others.",
)
class Qos(Policy):
    """The largest utility first, then the least slack (Aurora §6.1).

    The utility is −dQoS/dlatency at the expected output latency: what a second of waiting costs
    now. The slack is the time to the next critical point, ∞ after the last one. The latency of a
    box is the mean wait of its queue, and the expected output latency adds the remaining time of a
    tuple. A shared box has the sum of utilities and the minimum of slacks. Queries without a QoS
    graph have utility 0 and slack ∞, and so does a unit whose costs are not known yet.

    A bend of the graph is passed at the instant when the expected output latency reaches it. So
    utilities are constant between such instants, slacks have the same order as these instants, and
    `plan` and the compiled selection compare the same numbers.

    Departs from the paper where outputs of a shared box are at different distances: all get the
    remaining time of the farthest.
    """

    def __init__(self) -> None:
        self._ranges = latency_ranges(np.zeros(0, dtype=np.int64), [], [])

    def prepare(self, units: Units) -> None:
        self._ranges = _pieces(units)

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        utilities, due_at_s = self.p_tuples(state.table, state.ready, now_s)
        return list(map(Step, state.ready[np.lexsort((due_at_s, -utilities))].tolist()))

    def p_tuples(self, table: UnitTable, chosen: Ints, now_s: float) -> tuple[Floats, Floats]:
        """Return the utility of each chosen unit, and the instant at which its slack ends."""
        ranges, indexes = self._ranges, ranges_at(self._ranges, table, chosen, now_s)
        born_s = births_s(table["mean_arrived_at_s"][chosen], table["remaining_s"][chosen])
        return ranges.values[indexes], born_s + ranges.from_s[indexes + 1]

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        return Selection(_memory(_pieces(units)), qos_changed, qos_pick)


def _pieces(units: Units) -> LatencyRanges:
    places, graphs = joint_graphs_of(units)
    bends_s, utilities = [graph.bends_s for graph in graphs], [graph.utilities for graph in graphs]
    return latency_ranges(places, bends_s, utilities)


def births_s(mean_arrived_at_s: Floats, remaining_s: Floats) -> Floats:
    """Return the birth of several units, as `birth_s` does for one."""
    born_s = mean_arrived_at_s - remaining_s
    return np.where(np.isnan(born_s), BEFORE_ALL_TIME_S, born_s)


def ranges_at(ranges: LatencyRanges, table: UnitTable, chosen: Ints, now_s: float) -> Ints:
    """Return the index of the range that each chosen unit is in."""
    born_s = births_s(table["mean_arrived_at_s"][chosen], table["remaining_s"][chosen])
    indexes: Ints = _ranges_at(ranges.first, ranges.last, ranges.from_s, chosen, born_s, now_s)
    return indexes


@compiled
def _ranges_at(
    first: Ints, last: Ints, from_s: Floats, chosen: Ints, born_s: Floats, now_s: float
) -> Ints:
    indexes = np.empty(len(chosen), dtype=np.int64)
    for place in range(len(chosen)):
        unit = chosen[place]
        indexes[place] = range_at(from_s, first[unit], last[unit], born_s[place], now_s)
    return indexes


@inlined
def birth_s(mean_arrived_at_s: float, remaining_s: float) -> float:
    """Return the instant from which the expected output latency counts: eol = now − birth.

    If figures are unknown, the birth is so early that all critical points are passed.
    """
    born_s = mean_arrived_at_s - remaining_s
    return BEFORE_ALL_TIME_S if np.isnan(born_s) else born_s


@inlined
def range_at(from_s: Floats, first: int, last: int, born_s: float, now_s: float) -> int:
    """Return the last range that has begun: the largest index with birth + from ≤ now."""
    while first < last:
        middle = (first + last + 1) >> 1
        if born_s + from_s[middle] <= now_s:
            first = middle
        else:
            last = middle - 1
    return first


def _memory(ranges: LatencyRanges) -> tuple[Any, ...]:
    """Return the memory of the compiled selection.

    It has the utility, end of slack, birth and range of each unit; the ranges themselves; the
    earliest end of a slack; and the number of ready units. A unit that is not ready has utility −1
    and end of slack ∞, and so loses to every other unit without a test.

    Utilities and ends of slacks are also there as integers. The bits of floats that are not
    negative, as utilities and future instants are, have the order of the floats, and only integers
    are compared in several lanes at once (60 instead of 600 ns for 500 units).
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
    """Compute the p-tuple of a unit, its utility and slack, and when it changes."""
    utility, due_at_s, _, _, born_s, index, first, last, from_s, values, earliest_s, ready = memory
    ready[0] -= utility[unit] >= 0.0
    if not table[unit].ready:
        utility[unit], due_at_s[unit] = -1.0, np.inf
        return
    ready[0] += 1
    born_s[unit] = birth_s(table[unit].mean_arrived_at_s, table[unit].remaining_s)
    index[unit] = range_at(from_s, first[unit], last[unit], born_s[unit], now_s)
    utility[unit], due_at_s[unit] = values[index[unit]], born_s[unit] + from_s[index[unit] + 1]
    earliest_s[0] = min(earliest_s[0], due_at_s[unit])


@borrowing
def qos_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    """Pick the best of all units, after moving those whose slack has ended to their next range."""
    utility, due_at_s, gain, due, born_s, index, _, last, from_s, values, earliest_s, ready = memory
    if earliest_s[0] <= now_s:
        earliest_s[0] = np.inf
        for unit in range(len(due_at_s)):
            if due_at_s[unit] <= now_s:
                index[unit] = range_at(from_s, index[unit], last[unit], born_s[unit], now_s)
                utility[unit] = values[index[unit]]
                due_at_s[unit] = born_s[unit] + from_s[index[unit] + 1]
            earliest_s[0] = min(earliest_s[0], due_at_s[unit])
    if ready[0] == 0:
        return NO_UNIT, 0, 0
    best, least, chosen = gain[0], LARGEST, LARGEST
    for unit in range(len(gain)):
        best = max(best, gain[unit])
    for unit in range(len(gain)):
        least = min(least, due[unit] if gain[unit] == best else LARGEST)
    for unit in range(len(gain)):
        is_best = gain[unit] == best and due[unit] == least
        chosen = min(chosen, unit if is_best else LARGEST)
    return chosen, ALL, ready[0]
