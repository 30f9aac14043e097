"""The costs besides those of tuples: calls, the storage manager, the scheduler, each by itself."""

import pytest
from kit.networks import departures, line, network, ran, report, select

from headgate.model.network.unit_table import Unit
from headgate.policies import Policy
from headgate.policies.priority import PriorityPolicy

ONE = network(line("q", select(1.0)))
THREE = network(*(line(f"q{number}", select(1.0)) for number in range(3)))
LINE = network(line("q", select(1.0), select(1.0), select(1.0)))
COSTS = {"overhead_s": 0.5, "storage_s": 0.25, "decision_s": 0.125, "examine_s": 0.0625}


def oldest(unit: Unit, now_s: float) -> float:
    """Return the wait of the oldest tuple, declared to change with time in any manner."""
    return now_s - unit.head_arrived_at_s


ANY_TIME = PriorityPolicy(oldest, "time")


def test_each_part_of_the_overhead_is_reported_by_itself() -> None:
    figures = report(ran(ONE, {"s": [0.0] * 4}, **COSTS))
    assert (figures.calls, figures.decisions) == (4, 4)
    assert figures.overhead_s == 4 * 0.5
    assert figures.storage_s == 4 * 0.25
    assert figures.scheduler_s == 4 * (0.125 + 0.0625)
    assert figures.seconds == 4 * (1.0 + 0.5 + 0.25 + 0.125 + 0.0625)
    assert figures.utilisation == 1.0


def test_whatever_is_paid_before_a_tuple_is_part_of_its_response() -> None:
    assert departures(ran(ONE, {"s": [0.0, 0.0]}, **COSTS), "q") == [1.9375, 3.875]


def test_nothing_is_paid_where_nothing_is_asked() -> None:
    figures = report(ran(ONE, {"s": [0.0] * 4}))
    assert (figures.overhead_s, figures.storage_s, figures.scheduler_s, figures.seconds) == (
        0,
        0,
        0,
        4,
    )


@pytest.mark.parametrize(
    ("policy", "examined"),
    [
        ("hr", 6 * 1),  # the order never changes: its first is looked at
        ("fcfs", 6 * 3),  # every unit's wait is computed
        (ANY_TIME, 3 + 2 + 1 + 3 + 2 + 1),  # only of those that wait
    ],
)
def test_a_decision_pays_for_each_priority_that_is_computed(
    policy: str | Policy, examined: int
) -> None:
    # One tuple for each of three queries at 0 and at 10; a call takes about a second.
    figures = report(ran(THREE, {"s": [0.0, 10.0]}, policy, decision_s=0.01, examine_s=0.001))
    assert figures.decisions == 6
    assert figures.scheduler_s == pytest.approx(6 * 0.01 + examined * 0.001)


def test_an_idle_scheduler_pays_nothing() -> None:
    busy = report(ran(ONE, {"s": [0.0, 1.0, 2.0]}, decision_s=0.25))
    idle = report(ran(ONE, {"s": [0.0, 100.0, 200.0]}, decision_s=0.25))
    assert busy.scheduler_s == idle.scheduler_s == 0.75


def test_a_superbox_pays_one_decision_and_one_access_to_storage() -> None:
    # One tuple waits: three box calls of 1.5, one decision over one ready box, one access.
    ended = ran(LINE, {"s": [0.0]}, "mc", level="operator", **COSTS)
    figures = report(ended)
    assert (figures.calls, figures.decisions) == (3, 1)
    assert (figures.overhead_s, figures.storage_s, figures.scheduler_s) == (1.5, 0.25, 0.1875)
    assert departures(ended, "q") == [0.1875 + 0.25 + 3 * 1.5]


def test_box_after_box_pays_for_every_call() -> None:
    figures = report(ran(LINE, {"s": [0.0]}, level="operator", **COSTS))
    assert (figures.calls, figures.decisions, figures.storage_s) == (3, 3, 0.75)
    assert figures.scheduler_s == 3 * (0.125 + 3 * 0.0625)


def test_a_box_counts_a_call_for_every_tuple_that_reaches_it() -> None:
    # 4 tuples reach the first box and none the second.
    closed = network(line("q", select(1.0, 0.0), select(1.0)))
    assert report(ran(closed, {"s": [0.0] * 4})).box_calls == 4
    assert report(ran(LINE, {"s": [0.0] * 4})).box_calls == 12


def test_utilisation_is_the_share_of_the_workers_time_that_calls_took() -> None:
    # One second of work at 0 and at 9: 2 of 10 seconds, of two workers.
    assert report(ran(ONE, {"s": [0.0, 9.0]}, workers=2)).utilisation == 0.1
