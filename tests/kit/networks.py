"""Builders of small networks, and of simulations whose results can be inspected."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from headgate.metrics.report import Report
from headgate.model.network.network import Box, Network, Path
from headgate.model.network.operator import Kind, Operator
from headgate.model.network.unit_table import UnitTable
from headgate.model.plan import ALL, Step
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.policies import Policy, State, policy_named
from headgate.runtime.what_if.simulate import simulation_of
from headgate.simulation.loop.run import Simulation
from headgate.simulation.loop.run_report import report_of

RUNS = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(["fcfs", "hr"]),
        "level": st.sampled_from(["query", "operator"]),
        "shared_priority": st.sampled_from(["max", "pdt"]),
        "train_tuples": st.sampled_from([1, 3, ALL]),
        "workers": st.integers(1, 3),
    }
)
"""A strategy that draws the options of a run."""


def select(cost_s: float, selectivity: float = 1.0, **more: Any) -> Operator:
    return Operator(kind="select", cost_s=cost_s, selectivity=selectivity, **more)


def box(name: str, operator: Operator, *inputs: str) -> Box:
    return Box(name=name, operator=operator, inputs=inputs)


def query(name: str, query_class: str = "only", **more: Any) -> Query:
    return Query(name=name, sql="SELECT 1", query_class=query_class, **more)


def line(name: str, *operators: Operator, stream: str = "s", **more: Any) -> Path:
    """Return a query with its own boxes, one after the other."""
    return Path(query=query(name, **more), stream=stream, operators=operators)


def results_of(name: str, output: str, **more: Any) -> Path:
    """Return a query whose results are the output of a box."""
    return Path(query=query(name, **more), output=output)


def network(
    *paths: Path,
    boxes: Sequence[Box] = (),
    streams: Sequence[str | Stream] = ("s",),
    classes: Mapping[str, float] | None = None,
) -> Network:
    return Network(
        tuple(
            stream if isinstance(stream, Stream) else Stream(name=stream, format="rate")
            for stream in streams
        ),
        tuple(QueryClass(name=k, priority=v) for k, v in (classes or {"only": 1.0}).items()),
        paths,
        tuple(boxes),
    )


def priced(
    name: str,
    *inputs: str,
    cost_s: float,
    passes: float = 1.0,
    size: float = 1.0,
    kind: Kind = "select",
    window_s: float | None = None,
) -> Box:
    """Return a box by its figures: seconds per tuple, selectivity, bytes of a result."""
    operator = Operator(
        kind=kind, cost_s=cost_s, selectivity=passes, bytes_out=size, window_s=window_s
    )
    return box(name, operator, *inputs)


def network_of(*boxes: Box, tuple_bytes: float = 1.0, outputs: Sequence[str] = ()) -> Network:
    """Return a network whose outputs are the boxes that nobody reads, and the named ones."""
    read = {name for member in boxes for name in member.inputs}
    names = sorted(read - {member.name for member in boxes})
    return network(
        *(
            results_of(f"q_{member.name}", member.name)
            for member in boxes
            if member.name not in read or member.name in outputs
        ),
        boxes=boxes,
        streams=[Stream(name=name, format="rate", tuple_bytes=tuple_bytes) for name in names],
    )


def lines_of(figures: Sequence[Sequence[tuple[float, float]]], *, streams: int = 1) -> Network:
    """Return a query for each list of (cost in seconds, selectivity), one box for each pair.

    The queries q0, q1, ... read the streams s0, s1, ... in turn.
    """
    names = [f"s{number}" for number in range(streams)]
    paths = (
        line(f"q{number}", *(select(*pair) for pair in pairs), stream=names[number % streams])
        for number, pairs in enumerate(figures)
    )
    return network(*paths, streams=names)


class Watched(Policy):
    """A policy that runs the unit of the oldest tuple, and records the table of every decision."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, UnitTable]] = []

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        self.seen.append((now_s, state.table.copy()))
        heads_s = state.table["head_arrived_at_s"][state.ready]
        return [Step(int(unit)) for unit in state.ready[np.argsort(heads_s, kind="stable")]]


def new_simulation(
    network: Network,
    arrivals: Mapping[str, Sequence[float]],
    policy: str | Policy = "fcfs",
    **options: Any,
) -> Simulation:
    """Return a simulation before its first instant; it keeps every result."""
    chosen = policy_named(policy) if isinstance(policy, str) else policy
    times = {name: np.array(times_s, dtype=np.float64) for name, times_s in arrivals.items()}
    return simulation_of(network, times, chosen, **{"keep": True, **options})


def ran(
    network: Network,
    arrivals: Mapping[str, Sequence[float]],
    policy: str | Policy = "fcfs",
    **options: Any,
) -> Simulation:
    """Return a simulation after its last instant."""
    simulation = new_simulation(network, arrivals, policy, **options)
    simulation.run()
    return simulation


def results(simulation: Simulation) -> list[tuple[str, float, float]]:
    """Return (query, arrived, departed) of every result, in the order of departure."""
    count = int(simulation.world.clock["kept"][0])
    rows = simulation.world.kept[: 3 * count].reshape(count, 3)
    paths = simulation.units.network.paths
    triples = [(paths[int(q)].query.name, float(a), float(d)) for q, a, d in rows]
    return sorted(triples, key=lambda triple: triple[2])


def departures(simulation: Simulation, name: str) -> list[float]:
    return [departed for query, _, departed in results(simulation) if query == name]


def arrivals_out(simulation: Simulation, name: str) -> list[float]:
    """Return the arrival times of a query's results, in the order of departure."""
    return [arrived for query, arrived, _ in results(simulation) if query == name]


def report(simulation: Simulation) -> Report:
    return report_of("tested", simulation.world, simulation.units)
