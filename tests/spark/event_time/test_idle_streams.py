"""Time passes in a quiet stream where that closes a window."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timelines import SECOND, Make, World, over, stream

from headgate.language.kinds.joins import Joins
from headgate.language.kinds.unions import Unions
from headgate.model.stream import Stream
from headgate.model.window import Join
from headgate.model.window_ends import NEVER
from headgate.spark.event_time.timeline_entries import TimelineEntries


def test_a_quiet_stream_goes_on_with_the_clock(make: Make) -> None:
    world = make(stream("a"))
    world.reads(over(2 * SECOND, 2 * SECOND))
    world.take("a", SECOND)
    for now_s in (0, 0.9, 1.0, 1.5, 2.5, 4.0, 60.0, 90.0):
        world.timeline.tick(now_s)
    assert world.end == 2, "nothing is open after the first tick"
    assert world.timeline.watermark(2) == 2 * SECOND


def test_a_watermark_does_not_go_back_when_all_is_dropped(make: Make) -> None:
    world = make(stream("a"))
    world.reads(over(2 * SECOND, 2 * SECOND))
    world.take("a", SECOND)
    world.timeline.tick(0)
    world.timeline.tick(20)
    world.timeline.drop(world.end)
    assert not TimelineEntries(world.journal, "t")()
    for _ in range(2):
        assert world.timeline.watermark(world.end) == 21 * SECOND
        assert world.timeline.held("a") == 1
        world.begin()  # does not take in again the train that the log still has
        assert world.end == 2
    world.take("a", 3 * SECOND)
    assert world.timeline.late(2, 3) == (1, 0)


def test_the_clock_does_not_count_as_a_tuple(make: Make) -> None:
    world = make(stream("a"))
    world.reads(over(2 * SECOND, 2 * SECOND))
    world.take("a", SECOND)
    world.timeline.tick(0)
    world.timeline.tick(20)
    world.timeline.drop(world.end, before_s=10)  # so the timeline begins with the clock
    world.take("a", 30 * SECOND)
    assert [world.timeline.watermark(end, "rows") for end in (1, 2, 3)] == [1, 1, 2]


def test_streams_that_are_quiet_do_not_wait_for_each_other(make: Make) -> None:
    world = make(stream("a"), stream("b"))
    world.reads(over(2 * SECOND, 2 * SECOND, streams=("a", "b")))
    world.take("a", SECOND)
    world.take("b", SECOND)
    for now_s in (0, 1.5, 60, 90):
        world.timeline.tick(now_s)
    assert world.timeline.watermark(world.end) == 2 * SECOND + SECOND // 2
    assert world.end == 4


@pytest.mark.parametrize("nothing", [(), (None, None)])
def test_a_stream_without_times_is_where_the_others_are(make: Make, nothing: Any) -> None:
    world = make(stream("a"), stream("b"))
    world.reads(over(2 * SECOND, 2 * SECOND, streams=("a", "b")))
    world.take("a", SECOND)
    if nothing:
        world.take("b", *nothing)
    for now_s in (0, 1.5, 2.5, 60, 90):
        world.timeline.tick(now_s)
    assert world.timeline.watermark(world.end) >= 2 * SECOND
    assert world.end <= 8


def test_no_tick_where_a_stream_waits(make: Make) -> None:
    world = make(stream("a", quiet_s=None), stream("b"))
    world.reads(over(2 * SECOND, 2 * SECOND, streams=("a", "b")))
    world.take("a", SECOND)
    world.take("b", SECOND)
    for now_s in range(100):
        world.timeline.tick(now_s)
    assert world.end == 2


def test_the_last_tuple_of_a_union_comes_out(make: Make) -> None:
    world = make(stream("a"))
    world.reads(over(0, kind=Unions))
    world.take("a", SECOND)
    for now_s in range(100):
        world.timeline.tick(now_s)
    assert world.timeline.watermark(world.end) > SECOND
    assert world.end == 2


def test_a_quiet_stream_of_a_join_does_not_keep_the_other_for_ever(make: Make) -> None:
    world = make(stream("a"), stream("b"))
    join = Join(reach=2 * SECOND)
    world.reads(over(2 * SECOND, kind=Joins, join=join, streams=("a", "b")))
    world.take("a", 0)
    for number in range(60):
        world.take("b", number * SECOND)
        world.timeline.tick(number)
        world.timeline.drop(world.end)
        assert world.timeline.held("b") >= number - 6


def test_beats_of_a_join_end(make: Make) -> None:
    world = make(stream("a"), stream("b"))
    join = Join(reach=2 * SECOND + 1, firsts=(0,), waits=(SECOND, 0))
    world.reads(over(SECOND, kind=Joins, join=join, streams=("a", "b")))
    world.take("a", 0)
    world.take("b", 0)
    for number in range(200):
        world.timeline.tick(number / 2)
    assert world.timeline.watermark(world.end) > SECOND
    assert world.end < 20


def bounded(name: str, delay_s: float, lateness_s: float = 0) -> Stream:
    return stream(name, lateness_s=lateness_s, quiet_s=None, max_delay_s=delay_s)


def test_a_poll_in_vain_releases_what_waits_for_an_empty_input(make: Make) -> None:
    # BZ §4.1: the lower bound of the empty input is asked for, and work continues at once.
    world = make(stream("busy", quiet_s=None), bounded("silent", 0.5))
    world.reads(over(0, kind=Unions, streams=("busy", "silent")))
    world.take("busy", 10 * SECOND)
    assert world.timeline.watermark(world.end) == NEVER
    world.timeline.emptied("silent", 10.4)
    assert world.timeline.watermark(world.end) < 10 * SECOND
    world.timeline.emptied("silent", 10.6)
    # The busy stream may have another tuple of the same instant.
    assert world.timeline.watermark(world.end) == 10 * SECOND
    world.take("busy", 10 * SECOND + 1)
    world.timeline.emptied("silent", 10.7)
    assert world.timeline.watermark(world.end) == 10 * SECOND + 1
    end = world.end
    for number in range(50):
        world.timeline.emptied("silent", 11.0 + number)
    assert world.end <= end + 1, "a bound that releases nothing is not written"
    world.begin()
    assert world.timeline.watermark(world.end) == 10 * SECOND + 1


def test_empty_streams_with_bounds_do_not_wait_for_each_other(make: Make) -> None:
    world = make(bounded("a", 0.0), bounded("b", 0.0), stream("c", quiet_s=None))
    world.reads(over(2 * SECOND, 2 * SECOND, streams=("a", "b", "c")))
    world.take("c", SECOND, 5 * SECOND)
    for name in ("a", "b"):
        world.timeline.emptied(name, 4.5)
    assert 4 * SECOND < world.timeline.watermark(world.end) < 5 * SECOND


def test_a_bound_waits_for_the_trains_that_are_in_the_logs(make: Make) -> None:
    world = make(stream("busy", quiet_s=None), bounded("silent", 0.5))
    log: Any = world.logs["silent"]
    whole = log.table

    def polled_meanwhile(first: int, end: int) -> Any:
        world.timeline.emptied("silent", 100.0)
        world.timeline.tick(100.0)
        return whole(first, end)

    log.table = polled_meanwhile
    for source in world.logs.values():
        source.add(SECOND)
    world.begin()  # as when a query comes to streams that have tuples
    assert world.timeline.late(0, world.end) == (0, 0)


@given(
    delays_s=st.lists(st.floats(0, 2.0), min_size=1, max_size=12),
    gaps_s=st.lists(st.floats(0, 1.0), min_size=12, max_size=12),
    lateness_s=st.sampled_from([0.0, 0.7]),
)
def test_no_tuple_is_late_because_of_a_bound(
    delays_s: list[float], gaps_s: list[float], lateness_s: float
) -> None:
    with TemporaryDirectory() as folder:
        world = World(Path(folder), bounded("a", 2.0, lateness_s), bounded("b", 2.0, lateness_s))
        world.reads(over(0, kind=Unions, streams=("a", "b")))
        now_s, newest_s = 100.0, 0.0
        for delay_s, gap_s in zip(delays_s, gaps_s, strict=False):
            now_s += gap_s
            world.timeline.emptied("a", now_s)
            world.timeline.emptied("b", now_s)
            # Without bounds, only tuples behind others of their stream are late.
            newest_s = max(newest_s, now_s - delay_s)
            world.take("a", round(newest_s * 1e6))
        assert world.timeline.late(0, world.end) == (0, 0)
        world.journal.close()


def test_a_stream_without_a_declared_delay_has_no_bound(make: Make) -> None:
    world = make(stream("busy"), stream("silent"))
    world.reads(over(0, kind=Unions, streams=("busy", "silent")))
    world.take("busy", SECOND)
    world.timeline.emptied("silent", 100.0)
    assert world.end == 1
