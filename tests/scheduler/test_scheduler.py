"""Which unit runs next, which never runs again, and which plans are rejected."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from headgate.errors import PlanRejected
from headgate.model.events import (
    ConditionSample,
    NetworkChanged,
    Overloaded,
    QueryStopped,
    StepFinished,
    StepStarted,
    TrainArrived,
    UnitDelayed,
    UnitFailed,
)
from headgate.model.network.network import Condition, Network, Path
from headgate.model.network.operator import Kind, Operator
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.plan import BoxCall, Step
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.policies import Policy, State, policy_named
from headgate.scheduler.scheduler import Scheduler
from headgate.scheduler.statistics import MOST_IN_DRIVER, Statistics


def network_of(
    units: int, *, streams: int = 1, kinds: Sequence[Kind] = (), **operator_figures: float
) -> Network:
    figures = operator_figures or {"cost_s": 0.001, "selectivity": 0.5}
    return Network(
        tuple(Stream(name=f"s{number}", format="rate") for number in range(streams)),
        (QueryClass(name="only", priority=1),),
        tuple(
            Path(
                query=Query(name=f"q{number}", sql="SELECT 1", query_class="only"),
                stream=f"s{number % streams}",
                operators=(Operator(kind=kinds[number] if kinds else "select", **figures),),
            )
            for number in range(units)
        ),
    )


def scheduler_of(units: int, policy: str | Policy = "rr", **options: object) -> Scheduler:
    network = network_of(units)
    chosen = policy_named(policy) if isinstance(policy, str) else policy
    table = unit_table(units_of(network), overhead_s=1.0)
    return Scheduler(network, table, chosen, **options)  # type: ignore[arg-type]


def arrive(scheduler: Scheduler, *tuples: int, stream: int = 0, at_s: float = 0.0) -> None:
    times_s = np.full(len(tuples), at_s)
    scheduler.hear(TrainArrived(at_s, stream, np.array(tuples), times_s, times_s))


def finish(
    scheduler: Scheduler, call: BoxCall, seconds: float = 1.0, failed: tuple[int, ...] = ()
) -> None:
    nothing, outs = tuple(np.zeros(0) for _ in call.units), (0,) * len(call.units)
    scheduler.hear(StepFinished(0.0, call, seconds, outs, nothing, failed=failed))


def only(calls: list[BoxCall]) -> BoxCall:
    assert len(calls) == 1
    return calls[0]


class Always(Policy):
    """A policy that plans the same steps whatever the state, and records the events it hears."""

    name = "always"

    def __init__(self, *units: int) -> None:
        self.units = units
        self.heard: list[tuple[str, int]] = []

    def hear(self, event: StepStarted | StepFinished) -> None:
        self.heard.append((type(event).__name__, event.call.number))

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        return [Step(unit) for unit in self.units]


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
    network = replace(network_of(3), ids=(7, 8, 9))
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


@pytest.mark.parametrize(("certain", "cursor"), [(True, 2), (False, 0)])
def test_only_what_was_made_certain_is_shed(certain: bool, cursor: int) -> None:
    network = network_of(1)
    (path,) = network.paths
    lenient = replace(path, query=replace(path.query, allows_shedding=True))
    network = replace(network, paths=(lenient,))
    scheduler = Scheduler(
        network, unit_table(units_of(network), overhead_s=1.0), policy_named("rr"), workers=0,
        shed=lambda events: events if certain else [],
    )  # fmt: skip
    arrive(scheduler, 5, 5, 5)
    scheduler.hear(Overloaded(0.0, 1.0))
    scheduler.plan(0.0)
    assert scheduler.cursors.tolist() == [cursor]


def test_a_query_that_comes_late_is_given_what_others_have_long_passed() -> None:
    scheduler = scheduler_of(1, train_tuples=5)
    for _ in range(3000):
        arrive(scheduler, 2)
        finish(scheduler, only(scheduler.plan(0.0)))
    times_s, tuples = np.zeros(3000 - 7), np.full(3000 - 7, 2)
    trains = {0: TrainArrived(0.0, 0, tuples, times_s, times_s)}
    scheduler.hear(NetworkChanged(0.0, network_of(2), {1: 7}, {}, {}, kept=trains))
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


@pytest.mark.parametrize("unit", [1, 2, 99, -1, -3])
def test_a_plan_with_a_unit_that_has_nothing_pending_or_does_not_exist_is_rejected(
    unit: int,
) -> None:
    network = network_of(3, streams=3)
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


def test_units_without_figures_are_probed_alone_first_and_fused_afterwards() -> None:
    network = network_of(3)
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
    network = network_of(3)
    table = unit_table(units_of(network))
    table["box_cost_s"][1] = np.nan
    scheduler = Scheduler(
        network, table, policy_named("rr"), most_fused=3, statistics=Statistics(table)
    )
    arrive(scheduler, 10)
    assert only(scheduler.plan(0.0)).units == (1,)


def test_cost_is_that_of_the_call_that_would_run() -> None:
    network = network_of(2)
    table = unit_table(units_of(network))
    table["overhead_s"], table["tuple_cost_s"] = [0.1, 0.4], [0.001, 0.002]
    scheduler = Scheduler(network, table, policy_named("hr"), train_tuples=50)
    arrive(scheduler, 20)
    assert table["cost_s"] == pytest.approx([0.1 / 20 + 0.001, 0.4 / 20 + 0.002])
    arrive(scheduler, 380)
    assert table["cost_s"] == pytest.approx([0.1 / 50 + 0.001, 0.4 / 50 + 0.002])


def test_with_nothing_pending_a_unit_costs_a_call_on_one_tuple() -> None:
    network = network_of(1)
    table = unit_table(units_of(network))
    table["overhead_s"] = 0.1
    scheduler = Scheduler(network, table, policy_named("hr"))
    arrive(scheduler, 20)
    finish(scheduler, only(scheduler.plan(0.0)))
    assert table["cost_s"] == pytest.approx([0.101])


def test_a_query_that_runs_whole_is_never_fused() -> None:
    network = network_of(3, kinds=("select", "whole", "select"))
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
    network = network_of(1)
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


def test_a_call_carries_the_lane_that_is_expected_to_be_quicker() -> None:
    network = network_of(1)
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


def test_every_call_carries_the_lane_that_was_asked_for() -> None:
    scheduler = scheduler_of(1, lane="job")
    arrive(scheduler, 10)
    assert only(scheduler.plan(0.0)).lane == "job"
    assert scheduler.lane_text(0, 10) == "job for every call"


def test_a_call_carries_the_order_of_conditions_that_costs_least() -> None:
    network = network_of(2)
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
