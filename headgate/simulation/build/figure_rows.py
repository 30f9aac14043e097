"""The measured figures of every stage as rows of a world, and the units that use them."""

import numpy as np

from headgate.model.network.units import Units
from headgate.simulation.world.links import Links
from headgate.simulation.world.records import FIGURE, NONE, Records

Node = tuple[int, int, tuple[int, ...]]
"""A stage on the way to outputs: its row, the place of its parent in the course, its queries."""


def figures_of(units: Units, links: Links) -> tuple[Records, list[tuple[int, int]]]:
    """Return a row for every stage, and for every unit the range of its course in the links.

    The course of a unit consists of the boxes that its S and C̄ are computed from. A box that
    several units run is measured separately in each of them: different tuples reach it.
    """
    graph, stages = units.graph, [stage for shape in units.shapes for stage in shape.stages]
    firsts = np.cumsum([0, *(len(shape.stages) for shape in units.shapes)])
    place_of = {(stage.box, stage.side): index for index, stage in reversed([*enumerate(stages)])}
    concerned: list[dict[int, None]] = [{} for _ in stages]
    courses = []
    for shape in units.shapes:
        first = int(firsts[shape.number])
        local = {(stage.box, stage.side): first + index for index, stage in enumerate(shape.stages)}
        course = _course(units, shape.number, first, {**place_of, **local})
        for place, _, _ in course:
            concerned[place][shape.number] = None
        numbers = [
            link
            for index, parent, queries in course
            for link in (index, parent, len(queries), *queries)
        ]
        courses.append(links.add(numbers))
    figures = np.zeros(max(1, len(stages)), dtype=FIGURE)
    for number, stage in enumerate(stages):
        row = figures[number]
        row["cost_s"] = graph.nodes[stage.box].cost_s
        row["selectivity"] = graph.selectivity(stage.box, stage.side)
        row["unit_first"], row["unit_end"] = links.add(list(concerned[number]))
    return figures, courses


def _course(
    units: Units, unit: int, first: int, place_of: dict[tuple[int, int], int]
) -> list[Node]:
    shape, graph = units.shapes[unit], units.graph
    way = units.way_of(unit)
    if way:  # to one output
        queries = {len(way) - 1: (shape.segments[0].query,)}
        return [
            (place_of[key], number - 1, queries.get(number, ())) for number, key in enumerate(way)
        ]
    course: list[Node] = []
    left = [((shape.box, shape.side), NONE)]
    if units.level == "query":
        served, left = set(shape.queries), []
        for number, stage in enumerate(shape.stages):
            outputs = tuple(query for query in stage.queries if query in served)
            course.append((first + number, stage.parent, outputs))
            if units.goes_on_behind(stage):
                left += [(reader, number) for reader in graph.useful_readers(stage.box)]
    while left:
        key, parent = left.pop()
        node = graph.nodes[key[0]]
        course.append((place_of[key], parent, tuple(node.queries)))
        place = len(course) - 1
        left += [(reader, place) for reader in reversed(graph.useful_readers(key[0]))]
    return course
