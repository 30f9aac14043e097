"""The graph of a network: every box with its inputs, readers and outputs, numbered."""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from math import nan

from headgate.model.network.derived_streams import streams_of
from headgate.model.network.network import Network
from headgate.model.network.operator import Operator

NAMED = 2**40
LONGEST_PATH = 64


@dataclass
class Node:
    """A box: what it does, where its tuples come from and where they go.

    `streams` and `boxes` hold, for each side, the numbers of the streams and boxes that it reads.
    A join has two sides, a union one per input, any other box one. `readers` are (box, side).
    `queries` are the queries whose results it puts out. `random_key` selects the random numbers
    that decide which tuples pass: boxes of the same `random_key` pass the same tuples. `queue` is
    the derived stream in which its tuples wait if another path fills it, else −1.
    """

    number: int
    name: str
    operator: Operator
    random_key: int
    streams: tuple[tuple[int, ...], ...] = ()
    boxes: tuple[tuple[int, ...], ...] = ()
    readers: list[tuple[int, int]] = field(default_factory=list)
    queries: list[int] = field(default_factory=list)
    queue: int = -1

    @property
    def sides(self) -> int:
        return len(self.streams)

    @property
    def cost_s(self) -> float:
        return nan if self.operator.cost_s is None else self.operator.cost_s


@dataclass(frozen=True)
class Way:
    """One way from a box to the output of a query, beginning with the box itself.

    `selectivity` is S, `cost_s` is C̄, `remaining_s` the plain sum of the costs along the way, and
    `ideal_s` T of the query (Sharaf §3.1, §3.4.2).
    """

    query: int
    selectivity: float
    cost_s: float
    remaining_s: float
    ideal_s: float

    def after(self, selectivity: float, cost_s: float) -> "Way":
        """Return the way that begins one box earlier, at a box with this selectivity and cost."""
        return Way(
            self.query,
            selectivity * self.selectivity,
            cost_s + selectivity * self.cost_s,
            cost_s + self.remaining_s,
            self.ideal_s,
        )


