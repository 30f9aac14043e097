"""The queries as rows of a world: the measurements of their results."""

from collections.abc import Mapping

import numpy as np

from headgate.model.arrays import Floats
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.simulation.build.closing_rows import is_by_clock
from headgate.simulation.world.records import RESULT, Records

MOST_ROWS = 4096
"""Queries beyond this many share the histograms of their class."""


def results_of(units: Units, table: UnitTable, floats: list[Floats]) -> Records:
    """Return a row for every query."""
    network, graph = units.network, units.graph
    results = np.zeros(len(network.paths), dtype=RESULT)
    results["stale_until_s"] = results["since_s"] = -np.inf
    overheads = {(s.box, s.side): float(table["overhead_s"][s.number]) for s in units.shapes}
    for node in graph.nodes:
        for query in node.queries:
            row = results[query]
            row["ideal_s"] = _ideal_s(units, overheads, node.number)
            row["by_clock"] = is_by_clock(graph, node.number)
    place = sum(map(len, floats))
    for number, path in enumerate(network.paths):
        row = results[number]
        row["query_class"] = network.class_number(path.query.query_class)
        row["row"] = number if len(results) <= MOST_ROWS else row["query_class"]
        if path.query.qos is not None:
            floats.append(np.array(path.query.qos.points).ravel())
            row["qos_first"], row["qos_end"] = place, place + len(floats[-1])
            place += len(floats[-1])
    return results


def _ideal_s(units: Units, overheads: Mapping[tuple[int, int], float], box: int) -> float:
    """Return T of the output of a box, including the overhead of the calls that it needs."""
    node = units.graph.nodes[box]
    sides = []
    for side, boxes in enumerate(node.boxes):
        below = max([_ideal_s(units, overheads, upstream) for upstream in boxes], default=0.0)
        sides.append(below + node.cost_s + overheads.get((box, side), 0.0))
    return sum(sides) if node.operator.kind == "join" else max(sides)
