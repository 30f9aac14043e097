"""Properties of every policy that partitions charts: chain, oc, mr."""

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks import network_of

from headgate.model.events import StepStarted
from headgate.model.network.network import Box, Network
from headgate.model.network.operator import Kind, Operator
from headgate.model.network.unit_table import UnitTable, unit_table
from headgate.model.network.units import Level, Units, units_of
from headgate.model.plan import BoxCall
from headgate.policies import State, policy_named
from headgate.policies.methods.charts import ChartPolicy, order_of

NAMES = ["chain", "oc", "mr"]
LEVELS: list[Level] = ["query", "operator"]


@st.composite
def networks(draw: st.DrawFn, meeting: bool = False) -> Network:
    """Draw boxes that read a stream or an earlier box, or two of them if paths may meet."""
    boxes: list[Box] = []
    for number in range(draw(st.integers(1, 7))):
        sources = ["s0", "s1", *(box.name for box in boxes)]
        two = meeting and draw(st.booleans())
        inputs = tuple(
            draw(
                st.lists(st.sampled_from(sources), min_size=1 + two, max_size=1 + two, unique=True)
            )
        )
        kind: Kind = draw(st.sampled_from(["select", "union", "join"])) if two else "select"
        operator = Operator(
            kind=kind,
            cost_s=draw(st.integers(1, 9)) / 4,
            selectivity=draw(st.integers(0, 8)) / 8,
            window_s=0.5 if kind == "join" else None,
            bytes_out=draw(st.integers(0, 9)),
        )
        boxes.append(Box(name=f"b{number}", operator=operator, inputs=inputs))
    return network_of(*boxes, tuple_bytes=8.0)


def policy_of(name: str) -> ChartPolicy:
    return cast(ChartPolicy, policy_named(name))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", NAMES)
@given(network=networks())
def test_slopes_fall_along_every_path_and_no_child_goes_before_its_parent(
    name: str, level: Level, network: Network
) -> None:
    units = units_of(network, level)
    partitions = policy_of(name).partitions(units, unit_table(units))
    order = order_of(partitions, units)
    partition_of = {unit: part for part in partitions for unit in part.units}
    assert sorted(partition_of) == list(range(len(units)))
    assert sum(len(part.units) for part in partitions) == len(units)
    for shape in units.shapes:
        for fed in shape.feeds:
            parent, child = partition_of[shape.number], partition_of[fed]
            assert parent.slope >= child.slope
            # In two partitions, the parent's queue runs first; in one, begun tuples are finished.
            assert (order.place[shape.number] < order.place[fed]) == (parent is not child)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", NAMES)
@given(network=networks(meeting=True), data=st.data())
def test_the_compiled_selection_decides_as_the_plan_does(
    name: str, level: Level, network: Network, data: st.DataObject
) -> None:
    units = units_of(network, level)
    table, policy = unit_table(units), policy_of(name)
    policy.prepare(units)
    compiled = policy.selection(units, table, learns=False)
    assert compiled is not None
    for unit in range(len(units)):
        compiled.changed(compiled.memory, table, unit, 0.0)
    for now_s in range(12):
        unit = data.draw(st.integers(0, len(units) - 1))
        row = table[unit]
        row["ready"], row["pending"] = data.draw(st.booleans()), 1
        row["head_arrived_at_s"] = data.draw(st.integers(0, 3))
        compiled.changed(compiled.memory, table, unit, float(now_s))
        steps = policy.plan(State(table, np.flatnonzero(table["ready"])), float(now_s))
        picked, tuples, _ = compiled.pick(compiled.memory, table, float(now_s))
        assert (picked, tuples) == ((steps[0].unit, steps[0].tuples) if steps else (-1, 0))


@pytest.mark.parametrize("name", NAMES)
@given(network=networks(meeting=True), data=st.data())
def test_units_without_figures_are_planned_all_the_same(
    name: str, network: Network, data: st.DataObject
) -> None:
    units = units_of(network, "operator")
    table, policy = unit_table(units), policy_of(name)
    for column in ("selectivity", "tuple_cost_s", "box_selectivity", "box_cost_s"):
        for unit in data.draw(st.sets(st.integers(0, len(units) - 1))):
            table[column][unit] = np.nan
    policy.prepare(units)
    ready = np.arange(len(units))
    steps = policy.plan(State(table, ready), 0.0)
    assert sorted(step.unit for step in steps) == ready.tolist()


def two_paths() -> tuple[Units, UnitTable]:
    operator = Operator(kind="select", cost_s=1.0, selectivity=0.5)
    units = units_of(
        network_of(
            *(Box(name=f"b{number}", operator=operator, inputs=("s0",)) for number in (0, 1)),
            tuple_bytes=8.0,
        )
    )
    return units, unit_table(units)


@pytest.mark.parametrize("name", ["chain", "oc"])
def test_partitions_are_made_anew_when_figures_were_measured(name: str) -> None:
    units, table = two_paths()
    policy = policy_of(name)
    policy.prepare(units)
    ready = np.arange(2)
    assert [step.unit for step in policy.plan(State(table, ready, 1), 0.0)] == [0, 1]
    table["tuple_cost_s"][0] = 3.0
    assert [step.unit for step in policy.plan(State(table, ready, 2), 0.0)] == [1, 0]


@pytest.mark.parametrize("name", NAMES)
def test_there_is_no_compiled_form_where_figures_change_during_the_run(name: str) -> None:
    units, table = two_paths()
    assert policy_of(name).selection(units, table, learns=True) is None


@pytest.mark.parametrize("name", NAMES)
def test_hearing_of_a_step_changes_no_plan(name: str) -> None:
    units, table = two_paths()
    policy = policy_of(name)
    policy.prepare(units)
    state: Any = State(table, np.arange(2))
    before = policy.plan(state, 0.0)
    policy.hear(StepStarted(0.0, BoxCall(0, (1,), 0, 0, 1, 1)))
    assert policy.plan(state, 0.0) == before
