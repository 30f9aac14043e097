"""The policies that class quotas are compared with (CQC §4.1)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.errors import ConfigRefused
from headgate.model.events import StepStarted
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import Level, Units, units_of
from headgate.model.plan import BoxCall
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.policies import Policy, State, policy_named

PRIORITIES = {"H": 6.0, "C": 3.0, "N": 1.0}


def units_for(classes: str, rates: Sequence[float] = (), level: Level = "query") -> Units:
    """Return one query for each letter of `classes`, of one box that takes 1 / rate seconds."""
    network = Network(
        (Stream(name="s", format="rate"),),
        tuple(QueryClass(name=name, priority=value) for name, value in PRIORITIES.items()),
        tuple(
            Path(
                query=Query(name=f"q{number}", sql="SELECT 1", query_class=name),
                stream="s",
                operators=(Operator(kind="select", cost_s=1 / rate, selectivity=1.0),),
            )
            for number, (name, rate) in enumerate(
                zip(classes, rates or [1.0] * len(classes), strict=True)
            )
        ),
    )
    return units_of(network, level)


def everybody(units: Units) -> State:
    return State(unit_table(units), np.arange(len(units)))


def order(policy: Policy, state: State) -> list[int]:
    return [step.unit for step in policy.plan(state, 0.0)]


def start(policy: Policy, unit: int) -> None:
    policy.hear(StepStarted(0.0, BoxCall(0, (unit,), 0, 0, 1, 1)))


@pytest.mark.parametrize(("rate", "first"), [(5.9, "H"), (6.1, "N")])
def test_a_lower_class_comes_first_iff_its_rate_is_above_p_h_over_p_n_times_the_other(
    rate: float, first: str
) -> None:
    units, policy = units_for("HN", [1.0, rate]), policy_named("hr-class")
    policy.prepare(units)
    assert "HN"[order(policy, everybody(units))[0]] == first


def test_inside_a_class_rates_decide() -> None:
    units, policy = units_for("CCC", [1.0, 3.0, 2.0]), policy_named("hr-class")
    policy.prepare(units)
    assert order(policy, everybody(units)) == [1, 2, 0]


def test_weighted_turns_go_by_descending_class_priority() -> None:
    units, policy = units_for("NHCNH"), policy_named("wrr")
    policy.prepare(units)
    served = []
    for _ in range(7):
        served.append(order(policy, everybody(units))[0])
        start(policy, served[-1])
    assert served == [1, 4, 2, 0, 3, 1, 4]


def test_weighted_turns_last_12_6_and_2_for_priorities_6_3_1_and_k_20() -> None:
    units, policy = units_for("HCN"), policy_named("wrr", period_s=20.0)
    policy.prepare(units)
    assert [step.tuples for step in policy.plan(everybody(units), 0.0)] == [12, 6, 2]


def test_a_weighted_turn_takes_one_tuple_at_least() -> None:
    units, policy = units_for("HCN"), policy_named("wrr")
    policy.prepare(units)
    assert [step.tuples for step in policy.plan(everybody(units), 0.0)] == [1, 1, 1]


def test_a_weighted_turn_takes_as_many_tuples_as_asked_at_least() -> None:
    units, policy = units_for("HCN"), policy_named("wrr", period_s=20.0, tuples=5)
    policy.prepare(units)
    assert [step.tuples for step in policy.plan(everybody(units), 0.0)] == [12, 6, 5]


def test_a_period_of_no_time_is_refused() -> None:
    with pytest.raises(ConfigRefused, match="period_s above 0 seconds"):
        policy_named("wrr", period_s=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["query", "operator"])
@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("name", ["hr-class", "wrr"])
@settings(max_examples=settings.default.max_examples // 2)
@given(
    classes=st.text("HCN", min_size=1, max_size=70),
    changes=st.lists(
        st.tuples(st.integers(0, 69), st.booleans(), st.sampled_from([0.1, 1.0, 4.0])), max_size=40
    ),
)
def test_the_compiled_form_decides_as_the_plan_does(
    name: str, learns: bool, level: Level, classes: str, changes: list[Any]
) -> None:
    units = units_for(classes, [1.0 + number % 7 for number in range(len(classes))], level)
    policy, table = policy_named(name), unit_table(units)
    policy.prepare(units)
    selection = policy.selection(units, table, learns=learns)
    assert selection is not None
    for number, ready, cost_s in changes:
        unit = number % len(units)
        table["ready"][unit] = ready
        if learns:
            table["cost_s"][unit] = table["box_cost_s"][unit] = cost_s
        selection.changed(selection.memory, table, unit, 0.0)
        steps = policy.plan(State(table, np.flatnonzero(table["ready"])), 0.0)
        chosen, tuples, _ = selection.pick(selection.memory, table, 0.0)
        assert (chosen, tuples) == ((steps[0].unit, steps[0].tuples) if steps else (-1, 0))
        if steps:
            start(policy, chosen)
