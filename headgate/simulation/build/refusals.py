"""What a simulation refuses before its first instant, and why."""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats
from headgate.model.graph import Graph, Node
from headgate.model.units import Units
from headgate.simulation.world.setting import Setting

KNOWN = "known: measure the query, or give its operators cost_s and selectivity"


def check_figures(units: Units) -> None:
    """Refuses boxes that nobody has measured: their tuples would take no time that is known."""
    graph = units.graph
    for node in graph.nodes:
        if not any(graph.ways(node.number, side) for side in range(node.sides)):
            continue
        operator = node.operator
        closes = operator.kind == "aggregate"
        for key in ("cost_s",) if closes else ("cost_s", "selectivity"):
            if getattr(operator, key) is None:
                _refuse(_place(units, node), key, None, KNOWN)


def check_aggregates(units: Units) -> None:
    """Refuses windows that close where tardiness cannot be told by the clock alone."""
    graph, paths = units.graph, units.network.paths
    for node in graph.nodes:
        reached = graph.ways(node.number)
        if node.operator.kind != "aggregate" or not reached:
            continue
        before = _upstream(graph, node.number)
        forks = any(len(_readers(graph, each)) + len(each.queries) > 1 for each in [*before, node])
        if forks or not node.queries or any(each.operator.kind == "join" for each in before):
            name = paths[reached[0].query].query.name
            expected = "the last box of a line, with no join, fork or other aggregate before it"
            _refuse(f"query '{name}'", "aggregate", None, expected)


def check_setting(
    units: Units,
    *,
    selectivities: Mapping[str, Floats],
    tuple_costs: Mapping[str, Floats],
    fates: Mapping[str, Sequence[int]],
    preloaded: Mapping[str, int],
) -> None:
    """Refuses names that nobody has, and values that cannot be."""
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
                expected = f"at most {len(values)}, for which costs or fates are given"
                _refuse("simulation, preloaded", name, count, expected)


def check_arrivals(units: Units, arrivals: Mapping[str, Floats], times: list[Floats]) -> None:
    """Refuses streams that nobody has, and instants that are not in order."""
    for name in arrivals:
        units.network.stream_number(name, where="arrivals")
    for stream, times_s in zip(units.network.streams, times, strict=True):
        where = f"stream '{stream.name}'"
        if len(times_s) and not (np.isfinite(times_s).all() and times_s[0] >= 0):
            _refuse(where, "arrivals", None, "finite instants from 0 seconds on")
        if len(times_s) > 1 and np.any(np.diff(times_s) < 0):
            _refuse(where, "arrivals", None, "in ascending order of time")


def check_single_tuples(units: Units, setting: Setting, times: list[Floats]) -> None:
    """Refuses costs or outcomes of single tuples that are fewer than the tuples."""
    network, most = units.network, max(map(len, times), default=0)
    plain = {path.query.name: path.stream for path in network.paths if path.output is None}
    for key, given in (("fates", setting.fates), ("tuple_costs", setting.tuple_costs)):
        for name, values in given.items():
            stream = plain.get(name.split(".")[0])
            offered = most if stream is None else len(times[network.stream_number(stream)])
            if len(values) < offered:
                expected = f"one for each of the {offered} tuples"
                _refuse(f"query '{name}'", key, len(values), expected)


def _check_single(units: Units, key: str, name: str) -> None:
    """Refuses what is said of single tuples where a box before has made new ones of them."""
    graph = units.graph
    for node in graph.nodes:
        own = {units.network.paths[query].query.name for query in node.queries}
        if name != node.name and name not in own:
            continue
        for each in _upstream(graph, node.number):
            if each.operator.kind == "join" or (each.operator.selectivity or 0.0) > 1.0:
                expected = f"left out: box '{each.name}' makes new tuples of those of the stream"
                _refuse(f"simulation, {key}", name, None, expected)


def _upstream(graph: Graph, box: int) -> list[Node]:
    """Gives the boxes whose tuples come to a box."""
    found: list[Node] = []
    left = [each for side in graph.nodes[box].boxes for each in side]
    while left:
        found.append(graph.nodes[left.pop()])
        left += [each for side in found[-1].boxes for each in side]
    return found


def _readers(graph: Graph, node: Node) -> list[tuple[int, int]]:
    return [reader for reader in node.readers if graph.ways(*reader)]


def _place(units: Units, node: Node) -> str:
    named = len(units.network.boxes)
    return f"box '{node.name}'" if node.number < named else f"query '{node.name.split('.')[0]}'"


def _check_names(key: str, given: Mapping[str, Any], known: Any, expected: str) -> None:
    for name in given:
        if name not in known:
            _refuse(f"simulation, {key}", "name", name, expected)


def _refuse(path: str, key: str, value: object, expected: str) -> NoReturn:
    raise ConfigRefused(path=path, key=key, value=value, expected=expected)
