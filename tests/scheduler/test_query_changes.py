"""Queries whose class, weight, deadline or QoS graph changes while others run."""

from dataclasses import replace
from typing import Any

import pytest
from kit.networks import line, network, select
from kit.schedulers import arrive, finish, only

from headgate.model.events import NetworkChanged
from headgate.model.network.network import Network
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.qos_graph import QoSGraph
from headgate.policies import policy_named
from headgate.scheduler.scheduler import Scheduler

LATER = QoSGraph(((0.0, 1.0), (50.0, 1.0), (90.0, 0.0)))
NOW = QoSGraph(((0.0, 1.0), (4.0, 0.0)))


def with_values(before: Network, unit: int, **values: Any) -> Network:
    """Return a network after a query has got other values."""
    paths = list(before.paths)
    paths[unit] = replace(paths[unit], query=replace(paths[unit].query, **values))
    return replace(before, paths=tuple(paths))


@pytest.mark.parametrize(
    ("policy", "values", "old_values"),
    [
        ("cqc", {"query_class": "H"}, {"query_class": "N"}),
        ("hr-class", {"query_class": "H"}, {"query_class": "N"}),
        ("wrr", {"query_class": "H"}, {"query_class": "N"}),
        ("fas", {"weight": 9.0}, {"weight": 1.0}),
        ("edf", {"deadline_s": 1.0}, {"deadline_s": None}),
        ("edf-hr", {"deadline_s": 10.0}, {"deadline_s": 95.0}),
        ("qos", {"qos": NOW}, {"qos": LATER}),
        ("qos-bucketed", {"qos": NOW}, {"qos": LATER}),
        ("cqc(inner=edf)", {"deadline_s": 1.0}, {"deadline_s": None}),
    ],
)
def test_a_policy_decides_by_the_new_values_from_its_next_plan_on(
    policy: str, values: dict[str, Any], old_values: dict[str, Any]
) -> None:
    boxes = (
        line(name, select(0.5, 0.5), query_class="N", deadline_s=80.0, qos=LATER) for name in "abc"
    )
    before = network(*boxes, classes={"H": 6.0, "N": 1.0})
    before = with_values(before, 2, **old_values)
    name, _, inner = policy.partition("(inner=")
    chosen = policy_named(name, **({"inner": inner[:-1]} if inner else {}))
    table = unit_table(units_of(before), overhead_s=0.1)
    scheduler = Scheduler(before, table, chosen, workers=1, train_tuples=1)
    arrive(scheduler, *[1] * 9)
    call = only(scheduler.plan(1.0))
    assert call.units != (2,)
    changed = with_values(before, 2, **values)
    scheduler.hear(NetworkChanged(1.0, changed, {}, {}, {}, changed=(2,)))
    finish(scheduler, call)
    call = only(scheduler.plan(2.0))
    assert call.units == (2,)
    assert scheduler.table["pending"].sum() == 3 * 9 - 1
    finish(scheduler, call)
    scheduler.hear(NetworkChanged(2.0, before, {}, {}, {}, changed=(2,)))
    assert only(scheduler.plan(3.0)).units != (2,)
