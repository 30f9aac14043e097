"""Queries in turn."""

from typing import Any

import numpy as np
import pytest

from headgate.errors import ConfigRefused
from headgate.model.events import StepStarted
from headgate.model.plan import ALL, BoxCall
from headgate.model.unit_table import UNIT
from headgate.policies import Policy, State, policy_named


def state(*ready: int, **fields: Any) -> State:
    table = np.zeros(5, dtype=UNIT)
    table["pending"][list(ready)] = 1
    for field, value in fields.items():
        table[field] = value
    return State(table, np.array(ready, dtype=np.int64))


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
    policy.prepare(None)  # type: ignore[arg-type]  # rr does not look at it
    assert order(policy, state(0, 1)) == [0, 1]


def test_a_negative_quantum_is_refused() -> None:
    with pytest.raises(ConfigRefused, match=r"policy 'rr'.*quantum_s of 0 or more seconds"):
        policy_named("rr", quantum_s=-1.0)
