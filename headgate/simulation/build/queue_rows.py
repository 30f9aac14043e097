"""The queues of units as rows of a world, before the first tuple."""

from collections.abc import Sequence

import numpy as np

from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.simulation.build.closing_rows import Closings
from headgate.simulation.build.stage_rows import in_order
from headgate.simulation.world.links import Links
from headgate.simulation.world.records import JOIN, NONE, QUEUE, Records


def queues_of(
    units: Units,
    links: Links,
    table: UnitTable,
    closings: Closings,
    stages: Records,
    courses: Sequence[tuple[int, int]],
) -> Records:
    """Return a row for every unit."""
    queues = np.zeros(len(units), dtype=QUEUE)
    queues["head"] = queues["tail"] = NONE
    queues["active"] = True
    queues["stream"] = table["stream"]
    queues["seen_s"] = -np.inf
    first = 0
    for shape in units.shapes:
        row, count = queues[shape.number], len(shape.stages)
        boxes = stages[first : first + count]
        row["first_stage"], row["stages"] = first, count
        straight = all(boxes["parent"][1:] == np.arange(first, first + count - 1))
        inside = boxes[:-1]
        plain = np.all(boxes["kind"] != JOIN) and np.all(boxes["selectivity"] <= 1.0)
        silent = np.all(inside["query_end"] == inside["query_first"])
        silent = silent and np.all(inside["fill_end"] == inside["fill_first"])
        row["line"] = straight and plain and silent
        inputs = [(join, side) for join, side in zip(boxes["join"], boxes["side"], strict=True)]
        row["meets_itself"] = any((join, 1 - side) in inputs for join, side in inputs if join >= 0)
        row["random_key"] = boxes["random_key"][0]
        row["course_first"], row["course_end"] = courses[shape.number]
        row["slide_s"] = closings.nearest_slide_s(shape.box)
        row["closing_first"], row["closing_end"] = links.add(closings.by_clock(shape.box))
        row["in_order"] = in_order(units, shape.box, shape.side)
        row["merge_first"], row["merge_end"] = _merge_inputs(units, links, shape.number)
        first += count
    return queues


def _merge_inputs(units: Units, links: Links, unit: int) -> tuple[int, int]:
    """List the other inputs of an ordered union, each with its upstream units.

    Return an empty range if the unit is not an input of an ordered union.
    """
    shape = units.shapes[unit]
    node = units.graph.nodes[shape.box]
    if units.level != "operator" or node.operator.kind != "union" or node.sides < 2:
        return 0, 0
    numbers: list[int] = []
    for other in units.shapes:
        if other.box == shape.box and other.side != shape.side:
            ahead: list[int] = []
            left = list(other.fed_by)
            while left:
                ahead.append(left.pop())
                left += [feeder for feeder in units.shapes[ahead[-1]].fed_by if feeder not in ahead]
            numbers += [other.number, len(ahead), *ahead]
    return links.add(numbers)