class Graph:
    """The boxes of a network in order: named boxes first, then those of each path.

    Args:
        rates_per_s: tuples per second by stream number. They determine how many tuples a join's
            window holds and how many windows an aggregate closes per tuple. A stream without a rate
            counts as 1 per second.
    """

    def __init__(self, network: Network, rates_per_s: Mapping[int, float] | None = None) -> None:
        self.network = network
        self.nodes: list[Node] = []
        self.producers: dict[int, int] = {}
        """Numbers of the paths that fill derived streams, by their last box."""
        self._rates_per_s = dict(rates_per_s or {})
        self._add_boxes()
        self._add_paths()
        for node in self.nodes:
            for side, boxes in enumerate(node.boxes):
                for box in boxes:
                    self.nodes[box].readers.append((node.number, side))
        self._ideal: dict[int, float] = {}
        self._measure({})

    def measured(self, figures: Mapping[tuple[int, int], tuple[float, float]]) -> "Graph":
        """Return the graph with measured selectivities and costs.

        T stays as declared: it is a property of the query, not of what has been seen so far.

        Args:
            figures: selectivity and cost in seconds by (box, side); others keep theirs.
        """
        graph = copy(self)
        graph._measure(figures)
        return graph

    def _measure(self, figures: Mapping[tuple[int, int], tuple[float, float]]) -> None:
        self._figures = dict(figures)
        self._output_per_s: dict[int, float] = {}
        self._ways: dict[tuple[int, int], tuple[Way, ...]] = {}
        self._mean_cost: dict[tuple[int, int], float] = {}

    def cost_s(self, box: int, side: int = 0) -> float:
        """Return c of a box for a tuple at a side."""
        figures = self._figures.get((box, side))
        return self.nodes[box].cost_s if figures is None else figures[1]

    def input_per_s(self, box: int, side: int = 0) -> float:
        """Return the tuples per second that reach a side of a box."""
        node = self.nodes[box]
        streams = sum(self._rates_per_s.get(stream, 1.0) for stream in node.streams[side])
        return streams + sum(self.output_per_s(source) for source in node.boxes[side])

    def output_per_s(self, box: int) -> float:
        """Return the tuples per second that a box puts out."""
        if box not in self._output_per_s:
            sides = range(self.nodes[box].sides)
            self._output_per_s[box] = sum(
                self.input_per_s(box, side) * self.selectivity(box, side) for side in sides
            )
        return self._output_per_s[box]

    def selectivity(self, box: int, side: int = 0) -> float:
        """Return the tuples out per tuple in at a side.

        A tuple meets S_R V / τ_R tuples in the other window of a join (Sharaf §3.4.2). An aggregate
        closes a window every slide.
        """
        operator = self.nodes[box].operator
        if (box, side) in self._figures:
            return self._figures[box, side][0]
        if operator.slide_tuples is not None:
            return 1.0 / operator.slide_tuples
        if operator.kind == "aggregate":
            return 1.0 / max(self.input_per_s(box) * (operator.slide_s or nan), 1.0)
        selectivity = nan if operator.selectivity is None else operator.selectivity
        if operator.kind == "join":
            return selectivity * self.input_per_s(box, 1 - side) * (operator.window_s or nan)
        return selectivity

    def ideal_s(self, box: int) -> float:
        """Return T of a box's outputs: C_L + C_R + 2 C_J at a join (Sharaf definition 8)."""
        if box not in self._ideal:
            node = self.nodes[box]
            below = [
                max([self.ideal_s(source) for source in side], default=0.0) for side in node.boxes
            ]
            if node.operator.kind == "join":
                self._ideal[box] = sum(below) + 2 * node.cost_s
            else:
                self._ideal[box] = max(below) + node.cost_s
        return self._ideal[box]

    def mean_cost_s(self, box: int, side: int = 0) -> float:
        """Return C̄ of everything that one tuple at a side causes; shared boxes count once."""
        if (box, side) not in self._mean_cost:
            readers = self.useful_readers(box)
            after = sum(self.mean_cost_s(*reader) for reader in readers)
            cost_s = self.cost_s(box, side)
            if readers:
                cost_s += self.selectivity(box, side) * after
            self._mean_cost[box, side] = cost_s
        return self._mean_cost[box, side]

    def ways(self, box: int, side: int = 0) -> tuple[Way, ...]:
        """Return every way from a side of a box to an output."""
        if (box, side) not in self._ways:
            selectivity, cost_s = self.selectivity(box, side), self.cost_s(box, side)
            behind = [way for reader in self.nodes[box].readers for way in self.ways(*reader)]
            through = tuple(way.after(selectivity, cost_s) for way in behind)
            self._ways[box, side] = self.own_ways(box, side) + through
        return self._ways[box, side]

    def own_ways(self, box: int, side: int = 0) -> tuple[Way, ...]:
        """Return the ways that end at a box: the queries whose results it puts out."""
        selectivity, cost_s = self.selectivity(box, side), self.cost_s(box, side)
        return tuple(
            Way(query, selectivity, cost_s, cost_s, self.ideal_s(box))
            for query in self.nodes[box].queries
        )

    def useful_readers(self, box: int) -> list[tuple[int, int]]:
        """Return the readers of a box from which a way leads to an output."""
        return [reader for reader in self.nodes[box].readers if self.ways(*reader)]

    def _add_boxes(self) -> None:
        network = self.network
        streams = {stream.name: number for number, stream in enumerate(network.streams)}
        boxes = {box.name: number for number, box in enumerate(network.boxes)}
        for number, box in enumerate(network.boxes):
            apart = box.operator.kind in ("join", "union")
            sides = [(name,) for name in box.inputs] if apart else [box.inputs]
            self.nodes.append(
                Node(
                    number,
                    box.name,
                    box.operator,
                    _random_key(box.operator, NAMED + number),
                    tuple(tuple(streams[name] for name in s if name in streams) for s in sides),
                    tuple(tuple(boxes[name] for name in s if name in boxes) for s in sides),
                )
            )

    def _add_paths(self) -> None:
        """Add the boxes of paths. A reader of a derived stream follows the box that fills it.

        A producer without readers counts as the output of its own query, so that it is a unit, too.
        """
        network = self.network
        stream_by_name = {stream.name: stream for stream in network.streams}
        ends: dict[str, int] = {}
        readers: list[tuple[Node, tuple[str, ...]]] = []
        for query, path in enumerate(network.paths):
            if path.output is not None:
                self.nodes[network.box_number(path.output)].queries.append(query)
                continue
            streams: tuple[int, ...] = (network.stream_number(path.stream),)
            boxes: tuple[int, ...] = ()
            for position, operator in enumerate(path.operators):
                number = len(self.nodes)
                name = f"{path.query.name}.{position}"
                if position:
                    streams, boxes = (), (number - 1,)
                random_key = _random_key(operator, query * LONGEST_PATH + position)
                self.nodes.append(Node(number, name, operator, random_key, (streams,), (boxes,)))
            readers.append((self.nodes[-len(path.operators)], streams_of(path, stream_by_name)))
            if path.into is None:
                self.nodes[-1].queries.append(query)
            else:
                ends[path.into] = len(self.nodes) - 1
                self.producers[ends[path.into]] = query
        for node, names in readers:
            if boxes := tuple(ends[name] for name in names if name in ends):
                node.queue = node.streams[0][0]
                others = any(name not in ends for name in names)
                node.streams, node.boxes = (node.streams[0] if others else (),), (boxes,)
        read = {box for node, _ in readers for box in node.boxes[0]}
        for box, query in self.producers.items():
            if box not in read:
                self.nodes[box].queries.append(query)


def _random_key(operator: Operator, number: int) -> int:
    """Return the number that, with the tuple and the seed, decides whether an operator passes it.

    It is `number`, unless operators share an attribute and so have to pass the same tuples.
    """
    return number if operator.attribute is None else -1 - operator.attribute
