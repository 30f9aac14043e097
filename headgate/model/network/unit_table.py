"""The unit table: one row per unit, with everything that a policy may look at."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headgate.errors import ConfigRefused
from headgate.model.arrays import Ints
from headgate.model.network.units import Units, UnitShape
from headgate.model.plan import LANES
from headgate.model.query import QueryStatistics

UnitTable = NDArray[np.void]

UNIT = np.dtype(
    [
        ("ready", np.bool_),  # has pending tuples and is not running
        ("lane", np.int8),  # index in LANES of the lane whose o and c̄ these are
        ("query_class", np.int32),
        ("pending", np.int64),  # N
        ("amount", np.float64),  # expected N: less than `pending` in fluid runs
        ("head_arrived_at_s", np.float64),  # W = now − this
        ("mean_arrived_at_s", np.float64),
        ("remaining_s", np.float64),  # part of T that lies ahead of a tuple of this queue
        ("deadline_at_s", np.float64),  # deadline of the result that the oldest tuple is part of
        ("due", np.int64),  # pending tuples that arrived before that instant
        ("cost_s", np.float64),  # C̄ at the present queue length: overhead_s / n + tuple_cost_s
        ("overhead_s", np.float64),  # o, paid once per call
        ("tuple_cost_s", np.float64),  # c̄, paid per tuple
        ("bytes_in", np.float64),
        ("deadline_s", np.float64),
        ("selectivity", np.float64),  # S of the segment
        ("ideal_s", np.float64),  # T of the query: a call on one tuple, nothing else running
        ("weight", np.float64),
        ("unit", np.int64),
        ("query", np.int64),
        ("stream", np.int64),  # −1 if other units or several streams fill the queue
        ("box_selectivity", np.float64),  # s of the boxes that one call runs, and their c̄
        ("box_cost_s", np.float64),
        ("bytes_out", np.float64),
        ("pending_outputs", np.float64),  # an oracle's knowledge of the pending tuples, else NaN
        ("pending_s", np.float64),
    ],
    align=True,
)
"""A row takes three cache lines. The first has the fields that change with every tuple, the second
those that a call reads."""


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
    units: Units, statistics: Mapping[str, QueryStatistics] | None = None, overhead_s: float = 0.0
) -> UnitTable:
    """Return the table of units, with nothing pending.

    The figures of a unit that runs a whole query come from `statistics`, by the query's name. All
    others come from the boxes: S is the product of selectivities along a segment, c̄ the cost
    weighted by the tuples that reach each box, T the plain sum (Sharaf §2). If several segments
    leave a unit, S is their sum, c̄ counts shared boxes once, and T is such that S / T is the sum of
    the S_i / T_i (eq 3.9). A unit without figures has NaN; a run probes it first.
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
        name = _statistics_name(units, shape)
        figures = None if name is None else (statistics or {}).get(name)
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
    statistics: Mapping[str, QueryStatistics] | None,
    before: Ints,
) -> UnitTable:
    """Return the table of a network that has changed; existing units keep their figures.

    The columns that a producer takes from its readers may change with these readers.

    Args:
        table: the table before the change.
        before: for each unit, its row before the change; −1 for a new one.
    """
    changed = unit_table(units, statistics)
    stays = before >= 0
    for column in set(UNIT.names or ()).difference(OF_NETWORK):
        changed[column][stays] = table[column][before[stays]]
    return changed


OF_NETWORK = ("unit", "query", "stream", "query_class", "weight", "deadline_s")
"""Columns that the network determines, such as the class of a producer's readers."""


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


def _statistics_name(units: Units, shape: UnitShape) -> str | None:
    """Return the name of a unit's statistics; None if it does not run one whole path."""
    paths, producer = units.network.paths, units.graph.producers.get(shape.stages[-1].box)
    if producer is not None:
        return paths[producer].known_as
    return paths[shape.query].known_as if len(shape.segments) == 1 else None


def _bytes_in(units: Units, shape: UnitShape) -> float:
    node = units.graph.nodes[shape.box]
    sizes = [units.network.streams[number].tuple_bytes for number in node.streams[shape.side]]
    sizes += [units.graph.nodes[box].operator.bytes_out for box in node.boxes[shape.side]]
    return float(np.mean(sizes))
