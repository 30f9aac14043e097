"""The unit table: one row per unit, everything a policy may look at."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headgate.model.network import Network
from headgate.model.query import QueryStatistics

UnitTable = NDArray[np.void]

UNIT = np.dtype(
    [
        ("unit", np.int64),
        ("query", np.int64),
        ("stream", np.int64),
        ("query_class", np.int64),
        ("selectivity", np.float64),  # S, of the segment
        ("cost_s", np.float64),  # C̄ at the present queue length: overhead_s / n + tuple_cost_s
        ("ideal_s", np.float64),  # T, a call on one tuple with nobody else about
        ("overhead_s", np.float64),  # o, paid once a call
        ("tuple_cost_s", np.float64),  # c̄, paid for every tuple
        ("bytes_in", np.float64),
        ("bytes_out", np.float64),
        ("pending", np.int64),  # N
        ("head_arrived_at_s", np.float64),  # W = now − this
        ("mean_arrived_at_s", np.float64),
        ("deadline_s", np.float64),
        ("weight", np.float64),
        ("slope", np.float64),
    ]
)


class Unit(Protocol):
    """A row of the unit table, as a priority function sees it."""

    unit: int
    query: int
    stream: int
    query_class: int
    selectivity: float
    cost_s: float
    ideal_s: float
    overhead_s: float
    tuple_cost_s: float
    bytes_in: float
    bytes_out: float
    pending: int
    head_arrived_at_s: float
    mean_arrived_at_s: float
    deadline_s: float
    weight: float
    slope: float


def unit_table(network: Network, known: dict[str, QueryStatistics] | None = None) -> UnitTable:
    """Gives the table of a network: one unit a query, nothing pending.

    Figures come from `known` by query name, else from the operators of the path: S is the product
    of their selectivities, c̄ the cost weighted by what reaches each operator, T the plain sum
    (Sharaf §2). A unit without figures has NaN and is probed first by whoever runs.
    """
    table = np.zeros(len(network.paths), dtype=UNIT)
    for number, path in enumerate(network.paths):
        row: Any = table[number]
        row["unit"] = row["query"] = number
        row["stream"] = network.stream_number(path.stream)
        row["query_class"] = network.class_number(path.query.query_class)
        row["weight"] = path.query.weight
        row["deadline_s"] = np.inf if path.query.deadline_s is None else path.query.deadline_s
        row["head_arrived_at_s"] = row["mean_arrived_at_s"] = np.inf
        figures = (known or {}).get(path.query.name)
        if figures is not None:
            row["selectivity"] = figures.selectivity
            row["overhead_s"], row["tuple_cost_s"] = figures.overhead_s, figures.cost_s
            row["ideal_s"] = figures.overhead_s + figures.cost_s
        else:
            selectivity, cost_s, ideal_s = 1.0, 0.0, 0.0
            for operator in path.operators:
                step_cost_s = np.nan if operator.cost_s is None else operator.cost_s
                cost_s += step_cost_s * selectivity
                ideal_s += step_cost_s
                selectivity *= np.nan if operator.selectivity is None else operator.selectivity
            row["selectivity"], row["tuple_cost_s"], row["ideal_s"] = selectivity, cost_s, ideal_s
        row["cost_s"] = row["overhead_s"] + row["tuple_cost_s"]
    return table
