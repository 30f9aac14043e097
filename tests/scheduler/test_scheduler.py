"""Which unit runs next, on which trains, and which plans are rejected."""

import numpy as np
import pytest
from kit.schedulers import Always, arrive, finish, only, queries_alike, scheduler_of

from headgate.errors import PlanRejected
from headgate.model.network.network import Network
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.stream import Stream
from headgate.policies import policy_named
from headgate.scheduler.scheduler import Scheduler


def test_a_call_takes_all_that_waits_and_the_cursor_moves_when_it_is_done() -> None:
    scheduler = scheduler_of(1)
    arrive(scheduler, 3, 4)
    call = only(scheduler.plan(0.0))
    assert (call.units, call.first_train, call.end_train, call.tuples) == ((0,), 0, 2, 7)
    assert scheduler.cursors.tolist() == [0]
    finish(scheduler, call)
    assert scheduler.cursors.tolist() == [2]
    assert scheduler.table["pending"].tolist() == [0]
    assert scheduler.plan(0.0) == []


def test_the_train_size_limits_a_call() -> None:
    scheduler = scheduler_of(1, train_tuples=5)
    arrive(scheduler, 2, 2, 2, 2)
    assert only(scheduler.plan(0.0)).tuples == 4


def test_every_free_worker_gets_a_call_and_no_unit_runs_twice_at_once() -> None:
    scheduler = scheduler_of(2, workers=3)
    arrive(scheduler, 1)
    calls = scheduler.plan(0.0)
    assert [call.units for call in calls] == [(0,), (1,)]
    arrive(scheduler, 1)
    assert scheduler.plan(0.0) == []
    finish(scheduler, calls[1])
    assert only(scheduler.plan(0.0)).units == (1,)


def test_no_more_calls_than_workers() -> None:
    scheduler = scheduler_of(5, workers=2)
    arrive(scheduler, 1)
    assert len(scheduler.plan(0.0)) == 2
    assert scheduler.plan(0.0) == []


@pytest.mark.parametrize("unit", [1, 2, 99, -1, -3])
def test_a_plan_with_a_unit_that_has_nothing_pending_or_does_not_exist_is_rejected(
    unit: int,
) -> None:
    network = queries_alike(3, streams=3)
    scheduler = Scheduler(network, unit_table(units_of(network)), Always(unit))
    arrive(scheduler, 1, stream=0)
    with pytest.raises(PlanRejected, match=f"policy 'always' planned unit {unit}"):
        scheduler.plan(0.0)


def test_a_plan_with_a_unit_that_runs_is_rejected() -> None:
    scheduler = scheduler_of(2, Always(0), workers=2)
    arrive(scheduler, 1)
    with pytest.raises(PlanRejected, match="unit 0"):
        scheduler.plan(0.0)


def test_a_plan_that_names_a_unit_twice_never_runs_it_twice_in_one_call() -> None:
    scheduler = scheduler_of(2, Always(0, 0), most_fused=4)
    arrive(scheduler, 1)
    with pytest.raises(PlanRejected, match="unit 0"):
        scheduler.plan(0.0)


def test_a_query_that_runs_whole_is_never_fused() -> None:
    network = queries_alike(3, kinds=("select", "whole", "select"))
    scheduler = Scheduler(network, unit_table(units_of(network)), policy_named("rr"), most_fused=3)
    arrive(scheduler, 1)
    calls = []
    while planned := scheduler.plan(0.0):
        calls.append(only(planned).units)
        finish(scheduler, planned[0])
    assert sorted(unit for units in calls for unit in units) == [0, 1, 2]
    assert (1,) in calls


def test_two_units_that_were_apart_run_together_again_while_trains_keep_arriving() -> None:
    scheduler = scheduler_of(2, most_fused=2, cursors=np.array([0, 3]))
    arrive(scheduler, 1, 1, 1, 1, 1)
    together = []
    for _ in range(6):
        call = only(scheduler.plan(0.0))
        together.append(len(call.units) == 2)
        arrive(scheduler, 1)  # while it runs
        finish(scheduler, call)
    assert together[0] is False
    assert all(together[3:])


def test_a_run_that_resumes_goes_on_where_each_unit_stood() -> None:
    scheduler = scheduler_of(2, first_trains=[5], cursors=np.array([5, 7]))
    arrive(scheduler, 1, 2, 4)
    assert scheduler.table["pending"].tolist() == [7, 4]
    call = only(scheduler.plan(0.0))
    assert (call.first_train, call.end_train, call.tuples) == (5, 8, 7)


def test_a_stream_is_passed_as_far_as_its_slowest_unit_stands() -> None:
    scheduler = scheduler_of(2)
    arrive(scheduler, 1, 1)
    finish(scheduler, only(scheduler.plan(0.0)))
    assert scheduler.passed(0) == 0
    finish(scheduler, only(scheduler.plan(0.0)))
    assert scheduler.passed(0) == 2


def test_a_stream_that_nobody_reads_is_passed_at_once() -> None:
    network = queries_alike(1)
    two = Network(
        (*network.streams, Stream(name="t", format="rate")), network.classes, network.paths
    )
    scheduler = Scheduler(two, unit_table(units_of(two)), policy_named("rr"))
    arrive(scheduler, 1, 1, stream=1)
    assert scheduler.passed(1) == 2
    assert scheduler.plan(0.0) == []


def test_trains_are_kept_for_the_slowest_unit_however_far_the_others_are() -> None:
    scheduler = scheduler_of(2, Always(0))
    for _ in range(40):
        arrive(scheduler, *[1] * 100)
        finish(scheduler, only(scheduler.plan(0.0)))
    assert scheduler.cursors.tolist() == [4000, 0]
    assert scheduler.table["pending"].tolist() == [0, 4000]
    scheduler.policy = Always(1)
    call = only(scheduler.plan(0.0))
    assert (call.units, call.first_train, call.end_train, call.tuples) == ((1,), 0, 4000, 4000)


def test_a_policy_hears_of_every_start_and_of_every_end() -> None:
    policy = Always(0)
    scheduler = scheduler_of(1, policy)
    for _ in range(2):
        arrive(scheduler, 1)
        finish(scheduler, only(scheduler.plan(0.0)))
    assert policy.heard == [
        ("StepStarted", 0), ("StepFinished", 0), ("StepStarted", 1), ("StepFinished", 1),
    ]  # fmt: skip
