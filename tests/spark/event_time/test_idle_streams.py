"""Time passes in a quiet stream where that closes a window."""

from typing import Any

import pytest
from timelines import SECOND, Make, over, stream

from headgate.language.kinds.joins import Joins
from headgate.language.kinds.unions import Unions
from headgate.model.window import Join
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
