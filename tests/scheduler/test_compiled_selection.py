"""The live scheduler decides by the compiled selection as it does by plans."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.networks import line, network, select

from headgate.model.events import (
    QueryStopped,
    StepFinished,
    TrainArrived,
    UnitDelayed,
)
from headgate.model.network.network import Network
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.plan import ALL, BoxCall
from headgate.model.qos_graph import QoSGraph
from headgate.policies import policy_named
from headgate.scheduler import compiled_selection
from headgate.scheduler.scheduler import Scheduler
from headgate.scheduler.statistics import Statistics

POLICIES: dict[str, dict[str, Any]] = {
    "qos-bucketed": {"gradients": 4, "slacks": 4},
    "qos": {},
    "bsd": {"search": "fagin-units"},
    "fas": {},
    "edf-hr": {},
    "hr": {},
    "rr": {},
}
UNITS, STREAMS = 12, 3


def queries() -> Network:
    rng = np.random.default_rng(3)
    names = [f"s{number}" for number in range(STREAMS)]
    return network(
        *(
            line(
                f"q{number}", select(float(rng.uniform(0.1, 2.0)), float(rng.uniform(0.1, 1.0))),
                stream=names[number % STREAMS], deadline_s=float(rng.uniform(1.0, 9.0)),
                qos=QoSGraph(((0.0, 1.0), (float(rng.uniform(0.5, 4.0)), 0.5), (9.0, 0.0))),
            )
            for number in range(UNITS)
        ),
        streams=names,
    )  # fmt: skip


def scheduler(name: str, most_fused: int, learns: bool) -> Scheduler:
    over = queries()
    table = unit_table(units_of(over), overhead_s=0.5)
    statistics = Statistics(table) if learns else None
    policy = policy_named(name, **POLICIES[name])
    return Scheduler(over, table, policy, most_fused=most_fused, statistics=statistics)


def selects(name: str) -> bool:
    """Return True if a scheduler decides by the compiled selection of a policy."""
    units, policy = units_of(queries()), policy_named(name, **POLICIES[name])
    return (
        compiled_selection.compiled_selection(policy, units, unit_table(units), None, "pdt")
        is not None
    )


def lived(name: str, events: list[Any], most_fused: int, learns: bool) -> list[Any]:
    """Return what is called while events happen; a call ends with the event after the next."""
    chosen, calls, running = scheduler(name, most_fused, learns), [], list[BoxCall]()
    for place, (kind, number, tuples) in enumerate(events):
        at_s = 1.0 + place
        if kind == "train":
            times_s = np.array([at_s])
            trains = np.array([tuples]), times_s, times_s
            chosen.hear(TrainArrived(at_s, number % STREAMS, *trains))
        elif kind == "delay":
            chosen.hear(UnitDelayed(at_s, number, at_s + tuples, ValueError("later")))
        elif kind == "stop" and number == 0:
            chosen.hear(QueryStopped(at_s, number))
        for call in running:
            outs, nothing = (1,) * len(call.units), (np.zeros(0),) * len(call.units)
            chosen.hear(StepFinished(at_s, call, 0.5 + 0.01 * call.tuples, outs, nothing))
        running = chosen.plan(at_s)
        calls += [replace(call, lane="driver") for call in running]
    return calls


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=settings.default.max_examples // 2)
@given(
    events=st.lists(
        st.tuples(
            st.sampled_from(["train", "train", "train", "delay", "stop"]),
            st.integers(0, UNITS - 1),
            st.integers(1, 9),
        ),
        max_size=40,
    ),
    learns=st.booleans(),
)
def test_the_selection_makes_the_calls_of_the_plans(
    name: str, events: list[Any], learns: bool
) -> None:
    before = compiled_selection.FROM_UNITS
    try:
        compiled_selection.FROM_UNITS = 1
        assert selects(name)
        selected = lived(name, events, 1, learns)
        compiled_selection.FROM_UNITS = ALL
        assert selected == lived(name, events, 1, learns)
    finally:
        compiled_selection.FROM_UNITS = before


def test_units_at_the_same_train_join_a_call_that_was_selected() -> None:
    before = compiled_selection.FROM_UNITS
    try:
        for least in (1, ALL):
            compiled_selection.FROM_UNITS = least
            chosen = scheduler("qos", 8, False)
            at_s = np.array([1.0])
            chosen.hear(TrainArrived(1.0, 0, np.array([1]), at_s, at_s))
            (call,) = chosen.plan(1.0)
            assert sorted(call.units)[:1] == [min(call.units)]
            assert {unit % STREAMS for unit in call.units} == {0}
    finally:
        compiled_selection.FROM_UNITS = before
