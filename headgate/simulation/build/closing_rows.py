"""The windows of aggregates as rows of a world."""

from dataclasses import dataclass

import numpy as np

from headgate.model.arrays import Floats
from headgate.model.network.graph import Graph
from headgate.model.network.units import Units
from headgate.simulation.world.links import Links
from headgate.simulation.world.records import CLOSING, Records


@dataclass(frozen=True)
class Closings:
    """The windows of all aggregates: a row for each, and an array for how late they are."""

    graph: Graph
    rows: Records
    late_s: Floats
    number_by_box: dict[int, int]

    def by_clock(self, box: int) -> list[int]:
        """Return the aggregates over windows by time that tuples of a box can reach, itself too."""
        boxes, left = dict[int, None](), [box]
        while left:
            number = left.pop()
            if number not in boxes:
                boxes[number] = None
                left += [reader for reader, _ in self.graph.useful_readers(number)]
        nodes = self.graph.nodes
        return sorted(
            self.number_by_box[number]
            for number in boxes
            if number in self.number_by_box and nodes[number].operator.closes_by_clock
        )

    def nearest_slide_s(self, box: int) -> float:
        """Return the shortest slide of those aggregates, 0 if there are none."""
        return min((float(self.rows["slide_s"][row]) for row in self.by_clock(box)), default=0.0)


def closings_of(units: Units, links: Links, ends_s: float) -> Closings:
    """Return the windows of all aggregates from which a way leads to an output.

    An aggregate comes after those that bring it tuples.
    """
    graph = units.graph
    nodes = [
        node
        for node in graph.nodes
        if node.operator.kind == "aggregate" and graph.ways(node.number)
    ]
    nodes.sort(key=lambda node: len(_upstream(graph, node.number)))
    numbers = {node.number: number for number, node in enumerate(nodes)}
    rows, windows = np.zeros(len(nodes), dtype=CLOSING), 0
    fills = {
        stage.box: stage.fills for shape in reversed(units.shapes) for stage in shape.stages
    }  # the same in all units that run the box
    for row, node in zip(rows, nodes, strict=True):
        upstream = _upstream(graph, node.number)
        row["behind_join"] = any(graph.nodes[box].operator.kind == "join" for box in upstream)
        before = [
            numbers[box]
            for box in sorted(upstream)
            if box in numbers and graph.nodes[box].operator.closes_by_clock
        ]
        row["before_first"], row["before_end"] = links.add(before)
        upstream.add(node.number)
        feeders = [
            shape.number
            for shape in units.shapes
            if any(stage.box in upstream for stage in shape.stages)
        ]
        row["unit_first"], row["unit_end"] = links.add(feeders)
        row["query_first"], row["query_end"] = links.add(node.queries)
        row["fill_first"], row["fill_end"] = links.add(fills.get(node.number, ()))
        row["slide_tuples"] = node.operator.slide_tuples or 0
        row["due_at_s"], row["first"] = np.inf, windows
        if node.operator.slide_s is not None:
            row["range_s"] = node.operator.range_s or 0.0
            row["slide_s"] = row["due_at_s"] = node.operator.slide_s
            latest_s = ends_s + float(row["range_s"]) + float(row["slide_s"])
            windows += int(latest_s / float(row["slide_s"])) + 1
        row["end"] = windows
    return Closings(graph, rows, np.zeros((windows + 1, 2)), numbers)


def is_by_clock(graph: Graph, box: int) -> bool:
    """Return True if every output of a box is, or comes from, the result of a window by time."""
    node = graph.nodes[box]
    if node.operator.closes_by_clock:
        return True
    if node.operator.kind in ("join", "aggregate") or any(node.streams):
        return False
    return all(is_by_clock(graph, before) for side in node.boxes for before in side)


def _upstream(graph: Graph, box: int) -> set[int]:
    boxes, left = set[int](), [number for side in graph.nodes[box].boxes for number in side]
    while left:
        number = left.pop()
        if number not in boxes:
            boxes.add(number)
            left += [before for side in graph.nodes[number].boxes for before in side]
    return boxes
