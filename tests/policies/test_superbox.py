"""Superboxes and their traversals (Aurora §4.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.errors import ConfigRefused, UnknownName
from headgate.model.events import StepFinished, StepStarted
from headgate.model.network import Box, Network, Path
from headgate.model.operator import Operator
from headgate.model.plan import ALL, BoxCall
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.model.unit_table import unit_table
from headgate.model.units import Level, Units, units_of
from headgate.policies import Policy, State, policy_named
from headgate.policies.superbox import SuperboxPolicy
from headgate.policies.traversal import (
    output_cost_s,
    output_selectivity,
    reduction_per_s,
    superboxes_of,
)

# Figure 4: each box with the boxes that feed it, in pre-order.
SAMPLE = {
    "b1": ("b2", "b6"),
    "b2": ("b4", "b3"),
    "b4": (),
    "b3": ("b5",),
    "b5": (),
    "b6": (),
}
EXAMPLE_OF_MM = {
    "b1": (0.9, 2.0), "b2": (0.4, 2.0), "b3": (0.5, 1.0),
    "b4": (1.0, 2.0), "b5": (0.4, 3.0), "b6": (0.6, 1.0),
}  # fmt: skip
MC = "b4 b5 b3 b2 b6 b1"
ML = "b1 b2 b1 b6 b1 b4 b2 b1 b3 b2 b1 b5 b3 b2 b1"
MM = "b3 b6 b2 b5 b3 b2 b1 b4 b2 b1"

Tree = Mapping[str, Sequence[str]]
Figures = Mapping[str, tuple[float, float]]


def trees(
    fed_by: Tree, figures: Figures, outputs: Sequence[str], level: Level = "operator"
) -> Units:
    """Gives the units of some boxes: each reads the stream and those that feed it."""
    boxes = tuple(
        Box(
            name=name,
            operator=Operator(kind="map", selectivity=figures[name][0], cost_s=figures[name][1]),
            inputs=tuple(feeders) or ("s",),
        )
        for name, feeders in fed_by.items()
    )
    paths = tuple(
        Path(query=Query(name=f"q{number}", sql="SELECT 1", query_class="N"), output=name)
        for number, name in enumerate(outputs)
    )
    classes = (QueryClass(name="N", priority=1.0),)
    network = Network((Stream(name="s", format="rate"),), classes, paths, boxes)
    return units_of(network, level)


def sample(figures: Figures | None = None, cost_s: float = 1.0) -> Units:
    return trees(SAMPLE, figures or dict.fromkeys(SAMPLE, (1.0, cost_s)), ["b1"])


@dataclass
class Machine:
    """Runs what a policy plans, call by call; a tuple becomes as many as the selectivity says."""

    policy: Policy
    units: Units
    overhead_s: float = 0.0
    now_s: float = 0.0
    calls: list[str] = field(default_factory=list)
    continued: list[bool] = field(default_factory=list)
    latencies_s: list[float] = field(default_factory=list)
    tuples_in_memory: list[float] = field(default_factory=list)
    outputs: float = 0.0

    def __post_init__(self) -> None:
        self.table = unit_table(self.units, overhead_s=self.overhead_s)
        self.names = [self.units.graph.nodes[shape.box].name for shape in self.units.shapes]
        self.queues = np.zeros(len(self.units))
        self.policy.prepare(self.units)

    def queue(self, tuples: float, names: str = "") -> None:
        for name in names.split() or self.names:
            self.queues[self.names.index(name)] += tuples

    def state(self, running: Sequence[int] = ()) -> State:
        self.table["amount"] = self.queues
        self.table["pending"] = np.ceil(self.queues)
        waits = self.queues > 0
        waits[list(running)] = False
        return State(self.table, np.flatnonzero(waits))

    def start(self, number: int = 0, running: Sequence[int] = ()) -> BoxCall:
        """Starts the first step of the plan."""
        step = self.policy.plan(self.state(running), self.now_s)[0]
        call = BoxCall(number, (step.unit,), 0, 0, 1, step.tuples)
        self.policy.hear(StepStarted(self.now_s, call))
        self.calls.append(self.names[step.unit])
        self.continued.append(step.continues)
        return call

    def finish(self, call: BoxCall) -> None:
        unit = call.units[0]
        taken = min(self.queues[unit], call.tuples)
        row, shape = self.table[unit], self.units.shapes[unit]
        leaving, began_s = taken * row["box_selectivity"], self.now_s
        self.queues[unit] -= taken
        self.now_s += self.overhead_s + taken * row["box_cost_s"]
        for reader in shape.feeds:
            self.queues[reader] += leaving
        if any(stage.queries for stage in shape.stages):
            self.outputs += leaving
            each_s = np.arange(1, round(taken) + 1) * row["box_cost_s"]
            self.latencies_s += list(began_s + self.overhead_s + each_s)
        self.tuples_in_memory.append(float(self.queues.sum() + self.outputs))
        seconds = self.now_s - began_s
        self.policy.hear(StepFinished(self.now_s, call, seconds, (1,), (np.zeros(1),)))

    def run(self, most: int = 1000) -> str:
        """Runs until nothing is left, or so many calls; gives the calls."""
        while self.queues.any() and len(self.calls) < most:
            self.finish(self.start())
        return " ".join(self.calls)


@pytest.mark.parametrize(("name", "calls"), [("mc", MC), ("ml", ML)])
def test_orders_of_the_sample_tree(name: str, calls: str) -> None:
    machine = Machine(policy_named(name), sample())
    machine.queue(1)
    assert machine.run() == calls


@pytest.mark.parametrize(("p", "o"), [(1.0, 0.0), (0.0001, 1.0), (3.0, 0.5)])
@pytest.mark.parametrize(
    ("name", "total", "average"),
    [("mc", (15, 6), (12.5, 6)), ("ml", (15, 15), (43 / 6, 43 / 6))],
)
def test_time_and_latency_of_the_sample_tree(
    name: str, total: Any, average: Any, p: float, o: float
) -> None:
    machine = Machine(policy_named(name), sample(cost_s=p), overhead_s=o)
    machine.queue(1)
    machine.run()
    assert machine.now_s == pytest.approx(total[0] * p + total[1] * o)
    assert np.mean(machine.latencies_s) == pytest.approx(average[0] * p + average[1] * o)
    assert round(43 / 6, 2) == 7.17  # as printed


@pytest.mark.parametrize(("p_over_o", "calls"), [(0.21, MC), (0.218, MC), (0.22, ML), (5.0, ML)])
def test_ml_is_chosen_where_a_tuple_costs_above_0_22_of_a_box_call(
    p_over_o: float, calls: str
) -> None:
    machine = Machine(policy_named("aaat", traversal="best"), sample(cost_s=p_over_o), 1.0)
    machine.queue(1)
    assert machine.run() == calls


@settings(deadline=None, max_examples=50)
@given(
    queues=st.lists(st.integers(0, 5), min_size=6, max_size=6).filter(any),
    p_over_o=st.floats(0.01, 10.0),
)
def test_the_cost_model_chooses_the_lower_latency_for_whatever_waits(
    queues: list[int], p_over_o: float
) -> None:
    means_s = {}
    for traversal in ("mc", "ml", "best"):
        machine = Machine(
            policy_named("aaat", traversal=traversal), sample(cost_s=p_over_o), overhead_s=1.0
        )
        machine.queues[:] = queues
        machine.run()
        means_s[traversal] = float(np.mean(machine.latencies_s))
    assert means_s["best"] == pytest.approx(min(means_s["mc"], means_s["ml"]))


def test_mm_frees_most_memory_first() -> None:
    units = sample(EXAMPLE_OF_MM)
    table = unit_table(units)
    number = {units.graph.nodes[shape.box].name: shape.number for shape in units.shapes}
    rates = [reduction_per_s(table, number[name]) for name in sorted(number)]
    assert rates == pytest.approx([0.05, 0.3, 0.5, 0.0, 0.2, 0.4])
    machine = Machine(policy_named("mm"), units)
    machine.queue(10)
    assert machine.run() == MM


@pytest.mark.parametrize(("name", "tuples"), [("mm", 36), ("ml", 40)])
def test_memory_of_the_sample_tree_averaged_over_box_calls(name: str, tuples: int) -> None:
    machine = Machine(policy_named(name), sample(EXAMPLE_OF_MM))
    machine.queue(10)
    machine.run()
    assert round(float(np.mean(machine.tuples_in_memory))) == tuples


def test_mm_weighs_tuples_by_their_size() -> None:
    table = unit_table(sample(EXAMPLE_OF_MM))
    table["bytes_in"] = 4.0
    assert reduction_per_s(table, 0) == pytest.approx(0.2)


def test_output_cost_is_the_time_until_one_output() -> None:
    units = trees({"a": ("b",), "b": ()}, {"a": (0.5, 2.0), "b": (0.4, 3.0)}, ["a"])
    (superbox,), table = superboxes_of(units), unit_table(units)
    assert output_selectivity(superbox, table, 1) == pytest.approx(0.2)
    assert output_cost_s(superbox, table, 0) == pytest.approx(2 / 0.5)
    assert output_cost_s(superbox, table, 1) == pytest.approx(2 / 0.5 + 3 / 0.2)


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


def test_boxes_that_turn_out_empty_are_skipped() -> None:
    figures = dict.fromkeys(SAMPLE, (1.0, 1.0)) | {"b5": (0.0, 1.0)}
    machine = Machine(policy_named("mc"), sample(figures))
    machine.queue(1, "b5 b6")
    assert machine.run() == "b5 b6 b1"


TWO = {"a1": ("a2",), "a2": (), "c1": ("c2",), "c2": ()}


def two(policy: str, level: Level = "operator", **parameters: Any) -> Machine:
    """Two applications of two boxes each."""
    units = trees(TWO, dict.fromkeys(TWO, (1.0, 1.0)), ["a1", "c1"], level)
    return Machine(policy_named(policy, **parameters), units)


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


def test_queries_with_the_same_output_share_a_superbox() -> None:
    units = trees(SAMPLE, dict.fromkeys(SAMPLE, (1.0, 1.0)), ["b1", "b1"])
    assert len(superboxes_of(units)) == 1


def test_a_box_that_feeds_two_of_its_own_application_comes_before_both() -> None:
    fed_by = {"root": ("left", "right"), "left": ("fork",), "right": ("fork",), "fork": ()}
    units = trees(fed_by, dict.fromkeys(fed_by, (1.0, 1.0)), ["root"])
    (superbox,) = superboxes_of(units)
    assert superbox.units == (3, 1, 2, 0)
    assert superbox.downstream[3] == (3, 1, 2, 0)


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


@st.composite
def forests(draw: st.DrawFn) -> Units:
    """Draws applications that may share boxes: each box feeds some of those before it."""
    count = draw(st.integers(1, 8))
    fed_by: dict[str, list[str]] = {f"b{number}": [] for number in range(count)}
    roots = draw(st.integers(1, count))
    for number in range(roots, count):
        readers = draw(st.sets(st.integers(0, number - 1), min_size=1, max_size=2))
        for reader in readers:
            fed_by[f"b{reader}"].append(f"b{number}")
    figure = st.tuples(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.floats(0.1, 2.0))
    figures = {name: draw(figure) for name in fed_by}
    return trees(fed_by, figures, [f"b{number}" for number in range(roots)])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mc", "ml", "mm", "aaat", "top-k"])
@settings(deadline=None, max_examples=40)
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


@settings(deadline=None, max_examples=40)
@given(units=forests(), data=st.data())
def test_mc_calls_each_box_at_most_once_a_traversal(units: Units, data: st.DataObject) -> None:
    machine = Machine(policy_named("mc"), units)
    machine.queues[:] = data.draw(
        st.lists(st.integers(0, 3), min_size=len(units), max_size=len(units))
    )
    machine.run()
    since: list[str] = []
    for name, continued in zip(machine.calls, machine.continued, strict=True):
        since = [*since, name] if continued else [name]
        assert since.count(name) == 1


def test_the_inner_policy_of_top_k_is_qos_where_it_is_known() -> None:
    policy = policy_named("top-k")
    assert isinstance(policy, SuperboxPolicy)
    assert policy.inner.name in ("qos", "hr")


def test_a_traversal_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ConfigRefused, match="traversal: one of mc, ml, mm, best"):
        policy_named("aaat", traversal="pre-order")


@pytest.mark.parametrize("k", [0, -1, 1.5])
def test_a_tree_of_no_boxes_is_refused(k: float) -> None:
    with pytest.raises(ConfigRefused, match="k of 1 box or more"):
        policy_named("top-k", k=k)


def test_an_inner_policy_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UnknownName, match="hnrr"):
        policy_named("top-k", inner="hnrr")
    with pytest.raises(ConfigRefused, match="inner"):
        policy_named("top-k", inner=5)
