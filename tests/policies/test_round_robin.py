"""Queries in turn, boxes in turn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import ConfigRefused
from headgate.model.events import StepStarted
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.unit_table import UNIT, unit_table
from headgate.model.network.units import Level, units_of
from headgate.model.plan import ALL, BoxCall
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.policies import Policy, State, policy_named


def state(*ready: int, **fields: Any) -> State:
    table = np.zeros(5, dtype=UNIT)
    table["pending"][list(ready)] = 1
    for field, value in fields.items():
        table[field] = value
    return State(table, np.array(ready, dtype=np.int64))


def lines(boxes_by_query: Sequence[int], classes: str = "") -> Network:
    """Return queries with these numbers of boxes, all boxes alike."""
    priorities = {"H": 6.0, "C": 3.0, "N": 1.0}
    operator = Operator(kind="select", cost_s=0.01, selectivity=0.5)
    return Network(
        (Stream(name="s", format="rate"),),
        tuple(QueryClass(name=name, priority=value) for name, value in priorities.items()),
        tuple(
            Path(
                query=Query(name=f"q{number}", sql="SELECT 1", query_class=name),
                stream="s",
                operators=(operator,) * boxes,
            )
            for number, (boxes, name) in enumerate(
                zip(boxes_by_query, classes or "N" * len(boxes_by_query), strict=True)
            )
        ),
    )


def start(policy: Policy, *units: int) -> None:
    policy.hear(StepStarted(0.0, BoxCall(0, units, 0, 0, 1, 1)))


def order(policy: Policy, where: State) -> list[int]:
    return [step.unit for step in policy.plan(where, 0.0)]


def test_the_turn_goes_round() -> None:
    policy, served = policy_named("rr"), []
    for _ in range(7):
        served.append(order(policy, state(0, 1, 2))[0])
        start(policy, served[-1])
    assert served == [0, 1, 2, 0, 1, 2, 0]


def test_the_plan_begins_behind_the_query_that_was_served_last() -> None:
    policy = policy_named("rr")
    start(policy, 2)
    assert order(policy, state(0, 1, 2, 3, 4)) == [3, 4, 0, 1, 2]


def test_who_has_nothing_pending_is_passed_over_and_loses_nothing_else() -> None:
    policy = policy_named("rr")
    start(policy, 1)
    assert order(policy, state(0, 4)) == [4, 0]
    assert order(policy, state(0, 2, 4)) == [2, 4, 0]


def test_after_a_fused_call_the_turn_moves_on_from_its_first_unit() -> None:
    policy = policy_named("rr")
    start(policy, 1, 3, 4)
    assert order(policy, state(0, 2)) == [2, 0]


def test_a_turn_without_a_quantum_takes_all_that_the_train_size_allows() -> None:
    assert {step.tuples for step in policy_named("rr").plan(state(0, 1), 0.0)} == {ALL}


@pytest.mark.parametrize(
    ("quantum_s", "tuples"), [(1.0, 9), (0.2, 1), (0.35, 2), (0.05, 1), (0.0, 1)]
)
def test_a_quantum_limits_a_turn_to_the_tuples_that_fit_at_least_one(
    quantum_s: float, tuples: int
) -> None:
    policy = policy_named("rr", quantum_s=quantum_s)
    steps = policy.plan(state(0, overhead_s=0.1, tuple_cost_s=0.0999), 0.0)
    assert steps[0].tuples == tuples


def test_a_new_network_begins_with_the_first_query_again() -> None:
    policy = policy_named("rr")
    start(policy, 0)
    policy.prepare(units_of(lines([1, 1])))
    assert order(policy, state(0, 1)) == [0, 1]


def test_a_negative_quantum_is_refused() -> None:
    with pytest.raises(ConfigRefused, match=r"policy 'rr'.*quantum_s of 0 or more seconds"):
        policy_named("rr", quantum_s=-1.0)


def prepared(name: str, boxes_by_query: Sequence[int], **parameters: Any) -> tuple[Policy, State]:
    """Return a policy at operator level, and a state in which every box has tuples."""
    units, policy = units_of(lines(boxes_by_query), "operator"), policy_named(name, **parameters)
    policy.prepare(units)
    return policy, State(unit_table(units), np.arange(len(units)))


def test_at_operator_level_queries_take_turns_and_the_best_rate_runs_first() -> None:
    policy, where = prepared("rr", [3, 2])
    assert order(policy, where) == [2, 1, 0, 4, 3]  # nearer to the output is a higher rate
    served = []
    for _ in range(5):
        served.append(order(policy, where)[0])
        start(policy, served[-1])
    assert served == [2, 4, 2, 4, 2]


def test_at_operator_level_a_query_without_tuples_loses_only_its_turn() -> None:
    policy, where = prepared("rr", [2, 2, 2])
    start(policy, 0)
    assert order(policy, State(where.table, np.array([0, 1, 4]))) == [4, 1, 0]


def test_boxes_that_were_never_measured_come_last_in_their_query() -> None:
    policy, where = prepared("rr", [3])
    where.table["cost_s"][2] = np.nan
    where.table["selectivity"][1] = np.nan
    assert order(policy, where) == [0, 1, 2]


@pytest.mark.parametrize("name", ["rr-box", "taat", "baat"])
def test_boxes_take_turns_whatever_their_query(name: str) -> None:
    policy, where = prepared(name, [3, 2])
    served = []
    for _ in range(7):
        served.append(order(policy, where)[0])
        start(policy, served[-1])
    assert served == [0, 1, 2, 3, 4, 0, 1]


def test_tuple_at_a_time_takes_one_and_box_at_a_time_takes_all() -> None:
    for name, tuples in (("taat", 1), ("baat", ALL)):
        policy, where = prepared(name, [2])
        assert {step.tuples for step in policy.plan(where, 0.0)} == {tuples}
        assert policy.tuples_a_step == tuples


def test_tuple_at_a_time_takes_as_many_as_asked() -> None:
    policy, where = prepared("taat", [2], tuples=7)
    assert {step.tuples for step in policy.plan(where, 0.0)} == {7}
    assert policy.tuples_a_step == 7


@pytest.mark.parametrize("name", ["taat", "wrr"])
@pytest.mark.parametrize("tuples", [0, -1, 2.5, "all"])
def test_a_call_of_no_tuples_is_refused(name: str, tuples: Any) -> None:
    with pytest.raises(ConfigRefused, match="tuples of 1 or more a call"):
        policy_named(name, tuples=tuples)


@pytest.mark.parametrize("name", ["rr", "rr-box"])
def test_at_operator_level_a_quantum_counts_the_cost_of_the_box_alone(name: str) -> None:
    policy, where = prepared(name, [3], quantum_s=0.05)
    assert {step.tuples for step in policy.plan(where, 0.0)} == {5}


@pytest.mark.parametrize("cost_s", [np.nan, 0.0])
def test_a_quantum_takes_one_tuple_of_a_box_that_was_never_measured(cost_s: float) -> None:
    policy = policy_named("rr", quantum_s=1.0)
    assert policy.plan(state(0, tuple_cost_s=cost_s), 0.0)[0].tuples == 1


def test_an_endless_quantum_takes_all() -> None:
    policy = policy_named("rr", quantum_s=float("inf"))
    assert policy.plan(state(0, tuple_cost_s=0.1), 0.0)[0].tuples == ALL


def compiled_agrees(policy: Policy, network: Network, level: Level, changes: Any) -> None:
    """Change rows, and compare the compiled form with the plan after each change."""
    units = units_of(network, level)
    table = unit_table(units)
    policy.prepare(units)
    selection = policy.selection(units, table, learns=True)
    assert selection is not None
    for unit in range(len(units)):
        selection.changed(selection.memory, table, unit, 0.0)
    for number, ready, selectivity, cost_s, runs in changes:
        row = table[number % len(units)]
        row["ready"], row["pending"] = ready, ready
        row["selectivity"], row["cost_s"] = selectivity, cost_s
        row["tuple_cost_s"] = row["box_cost_s"] = cost_s
        selection.changed(selection.memory, table, number % len(units), 0.0)
        if runs:
            steps = policy.plan(State(table, np.flatnonzero(table["ready"])), 0.0)
            unit, tuples, _ = selection.pick(selection.memory, table, 0.0)
            assert (unit, tuples) == ((steps[0].unit, steps[0].tuples) if steps else (-1, 0))
            if steps:
                start(policy, unit)


changes_of_rows = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.booleans(),
        st.sampled_from([0.0, 0.2, 1.0, np.nan]),
        st.sampled_from([0.0001, 0.01, 1.0, np.nan]),
        st.booleans(),
    ),
    max_size=60,
)


@pytest.mark.parametrize("level", ["query", "operator"])
@pytest.mark.parametrize("name", ["rr", "rr-box", "taat", "baat"])
@given(
    boxes=st.lists(st.integers(1, 3), min_size=1, max_size=70),
    quantum_s=st.sampled_from([None, 0.0, 0.05, 1.0]),
    changes=changes_of_rows,
)
def test_the_compiled_form_decides_as_the_plan_does(
    name: str, level: Level, boxes: list[int], quantum_s: float | None, changes: Any
) -> None:
    parameters = {"quantum_s": quantum_s} if name in ("rr", "rr-box") else {}
    compiled_agrees(policy_named(name, **parameters), lines(boxes), level, changes)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 128, 129])
def test_a_full_round_of_the_compiled_form_serves_everybody_once(count: int) -> None:
    units, policy = units_of(lines([1] * count)), policy_named("rr")
    table = unit_table(units)
    table["ready"] = True
    policy.prepare(units)
    selection = policy.selection(units, table, learns=False)
    assert selection is not None
    for unit in range(count):
        selection.changed(selection.memory, table, unit, 0.0)
    served = [selection.pick(selection.memory, table, 0.0)[0] for _ in range(2 * count)]
    assert served == [*range(count), *range(count)]
