"""Checks that refuse what cannot be simulated, before the first instant."""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats
from headgate.model.network.graph import Graph, Node
from headgate.model.network.units import Units
from headgate.simulation.world.setting import Setting

EXPECTED_FIGURE = "known: measure the query, or give its operators cost_s and selectivity"


def check_figures(units: Units) -> None:
    """Refuse boxes without a cost or a selectivity: the time of their tuples is unknown."""
    graph = units.graph
    for node in graph.nodes:
        if not any(graph.ways(node.number, side) for side in range(node.sides)):
            continue
        operator = node.operator
        closes = operator.kind == "aggregate"
        for key in ("cost_s",) if closes else ("cost_s", "selectivity"):
            if getattr(operator, key) is None:
                _refuse(_place(units, node), key, None, EXPECTED_FIGURE)


def check_setting(
    units: Units,
    *,
    selectivities: Mapping[str, Floats],
    tuple_costs: Mapping[str, Floats],
    fates: Mapping[str, Sequence[int]],
    preloaded: Mapping[str, int],
) -> None:
    """Refuse unknown names and impossible values."""
    boxes = {node.name: node for node in units.graph.nodes}
    queries = {path.query.name for path in units.network.paths}
    _check_names("selectivities", selectivities, boxes, "the name of a box")
    _check_names("tuple_costs", tuple_costs, {*boxes, *queries}, "the name of a box or a query")
    _check_names("fates", fates, queries, "the name of a query")
    _check_names("preloaded", preloaded, boxes, "the name of a box with a queue")
    for name, drift in selectivities.items():
        most = 1.0 if (boxes[name].operator.selectivity or 0.0) <= 1.0 else np.inf
        if (
            not len(drift)
            or not (np.asarray(drift) >= 0).all()
            or not (np.asarray(drift) <= most).all()
        ):
            expected = f"one or more values from 0 to {most:g}"
            _refuse("simulation, selectivities", name, None, expected)
    for name, costs_s in tuple_costs.items():
        if not np.isfinite(costs_s).all() or (np.asarray(costs_s) < 0).any():
            _refuse("simulation, tuple_costs", name, None, "0 or more seconds each")
        _check_single(units, "tuple_costs", name)
    for name, outcomes in fates.items():
        if not set(np.unique(outcomes).tolist()) <= {0, 1}:
            _refuse(
                "simulation, fates", name, None, "1 for each tuple that passes and 0 for others"
            )
        _check_single(units, "fates", name)
    for name, count in preloaded.items():
        if count < 0:
            _refuse("simulation, preloaded", name, count, "0 or more tuples")
        for values in (*tuple_costs.values(), *fates.values()):
            if len(values) < count:
                expected = f"at most {len(values)}, the number of tuples with costs or fates"
                _refuse("simulation, preloaded", name, count, expected)


def check_arrivals(units: Units, arrivals: Mapping[str, Floats], times: list[Floats]) -> None:
    """Refuse arrivals of unknown streams, and instants that are not in order."""
    for name in arrivals:
        units.network.stream_number(name, where="arrivals")
    for stream, times_s in zip(units.network.streams, times, strict=True):
        where = f"stream '{stream.name}'"
        if len(times_s) and not (np.isfinite(times_s).all() and times_s[0] >= 0):
            _refuse(where, "arrivals", None, "finite instants from 0 seconds on")
        if len(times_s) > 1 and np.any(np.diff(times_s) < 0):
            _refuse(where, "arrivals", None, "in ascending order of time")


def check_single_tuples(units: Units, setting: Setting, times: list[Floats]) -> None:
    """Refuse costs or outcomes of single tuples if there are fewer of them than tuples."""
    network, most = units.network, max(map(len, times), default=0)
    plain = {path.query.name: path.stream for path in network.paths if path.output is None}
    for key, option in (("fates", setting.fates), ("tuple_costs", setting.tuple_costs)):
        for name, values in option.items():
            stream = plain.get(name.split(".")[0])
            offered = most if stream is None else len(times[network.stream_number(stream)])
            if len(values) < offered:
                expected = f"one for each of the {offered} tuples"
                _refuse(f"query '{name}'", key, len(values), expected)


def _check_single(units: Units, key: str, name: str) -> None:
    """Refuse costs or outcomes of single tuples at a box that receives derived tuples."""
    graph = units.graph
    for node in graph.nodes:
        names = {units.network.paths[query].query.name for query in node.queries}
        if name != node.name and name not in names:
            continue
        for box in _upstream(graph, node.number):
            if (
                box.operator.kind in ("join", "aggregate")
                or (box.operator.selectivity or 0.0) > 1.0
            ):
                expected = f"left out: box '{box.name}' turns the stream's tuples into new ones"
                _refuse(f"simulation, {key}", name, None, expected)


def _upstream(graph: Graph, box: int) -> list[Node]:
    """Return the boxes upstream of a box."""
    nodes: list[Node] = []
    left = [number for side in graph.nodes[box].boxes for number in side]
    while left:
        nodes.append(graph.nodes[left.pop()])
        left += [number for side in nodes[-1].boxes for number in side]
    return nodes


def _place(units: Units, node: Node) -> str:
    named = len(units.network.boxes)
    return f"box '{node.name}'" if node.number < named else f"query '{node.name.split('.')[0]}'"


def _check_names(key: str, option: Mapping[str, Any], names: Any, expected: str) -> None:
    for name in option:
        if name not in names:
            _refuse(f"simulation, {key}", "name", name, expected)


def _refuse(path: str, key: str, value: object, expected: str) -> NoReturn:
    raise ConfigRefused(path=path, key=key, value=value, expected=expected)
