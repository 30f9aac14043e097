"""The unit table: one row per unit, everything a policy may look at."""

from collections.abc import Collection, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headgate.errors import ConfigRefused
from headgate.model.plan import LANES
from headgate.model.query import QueryStatistics
from headgate.model.units import Units, UnitShape

UnitTable = NDArray[np.void]

UNIT = np.dtype(
    [
        ("ready", np.bool_),  # has tuples and does not run
        ("lane", np.int8),  # place in LANES of the lane that o and c̄ are of
        ("query_class", np.int32),
        ("pending", np.int64),  # N
        ("amount", np.float64),  # N by what is expected of it: less than `pending` in fluid runs
        ("head_arrived_at_s", np.float64),  # W = now − this
        ("mean_arrived_at_s", np.float64),
        ("remaining_s", np.float64),  # what of T lies ahead of a tuple of this queue
        ("deadline_at_s", np.float64),  # when the result that the oldest tuple counts for is due
        ("due", np.int64),  # pending tuples that arrived before that instant
        ("cost_s", np.float64),  # C̄ at the present queue length: overhead_s / n + tuple_cost_s
        ("overhead_s", np.float64),  # o, paid once a call
        ("tuple_cost_s", np.float64),  # c̄, paid for every tuple
        ("bytes_in", np.float64),
        ("deadline_s", np.float64),
        ("selectivity", np.float64),  # S, of the segment
        ("ideal_s", np.float64),  # T of the query, a call on one tuple with nobody else about
        ("weight", np.float64),
        ("unit", np.int64),
        ("query", np.int64),
        ("stream", np.int64),  # −1 where other units, or several streams, fill the queue
        ("box_selectivity", np.float64),  # s of the boxes that one call runs, and c̄ of them
        ("box_cost_s", np.float64),
        ("bytes_out", np.float64),
        ("pending_outputs", np.float64),  # what an oracle knows of the pending tuples, else NaN
        ("pending_s", np.float64),
    ],
    align=True,
)
"""A row: three cache lines. What changes with every tuple stands together, in the first; what a
call looks at, in the second."""


class Unit(Protocol):
    """A row of the unit table, as a priority function sees it."""

    unit: int
    query: int
    stream: int
    query_class: int
    selectivity: float
    cost_s: float
    ideal_s: float
    remaining_s: float
    overhead_s: float
    tuple_cost_s: float
    box_selectivity: float
    box_cost_s: float
    bytes_in: float
    bytes_out: float
    ready: bool
    lane: int
    pending: int
    amount: float
    head_arrived_at_s: float
    mean_arrived_at_s: float
    deadline_s: float
    deadline_at_s: float
    due: int
    weight: float
    pending_outputs: float
    pending_s: float


def unit_table(
    units: Units, known: Mapping[str, QueryStatistics] | None = None, overhead_s: float = 0.0
) -> UnitTable:
    """Gives the table of units, nothing pending.

    Figures come from `known` by query name where a unit runs a whole query, else from the boxes: S
    is the product of selectivities along a segment, c̄ the cost weighted by what reaches each box, T
    the plain sum (Sharaf §2). Where several segments leave a unit, S is their sum, c̄ counts shared
    boxes once, and T is such that S / T is the sum of the S_i / T_i (eq 3.9). A unit without
    figures has NaN and is probed first by whoever runs.
    """
    if not 0 <= overhead_s < np.inf:
        expected = "0 or more seconds"
        raise ConfigRefused(path="units", key="overhead_s", value=overhead_s, expected=expected)
    network, graph = units.network, units.graph
    table = np.zeros(len(units), dtype=UNIT)
    for shape in units.shapes:
        row: Any = table[shape.number]
        query = network.paths[shape.query].query
        row["unit"], row["query"], row["query_class"] = shape.number, shape.query, shape.query_class
        queue = graph.nodes[shape.box].queue
        alone = len(shape.streams) == 1 and not shape.fed_by
        row["stream"] = queue if queue >= 0 else shape.streams[0] if alone else -1
        row["weight"], row["overhead_s"] = query.weight, overhead_s
        row["deadline_s"] = np.inf if query.deadline_s is None else query.deadline_s
        row["head_arrived_at_s"] = row["mean_arrived_at_s"] = row["deadline_at_s"] = np.inf
        row["pending_outputs"] = row["pending_s"] = np.nan
        row["bytes_in"] = _bytes_in(units, shape)
        name = _own_name(units, shape)
        figures = None if name is None else (known or {}).get(name)
        if figures is not None:
            row["selectivity"] = row["box_selectivity"] = figures.selectivity
            row["overhead_s"], row["lane"] = figures.overhead_s, LANES.index(figures.lane)
            row["tuple_cost_s"] = row["box_cost_s"] = figures.cost_s
            row["ideal_s"] = row["remaining_s"] = figures.overhead_s + figures.cost_s
        else:
            _from_boxes(row, units, shape)
        row["bytes_out"] = graph.nodes[shape.stages[-1].box].operator.bytes_out
        row["cost_s"] = row["overhead_s"] + row["tuple_cost_s"]
    return table


def grown(
    table: UnitTable,
    units: Units,
    known: Mapping[str, QueryStatistics] | None,
    new: Collection[int],
) -> UnitTable:
    """Return the table of a network that has changed; units that were there keep their figures.

    What readers give a producer, its class and whom it works for, may have changed with them.

    Args:
        table: as it was before.
        new: units that have come, perhaps with the number of one that went.
    """
    found = unit_table(units, known)
    old = [unit for unit in range(len(table)) if unit not in new]
    for column in set(UNIT.names or ()).difference(OF_READERS):
        found[column][old] = table[column][old]
    return found


OF_READERS = ("query", "query_class", "weight", "deadline_s")
"""Columns of a producer that change as its readers come and go."""


def _from_boxes(row: Any, units: Units, shape: UnitShape) -> None:
    ways = shape.segments
    row["box_selectivity"], row["box_cost_s"] = units.figures(shape.number)
    call_s = float(row["overhead_s"])
    ideals_s = [way.ideal_s + call_s * units.calls_of(way.query) for way in ways]
    if len(ways) == 1:
        calls = sum(key in units.entries for key in units.way_of(shape.number))
        row["selectivity"], row["tuple_cost_s"] = ways[0].selectivity, ways[0].cost_s
        row["ideal_s"], row["remaining_s"] = ideals_s[0], ways[0].remaining_s + call_s * calls
        return
    selectivity = sum(way.selectivity for way in ways)
    row["selectivity"] = selectivity
    row["remaining_s"] = max(way.remaining_s for way in ways) + call_s
    weighted = sum(way.selectivity / ideal_s for way, ideal_s in zip(ways, ideals_s, strict=True))
    row["ideal_s"] = selectivity / weighted if weighted > 0 else max(ideals_s)
    row["tuple_cost_s"] = units.cost_s(shape.number)


def _own_name(units: Units, shape: UnitShape) -> str | None:
    """Return the name by which a unit's own figures are known; None where it runs no whole path."""
    paths, producer = units.network.paths, units.graph.producers.get(shape.stages[-1].box)
    if producer is not None:
        return paths[producer].known_as
    return paths[shape.query].known_as if len(shape.segments) == 1 else None


def _bytes_in(units: Units, shape: UnitShape) -> float:
    node = units.graph.nodes[shape.box]
    sizes = [units.network.streams[number].tuple_bytes for number in node.streams[shape.side]]
    sizes += [units.graph.nodes[box].operator.bytes_out for box in node.boxes[shape.side]]
    return float(np.mean(sizes))
