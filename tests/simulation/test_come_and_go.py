"""Queries that come and go during a run: the next decision already counts them (AMoS §1)."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks import (
    RUNS,
    Watched,
    arrivals_out,
    box,
    departures,
    line,
    network,
    ran,
    report,
    results_of,
    select,
)

from headgate.errors import UnknownName
from headgate.simulation.loop.changes import Switch
from headgate.simulation.loop.run import Simulation

EACH_SECOND = {"s": [float(second) for second in range(10)]}
TWO = network(line("a", select(0.25)), line("b", select(0.25)))


def nothing_is_left(ended: Simulation) -> bool:
    """Return True if no queue, no count and no memory holds anything."""
    clock, table = ended.world.clock[0], ended.world.table
    counts = [clock["pending"], clock["bytes"], clock["shared"], clock["entries"]]
    return not any([*counts, *table["pending"], *table["amount"], *ended.world.class_pending])


def test_a_query_that_comes_sees_only_later_tuples() -> None:
    ended = ran(TWO, EACH_SECOND, switches=[Switch(5.5, "b", "come")])
    assert arrivals_out(ended, "b") == [6.0, 7.0, 8.0, 9.0]
    assert arrivals_out(ended, "a") == EACH_SECOND["s"]


def test_a_tuple_of_the_very_instant_is_not_later() -> None:
    ended = ran(TWO, EACH_SECOND, switches=[Switch(5.0, "b", "come")])
    assert arrivals_out(ended, "b") == [6.0, 7.0, 8.0, 9.0]


def test_a_query_that_comes_while_all_workers_are_busy_sees_only_later_tuples() -> None:
    # a's first call lasts until 3; the tuple of 1 is older than b, though nobody has looked yet.
    slow = network(line("a", select(3.0)), line("b", select(0.25)))
    ended = ran(slow, {"s": [0.0, 1.0, 2.0]}, switches=[Switch(1.5, "b", "come")])
    assert arrivals_out(ended, "b") == [2.0]


def test_the_next_decision_counts_a_query_that_has_come() -> None:
    # hr would run b (1/0.25) before a (1/1) whenever it could. b comes at 1.5, and its first tuple
    # at 2: it runs at the end of a's call, at 3, before a's tuples of 1 and 2 that wait longer.
    both = network(line("a", select(1.5)), line("b", select(0.25)))
    ended = ran(both, {"s": [0.0, 1.0, 2.0]}, "hr", switches=[Switch(1.5, "b", "come")])
    assert departures(ended, "b") == [3.25]
    assert departures(ended, "a") == [1.5, 3.0, 4.75]


def test_a_query_that_goes_leaves_nothing_pending() -> None:
    # By 1 both have three tuples each, or two and a half; b goes with all that waits.
    ended = ran(TWO, {"s": [0.0, 0.0, 0.0]}, "hr", switches=[Switch(0.75, "b", "go")])
    assert departures(ended, "a") == [0.25, 0.5, 0.75]
    assert nothing_is_left(ended)
    final = report(ended)
    assert [figures.pending for figures in final.queries] == [0, 0]


def test_a_query_that_goes_in_the_middle_of_its_call_leaves_nothing_behind() -> None:
    # b has one tuple in work until 1 and one waiting when it goes, at 0.5.
    both = network(line("b", select(1.0)), line("a", select(1.0)))
    watched = Watched()
    ended = ran(both, {"s": [0.0, 0.0]}, watched, switches=[Switch(0.5, "b", "go")])
    assert departures(ended, "a") == [2.0, 3.0]
    assert nothing_is_left(ended)
    assert all((table["pending"] >= 0).all() for _, table in watched.seen)


def test_after_it_has_gone_nothing_is_done_for_a_query() -> None:
    ended = ran(TWO, EACH_SECOND, switches=[Switch(4.5, "b", "go")])
    assert arrivals_out(ended, "b") == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert report(ended).queries[1].tuples_in == 5


def test_a_query_may_go_and_come_back() -> None:
    switches = [Switch(2.5, "b", "go"), Switch(6.5, "b", "come")]
    ended = ran(TWO, EACH_SECOND, switches=switches)
    assert arrivals_out(ended, "b") == [0.0, 1.0, 2.0, 7.0, 8.0, 9.0]


def test_a_query_that_comes_back_in_the_middle_of_its_call_misses_what_came_between() -> None:
    # b's call on the tuple of 0 lasts from 1 to 5; it is away from 2.5 to 3.5.
    both = network(line("a", select(1.0)), line("b", select(4.0)))
    switches = [Switch(2.5, "b", "go"), Switch(3.5, "b", "come")]
    ended = ran(both, {"s": [0.0, 2.0, 3.0, 4.0]}, switches=switches)
    assert 2.0 not in arrivals_out(ended, "b")
    assert 3.0 not in arrivals_out(ended, "b")
    assert arrivals_out(ended, "b")[-1] == 4.0
    assert nothing_is_left(ended)


FORK = network(
    results_of("a", "a_box"), results_of("b", "b_box"),
    boxes=[
        box("x", select(0.25), "s"), box("a_box", select(0.25), "x"),
        box("b_box", select(0.25), "x"),
    ],
)  # fmt: skip


@pytest.mark.parametrize("level", ["query", "operator"])
@pytest.mark.parametrize("shared_priority", ["max", "pdt"])
def test_a_query_behind_a_shared_box_comes_and_goes_by_itself(
    level: str, shared_priority: str
) -> None:
    switches = [Switch(3.5, "b", "come"), Switch(7.9, "b", "go")]
    ended = ran(
        FORK, EACH_SECOND, "hr", level=level, shared_priority=shared_priority, switches=switches
    )
    assert arrivals_out(ended, "a") == EACH_SECOND["s"]
    assert arrivals_out(ended, "b") == [4.0, 5.0, 6.0, 7.0]
    assert nothing_is_left(ended)


def test_twins_that_are_answered_together_come_and_go_one_by_one() -> None:
    twins = network(results_of("a", "x"), results_of("b", "x"), boxes=[box("x", select(0.25), "s")])
    ended = ran(twins, EACH_SECOND, switches=[Switch(7.5, "b", "go")])
    assert arrivals_out(ended, "a") == EACH_SECOND["s"]
    assert arrivals_out(ended, "b") == EACH_SECOND["s"][:8]


def test_what_another_query_still_holds_stays_in_memory() -> None:
    # x until 1; its tuple waits at both boxes while z runs until 3 (rate 1/2 against 1/3); b goes
    # at 1.5; a works on it from 3 to 6.
    boxes = [
        box("x", select(1.0), "s"), box("a_box", select(3.0), "x"), box("b_box", select(3.0), "x"),
    ]  # fmt: skip
    paths = (*FORK.paths, line("z", select(2.0), stream="t"))
    forked = network(*paths, boxes=boxes, streams="st")
    ended = ran(
        forked, {"s": [0.0], "t": [0.5]}, "hr", level="operator", switches=[Switch(1.5, "b", "go")]
    )
    assert departures(ended, "a") == [6.0]
    assert departures(ended, "b") == []
    # z's tuple from 0.5 to 3; that of the stream until 1, x's until 6, as two entries until 1.5.
    assert report(ended).memory_mean == (2.5 + 6) / 6
    assert report(ended).total.pending_mean == (2.5 + 1 + 2 * 0.5 + 4.5) / 6
    assert nothing_is_left(ended)


def test_a_switch_after_the_last_tuple_makes_the_run_no_longer() -> None:
    ended = ran(TWO, {"s": [0.0]}, switches=[Switch(50.0, "b", "go")])
    assert report(ended).seconds == 0.5


def test_a_query_may_come_after_a_quiet_time() -> None:
    ended = ran(TWO, {"s": [0.0, 100.0]}, switches=[Switch(50.0, "b", "come")])
    assert arrivals_out(ended, "b") == [100.0]
    assert departures(ended, "a") == [0.25, 100.25]


def test_a_switch_of_an_unknown_query_is_refused() -> None:
    with pytest.raises(UnknownName, match="there is no query 'c'"):
        ran(TWO, {"s": [0.0]}, switches=[Switch(1.0, "c", "go")])


@given(
    options=RUNS,
    gaps=st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=25),
    turns=st.lists(st.integers(0, 40), max_size=5, unique=True).map(sorted),
)
def test_whoever_comes_and_goes_others_get_all_their_results(
    options: dict[str, Any], gaps: list[float], turns: list[int]
) -> None:
    """Switches fall between arrivals, which all differ, so it is clear which of them b may see."""
    times_s = np.cumsum(gaps) + np.arange(len(gaps)) / 64
    mixed = network(*FORK.paths, line("c", select(0.5), select(0.25)), boxes=FORK.boxes)
    switches = [
        Switch(turn / 2 + 1 / 128, "b", "go" if number % 2 == 0 else "come")
        for number, turn in enumerate(turns)
    ]
    ended = ran(mixed, {"s": times_s.tolist()}, switches=switches, **options)
    assert arrivals_out(ended, "a") == times_s.tolist()
    assert arrivals_out(ended, "c") == times_s.tolist()
    assert nothing_is_left(ended)
    visible_s = [
        at_s for at_s in times_s if sum(switch.at_s < at_s for switch in switches) % 2 == 0
    ]
    assert set(arrivals_out(ended, "b")) <= set(visible_s)
    assert len(set(arrivals_out(ended, "b"))) == len(arrivals_out(ended, "b"))
