"""Window aggregates: closed by the clock, late by their last tuple (Sharaf §2.2.2, §3.5)."""

from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks import (
    Watched,
    arrivals_out,
    box,
    departures,
    line,
    network,
    ran,
    report,
    results,
    results_of,
    select,
)

from headgate.errors import ConfigRefused
from headgate.model.network.network import Network
from headgate.model.network.operator import Operator
from headgate.model.plan import ALL
from headgate.model.window import Window
from headgate.model.window_ends import windows_of


def aggregate(cost_s: float, range_s: float = 10.0, slide_s: float = 10.0) -> Operator:
    return Operator(kind="aggregate", cost_s=cost_s, range_s=range_s, slide_s=slide_s)


def one(cost_s: float, range_s: float = 10.0, slide_s: float = 10.0) -> Network:
    return network(line("q", aggregate(cost_s, range_s, slide_s)))


def test_a_window_whose_tuples_are_done_in_time_is_not_late() -> None:
    # Done at 2, 3 and 26: the windows that end at 10 and 20 come out then.
    total = report(ran(one(1.0), {"s": [1.0, 2.0, 25.0]})).total
    assert (total.tardiness_s, total.tardiness_max_s) == (0.0, 0.0)
    assert total.output_per_s == 2 / 25


def test_a_window_is_late_by_what_its_last_tuple_takes_beyond_the_slide() -> None:
    # 8 and 9 are done at 11 and 14: the result due at 10 comes at 14. That of 20 is in time.
    total = report(ran(one(3.0), {"s": [8.0, 9.0, 25.0]})).total
    assert total.tardiness_max_s == 4.0
    assert total.tardiness_s == 4.0 / 2


def test_a_quiet_stream_still_closes_its_windows() -> None:
    # Between 1 and 96 the clock closes nine windows, eight of them without a tuple.
    total = report(ran(one(1.0), {"s": [1.0, 95.0]})).total
    assert total.output_per_s == 9 / 95
    assert total.tardiness_s == 0.0


def test_every_window_that_still_needs_a_tuple_waits_for_it() -> None:
    # RANGE 20, SLIDE 10: the tuple of 9 belongs to the windows that end at 10 and at 20. Done at
    # 25, it makes them 15 and 5 late; that of 45, done at 61, those of 50 and 60 by 11 and 1.
    total = report(ran(one(16.0, 20.0), {"s": [9.0, 45.0]})).total
    assert total.tardiness_max_s == 15.0
    assert total.tardiness_s == (15 + 5 + 11 + 1) / 6


def test_a_tuple_between_two_windows_delays_none() -> None:
    # RANGE 2, SLIDE 10: windows are [8, 10), [18, 20). The tuple of 5 is in neither.
    total = report(ran(one(30.0, 2.0), {"s": [5.0]})).total
    assert total.tardiness_s == 0.0


def test_a_tuple_of_the_instant_of_a_slide_belongs_to_the_next_window() -> None:
    # Done at 15 it would make the window of 10 late by 5.
    assert report(ran(one(5.0), {"s": [10.0]})).total.tardiness_s == 0.0


def test_a_tuple_that_is_dropped_on_the_way_is_waited_for_all_the_same() -> None:
    # The select is done with the tuple of 8 at 11, and only then is nothing more to come.
    closed = network(line("q", select(3.0, 0.0), aggregate(1.0)))
    for level in ("query", "operator"):
        total = report(ran(closed, {"s": [8.0, 25.0]}, level=level)).total
        assert (total.tardiness_max_s, total.tardiness_s) == (1.0, 1.0 / 2)


def test_at_operator_level_a_window_waits_for_its_last_box() -> None:
    # Box by box: 8 is selected by 11 and taken in by 15.
    two = network(line("q", select(3.0), aggregate(4.0)))
    total = report(ran(two, {"s": [8.0, 25.0]}, level="operator")).total
    assert total.tardiness_max_s == 5.0


def test_before_the_first_slide_there_is_no_tardiness_to_speak_of() -> None:
    assert isnan(report(ran(one(1.0), {"s": [1.0]})).total.tardiness_s)


