"""Utility, then slack: the p-tuple on Aurora's tight and loose graphs (Aurora §6.1)."""

from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks import box, line, network, results_of, select

from headgate.model.events import StepStarted
from headgate.model.network.network import Network
from headgate.model.network.unit_table import UnitTable, unit_table
from headgate.model.network.units import Level, Units, units_of
from headgate.model.plan import BoxCall
from headgate.model.qos_graph import QoSGraph
from headgate.policies import Policy, State, policy_named
from headgate.policies.qos import Qos, joint_graph

TIGHT = QoSGraph(((0, 1), (0.001, 1), (1, 0)))
LOOSE = QoSGraph(((0, 1), (4, 1), (5, 0)))
COST_S = 0.0001


def with_graphs(graphs: list[QoSGraph | None], shared: bool = False) -> Network:
    """Return a query for each graph; if shared, all of them read one box that comes first."""
    queries = {f"q{number}": graph for number, graph in enumerate(graphs)}
    if not shared:
        return network(*(line(name, select(COST_S), qos=graph) for name, graph in queries.items()))
    boxes = [box("first", select(COST_S), "s")]
    boxes += [box(f"{name}_end", select(COST_S), "first") for name in queries]
    paths = (results_of(name, f"{name}_end", qos=graph) for name, graph in queries.items())
    return network(*paths, boxes=boxes)


class Boxes:
    """A policy and units with QoS graphs, whose tuples wait for some time on average."""

    def __init__(
        self,
        graphs: list[QoSGraph | None],
        policy: Policy,
        shared: bool = False,
        level: Level = "query",
    ) -> None:
        self.units: Units = units_of(with_graphs(graphs, shared), level)
        self.table: UnitTable = unit_table(self.units)
        self.policy = policy
        policy.prepare(self.units)

    def wait(self, waits_s: list[float], now_s: float = 100.0) -> list[int]:
        """Return the units in the order of the plan; a wait of NaN stands for an empty queue."""
        self.table["mean_arrived_at_s"] = now_s - np.array(waits_s)
        self.table["head_arrived_at_s"] = 0.0
        self.table["pending"] = ~np.isnan(waits_s)
        self.table["ready"] = self.table["pending"] > 0
        ready = np.flatnonzero(self.table["ready"])
        return [step.unit for step in self.policy.plan(State(self.table, ready), now_s)]

    def start(self, unit: int, now_s: float = 100.0) -> None:
        self.policy.hear(StepStarted(now_s, BoxCall(0, (unit,), 0, 0, 1, 1)))


@pytest.mark.parametrize(
    ("waits_s", "first"),
    [
        ((0.5, 0.5), "tight"),  # loses 1.001 a second; the other nothing before 4 s
        ((0.5, 4.5), "tight"),  # 1.001 against 1
        ((1.2, 4.5), "loose"),  # nothing to save any more
        ((1.2, 0.0), "loose"),  # no utility, but 4 s of slack against none for ever
        ((0.0005, 3.9), "tight"),  # neither loses yet: 0.4 ms of slack against 0.1 s
        ((0.0005, 3.9998), "loose"),  # 0.4 ms against 0.1 ms
    ],
)
def test_the_tight_and_the_loose_graph_of_aurora(waits_s: tuple[float, ...], first: str) -> None:
    order = Boxes([TIGHT, LOOSE], Qos()).wait(list(waits_s))
    assert ["tight", "loose"][order[0]] == first


def test_the_expected_output_latency_adds_the_time_ahead_of_a_tuple() -> None:
    boxes = Boxes([LOOSE, LOOSE], Qos())
    boxes.table["remaining_s"] = [0.5, 1.5]
    assert boxes.wait([3.0, 3.0]) == [1, 0]
    assert boxes.wait([3.6, 2.0]) == [0, 1]


def test_the_latency_of_a_box_is_the_mean_wait_and_not_that_of_its_oldest_tuple() -> None:
    boxes = Boxes([LOOSE, LOOSE], Qos())
    boxes.wait([4.2, 1.0])
    boxes.table["head_arrived_at_s"] = [95.5, 10.0]
    assert boxes.policy.plan(State(boxes.table, np.array([0, 1])), 100.0)[0].unit == 0


def test_queries_without_a_graph_come_last_and_go_by_number() -> None:
    assert Boxes([None, TIGHT, None, LOOSE], Qos()).wait([9.0, 0.5, 50.0, 0.0]) == [1, 3, 0, 2]


def test_a_unit_whose_cost_nobody_knows_comes_after_those_that_can_still_lose() -> None:
    boxes = Boxes([TIGHT, LOOSE], Qos())
    boxes.table["remaining_s"][0] = nan
    assert boxes.wait([0.5, 0.0]) == [1, 0]


def test_a_shared_box_has_the_sum_of_utilities_and_the_minimum_of_slacks() -> None:
    half = QoSGraph(((0, 1), (2, 0)))
    joint = joint_graph([half, TIGHT, LOOSE])
    assert list(joint.bends_s) == [0.0, 0.001, 1.0, 2.0, 4.0, 5.0]
    expected = [0.0, 0.5, 0.5 + 1 / 0.999, 0.5, 0.0, 1.0, 0.0]
    assert list(joint.utilities) == pytest.approx(expected)


