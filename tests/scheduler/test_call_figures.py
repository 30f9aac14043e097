"""Figures of calls: what is probed first, what a call costs, its lane and order of conditions."""

from dataclasses import replace

import numpy as np
import pytest
from kit.schedulers import Always, arrive, finish, only, queries_alike, scheduler_of

from headgate.model.events import (
    ConditionSample,
    StepFinished,
)
from headgate.model.network.network import Condition
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.policies import policy_named
from headgate.scheduler.scheduler import Scheduler
from headgate.scheduler.statistics import MOST_IN_DRIVER, Statistics


def test_units_without_figures_are_probed_alone_first_and_fused_afterwards() -> None:
    network = queries_alike(3)
    table = unit_table(units_of(network))
    table["box_cost_s"] = table["box_selectivity"] = np.nan
    scheduler = Scheduler(
        network, table, policy_named("rr"), most_fused=3, statistics=Statistics(table)
    )
    arrive(scheduler, 10)
    probed = []
    for _ in range(3):
        call = only(scheduler.plan(0.0))
        probed.append(call.units)
        finish(scheduler, call, seconds=0.1)
    assert probed == [(0,), (1,), (2,)]
    arrive(scheduler, 10)
    assert len(only(scheduler.plan(0.0)).units) == 3


def test_one_new_unit_among_known_ones_is_probed_before_them() -> None:
    network = queries_alike(3)
    table = unit_table(units_of(network))
    table["box_cost_s"][1] = np.nan
    scheduler = Scheduler(
        network, table, policy_named("rr"), most_fused=3, statistics=Statistics(table)
    )
    arrive(scheduler, 10)
    assert only(scheduler.plan(0.0)).units == (1,)


def test_cost_is_that_of_the_call_that_would_run() -> None:
    network = queries_alike(2)
    table = unit_table(units_of(network))
    table["overhead_s"], table["tuple_cost_s"] = [0.1, 0.4], [0.001, 0.002]
    scheduler = Scheduler(network, table, policy_named("hr"), train_tuples=50)
    arrive(scheduler, 20)
    assert table["cost_s"] == pytest.approx([0.1 / 20 + 0.001, 0.4 / 20 + 0.002])
    arrive(scheduler, 380)
    assert table["cost_s"] == pytest.approx([0.1 / 50 + 0.001, 0.4 / 50 + 0.002])


def test_with_nothing_pending_a_unit_costs_a_call_on_one_tuple() -> None:
    network = queries_alike(1)
    table = unit_table(units_of(network))
    table["overhead_s"] = 0.1
    scheduler = Scheduler(network, table, policy_named("hr"))
    arrive(scheduler, 20)
    finish(scheduler, only(scheduler.plan(0.0)))
    assert table["cost_s"] == pytest.approx([0.101])


def test_a_call_carries_the_lane_that_is_expected_to_be_quicker() -> None:
    network = queries_alike(1)
    table = unit_table(units_of(network), overhead_s=0.01)
    scheduler = Scheduler(network, table, policy_named("rr"), statistics=Statistics(table))
    for tuples, lane in ((10, "driver"), (MOST_IN_DRIVER + 1, "job"), (10, "driver")):
        arrive(scheduler, tuples)
        call = only(scheduler.plan(0.0))
        assert call.lane == lane
        seconds = 0.01 + 0.001 * tuples if lane == "driver" else 0.5
        nothing = (np.zeros(0),)
        scheduler.hear(StepFinished(0.0, call, seconds, (0,), nothing, lane=lane))
    # A job has run by now, and takes much less a tuple.
    arrive(scheduler, 10_000)
    assert only(scheduler.plan(0.0)).lane == "job"


def test_a_call_takes_no_more_trains_than_fit_into_its_seconds() -> None:
    """A tuple costs 1 ms and a call 10 ms, so that 190 tuples have a twentieth of overhead."""
    network = queries_alike(1)
    table = unit_table(units_of(network), overhead_s=0.01)
    scheduler = Scheduler(
        network, table, policy_named("rr"), statistics=Statistics(table), call_s=0.05
    )
    for _ in range(5):
        arrive(scheduler, 90)
    assert only(scheduler.plan(0.0)).tuples == 180


def test_every_call_carries_the_lane_that_was_asked_for() -> None:
    scheduler = scheduler_of(1, lane="job")
    arrive(scheduler, 10)
    assert only(scheduler.plan(0.0)).lane == "job"
    assert scheduler.lane_text(0, 10) == "job for every call"


def test_a_call_carries_the_order_of_conditions_that_costs_least() -> None:
    network = queries_alike(2)
    conditions = (Condition("f(a) > 1", True), Condition("b > 1", True))
    paths = tuple(replace(path, conditions=conditions) for path in network.paths)
    network = replace(network, paths=paths)
    table = unit_table(units_of(network), overhead_s=0.01)
    scheduler = Scheduler(network, table, Always(0), statistics=Statistics(table))
    arrive(scheduler, 100)
    call = only(scheduler.plan(0.0))
    assert call.orders == ()
    assert scheduler.order_text(0) is None
    sample = ConditionSample(0, (100, 100), (50, 1), (1e-3, 1e-5))
    nothing = (np.zeros(0),)
    scheduler.hear(StepFinished(0.0, call, 0.1, (0,), nothing, samples=(sample,)))
    arrive(scheduler, 100)
    assert only(scheduler.plan(0.0)).orders == ((0, (1, 0)),)
    assert str(scheduler.order_text(0)).startswith("b > 1 (passes 0.0196, 0.1 µs a tuple), then f")


def test_a_query_that_the_scheduler_has_not_heard_of_yet_can_be_explained() -> None:
    scheduler = scheduler_of(1)
    assert scheduler.lane_text(1, 10).startswith("driver: the query is new")
    assert scheduler.order_text(1) is None