def tardiness(
    arrivals: list[float], cost_s: float, range_s: float, slide_s: float
) -> tuple[float, float]:
    """Return the mean and largest tardiness of one query alone, window by window."""
    done_s, now_s = [], 0.0
    for arrived_s in arrivals:
        now_s = max(now_s, arrived_s) + cost_s
        done_s.append(now_s)
    late_s = []
    for number in range(int(now_s // slide_s)):
        end_s = (number + 1) * slide_s
        within = [d for a, d in zip(arrivals, done_s, strict=True) if end_s - range_s <= a < end_s]
        late_s.append(max(0.0, max(within, default=0.0) - end_s))
    return float(np.mean(late_s)) if late_s else float("nan"), max(late_s, default=float("nan"))


@given(
    instants=st.lists(st.integers(0, 120), min_size=1, max_size=15),
    cost_s=st.sampled_from([0.5, 3.0, 11.0]),
    slide_s=st.sampled_from([2.0, 8.0]),
    slides=st.sampled_from([0.5, 1.0, 1.5, 3.0]),
    level=st.sampled_from(["query", "operator"]),
)
def test_tardiness_is_that_of_the_last_tuple_of_each_window(
    instants: list[int], cost_s: float, slide_s: float, slides: float, level: str
) -> None:
    arrivals = [instant / 2 for instant in sorted(instants)]
    range_s = slides * slide_s
    total = report(ran(one(cost_s, range_s, slide_s), {"s": arrivals}, level=level)).total
    mean_s, most_s = tardiness(arrivals, cost_s, range_s, slide_s)
    assert total.tardiness_s == pytest.approx(mean_s, nan_ok=True)
    assert total.tardiness_max_s == pytest.approx(most_s, nan_ok=True)


def test_the_table_says_when_the_oldest_tuples_window_is_due_and_how_many_it_still_needs() -> None:
    # The other query holds the worker until 20. Then 3, 4 (due at 10) and 12 (due at 20) wait.
    both = network(line("q", aggregate(1.0)), line("other", select(20.0), stream="t"), streams="st")
    watched = Watched()
    ran(both, {"s": [3.0, 4.0, 12.0], "t": [0.0]}, watched)
    seen = [
        (now_s, float(table["deadline_at_s"][0]), int(table["due"][0]), int(table["pending"][0]))
        for now_s, table in watched.seen
    ]
    assert seen[1:] == [(20.0, 10.0, 2, 3), (21.0, 10.0, 1, 2), (22.0, 20.0, 1, 1)]


def test_without_windows_a_deadline_counts_from_the_oldest_arrival_and_for_all() -> None:
    both = network(
        line("q", select(1.0), deadline_s=5.0), line("z", select(20.0), stream="t"), streams="st"
    )
    watched = Watched()
    ran(both, {"s": [3.0, 4.0, 12.0], "t": [0.0]}, watched)
    seen = [(float(t["deadline_at_s"][0]), int(t["due"][0])) for _, t in watched.seen[1:]]
    assert seen == [(8.0, 3), (9.0, 2), (17.0, 1)]


def test_edf_runs_the_query_whose_slide_ends_first() -> None:
    # Both wait on the tuple of 3. The second is due at 4 and done then, if it goes first.
    both = network(line("slow", aggregate(1.0)), line("fast", aggregate(1.0, 4.0, 4.0)))
    times = {"s": [3.0, 41.0]}
    fast = {name: report(ran(both, times, name)).queries[1] for name in ("edf", "fcfs")}
    assert fast["edf"].tardiness_max_s == 0.0
    assert fast["fcfs"].tardiness_max_s == 1.0


def test_the_result_of_a_window_arrives_when_the_window_ends() -> None:
    # The window of 10 waits for the tuple of 9 until 14; that of 20 is empty and in time.
    ended = ran(one(3.0), {"s": [8.0, 9.0, 25.0]})
    assert results(ended) == [("q", 10.0, 14.0), ("q", 20.0, 20.0)]
    total = report(ended).total
    assert total.response_s.mean == 2.0
    # Alone, the tuple of 9 would be done at 12: 1 + (14 − 12) / 3 for the first, 1 for the second.
    assert total.slowdown.mean == pytest.approx((1 + 2 / 3 + 1) / 2)


def test_sharaf_2_2_2_the_clock_reports_the_window_10_to_110_at_110() -> None:
    window = one(1.0, 100.0, 10.0)
    ended = ran(window, {"s": [20.0 * number for number in range(8)]})
    reported = {arrived_s: departed_s for _, arrived_s, departed_s in results(ended)}
    assert reported[110.0] == 110.0
    assert sorted(reported) == [10.0 * number for number in range(1, 15)]


def test_sharaf_2_2_2_of_rows_100_slide_5_each_fifth_tuple_has_a_result() -> None:
    by_rows = Operator(kind="aggregate", cost_s=0.5, range_tuples=100, slide_tuples=5)
    ended = ran(network(line("q", by_rows)), {"s": [float(n) for n in range(1, 201)]})
    boundaries = range(5, 201, 5)
    assert results(ended) == [("q", float(n), n + 0.5) for n in boundaries]
    # After the first 100, each tuple belongs to the 20 windows that end in its next 100.
    within = [sum(end - 100 < n <= end for end in range(5, 1000, 5)) for n in range(101, 201)]
    assert set(within) == {20}
    window = Window(axis="rows", size=100, slide=5)
    tuples, _ = windows_of(window, np.arange(100, 200), 100, 1000)
    assert np.bincount(tuples).tolist() == [20] * 100
    assert isnan(report(ended).total.tardiness_s)


@pytest.mark.parametrize("level", ["query", "operator"])
def test_an_aggregate_may_stand_before_other_boxes(level: str) -> None:
    # Windows of 10 and 20 come out at 10 and 20, and the project takes two seconds for each.
    chain = network(line("q", select(1.0), aggregate(1.0), select(2.0)))
    ended = ran(chain, {"s": [3.0, 24.0]}, level=level)
    assert results(ended) == [("q", 10.0, 12.0), ("q", 20.0, 22.0)]
    total = report(ended).total
    assert (total.tardiness_s, total.response_s.mean) == (2.0, 2.0)
    assert total.slowdown.mean == 1.0


@pytest.mark.parametrize("level", ["query", "operator"])
def test_windows_by_tuples_go_on_to_other_boxes(level: str) -> None:
    by_rows = Operator(kind="aggregate", cost_s=1.0, range_tuples=2, slide_tuples=2)
    chain = network(line("q", by_rows, select(2.0)))
    ended = ran(chain, {"s": [0.0, 10.0, 20.0, 30.0, 40.0]}, level=level)
    assert results(ended) == [("q", 10.0, 13.0), ("q", 30.0, 33.0)]


@pytest.mark.parametrize("level", ["query", "operator"])
@pytest.mark.parametrize("shared_priority", ["max", "pdt"])
def test_an_aggregate_may_stand_behind_a_fork(level: str, shared_priority: str) -> None:
    boxes = [
        box("f", select(1.0), "s"), box("a", aggregate(1.0), "f"), box("b", select(1.0), "f")
    ]  # fmt: skip
    forked = network(results_of("closed", "a"), results_of("passed", "b"), boxes=boxes)
    times = {"s": [0.0, 4.0, 25.0]}
    ended = ran(forked, times, "hr", level=level, shared_priority=shared_priority)
    assert arrivals_out(ended, "closed") == [10.0, 20.0]
    assert departures(ended, "closed") == [10.0, 20.0]
    assert arrivals_out(ended, "passed") == [0.0, 4.0, 25.0]


@pytest.mark.parametrize("level", ["query", "operator"])
def test_an_aggregate_behind_a_join_waits_for_tuples_that_may_still_match(level: str) -> None:
    # Both join by 11, so the window of 10 that their match belongs to comes out 2 late.
    join = Operator(kind="join", cost_s=1.0, selectivity=1.0, window_s=5.0)
    boxes = [box("j", join, "s", "t"), box("a", aggregate(1.0), "j")]
    joined = network(results_of("q", "a"), boxes=boxes, streams="st")
    ended = ran(joined, {"s": [9.0, 25.0], "t": [9.0]}, level=level)
    assert results(ended) == [("q", 10.0, 12.0), ("q", 20.0, 20.0)]


def test_one_aggregate_may_follow_another() -> None:
    # Windows of 10 and 20 close for the second, whose window of 20 has only the first of them.
    twice = network(line("q", aggregate(1.0), aggregate(1.0, 20.0, 20.0)))
    ended = ran(twice, {"s": [3.0, 45.0]})
    assert results(ended) == [("q", 20.0, 20.0), ("q", 40.0, 40.0)]


@given(
    instants=st.lists(st.integers(0, 120), min_size=1, max_size=15),
    slides=st.sampled_from([0.5, 1.0, 3.0]),
    level=st.sampled_from(["query", "operator"]),
    train_tuples=st.sampled_from([1, 3, ALL]),
    workers=st.integers(1, 3),
)
def test_every_window_that_ends_in_the_run_comes_out_once(
    instants: list[int], slides: float, level: str, train_tuples: int, workers: int
) -> None:
    arrivals = {"s": [instant / 2 for instant in sorted(instants)]}
    chain = network(line("q", select(1.5, 0.5), aggregate(1.0, slides * 4.0, 4.0), select(0.5)))
    ended = ran(chain, arrivals, level=level, train_tuples=train_tuples, workers=workers)
    windows = arrivals_out(ended, "q")
    assert windows == [4.0 * (number + 1) for number in range(len(windows))]
    assert len(windows) == int(ended.now_s // 4.0)
    assert all(departed >= arrived for _, arrived, departed in results(ended))


def test_a_window_is_either_by_time_or_by_tuples() -> None:
    with pytest.raises(ConfigRefused, match="a window is by time or by tuples"):
        Operator(kind="aggregate", cost_s=1.0, range_s=1.0, range_tuples=5, slide_tuples=5)
    with pytest.raises(ConfigRefused, match="above 0 tuples"):
        Operator(kind="aggregate", cost_s=1.0, range_tuples=5)