def test_a_shared_box_comes_before_each_of_its_queries_alone() -> None:
    boxes = Boxes([LOOSE, LOOSE, TIGHT], Qos(), shared=True, level="operator")
    names = [boxes.units.graph.nodes[shape.box].name for shape in boxes.units.shapes]
    assert names == ["first", "q0_end", "q1_end", "q2_end"]
    assert boxes.wait([4.5, 4.5, 4.5, 0.5]) == [0, 3, 1, 2]
    assert boxes.wait([0.5, 4.5, nan, 0.5]) == [0, 3, 1]  # 1.001: the first number of equals


def test_bends_that_cancel_each_other_are_critical_all_the_same() -> None:
    rest = QoSGraph(((0, 1), (5, 1), (6, 0)))
    joint = joint_graph([LOOSE, rest])
    assert list(joint.bends_s) == [4.0, 5.0, 6.0]
    assert list(joint.utilities) == [0.0, 1.0, 1.0, 0.0]


graphs_of_any_kind = st.sampled_from(
    [
        None,
        TIGHT,
        LOOSE,
        QoSGraph(((0, 1), (2, 0))),
        QoSGraph(((0, 8), (1, 8), (2, 6), (3, 6), (4, 1), (5, 1), (6, 0))),
        QoSGraph(((0, 1),)),
        QoSGraph(((0.25, 4), (0.5, 3), (3, 1))),
    ]
)

# Quarters of a second fall on bends exactly; others do not.
seconds = st.one_of(st.integers(0, 32).map(lambda quarters: quarters / 4), st.floats(0.0, 8.0))


@st.composite
def networks(draw: st.DrawFn) -> tuple[Network, Level]:
    graphs = draw(st.lists(graphs_of_any_kind, min_size=1, max_size=6))
    return with_graphs(graphs, draw(st.booleans())), draw(st.sampled_from(["query", "operator"]))


events = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, 0.25, 0.001, 1.5, 20.0]),  # time that passes
        st.lists(  # rows that change: which, ready, mean wait, time ahead
            st.tuples(
                st.integers(0, 99),
                st.integers(0, 3),
                seconds,
                st.sampled_from([0.0, 0.25, 0.1, nan]),
            ),
            max_size=4,
        ),
    ),
    max_size=25,
)


def held_to_its_plan(
    policy: Policy,
    network: Network,
    level: Level,
    events: list[tuple[float, list[tuple[int, int, float, float]]]],
) -> None:
    """Change rows, and compare every pick of the compiled form with the plan."""
    units = units_of(network, level)
    table, now_s = unit_table(units), 0.0
    policy.prepare(units)
    selection = policy.selection(units, table, learns=True)
    assert selection is not None
    for passed_s, changes in events:
        now_s += passed_s
        for number, ready, wait_s, remaining_s in changes:
            unit = number % len(units)
            row = table[unit]
            row["ready"], row["pending"] = ready > 0, ready
            row["mean_arrived_at_s"] = now_s - wait_s if ready else inf
            row["remaining_s"] = remaining_s
            selection.changed(selection.memory, table, unit, now_s)
        picked, tuples, _ = selection.pick(selection.memory, table, now_s)
        ready_units = np.flatnonzero(table["ready"])
        steps = policy.plan(State(table, ready_units), now_s)
        assert picked == (steps[0].unit if steps else -1)
        if steps:
            assert tuples == steps[0].tuples
            policy.hear(StepStarted(now_s, BoxCall(0, (picked,), 0, 0, 1, 1)))


@given(network=networks(), events=events)
def test_the_compiled_selection_picks_what_the_plan_puts_first(
    network: tuple[Network, Level],
    events: list[tuple[float, list[tuple[int, int, float, float]]]],
) -> None:
    held_to_its_plan(policy_named("qos"), *network, events)


@given(
    graphs=st.lists(graphs_of_any_kind, min_size=1, max_size=6),
    waits_s=st.lists(st.floats(0.0, 8.0), min_size=6, max_size=6),
)
def test_the_plan_orders_by_the_gradient_and_the_slack_of_the_graphs(
    graphs: list[QoSGraph | None], waits_s: list[float]
) -> None:
    boxes = Boxes(graphs, Qos())
    order = boxes.wait(waits_s[: len(graphs)])
    keys = []
    for unit in order:
        row, graph = boxes.table[unit], graphs[unit]
        eol_s = 100.0 - row["mean_arrived_at_s"] + row["remaining_s"]
        near = graph is not None and np.any(np.abs(graph.critical_s - eol_s) < 1e-9)
        if near:  # on which side of a bend it lies is a matter of rounding
            return
        utility = graph.gradient(eol_s) if graph else 0.0
        keys.append((-utility, graph.slack_s(eol_s) if graph else inf, unit))
    rounded = [(utility, round(slack_s, 9), unit) for utility, slack_s, unit in keys]
    assert rounded == sorted(rounded)
