"""Units: what the scheduler picks. A network is cut into segments, each with a queue."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from headgate.errors import ConfigRefused
from headgate.model.network.graph import Graph, Way
from headgate.model.network.network import Network
from headgate.model.network.priority_tree import Value, priority_tree

Level = Literal["query", "operator"]
SharedPriority = Literal["max", "sum", "pdt"]


@dataclass(frozen=True, slots=True)
class Stage:
    """A box inside a unit. Its input is the stage `parent`, or the unit's queue if that is −1.

    Its output goes to the results of `queries`, to the queues of the units in `fills`, and to the
    stages whose parent it is.
    """

    box: int
    side: int
    parent: int
    queries: tuple[int, ...] = ()
    fills: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitShape:
    """A unit: a queue, and the boxes that its tuples run through in one call.

    Args:
        box, side: where its tuples come in.
        streams: the streams that fill its queue.
        fed_by: the units that fill its queue.
        feeds: the units whose queues it fills.
        stages: its boxes, each after its parent.
        segments: the ways to outputs that define its priority (Sharaf §3.6).
        query, query_class: those of its output; if it has several, those of the most important.
    """

    number: int
    box: int
    side: int
    streams: tuple[int, ...]
    fed_by: tuple[int, ...]
    feeds: tuple[int, ...]
    stages: tuple[Stage, ...]
    segments: tuple[Way, ...]
    query: int
    query_class: int

    @property
    def queries(self) -> tuple[int, ...]:
        """The queries whose results pass through it."""
        return tuple(dict.fromkeys(way.query for way in self.segments))


@dataclass(frozen=True)
class Units:
    """A network's units at one level.

    At query level a tuple runs from a stream to the outputs in one call, and the unit of a plain
    path has the path's number. At operator level every box has a queue and a call of its own
    (Sharaf §3.3). The clock triggers the results of an aggregate over windows by time, and no call
    does. So at either level the boxes behind it have queues.
    """

    network: Network
    graph: Graph
    level: Level
    shared_priority: SharedPriority
    shapes: tuple[UnitShape, ...]
    rebuilds_trees: bool = False

    def __len__(self) -> int:
        return len(self.shapes)

    def figures(self, unit: int) -> tuple[float, float]:
        """Return s and c̄ of the boxes that one call of a unit runs."""
        reach: list[float] = []
        cost_s = selectivity = 0.0
        for stage in self.shapes[unit].stages:
            coming = 1.0 if stage.parent < 0 else reach[stage.parent]
            going = coming * self.graph.selectivity(stage.box, stage.side)
            cost_s += coming * self.graph.nodes[stage.box].cost_s
            reach.append(going)
            if stage.queries or stage.fills:
                selectivity += going
        return selectivity, cost_s

    def calls_of(self, query: int) -> int:
        """Return the number of calls that a result of a query takes, with nothing else running."""
        return self._calls[query]

    @cached_property
    def entries(self) -> frozenset[tuple[int, int]]:
        """The (box, side) at which calls begin."""
        return frozenset((shape.box, shape.side) for shape in self.shapes)

    @cached_property
    def _calls(self) -> dict[int, int]:
        calls_by_box: dict[int, int] = {}

        def calls(box: int) -> int:
            if box not in calls_by_box:
                node = self.graph.nodes[box]
                sides = [
                    max([calls(source) for source in sources], default=0)
                    + ((box, side) in self.entries)
                    for side, sources in enumerate(node.boxes)
                ]
                calls_by_box[box] = sum(sides) if node.operator.kind == "join" else max(sides)
            return calls_by_box[box]

        return {query: calls(node.number) for node in self.graph.nodes for query in node.queries}

    def way_of(self, unit: int) -> list[tuple[int, int]]:
        """Return the (box, side) from a unit to its output; empty if there are several ways."""
        shape, graph = self.shapes[unit], self.graph
        if len(shape.segments) != 1:
            return []
        way, place = [], (shape.box, shape.side)
        while True:
            way.append(place)
            onward = [reader for reader in graph.nodes[place[0]].readers if graph.ways(*reader)]
            if not onward:
                return way
            place = onward[0]

    def goes_on_behind(self, stage: Stage) -> bool:
        """Return True if units behind a stage's queues count for the unit of the stage, too."""
        by_clock = self.graph.nodes[stage.box].operator.closes_by_clock
        return by_clock or (self.rebuilds_trees and len(stage.fills) > 1)

    def cost_s(self, unit: int) -> float:
        """Return C̄ of the segments that define a unit's priority; shared boxes count once."""
        shape, graph = self.shapes[unit], self.graph
        if self.level == "operator":
            return graph.mean_cost_s(shape.box, shape.side)
        reach: list[float] = []
        cost_s = 0.0
        for stage in shape.stages:
            coming = 1.0 if stage.parent < 0 else reach[stage.parent]
            cost_s += coming * graph.nodes[stage.box].cost_s
            reach.append(coming * graph.selectivity(stage.box, stage.side))
            if self.goes_on_behind(stage):
                after = graph.useful_readers(stage.box)
                cost_s += reach[-1] * sum(graph.mean_cost_s(*reader) for reader in after)
        return cost_s


