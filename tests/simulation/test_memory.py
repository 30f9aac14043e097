"""Memory: pending entries, bytes, and tuples that several queues hold (Sharaf §3.7, BZ §2, §4)."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks import (
    RUNS,
    Watched,
    box,
    line,
    network,
    new_simulation,
    ran,
    report,
    results_of,
    select,
)

from headgate.model.network.network import Box, Network, Path
from headgate.model.network.operator import Operator
from headgate.model.plan import ALL
from headgate.model.stream import Stream

HEAVY = Stream(name="s", format="rate", tuple_bytes=100.0)


def test_a_tuple_counts_once_for_every_query_that_it_waits_for() -> None:
    three = network(*(line(f"q{number}", select(1.0)) for number in range(3)))
    figures = report(ran(three, {"s": [0.0, 0.0]}))
    assert figures.total.pending_max == 6
    assert [row.pending_max for row in figures.queries] == [2, 2, 2]
    assert figures.memory_max == 2


def test_pending_is_a_mean_over_time() -> None:
    # 3 wait until 1, 2 until 2, 1 until 3.
    figures = report(ran(network(line("q", select(1.0))), {"s": [0.0] * 3}))
    assert figures.total.pending_mean == (3 + 2 + 1) / 3
    assert figures.queries[0].pending_mean == 2.0


def test_a_tuple_that_is_being_worked_on_still_counts() -> None:
    # One tuple, two seconds of work, then two of nothing, then the other: 2 + 2 of 6 seconds.
    figures = report(ran(network(line("q", select(2.0))), {"s": [0.0, 4.0]}))
    assert figures.total.pending_mean == 4 / 6


def test_tuples_of_a_train_count_until_they_are_done() -> None:
    figures = report(ran(network(line("q", select(1.0))), {"s": [0.0] * 3}, train_tuples=ALL))
    assert figures.total.pending_mean == 2.0
    assert figures.queries[0].pending_mean == 2.0
    assert figures.memory_mean == 2.0


def test_bytes_are_those_of_the_tuples_that_wait() -> None:
    figures = report(ran(network(line("q", select(1.0)), streams=[HEAVY]), {"s": [0.0] * 3}))
    assert figures.bytes_max == 300.0
    assert figures.bytes_mean == 200.0


def test_behind_a_box_tuples_have_the_size_that_it_gives_out() -> None:
    # 100 bytes until 1, then 10 bytes until 4.
    small = network(line("q", select(1.0, bytes_out=10.0), select(3.0)), streams=[HEAVY])
    figures = report(ran(small, {"s": [0.0]}, level="operator"))
    assert figures.bytes_mean == (100 * 1 + 10 * 3) / 4
    assert figures.bytes_max == 100.0


def test_a_tuple_stays_in_memory_until_the_last_query_is_done_with_it() -> None:
    # a until 1, b until 4: two entries for a second, then one for three; one tuple all the time.
    figures = report(ran(network(line("a", select(1.0)), line("b", select(3.0))), {"s": [0.0]}))
    assert figures.total.pending_mean == (2 * 1 + 1 * 3) / 4
    assert figures.memory_mean == 1.0
    assert figures.memory_max == 1


def test_a_tuple_stays_in_memory_until_the_last_worker_is_done_with_it() -> None:
    # Both begin at 0; b is done with it at 1, a at 3. It is one tuple until then.
    both = network(line("a", select(3.0)), line("b", select(1.0)))
    ended = new_simulation(both, {"s": [0.0]}, workers=2)
    ended.run_until(2.0)
    assert ended.world.clock["shared"][0] == 1
    ended.run()
    assert report(ended).memory_mean == 1.0
    assert ended.world.clock["shared"][0] == 0


def test_a_worker_that_is_done_first_frees_only_what_no_other_holds() -> None:
    # a works on one tuple at a time, until 3 and 6; b on each for a second, until 1 and 2.
    both = network(line("a", select(3.0)), line("b", select(1.0)))
    assert report(ran(both, {"s": [0.0, 0.0]}, workers=2)).memory_mean == (2 * 3 + 3) / 6


def joined(*before: Box, left: str = "s", more: Sequence[Path] = ()) -> Network:
    """Return a join of two streams; its left input may come through a box."""
    join = Operator(kind="join", cost_s=1.0, selectivity=1.0, window_s=2.0)
    boxes = [*before, box("j", join, left, "t")]
    return network(results_of("q", "j"), *more, boxes=boxes, streams="st")


@pytest.mark.parametrize("level", ["query", "operator"])
def test_a_tuple_stays_in_memory_while_a_window_holds_it(level: str) -> None:
    # That of s until it is pruned at 9; the first of t to the end, at 10; the second from 9 on.
    figures = report(ran(joined(), {"s": [0.0], "t": [1.0, 9.0]}, level=level))
    assert figures.memory_mean == (9 + 9 + 1) / 10
    assert figures.memory_max == 3
    assert figures.total.pending_mean == 3 / 10


def test_what_a_window_and_a_queue_hold_is_one_tuple() -> None:
    # The join is done with it at 1 and keeps it; the other query works on it until 5.
    other = line("other", select(4.0))
    figures = report(ran(joined(more=[other]), {"s": [0.0], "t": []}))
    assert (figures.memory_mean, figures.memory_max) == (1.0, 1)


@pytest.mark.parametrize("level", ["query", "operator"])
def test_behind_a_box_a_window_holds_what_the_box_gave_out(level: str) -> None:
    # The stream's tuple or that of x is in memory all the time, and from 2 to 3 that of t.
    behind = joined(box("x", select(1.0), "s"), left="x")
    figures = report(ran(behind, {"s": [0.0], "t": [2.0]}, level=level))
    assert (figures.memory_mean, figures.memory_max) == ((3 + 1) / 3, 2)


def fork(first_s: float = 1.0, left_s: float = 1.0, right_s: float = 3.0) -> Network:
    boxes = [
        box("x", select(first_s, bytes_out=10.0), "s"), box("a", select(left_s), "x"),
        box("b", select(right_s), "x"),
    ]  # fmt: skip
    return network(results_of("qa", "a"), results_of("qb", "b"), boxes=boxes, streams=[HEAVY])


def test_what_a_fork_gives_out_is_one_tuple_in_memory_and_an_entry_in_each_queue() -> None:
    # x until 1; then its tuple waits at a until 2 and at b until 5.
    figures = report(ran(fork(), {"s": [0.0]}, level="operator"))
    assert figures.total.pending_mean == (1 * 1 + 2 * 1 + 1 * 3) / 5
    assert figures.bytes_mean == (100 * 1 + 20 * 1 + 10 * 3) / 5
    assert figures.memory_mean == 1.0
    assert figures.memory_max == 1


def test_at_operator_level_entries_of_all_boxes_count() -> None:
    # Oldest first, so the first tuple is worked off at x, a, b (until 5) before the second.
    watched = Watched()
    figures = report(ran(fork(), {"s": [0.0, 0.5]}, watched, level="operator"))
    waiting = [(now_s, table["pending"].tolist()) for now_s, table in watched.seen]
    assert waiting == [
        (0.0, [1, 0, 0]), (1.0, [1, 1, 1]), (2.0, [1, 0, 1]),
        (5.0, [1, 0, 0]), (6.0, [0, 1, 1]), (7.0, [0, 0, 1]),
    ]  # fmt: skip
    # 1 until 0.5, 2 until 1, 3 until 2, 2 until 5, 1 until 6, 2 until 7, 1 until 10.
    assert figures.total.pending_mean == (0.5 + 1 + 3 + 6 + 1 + 2 + 3) / 10
    # In memory: both until 5 (the first as x's output since 1), then one.
    assert figures.memory_mean == (0.5 + 2 * 4.5 + 5) / 10


@pytest.mark.parametrize("level", ["query", "operator"])
def test_when_all_is_done_only_windows_are_left_in_memory(level: str) -> None:
    boxes = [
        box("j", Operator(kind="join", cost_s=0.1, selectivity=0.5, window_s=2.0), "s", "t"),
        box("m", Operator(kind="map", cost_s=0.1, selectivity=2.5), "j"),
        box("a", select(0.1, 0.5), "m"), box("b", select(0.1), "m"),
    ]  # fmt: skip
    both = network(results_of("qa", "a"), results_of("qb", "b"), boxes=boxes, streams="st")
    times = [float(number) for number in range(20)]
    ended = ran(both, {"s": times, "t": times}, level=level)
    clock, windows = ended.world.clock[0], ended.world.windows[0]
    held = windows["left"] + windows["right"]  # all but the join's own
    assert (clock["pending"], clock["bytes"], clock["shared"]) == (0, 0.0, held)
    assert clock["entries"] == held
    assert ended.world.class_pending.tolist() == [0]


@given(
    options=RUNS,
    instants=st.lists(st.integers(0, 40), min_size=2, max_size=12).map(sorted),
)
def test_the_lines_of_all_queries_add_up_to_the_total(
    options: dict[str, Any], instants: list[int]
) -> None:
    times = [float(instant) for instant in instants]
    boxes = [*fork().boxes, box("y", select(2.0, 0.5), "b")]
    paths = (results_of("qa", "a"), results_of("qy", "y"), line("own", select(0.5), select(1.0)))
    figures = report(ran(network(*paths, boxes=boxes), {"s": times}, **options))
    total, lines = figures.total, figures.queries
    assert sum(row.pending_mean for row in lines) == pytest.approx(total.pending_mean)
    assert sum(row.tuples_in for row in lines) == total.tuples_in
    assert sum(row.busy_s for row in lines) == pytest.approx(total.busy_s)
    assert total.pending == 0
    # One byte a tuple, but ten behind x: bytes are entries, weighted.
    assert total.pending_mean <= figures.bytes_mean <= 10 * total.pending_mean
    assert figures.memory_mean <= total.pending_mean + 1e-9
