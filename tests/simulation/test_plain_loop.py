"""The loop for plain worlds does what the general one does, to the bit."""

from dataclasses import asdict
from math import inf, nextafter
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks import line, network, new_simulation, ran, report, results, select

from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.model.plan import ALL, Step
from headgate.model.qos_graph import QoSGraph
from headgate.policies import Policy, Selection, State
from headgate.scheduler.shedder import Shedder
from headgate.simulation.kernel.bins import EDGES, bin_by_logarithm, bin_of
from headgate.simulation.loop.changes import Switch
from headgate.simulation.loop.run import Simulation

POLICIES = ("hr", "bsd", "mtiq", "rr", "edf", "cqc", "amos")
"""One policy for each way to find the next unit, and one that changes between policies."""
GRAIN_S = 1e-3
GRAPH = QoSGraph(((0.0, 1.0), (0.01, 1.0), (0.05, 0.0)))
LEFT_ALONE = {"queues": ("seen_s",), "workers": ("known_s", "known_outputs")}
"""Fields that only the general loop writes, since only other worlds read them."""

BOXES = st.lists(
    st.tuples(st.integers(1, 9), st.sampled_from([0.0, 0.3, 0.5, 1.0])), min_size=1, max_size=3
)
WORLDS = st.fixed_dictionaries(
    {
        "queries": st.lists(st.tuples(st.integers(0, 1), BOXES), min_size=1, max_size=5),
        "gaps": st.lists(st.tuples(st.integers(0, 1), st.integers(0, 30)), max_size=40),
        "train_tuples": st.sampled_from([None, 1, 2, ALL]),
        "overheads": st.tuples(*[st.sampled_from([0.0, 0.25 * GRAIN_S])] * 5),
        "keep": st.booleans(),
        "switches": st.lists(
            st.tuples(st.integers(0, 300), st.integers(0, 4), st.sampled_from(["come", "go"])),
            max_size=3,
        ),
        "decisions_a_report": st.sampled_from([1, 7, 500_000]),
        "pause_s": st.sampled_from([0.0, 0.02, 0.1]),
    }
)


def drawn(world: dict[str, Any], policy: str) -> Simulation:
    """Return a simulation of lines over two streams, with classes, deadlines and QoS graphs."""
    paths = [
        line(
            f"q{number}", *(select(cost * GRAIN_S, passes) for cost, passes in boxes),
            stream=f"s{stream}", query_class="ab"[number % 2], deadline_s=0.02 * (1 + number),
            qos=GRAPH, weight=1.0 + number,
        )
        for number, (stream, boxes) in enumerate(world["queries"])
    ]  # fmt: skip
    at_s = np.cumsum([gap for _, gap in world["gaps"]]) * GRAIN_S
    stream_numbers = np.array([stream for stream, _ in world["gaps"]], dtype=np.int64)
    overhead_s, storage_s, decision_s, examine_s, switch_s = world["overheads"]
    simulation = new_simulation(
        network(*paths, streams=("s0", "s1"), classes={"a": 0.75, "b": 0.25}),
        {f"s{stream}": at_s[stream_numbers == stream] for stream in (0, 1)},
        policy, level="query", seed=3, train_tuples=world["train_tuples"], overhead_s=overhead_s,
        storage_s=storage_s, decision_s=decision_s, examine_s=examine_s, switch_s=switch_s,
        keep=world["keep"],
        switches=[
            Switch(instant * GRAIN_S, f"q{query % len(paths)}", does)
            for instant, query, does in world["switches"]
        ],
    )  # fmt: skip
    simulation.decisions_a_report = world["decisions_a_report"]
    assert simulation.world.settings["plain"][0]
    return simulation


def state(simulation: Simulation) -> dict[str, bytes]:
    """Return every number of a world, as bytes."""
    values = {}
    for name in (
        "clock", "table", "queues", "results", "workers", "streams", "samples", "class_samples",
        "class_pending", "response_bins", "slowdown_bins", "holders", "kept",
    ):  # fmt: skip
        array = getattr(simulation.world, name)
        for field in array.dtype.names or ("",):
            if field not in LEFT_ALONE.get(name, ()):
                values[f"{name} {field}"] = (array[field] if field else array).tobytes()
    return values


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@given(world=WORLDS)
def test_a_plain_world_runs_as_any_world_does(policy: str, world: dict[str, Any]) -> None:
    ours, theirs = drawn(world, policy), drawn(world, policy)
    theirs.world.settings["plain"] = False
    for until_s in (world["pause_s"], inf):
        for simulation in (ours, theirs):
            simulation.run_until(until_s)
        theirs.world.settings["plain"] = True  # the one field in which they differ
        assert state(ours) == state(theirs)
        theirs.world.settings["plain"] = False
    # As text, in which NaN equals NaN.
    assert repr(asdict(report(ours))) == repr(asdict(report(theirs)))


class FirstOfAll(Policy):
    """A policy that runs the first ready unit, which it finds in an array that it creates."""

    def plan(self, state: State, now_s: float) -> list[Step]:
        return [Step(int(unit)) for unit in state.ready]

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection:
        return Selection((np.zeros(1),), _nothing_changes, _first_ready)


@numba.njit
def _nothing_changes(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    pass


@numba.njit
def _first_ready(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    ready = np.zeros(len(table))
    for unit in range(len(table)):
        ready[unit] = table[unit].ready
    return np.argmax(ready) if ready.max() > 0.0 else -1, 1, len(table)


def test_a_policy_may_make_arrays_in_a_plain_world() -> None:
    lines = network(line("a", select(1.0)), line("b", select(1.0)))
    assert results(ran(lines, {"s": [0.0]}, FirstOfAll())) == [("a", 0.0, 1.0), ("b", 0.0, 2.0)]


@pytest.mark.parametrize(
    "option",
    [
        {"workers": 2}, {"fluid": True}, {"learns": True}, {"level": "operator"},
        {"train_fraction": 0.5}, {"train_cost_s": 1.0}, {"train_bytes": 1e3},
        {"train_spread_s": 1.0}, {"fates": {"q": [1]}}, {"tuple_costs": {"q.0": [1.0]}},
        {"selectivities": {"q.0": [0.5]}, "interval_s": 1.0}, {"preloaded": {"q.0": 1}},
        {"shedder": Shedder()}, {"policy": "hr-o"},
    ],
    ids=lambda option: next(iter(option)),
)  # fmt: skip
def test_a_world_with_more_in_it_is_not_plain(option: dict[str, Any]) -> None:
    lines = network(line("q", select(1.0, 0.5), select(1.0)))
    assert new_simulation(lines, {"s": [0.0]}).world.settings["plain"][0]
    assert not new_simulation(lines, {"s": [0.0]}, **option).world.settings["plain"][0]


@given(
    st.one_of(
        st.floats(0.0, 1e12),
        st.tuples(st.sampled_from(EDGES[1:-1].tolist()), st.sampled_from([0.0, inf])).map(
            lambda edge: nextafter(*edge)
        ),
    )
)
def test_a_bin_that_is_looked_up_is_the_one_that_is_computed(value: float) -> None:
    assert bin_of(value) == bin_by_logarithm(value)
