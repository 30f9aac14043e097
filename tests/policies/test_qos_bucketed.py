"""Buckets of p-tuples, and a calendar of the units that leave theirs (Aurora §6.2)."""

from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headgate.errors import ConfigRefused
from headgate.model.events import StepStarted
from headgate.model.network.network import Box, Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.unit_table import UnitTable, unit_table
from headgate.model.network.units import Units, units_of
from headgate.model.plan import BoxCall
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.policies import Policy, State, policy_named
from headgate.policies.qos import Qos, joint_graph
from headgate.policies.qos_bucketed import bucket_ranges, longest_slack_s, slack_buckets

TIGHT = QoSGraph(((0, 1), (0.001, 1), (1, 0)))
LOOSE = QoSGraph(((0, 1), (4, 1), (5, 0)))
STAIRS = QoSGraph(((0, 8), (1, 8), (2, 6), (3, 6), (4, 1), (5, 1), (6, 0)))
GRAPHS = [None, TIGHT, LOOSE, STAIRS, QoSGraph(((0, 1), (2, 0))), QoSGraph(((0, 1),))]


def units_with(graphs: list[QoSGraph | None], shared: bool = False) -> Units:
    """Return a box for each graph; if shared, all of them read one box that comes first."""
    select = Operator(kind="select", cost_s=1e-6, selectivity=1.0)
    boxes, paths = [Box(name="first", operator=select, inputs=("s",))], []
    for number, graph in enumerate(graphs):
        query = Query(name=f"q{number}", sql="SELECT 1", query_class="only", qos=graph)
        boxes.append(
            Box(name=f"box{number}", operator=select, inputs=("first" if shared else "s",))
        )
        paths.append(Path(query=query, output=f"box{number}"))
    only, stream = QueryClass(name="only", priority=1), Stream(name="s", format="rate")
    return units_of(Network((stream,), (only,), tuple(paths), tuple(boxes)), "operator")


def waiting(units: Units, waits_s: list[float], now_s: float = 100.0) -> State:
    """Return a state in which queues have waited this long on average; NaN is an empty queue."""
    table: UnitTable = unit_table(units)
    table["mean_arrived_at_s"] = now_s - np.array(waits_s)
    table["pending"] = table["ready"] = ~np.isnan(waits_s)
    return State(table, np.flatnonzero(table["ready"]))


def served(policy: Policy, state: State, now_s: float = 100.0) -> int:
    """Start the first unit of the plan, and return it."""
    unit = policy.plan(state, now_s)[0].unit
    policy.hear(StepStarted(now_s, BoxCall(0, (unit,), 0, 0, 1, 1)))
    return unit


def test_the_tight_and_the_loose_graph_of_aurora_by_buckets() -> None:
    policy, units = policy_named("qos-bucketed"), units_with([TIGHT, LOOSE])
    policy.prepare(units)
    for waits_s, order in [
        ([0.5, 0.5], [0, 1]),  # loses 1.001 a second; the other nothing before 4 s
        ([0.7, 4.5], [0, 1]),  # 1.001 and 1 share a bucket; slacks of 0.3 s and 0.5 s do not
        ([0.5, 4.7], [1, 0]),  # so the other way round, where qos looks at the utility alone
        ([1.2, 4.5], [1, 0]),  # nothing to save any more
        ([1.2, 0.0], [1, 0]),  # slack ∞ has a bucket of its own
    ]:
        assert [step.unit for step in policy.plan(waiting(units, waits_s), 100.0)] == order


def test_latency_ranges_are_computed_beforehand_for_each_graph() -> None:
    ranges, places = bucket_ranges(units_with([LOOSE]), gradients=2, slacks=3)
    # Slacks up to 4 s in two buckets; 1 a second is the steepest, and then at most 1 s is left.
    assert list(ranges.from_s) == [-inf, 2.0, 4.0, 5.0, inf]
    # Best first: steep and near; flat and near, flat and far, flat for ever.
    assert list(ranges.values[:-1]) == [2, 1, 0, 3]
    assert list(places) == [0, 3, 4, 5]  # a walk in order also visits two that nobody is ever in


