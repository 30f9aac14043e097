"""The closed loop in the scheduler: what it measures, commits and drops, once a second."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.events import arrival, end
from kit.networks import line, network, select

from headgate.model.events import (
    NetworkChanged,
    Overloaded,
    QueryStopped,
    SheddingChanged,
    UnitFailed,
)
from headgate.model.network.network import Network, Path
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.plan import BoxCall
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import QueryClass
from headgate.policies import policy_named
from headgate.scheduler.qos_monitor import QoSMonitor, infeasible
from headgate.scheduler.scheduler import Scheduler


class Journal:
    """What a scheduler has committed; it can refuse to commit, as a full disk does."""

    def __init__(self) -> None:
        self.changes: list[SheddingChanged] = []
        self.is_full = False

    def __call__(self, changes: Sequence[SheddingChanged]) -> Sequence[SheddingChanged]:
        done = [] if self.is_full else changes
        self.changes += done
        return done

    def drops(self) -> dict[int, float]:
        """Return what each unit drops at present."""
        return {change.unit: change.fraction for change in self.changes}


def run_of(*paths: Path, workers: int = 1, classes: Any = None) -> tuple[Scheduler, Journal]:
    journal, run_network = Journal(), network(*paths, classes=classes)
    table = unit_table(units_of(run_network))
    scheduler = Scheduler(
        run_network, table, policy_named("rr"), workers=workers, shed=journal, most_fused=8
    )
    return scheduler, journal


def work(scheduler: Scheduler, seconds: int, per_s: int, first_s: int = 0) -> list[BoxCall]:
    """Let tuples arrive each second, and run what is planned without taking any time."""
    calls = []
    for second in range(first_s, first_s + seconds):
        scheduler.plan(float(second))  # it looks at the load here, while nothing waits
        scheduler.hear(arrival(second, 0, per_s))
        while planned := scheduler.plan(float(second)):
            for call in planned:
                calls.append(call)
                responses = [[0.1] for _ in call.units]
                finished = end(second, call.units, call.tuples, *responses)
                scheduler.hear(replace(finished, call=call))
    return calls


SLOW, LENIENT = line("strict", select(0.01)), line("lenient", select(0.01), allows_shedding=True)


def test_more_than_can_be_processed_is_dropped_only_where_it_is_allowed() -> None:
    scheduler, journal = run_of(SLOW, LENIENT)
    work(scheduler, 4, per_s=75)
    # 1.5 s of work a second. All but 0.95 · 0.9 is to go, from the 0.75 s of one of them.
    assert journal.drops()[0] == 0.0
    assert journal.drops()[1] == pytest.approx((1.5 - 0.855) / 0.75)
    reasons = {change.reason for change in journal.changes if change.fraction}
    assert reasons == {"more arrives than can be processed"}


def test_it_ends_when_less_arrives() -> None:
    scheduler, journal = run_of(SLOW, LENIENT)
    work(scheduler, 4, per_s=75)
    work(scheduler, 8, per_s=20, first_s=4)
    assert journal.drops() == {0: 0.0, 1: 0.0}
    times_s = [change.at_s for change in journal.changes if change.unit == 1]
    assert np.diff(times_s).min() >= 1


def test_a_rule_begins_after_the_call_under_way() -> None:
    scheduler, journal = run_of(LENIENT)
    work(scheduler, 3, per_s=75)
    scheduler.hear(arrival(3, 0, 75))
    (call,) = scheduler.plan(3.0)
    for second in range(4, 8):
        scheduler.hear(arrival(second, 0, 200))
        scheduler.plan(float(second))
    begins = {change.first_train for change in journal.changes if change.at_s >= 4}
    assert begins == {call.end_train}


def test_a_query_that_has_never_run_loses_nothing() -> None:
    scheduler, journal = run_of(LENIENT)
    scheduler.hear(arrival(0, 0, 50))
    for second in range(1, 5):
        scheduler.hear(arrival(second, 0, 500))
        scheduler.plan(float(second))
    assert set(journal.drops().values()) == {0.0}


def test_what_could_not_be_journaled_is_tried_again() -> None:
    scheduler, journal = run_of(LENIENT)
    journal.is_full = True
    work(scheduler, 3, per_s=150)
    assert journal.changes == []
    journal.is_full = False
    work(scheduler, 2, per_s=150, first_s=3)
    assert journal.drops()[0] > 0


def test_a_full_budget_drops_more_and_more() -> None:
    scheduler, journal = run_of(LENIENT, workers=2)
    work(scheduler, 3, per_s=50)
    for second in range(3, 7):
        scheduler.hear(arrival(second, 0, 50))
        scheduler.hear(Overloaded(float(second), second + 1.0))
        scheduler.plan(float(second))
    shares = [change.fraction for change in journal.changes]
    assert shares == sorted(shares)
    assert shares[-1] > 0.7
    assert journal.changes[-1].reason == "a budget is full"


def test_a_query_that_begins_again_begins_without_the_old_fraction() -> None:
    scheduler, journal = run_of(LENIENT)
    work(scheduler, 4, per_s=150)
    before = len(journal.changes)
    scheduler.hear(NetworkChanged(4.0, scheduler.network, {0: 4}, {}, {}))
    work(scheduler, 1, per_s=150, first_s=5)
    assert len(journal.changes) == before + 1


H = {"H": QueryClass(name="H", priority=6, target_s=1.0)}


def delivery_of(**options: Any) -> tuple[QoSMonitor, Network]:
    run_network = network(line("a", select(0.001), query_class="H", **options), classes={"H": 1})
    run_network = replace(run_network, classes=tuple(H.values()))
    return QoSMonitor(run_network, unit_table(units_of(run_network))), run_network


def test_a_class_above_its_target_is_poor_until_it_is_well_below() -> None:
    delivery, _ = delivery_of()
    assert delivery.judge(0.0).acceptable
    delivery.hear(end(1, (0,), 2, [1.5, 1.5]))
    assert delivery.judge(1.0).poor == "class H has a mean response of 1.5 s, and 1 s was asked"
    delivery.hear(end(2, (0,), 4, [0.5] * 4))  # a mean of 0.83: neither
    judgement = delivery.judge(2.0)
    assert (judgement.poor, judgement.acceptable) == ("", False)
    assert delivery.judge(31.5).acceptable  # the slow ones are 30 s old


def test_deadlines_and_qos_graphs_count_as_shares_of_results() -> None:
    delivery, _ = delivery_of(deadline_s=0.5, qos=QoSGraph(((0, 1), (0.5, 1), (1, 0))))
    delivery.hear(end(1, (0,), 10, [0.1] * 9 + [0.75]))
    assert delivery.judge(1.0).poor == ""
    delivery.hear(end(1, (0,), 10, [0.75]))
    assert delivery.judge(1.0).poor == "query 'a' keeps its deadline for 82% of its results"
    graph, _ = delivery_of(qos=QoSGraph(((0, 1), (0.5, 1), (1, 0))))
    graph.hear(end(1, (0,), 2, [0.9, 0.8]))
    assert graph.judge(1.0).poor == "query 'a' delivers a QoS of 0.30"


def test_what_costs_cannot_meet_is_reported_and_no_reason_to_drop() -> None:
    delivery, run_network = delivery_of(deadline_s=0.0005)
    table = unit_table(units_of(run_network))
    delivery.hear(end(1, (0,), 2, [0.8, 0.8]))
    assert delivery.judge(1.0).poor == ""
    text = infeasible(run_network, table, 0)
    assert text == "its deadline_s is 0.0005, but a result takes 0.001 s with nobody else running"
    assert infeasible(delivery_of()[1], table, 0) == ""


def test_recorded_costs_are_certain_at_once_and_others_after_100_tuples() -> None:
    hurried = line("hurried", select(0.01), deadline_s=0.001)
    (recorded, _), (new, _) = run_of(hurried), run_of(hurried)
    assert recorded.overload is not None
    assert new.overload is not None
    recorded.overload.trust([0])
    assert "its deadline_s is 0.001" in recorded.overload.infeasible(0)
    assert new.overload.infeasible(0) == ""
    work(new, 4, per_s=30)
    assert new.overload.infeasible(0) == recorded.overload.infeasible(0)


@given(
    loads=st.lists(st.integers(1, 300), min_size=1, max_size=12),
    allows=st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_it_changes_at_most_once_a_second_and_only_what_allows_it(
    loads: list[int], allows: list[bool]
) -> None:
    paths = (line(f"q{n}", select(0.01), allows_shedding=a) for n, a in enumerate(allows))
    scheduler, journal = run_of(*paths)
    for second, per_s in enumerate(loads):
        work(scheduler, 1, per_s=per_s, first_s=second)
        scheduler.plan(second + 0.5)
    for unit, allowed in enumerate(allows):
        changes = [change for change in journal.changes if change.unit == unit]
        assert all(allowed or not change.fraction for change in changes)
        assert len({change.at_s for change in changes}) == len(changes)
        trains = [change.first_train for change in changes]
        assert trains == sorted(trains)


@pytest.mark.parametrize("out", ["paused", "failed"])
def test_what_waits_for_a_query_that_does_not_run_is_no_load(out: str) -> None:
    scheduler, journal = run_of(SLOW, LENIENT, line("other", select(0.01), allows_shedding=True))
    work(scheduler, 3, per_s=10)
    call = BoxCall(99, (2,), 0, 2, 3, 10)
    failed = UnitFailed(3.0, 2, call, RuntimeError("no such column"))
    scheduler.hear(QueryStopped(3.0, 2) if out == "paused" else failed)
    work(scheduler, 60, per_s=20, first_s=3)  # 12 s of work wait for it, others need 0.4 a second
    assert journal.drops() == {0: 0.0, 1: 0.0, 2: 0.0}


def test_a_target_is_not_missed_because_a_query_is_paused() -> None:
    delivery, run_network = delivery_of()
    delivery.change(run_network, table := unit_table(units_of(run_network)))
    table["head_arrived_at_s"] = 0.0
    assert delivery.judge(10.0).poor
    assert delivery.judge(10.0, np.array([False])).acceptable
