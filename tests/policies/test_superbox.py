"""Superboxes as a policy: which application runs, and for how long (Aurora §4.1.1)."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks import box, network, ran, report, results_of, select
from superboxes import SAMPLE, TWO, Machine, forests, sample, trees, two

from headgate.errors import ConfigRefused, UnknownName
from headgate.language.cut import cut
from headgate.language.parse import path_of
from headgate.model.events import StepStarted
from headgate.model.network.network import Condition, Network
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import Units, units_of
from headgate.model.plan import ALL, BoxCall
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.policies import policy_named
from headgate.policies.interface import State
from headgate.policies.superbox import SuperboxPolicy


@pytest.mark.parametrize("figure", [0.0, np.nan])
@pytest.mark.parametrize("name", ["mc", "ml", "mm", "aaat", "top-k"])
def test_boxes_that_bring_nothing_or_were_never_measured_run_all_the_same(
    name: str, figure: float
) -> None:
    machine = Machine(policy_named(name), sample())
    machine.table["box_selectivity"][3:] = machine.table["selectivity"][3:] = figure
    machine.queue(1)
    served = set()
    for _ in range(6):
        unit = machine.policy.plan(machine.state(), 0.0)[0].unit
        machine.policy.hear(StepStarted(0.0, BoxCall(0, (unit,), 0, 0, 1, 1)))
        machine.queues[unit] = 0
        served.add(unit)
    assert served == set(range(6))


def test_applications_take_turns_and_each_traversal_runs_to_its_end() -> None:
    machine = two("aaat")
    for _ in range(8):
        machine.queue(1, "a2 c2")  # there is always something new to begin
        machine.finish(machine.start())
    assert " ".join(machine.calls) == "a2 a1 c2 c1 a2 a1 c2 c1"


def test_only_the_first_call_of_a_traversal_is_a_new_decision() -> None:
    machine = two("mc")
    machine.queue(1)
    machine.run()
    assert machine.calls == ["a2", "a1", "c2", "c1"]
    assert machine.continued == [False, True, False, True]


def test_an_application_without_tuples_is_passed_over() -> None:
    machine = two("mc")
    machine.queue(1, "c2")
    assert machine.run() == "c2 c1"


@pytest.mark.parametrize("name", ["mc", "ml", "mm"])
def test_what_arrives_during_a_traversal_waits_for_the_next(name: str) -> None:
    machine = Machine(policy_named(name), sample())
    machine.queue(1, "b4 b5")
    first = machine.start()
    machine.finish(first)
    machine.queue(3, "b4 b5 b6")
    while machine.outputs < 2:
        machine.finish(machine.start())
    assert "b6" not in machine.calls
    assert machine.queues[[2, 4, 5]].tolist() == [3, 3, 3]


def test_a_second_worker_takes_the_other_application() -> None:
    machine = two("mc")
    machine.queue(1, "a2 c2")
    first = machine.start(0)
    second = machine.start(1, running=first.units)
    machine.finish(first)
    third = machine.start(2, running=second.units)
    machine.finish(second)
    machine.finish(third)
    machine.finish(machine.start(3))
    assert machine.calls == ["a2", "c2", "a1", "c1"]


def test_a_second_worker_helps_where_only_one_application_has_tuples() -> None:
    machine = two("mc")
    machine.queue(1, "a1 a2")
    first = machine.start(0)
    machine.finish(machine.start(1, running=first.units))
    assert machine.calls == ["a2", "a1"]


def test_a_box_that_two_applications_share_runs_for_both() -> None:
    fed_by = {"a": ("shared",), "c": ("shared",), "shared": ()}
    units = trees(fed_by, dict.fromkeys(fed_by, (1.0, 1.0)), ["a", "c"])
    machine = Machine(policy_named("mc"), units)
    machine.queue(1, "shared")
    assert machine.run() == "shared a c"


@pytest.mark.parametrize(
    ("k", "calls"), [(1, "b1 b6"), (2, "b6 b1"), (3, "b2 b6 b1"), (6, "b4 b5 b3 b2 b6 b1")]
)
def test_top_k_spans_the_k_boxes_of_highest_priority(k: int, calls: str) -> None:
    figures = {
        "b1": (1.0, 1.0), "b6": (1.0, 0.1), "b2": (1.0, 0.5), "b3": (1.0, 1.0),
        "b4": (1.0, 1.0), "b5": (1.0, 1.0),
    }  # fmt: skip
    machine = Machine(policy_named("top-k", k=k, inner="hr"), sample(figures))
    machine.queue(1)
    assert machine.run(len(calls.split())) == calls


def test_top_k_runs_the_application_of_the_best_box() -> None:
    units = trees(TWO, {**dict.fromkeys(TWO, (1.0, 1.0)), "c2": (5.0, 1.0)}, ["a1", "c1"])
    machine = Machine(policy_named("top-k", inner="hr"), units)
    machine.queue(1, "a2 c2")
    assert machine.run() == "c2 c1 a2 a1"


def test_top_k_spans_waiting_boxes_on_the_way_to_the_output() -> None:
    machine = two("top-k", k=1, inner="mtiq")
    machine.queue(2, "a2")
    machine.queue(1, "a1")
    assert machine.run() == "a2 a1"


@pytest.mark.parametrize("name", ["mc", "ml", "mm", "aaat", "baat"])
def test_at_query_level_queries_take_turns_with_whole_queues(name: str) -> None:
    machine = two(name, level="query")
    for _ in range(4):
        machine.queue(3)
        machine.finish(machine.start())
        assert machine.queues[machine.names.index(machine.calls[-1])] == 0
    assert machine.calls == ["a2", "c2", "a2", "c2"]
    assert machine.policy.tuples_a_step == ALL


def test_at_query_level_top_k_is_its_inner_policy() -> None:
    machine = two("top-k", level="query", inner="mtiq")
    machine.queue(1)
    machine.queue(1, "c2")
    assert machine.run() == "c2 a2"


@pytest.mark.parametrize("name", ["mc", "ml", "mm", "aaat", "top-k"])
def test_a_probe_that_nobody_planned_changes_nothing(name: str) -> None:
    machine = two(name)
    machine.queue(1)
    before = list(machine.policy.plan(machine.state(), 0.0))
    for unit in range(4):
        if unit != before[0].unit:
            machine.policy.hear(StepStarted(0.0, BoxCall(7, (unit,), 0, 0, 1, 1)))
    assert list(machine.policy.plan(machine.state(), 0.0)) == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mc", "ml", "mm", "aaat", "top-k"])
@given(units=forests(), data=st.data())
def test_every_tuple_is_run_and_every_plan_can_be_executed(
    name: str, units: Units, data: st.DataObject
) -> None:
    parameters = {"traversal": "best"} if name in ("aaat", "top-k") else {}
    machine = Machine(policy_named(name, **parameters), units)
    for unit in data.draw(st.lists(st.integers(0, len(units) - 1), min_size=1, max_size=10)):
        machine.queues[unit] += 1
    for _ in range(300):
        state = machine.state()
        if not len(state.ready):
            break
        steps = list(machine.policy.plan(state, 0.0))
        planned = [step.unit for step in steps]
        assert planned
        assert len(set(planned)) == len(planned)
        assert set(planned) <= set(state.ready.tolist())
        assert list(machine.policy.plan(state, 0.0)) == steps
        machine.finish(machine.start())
    assert not machine.queues.any()


def test_the_inner_policy_of_top_k_is_qos_where_it_is_known() -> None:
    policy = policy_named("top-k")
    assert isinstance(policy, SuperboxPolicy)
    assert policy.inner.name in ("qos", "hr")


@pytest.mark.parametrize("k", [0, -1, 1.5])
def test_a_tree_of_no_boxes_is_refused(k: float) -> None:
    with pytest.raises(ConfigRefused, match="k of 1 box or more"):
        policy_named("top-k", k=k)


def test_an_inner_policy_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UnknownName, match="hnrr"):
        policy_named("top-k", inner="hnrr")
    with pytest.raises(ConfigRefused, match="inner"):
        policy_named("top-k", inner=5)


def test_the_rest_of_a_query_that_is_cut_comes_before_other_queries() -> None:
    query = Query(name="q", sql="SELECT upper(a) AS p FROM s WHERE b > 3", query_class="H")
    path = path_of(query, {"s": ["a", "b"]})
    path = replace(path, conditions=(Condition("b > 3", never_fails=True),), calls=True)
    queue, *parts = cut(path, ["a", "b"])
    plain = path_of(Query(name="r", sql="SELECT b FROM s", query_class="H"), {"s": ["a", "b"]})
    streams = (Stream(name="s", format="rate"), queue)
    network = Network(streams, (QueryClass(name="H", priority=1),), (plain, *parts))
    policy, units = policy_named("mc"), units_of(network)
    policy.prepare(units)
    table = unit_table(units)
    table["pending"] = 1
    steps = policy.plan(State(table, np.arange(3)), 0.0)
    assert steps[0].unit == 2
    assert policy.selection(units, table, learns=False) is None


def mean_response_s(traversal: str, rate_per_s: float, overhead_s: float) -> float:
    """Return the mean response of the tree of Figure 4 at a cost of 10 ms a box.

    A tuple of each of the three streams takes nine box runs, so the work is 0.09 times the rate.
    """
    boxes = [box(name, select(0.01), *(SAMPLE[name] or (f"s_{name}",))) for name in SAMPLE]
    streams = [f"s_{name}" for name in SAMPLE if not SAMPLE[name]]
    tree = network(results_of("q", "b1"), boxes=boxes, streams=streams)
    times_s = {
        name: np.sort(np.random.default_rng(place).uniform(0.0, 60.0, int(60 * rate_per_s)))
        for place, name in enumerate(streams)
    }
    ended = ran(
        tree, times_s, policy_named("aaat", traversal=traversal), level="operator",
        train_tuples=ALL, overhead_s=overhead_s,
    )  # fmt: skip
    return report(ended).total.response_s.mean


@pytest.mark.parametrize(
    ("rate_per_s", "overhead_s"), [(1.0, 0.001), (5.0, 0.02), (10.0, 0.02), (10.5, 0.1), (8.0, 0.0)]
)
def test_the_best_traversal_counts_what_arrives_meanwhile(
    rate_per_s: float, overhead_s: float
) -> None:
    by_cost, by_latency, best = (
        mean_response_s(name, rate_per_s, overhead_s) for name in ("mc", "ml", "best")
    )
    assert best <= 1.1 * min(by_cost, by_latency)