def test_the_slack_passes_its_buckets_before_every_critical_point() -> None:
    from_s, piece, slack = slack_buckets(np.array([4.0, 5.0]), width_s=1.0, slacks=5)
    assert list(from_s) == [-inf, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert list(piece) == [0, 0, 0, 0, 1, 2]
    assert list(slack) == [3, 2, 1, 0, 0, 4]


def test_boxes_of_one_bucket_are_served_in_turn_and_those_of_another_have_a_turn_of_their_own() -> (
    None
):
    policy, units = policy_named("qos-bucketed"), units_with([TIGHT, LOOSE, TIGHT, LOOSE, TIGHT])
    policy.prepare(units)
    tight, loose = waiting(units, [0.5] * 5), waiting(units, [nan, 0.5, nan, 0.5, nan])
    order = [served(policy, state) for state in (tight, loose, tight, loose, tight, loose, tight)]
    assert order == [0, 1, 2, 3, 4, 1, 0]


@pytest.mark.parametrize("parameters", [{"gradients": 0}, {"slacks": 0}])
def test_no_buckets_at_all_are_refused(parameters: dict[str, int]) -> None:
    with pytest.raises(ConfigRefused, match="1 or more buckets"):
        policy_named("qos-bucketed", **parameters)


some_graphs = st.lists(st.sampled_from(GRAPHS), min_size=1, max_size=6)


@given(
    graphs=some_graphs,
    rounds=st.lists(st.lists(st.floats(0.0, 8.0) | st.just(nan), min_size=6, max_size=6)),
)
def test_one_bucket_for_all_is_round_robin(
    graphs: list[QoSGraph | None], rounds: list[list[float]]
) -> None:
    units = units_with(graphs)
    ours, theirs = policy_named("qos-bucketed", gradients=1, slacks=1), policy_named("rr-box")
    ours.prepare(units)
    theirs.prepare(units)
    for waits_s in rounds:
        state = waiting(units, waits_s[: len(graphs)])
        if len(state.ready):
            assert served(ours, state) == served(theirs, state)


@given(
    graphs=some_graphs,
    waits_s=st.lists(st.floats(0.0, 8.0), min_size=6, max_size=6),
    gradients=st.integers(1, 60),
    slacks=st.integers(2, 200),
    data=st.data(),
)
def test_the_order_is_that_of_qos_where_p_tuples_lie_more_than_a_bucket_apart(
    graphs: list[QoSGraph | None],
    waits_s: list[float],
    gradients: int,
    slacks: int,
    data: st.DataObject,
) -> None:
    joints = [joint_graph([graph] if graph else []) for graph in graphs]
    steepest = max(joint.utilities.max() for joint in joints) / gradients
    longest_s = max(longest_slack_s(joint) for joint in joints) / (slacks - 1)
    units, exact = units_with(graphs), Qos()
    state = waiting(units, waits_s[: len(graphs)])
    exact.prepare(units)
    utilities, due_at_s = exact.p_tuples(state.table, state.ready, 100.0)
    apart: list[int] = []  # units that wait, each more than a bucket from all others
    for unit in data.draw(st.permutations(state.ready.tolist())):
        if all(
            abs(utilities[unit] - utilities[other]) > 1.001 * steepest
            or (
                utilities[unit] == utilities[other]
                and due_at_s[unit] != due_at_s[other]
                and abs(due_at_s[unit] - due_at_s[other]) > 1.001 * longest_s
            )
            for other in apart
        ):
            apart.append(unit)
    assume(len(apart) > 1)
    left = State(state.table, np.array(sorted(apart)))
    policy = policy_named("qos-bucketed", gradients=gradients, slacks=slacks)
    policy.prepare(units)
    assert policy.plan(left, 100.0) == exact.plan(left, 100.0)


seconds = st.one_of(st.integers(0, 32).map(lambda quarters: quarters / 4), st.floats(0.0, 8.0))
"""Quarters of a second fall on bends exactly; others do not."""

changes = st.tuples(
    st.integers(0, 99), st.integers(0, 3), seconds, st.sampled_from([0.0, 0.25, 0.1, nan])
)
"""A change of a row: its number, the tuples that wait, their mean wait, the time ahead."""


@given(
    graphs=some_graphs,
    shared=st.booleans(),
    buckets=st.sampled_from([(10, 10), (1, 1), (2, 3), (1, 40), (70, 80)]),
    events=st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.0, 0.25, 0.001, 1.5, 20.0]), st.lists(changes, max_size=4)
        ),
        max_size=25,
    ),
)
def test_the_compiled_selection_picks_what_the_plan_puts_first(
    graphs: list[QoSGraph | None], shared: bool, buckets: tuple[int, int], events: list[Any]
) -> None:
    policy = policy_named("qos-bucketed", gradients=buckets[0], slacks=buckets[1])
    units, now_s = units_with(graphs, shared), 0.0
    table: UnitTable = unit_table(units)
    policy.prepare(units)
    selection = policy.selection(units, table, learns=True)
    assert selection is not None
    for passed_s, rows in events:
        now_s += passed_s
        for number, pending, wait_s, remaining_s in rows:
            unit = number % len(units)
            row: Any = table[unit]
            row["ready"], row["pending"], row["remaining_s"] = pending > 0, pending, remaining_s
            row["mean_arrived_at_s"] = now_s - wait_s if pending else inf
            selection.changed(selection.memory, table, unit, now_s)
        picked, tuples, _ = selection.pick(selection.memory, table, now_s)
        state = State(table, np.flatnonzero(table["ready"]))
        steps = policy.plan(state, now_s)
        assert [(picked, tuples)] == [(step.unit, step.tuples) for step in steps[:1]] or not steps
        assert (picked < 0) == (not steps)
        if steps:
            assert served(policy, state, now_s) == picked


@settings(max_examples=settings.default.max_examples // 2)
@given(seed=st.integers(0, 999), step_s=st.sampled_from([1e-4, 3e-3, 0.1]))
def test_a_long_run_of_arrivals_and_steps_is_decided_as_the_plan_would(
    seed: int, step_s: float
) -> None:
    random, now_s = np.random.default_rng(seed), 0.0
    units = units_with([GRAPHS[number % len(GRAPHS)] for number in range(70)])
    table: UnitTable = unit_table(units)
    policy = policy_named("qos-bucketed")
    policy.prepare(units)
    selection = policy.selection(units, table, learns=False)
    assert selection is not None
    for _ in range(400):
        now_s += step_s * random.exponential()
        for unit in random.integers(0, len(units), size=2):
            row: Any = table[unit]
            mean_s = row["mean_arrived_at_s"] if row["pending"] else 0.0
            row["mean_arrived_at_s"] = (mean_s * row["pending"] + now_s) / (row["pending"] + 1)
            row["pending"], row["ready"] = row["pending"] + 1, True
            selection.changed(selection.memory, table, unit, now_s)
        picked, _, _ = selection.pick(selection.memory, table, now_s)
        assert served(policy, State(table, np.flatnonzero(table["ready"])), now_s) == picked
        row = table[picked]
        row["pending"] -= 1
        row["ready"] = row["pending"] > 0
        row["mean_arrived_at_s"] += random.random() * (now_s - row["mean_arrived_at_s"])
        selection.changed(selection.memory, table, picked, now_s)
