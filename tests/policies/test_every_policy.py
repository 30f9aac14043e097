"""What every policy must satisfy. The registry lists them, so a new one is tested at once."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kit.networks import line, network, select

from headgate import simulate
from headgate.model.arrays import Floats
from headgate.model.events import Event, StepFinished, StepStarted, TrainArrived
from headgate.model.network.network import Network
from headgate.model.network.unit_table import UnitTable, grown, unit_table
from headgate.model.network.units import units_of
from headgate.model.plan import ALL, BoxCall
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import QueryStatistics
from headgate.policies import Policy, State, policies, policy_entry, policy_named

EVERY = sorted(policies())
PATIENT = [name for name, entry in policies().items() if not entry.starves]
CLASSES = {"H": 6.0, "C": 3.0, "N": 1.0}

Box = tuple[str, int, float, float]
"""class, stream, cost in seconds, selectivity"""


def network_with(boxes: list[Box]) -> Network:
    """Return a query with one box for each description."""
    paths = (
        line(f"q{number}", select(*figures), stream=f"s{stream}", query_class=name)
        for number, (name, stream, *figures) in enumerate(boxes)
    )
    return network(*paths, streams=("s0", "s1"), classes=CLASSES)


boxes_of_any_kind = st.lists(
    st.tuples(
        st.sampled_from("HCN"), st.integers(0, 1), st.floats(1e-6, 10.0), st.floats(0.0, 1.0)
    ),
    min_size=1,
    max_size=7,
)


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Box], UnitTable, State, float]:
    """Draw a network, its unit table, and the units that wait and run in it."""
    boxes, now_s = draw(boxes_of_any_kind), draw(st.floats(0.0, 100.0))
    table = unit_table(units_of(network_with(boxes)))
    for row in table:
        row["pending"] = draw(st.integers(0, 50))
        waits = row["pending"] > 0
        row["head_arrived_at_s"] = now_s - draw(st.floats(0.0, 50.0)) if waits else np.inf
    idle = draw(st.lists(st.booleans(), min_size=len(boxes), max_size=len(boxes)))
    ready = np.flatnonzero(np.array(idle) & (table["pending"] > 0))
    return boxes, table, State(table, ready), now_s


@dataclass(frozen=True)
class EveryTupleAlike:
    """Foresight in which every tuple has the cost and the selectivity of its box in the table."""

    table: UnitTable

    def waiting(self, unit: int) -> tuple[Floats, Floats]:
        row = self.table[unit]
        alike = np.ones(row["pending"])
        return alike * row["box_cost_s"], alike * row["box_selectivity"]


def as_seen_by(name: str, state: State) -> State:
    """Return the state, with foresight for policies that run only in the simulation."""
    if policy_entry(name).engines != ("simulation",):
        return state
    return replace(state, foresight=EveryTupleAlike(state.table))


def heard(policy: Policy, unit: int, seconds: float) -> None:
    call = BoxCall(0, (unit,), 0, 0, 1, 1)
    policy.hear(StepStarted(0.0, call))
    policy.hear(StepFinished(seconds, call, seconds, (1,), (np.zeros(1),)))


calls = st.tuples(st.floats(0.0, 5.0), st.booleans())
"""The seconds of a call, and whether the policy plans twice before it."""


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=settings.default.max_examples // 2)
@given(situation=situations(), lived=st.lists(calls, min_size=1, max_size=4))
def test_plans_units_that_wait_each_once_the_same_twice_and_leaves_the_table_untouched(
    name: str, situation: Any, lived: list[tuple[float, bool]]
) -> None:
    boxes, table, state, now_s = situation
    state = as_seen_by(name, state)
    before, policy = table.tobytes(), policy_named(name)
    policy.prepare(units_of(network_with(boxes)))
    for seconds, plans_twice in lived:
        steps = list(policy.plan(state, now_s))
        if plans_twice:
            assert list(policy.plan(state, now_s)) == steps
        units = [step.unit for step in steps]
        assert set(units) <= set(state.ready.tolist())
        assert len(set(units)) == len(units)
        assert all(step.tuples >= 1 for step in steps)
        assert bool(units) == bool(len(state.ready))  # somebody runs if anybody waits
        for unit in units[:1]:
            heard(policy, unit, seconds)
    policy.plan(state, now_s)
    assert table.tobytes() == before


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=settings.default.max_examples // 2)
@given(situation=situations(), data=st.data())
def test_survives_a_query_that_leaves_between_two_plans(
    name: str, situation: Any, data: st.DataObject
) -> None:
    boxes, table, state, now_s = situation
    assume(len(state.ready) > 1)
    state = as_seen_by(name, state)
    policy = policy_named(name)
    policy.prepare(units_of(network_with(boxes)))
    heard(policy, policy.plan(state, now_s)[0].unit, 1.0)
    gone = data.draw(st.sampled_from(state.ready.tolist()))
    stopped = as_seen_by(name, State(table, state.ready[state.ready != gone]))
    assert gone not in [step.unit for step in policy.plan(stopped, now_s)]
    smaller = network_with(boxes[:-1])
    policy.prepare(units_of(smaller))
    left = as_seen_by(name, State(table[:-1], state.ready[state.ready < len(boxes) - 1]))
    units = [step.unit for step in policy.plan(left, now_s)]
    assert set(units) <= set(left.ready.tolist())
    policy.prepare(units_of(network_with([])))  # and nobody is left


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=settings.default.max_examples // 2)
@given(situation=situations(), data=st.data())
def test_survives_a_query_whose_values_change_between_two_plans(
    name: str, situation: Any, data: st.DataObject
) -> None:
    boxes, table, state, now_s = situation
    assume(len(state.ready) > 1)
    policy, network = policy_named(name), network_with(boxes)
    policy.prepare(units_of(network))
    heard(policy, policy.plan(as_seen_by(name, state), now_s)[0].unit, 1.0)
    unit = data.draw(st.sampled_from(state.ready.tolist()))
    values = {"query_class": data.draw(st.sampled_from("HCN")), "weight": 3.0, "deadline_s": 1.0}
    paths = list(network.paths)
    query = replace(paths[unit].query, **values, qos=QoSGraph(((0.0, 1.0), (1.0, 0.0))))
    paths[unit] = replace(paths[unit], query=query)
    units = units_of(replace(network, paths=tuple(paths)))
    before = np.arange(len(boxes))
    policy.prepare(units)
    state = as_seen_by(name, replace(state, table=grown(table, units, {}, before)))
    planned = [step.unit for step in policy.plan(state, now_s)]
    assert planned
    assert set(planned) <= set(state.ready.tolist())


class Patience:
    """A listener that counts, for each query that waits, the calls that others get meanwhile."""

    def __init__(self, units: int) -> None:
        self.pending, self.passed_over = [0] * units, [0] * units
        self.longest = 0

    def hear(self, event: Event) -> None:
        if isinstance(event, TrainArrived):
            self.pending = [count + int(event.tuples.sum()) for count in self.pending]
        elif isinstance(event, StepStarted):
            for unit, count in enumerate(self.pending):
                self.passed_over[unit] += count > 0
            for unit in event.call.units:
                self.passed_over[unit] = 0
                self.pending[unit] -= event.call.tuples
            self.longest = max(self.longest, *self.passed_over)


def longest_patience(policy: str, selectivities: dict[str, float], train_tuples: int) -> int:
    """Return how many calls others get, at most, while a query waits in an overload.

    There is one query per class, since the promise of cqc is for classes. Tuple by tuple, the load
    is twice what the machine can do; if a call drains its queue, every queue is filled again before
    the call ends.
    """
    cost_s, overhead_s, times_s = 0.001, 0.0, np.arange(500) * 0.0015
    if train_tuples == ALL:
        cost_s, overhead_s, times_s = 1e-7, 0.001, np.arange(1000) * 0.0002
    boxes: list[Box] = [
        (name, 0, cost_s, selectivity) for name, selectivity in selectivities.items()
    ]
    statistics = {
        f"q{number}": QueryStatistics(cost_s=cost_s, selectivity=selectivity, overhead_s=overhead_s)
        for number, selectivity in enumerate(selectivities.values())
    }
    patience = Patience(len(boxes))
    simulate(
        network_with(boxes),
        {"s0": times_s},
        policy=policy,
        statistics=statistics,
        train_tuples=train_tuples,
        listeners=[patience.hear],
    )
    return patience.longest


@pytest.mark.parametrize("train_tuples", [1, ALL])
@pytest.mark.parametrize("name", PATIENT)
def test_starves_nobody_in_overload_if_it_promises_so(name: str, train_tuples: int) -> None:
    assert longest_patience(name, {"H": 1.0, "C": 0.5, "N": 0.1}, train_tuples) <= 60


@pytest.mark.parametrize("name", ["srpt", "hr", "hnr", "brt", "bsd"])
def test_priorities_by_rate_starve_somebody_in_a_lasting_overload(name: str) -> None:
    assert longest_patience(name, {"H": 1.0, "C": 0.5, "N": 0.1}, 1) > 400


@pytest.mark.parametrize("name", PATIENT)
def test_even_a_query_that_never_outputs_anything_is_served(name: str) -> None:
    assert longest_patience(name, {"H": 1.0, "C": 0.5, "N": 0.0}, ALL) <= 60