def units_of(
    network: Network,
    level: Level = "query",
    *,
    shared_priority: SharedPriority = "pdt",
    value: Value | None = None,
    rates_per_s: Mapping[int, float] | None = None,
    rebuilds_trees: bool = False,
) -> Units:
    """Cut a network into units.

    Args:
        shared_priority: how a shared first operator is ranked, and what runs with it, at query
            level. `max` ranks it by its best segment, `sum` by all, and both run all segments.
            `pdt` ranks by and runs those of its priority-defining tree (Sharaf §3.6.2); the rest
            have queues of their own.
        value: the priority of a segment, for `pdt`; S / C̄ by default.
        rates_per_s: tuples per second by stream number, for joins and aggregates.
        rebuilds_trees: with `pdt` at query level, every branch behind a shared first operator has a
            queue, so that the policy can put other branches into the tree when figures change.
    """
    for key, choice, choices in (
        ("level", level, Level),
        ("shared_priority", shared_priority, SharedPriority),
    ):
        if choice not in get_args(choices):
            expected = "one of " + ", ".join(get_args(choices))
            raise ConfigRefused(path="units", key=key, value=choice, expected=expected)
    graph = Graph(network, rates_per_s)
    rank = value or (lambda selectivity, cost_s, ideal_s: selectivity / cost_s)
    rebuilds_trees = rebuilds_trees and level == "query" and shared_priority == "pdt"
    entries = _entries(graph, level, shared_priority, rank, rebuilds_trees)
    number_of = {entry: number for number, entry in enumerate(entries)}
    programs = [_program(graph, entry, number_of) for entry in entries]
    fed_by: list[list[int]] = [[] for _ in entries]
    for number, stages in enumerate(programs):
        for unit in dict.fromkeys(unit for stage in stages for unit in stage.fills):
            fed_by[unit].append(number)
    shapes = []
    for number, ((box, side), stages) in enumerate(zip(entries, programs, strict=True)):
        segments = _segments(graph, box, side, stages, level)
        reached = [way.query for way in segments]
        classes = {query: _class_of(network, query) for query in reached}
        important = max(reached, key=lambda query: network.classes[classes[query]].priority)
        producer = graph.producers.get(stages[-1].box)
        shapes.append(
            UnitShape(
                number,
                box,
                side,
                graph.nodes[box].streams[side],
                tuple(fed_by[number]),
                tuple(dict.fromkeys(unit for stage in stages for unit in stage.fills)),
                stages,
                segments,
                important,
                classes[important] if producer is None else _class_of(network, producer),
            )
        )
    return Units(network, graph, level, shared_priority, tuple(shapes), rebuilds_trees)


def _entries(
    graph: Graph,
    level: Level,
    shared_priority: SharedPriority,
    value: Value,
    rebuilds_trees: bool,
) -> list[tuple[int, int]]:
    """Return the (box, side) that have a queue, in the order of boxes."""
    useful = [
        (node.number, side)
        for node in graph.nodes
        for side in range(node.sides)
        if graph.ways(node.number, side)
    ]
    if level == "operator":
        return useful
    entries = [
        entry
        for entry in useful
        if graph.nodes[entry[0]].streams[entry[1]] or graph.nodes[entry[0]].queue >= 0
    ]
    closing = [node for node in graph.nodes if node.operator.closes_by_clock]
    behind = [reader for node in closing for reader in graph.useful_readers(node.number)]
    entries = sorted({*entries, *behind})
    if shared_priority == "pdt":
        cut = []
        for box, side in entries:
            readers = graph.useful_readers(box)
            tree = priority_tree(graph, box, side, value, by_call=True).readers
            stay = () if rebuilds_trees and len(readers) > 1 else tree
            cut += [reader for reader in readers if reader not in stay]
        entries = sorted({*entries, *cut})
    return entries


def _program(
    graph: Graph, entry: tuple[int, int], number_of: Mapping[tuple[int, int], int]
) -> tuple[Stage, ...]:
    """Return a unit's boxes, depth first; boxes behind another unit's queue belong to that unit."""
    stages: list[Stage] = []

    def add(box: int, side: int, parent: int) -> None:
        node = graph.nodes[box]
        useful = graph.useful_readers(box)
        fills = tuple(number_of[reader] for reader in useful if reader in number_of)
        stages.append(Stage(box, side, parent, tuple(node.queries), fills))
        position = len(stages) - 1
        for reader in useful:
            if reader not in number_of:
                add(*reader, position)

    add(*entry, -1)
    return tuple(stages)


def _segments(
    graph: Graph, box: int, side: int, stages: tuple[Stage, ...], level: Level
) -> tuple[Way, ...]:
    """Return the ways that count for a unit's priority: at query level, those it runs itself.

    The ways behind an aggregate over windows by time count as well: nobody else brings it tuples.
    """
    ways = graph.ways(box, side)
    if level == "operator":
        return ways
    queries = {query for stage in stages for query in stage.queries}
    for stage in stages:
        if graph.nodes[stage.box].operator.closes_by_clock:
            queries.update(way.query for way in graph.ways(stage.box, stage.side))
    return tuple(way for way in ways if way.query in queries) or ways


def _class_of(network: Network, query: int) -> int:
    return network.class_number(network.paths[query].query.query_class)
