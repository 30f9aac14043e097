"""Units that fail, wait, are stopped, shed or come late, while the others go on."""

from dataclasses import replace

import numpy as np
from kit.schedulers import arrive, finish, only, queries_alike, scheduler_of

from headgate.model.events import (
    NetworkChanged,
    QueryStopped,
    TrainArrived,
    UnitDelayed,
    UnitFailed,
)
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.policies import policy_named
from headgate.scheduler.scheduler import Scheduler
from headgate.scheduler.statistics import Statistics


def test_a_failed_unit_is_not_planned_again_while_others_go_on() -> None:
    scheduler = scheduler_of(2, most_fused=2)
    arrive(scheduler, 1)
    call = only(scheduler.plan(0.0))
    assert call.units == (0, 1)
    scheduler.hear(UnitFailed(0.0, 0, call, RuntimeError("no such column")))
    finish(scheduler, call)
    arrive(scheduler, 1)
    for _ in range(3):
        call = only(scheduler.plan(0.0))
        assert call.units == (1,)
        finish(scheduler, call)
        arrive(scheduler, 1)


def test_the_input_of_a_failed_unit_is_kept() -> None:
    scheduler = scheduler_of(2, most_fused=2)
    arrive(scheduler, 5)
    call = only(scheduler.plan(0.0))
    scheduler.hear(UnitFailed(0.0, 0, call, RuntimeError("no such column")))
    finish(scheduler, call, failed=(0,))
    assert scheduler.cursors.tolist() == [0, 1]
    assert scheduler.table["pending"].tolist() == [5, 0]


def test_a_stream_does_not_wait_for_a_unit_that_failed() -> None:
    scheduler = scheduler_of(2, most_fused=2)
    arrive(scheduler, 5)
    call = only(scheduler.plan(0.0))
    scheduler.hear(UnitFailed(0.0, 0, call, RuntimeError("no such column")))
    finish(scheduler, call, failed=(0,))
    assert scheduler.passed(0) == 1


def test_a_delayed_unit_is_tried_again_when_its_time_has_come() -> None:
    scheduler = scheduler_of(2, most_fused=2)
    arrive(scheduler, 5)
    call = only(scheduler.plan(0.0))
    scheduler.hear(UnitDelayed(0.0, 0, 2.0, RuntimeError("the sink is away")))
    finish(scheduler, call, failed=(0,))
    assert scheduler.plan(1.0) == []
    assert scheduler.wake_at_s == 2.0
    again = only(scheduler.plan(2.0))
    assert (again.units, again.first_train) == ((0,), 0)


def test_queries_keep_their_ids_while_two_hundred_others_come_and_go_and_no_array_grows() -> None:
    network = replace(queries_alike(3), ids=(7, 8, 9))
    table = unit_table(units_of(network), overhead_s=1.0)
    scheduler = Scheduler(network, table, policy_named("rr"), statistics=Statistics(table))
    arrive(scheduler, 5)
    call = only(scheduler.plan(0.0))
    assert call.units == (7,)
    # Query 8 leaves during a pause and while a call of another is under way.
    scheduler.hear(UnitDelayed(0.0, 8, 2.0, RuntimeError("the sink is away")))
    scheduler.hear(QueryStopped(0.1, 8))
    paths = network.paths
    for number in range(10, 210):
        scheduler.hear(NetworkChanged(0.2, network.only({7, 9}), {}, {}, {}))
        new = replace(paths[1], query=replace(paths[1].query, name=f"q{number}"))
        network = replace(network, paths=(paths[0], paths[2], new), ids=(7, 9, number))
        scheduler.hear(NetworkChanged(0.2, network, {number: 0}, {}, {}))
        scheduler.hear(QueryStopped(0.3, number))
    finish(scheduler, call, seconds=3.0)
    assert len(scheduler.table) == len(scheduler.cursors) == 3
    assert scheduler.table["unit"].tolist() == [0, 1, 2]
    assert scheduler.table["pending"].tolist() == [0, 5, 5]
    assert scheduler.wake_at_s == np.inf
    assert scheduler.passed(0) == 0
    assert scheduler.rows.next_train(7) == 1
    assert scheduler.rows.unit(8) is None
    other = only(scheduler.plan(2.0))
    assert (other.units, other.first_train) == ((9,), 0)
    finish(scheduler, other)
    assert scheduler.plan(3.0) == []
    scheduler.hear(NetworkChanged(3.0, network.only(()), {}, {}, {}))
    arrive(scheduler, 5)
    assert scheduler.plan(4.0) == []


def test_a_query_that_comes_late_is_given_what_others_have_long_passed() -> None:
    scheduler = scheduler_of(1, train_tuples=5)
    for _ in range(3000):
        arrive(scheduler, 2)
        finish(scheduler, only(scheduler.plan(0.0)))
    times_s, tuples = np.zeros(3000 - 7), np.full(3000 - 7, 2)
    trains = {0: TrainArrived(0.0, 0, tuples, times_s, times_s)}
    scheduler.hear(NetworkChanged(0.0, queries_alike(2), {1: 7}, {}, {}, kept=trains))
    assert scheduler.table["pending"].tolist() == [0, 2 * (3000 - 7)]
    call = only(scheduler.plan(0.0))
    assert (call.units, call.first_train, call.end_train, call.tuples) == ((1,), 7, 9, 4)


def test_a_failed_call_frees_its_worker() -> None:
    scheduler = scheduler_of(2, workers=1)
    arrive(scheduler, 1)
    call = only(scheduler.plan(0.0))
    scheduler.hear(UnitFailed(0.0, 0, call, RuntimeError("no such column")))
    finish(scheduler, call, failed=(0,))
    assert only(scheduler.plan(0.0)).units == (1,)


def test_a_stopped_query_is_not_planned_again() -> None:
    scheduler = scheduler_of(2)
    arrive(scheduler, 1)
    scheduler.hear(QueryStopped(0.0, 0))
    assert only(scheduler.plan(0.0)).units == (1,)
