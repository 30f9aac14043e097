"""What is measured of every stage of a world, and whom it concerns."""

import numpy as np

from headgate.model.units import Units
from headgate.simulation.world.links import Links
from headgate.simulation.world.world import FIGURE, NONE, Records

Node = tuple[int, int, tuple[int, ...]]
"""A stage on the way to outputs: its place, that of the node before it, and its queries."""


def figures_of(units: Units, links: Links) -> tuple[Records, list[tuple[int, int]]]:
    """Gives a row for every stage, and for every unit where its course lies in the links.

    A unit's course are the boxes that its S and C̄ are made of. A box that several units run is
    measured in each for itself: what reaches it differs.
    """
    graph, stages = units.graph, [stage for shape in units.shapes for stage in shape.stages]
    firsts = np.cumsum([0, *(len(shape.stages) for shape in units.shapes)])
    place_of = {(stage.box, stage.side): at for at, stage in reversed([*enumerate(stages)])}
    concerned: list[dict[int, None]] = [{} for _ in stages]
    courses = []
    for shape in units.shapes:
        first = int(firsts[shape.number])
        own = {(stage.box, stage.side): first + at for at, stage in enumerate(shape.stages)}
        course = _course(units, shape.number, first, {**place_of, **own})
        for place, _, _ in course:
            concerned[place][shape.number] = None
        numbers = [each for at, parent, asks in course for each in (at, parent, len(asks), *asks)]
        courses.append(links.add(numbers))
    figures = np.zeros(max(1, len(stages)), dtype=FIGURE)
    for at, stage in enumerate(stages):
        row = figures[at]
        row["cost_s"] = graph.nodes[stage.box].cost_s
        row["selectivity"] = graph.selectivity(stage.box, stage.side)
        row["unit_first"], row["unit_end"] = links.add(list(concerned[at]))
    return figures, courses


def _course(
    units: Units, unit: int, first: int, place_of: dict[tuple[int, int], int]
) -> list[Node]:
    shape, graph = units.shapes[unit], units.graph
    way = units.way_of(unit)
    if way:  # to one output
        asks = {len(way) - 1: (shape.segments[0].query,)}
        return [(place_of[key], at - 1, asks.get(at, ())) for at, key in enumerate(way)]
    if units.level == "query":
        asked = set(shape.queries)
        return [
            (first + at, stage.parent, tuple(each for each in stage.queries if each in asked))
            for at, stage in enumerate(shape.stages)
        ]
    course: list[Node] = []
    left = [((shape.box, shape.side), NONE)]
    while left:
        key, parent = left.pop()
        node = graph.nodes[key[0]]
        course.append((place_of[key], parent, tuple(node.queries)))
        at = len(course) - 1
        left += [(reader, at) for reader in reversed(node.readers) if graph.ways(*reader)]
    return course
