"""Timelines: which windows a tuple is in, the watermark, and what is kept."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from timelines import SECOND, Make, World, over, stream

from headgate.errors import TrainUnreadable
from headgate.language.kinds.joins import Joins
from headgate.language.kinds.sessions import Sessions
from headgate.model.stream import Stream
from headgate.model.window import Axis, Join, Window
from headgate.model.window_ends import NEVER, windows_of
from headgate.spark.event_time.timeline_entries import TimelineEntries
from headgate.spark.journal.cursors import Cursors

FAILS = "BEGIN SELECT RAISE(ABORT, 'a crash'); END"


def execute(world: World, statement: str) -> None:
    """Execute a statement on the journal's file, as another program may."""
    with closing(sqlite3.connect(world.folder / "journal.db")) as db:
        db.execute(statement)
        db.commit()


spans = st.integers(1, 40)
places = st.lists(st.integers(-100, 100), max_size=8)


@given(size=spans, slide=spans, offset=st.integers(0, 50), place=places,
       after=st.none() | st.integers(-120, 120), upto=st.integers(-150, 150))  # fmt: skip
def test_windows_of_a_tuple(
    size: int, slide: int, offset: int, place: list[int], after: int | None, upto: int
) -> None:
    window = Window(axis="time", size=size, slide=slide, offset=offset)
    tuples, ends = windows_of(
        window, np.array(place, np.int64), NEVER if after is None else after, upto
    )
    expected = [
        (number, end)
        for number, position in enumerate(place)
        for end in range(position + 1, position + size + 1)
        if (end - offset) % slide == 0 and end <= upto and (after is None or end > after)
    ]
    assert list(zip(tuples.tolist(), ends.tolist(), strict=True)) == expected


def test_a_tuple_is_late_below_the_watermark_before_it(make: Make) -> None:
    world = make(stream("a", lateness_s=3e-6))
    world.take("a", 10, 7, 6, None, 20, 16)
    world.take("a", 17, 16, 25)
    timeline = world.timeline
    rows = timeline.rows("a", 1, 2, "time", NEVER)
    assert rows is not None
    assert rows.place.tolist() == [10, 7, 20, 17, 25]
    assert rows.new.tolist() == [False, False, False, True, True]
    assert timeline.late(0, 2) == (3, 1)
    assert [timeline.watermark(end) for end in (0, 1, 2)] == [NEVER, 17, 22]
    numbers = timeline.rows("a", 1, 2, "rows", 4)
    assert numbers is not None
    assert numbers.place.tolist() == [4, 5, 6, 7, 8]
    assert [timeline.watermark(end, "rows") for end in (0, 1, 2)] == [0, 6, 9]


def test_a_tuple_knows_how_many_of_another_stream_had_come(make: Make) -> None:
    world = make(stream("a"), stream("b"))
    world.reads(over(2, axis="rows", kind=Joins, join=Join(reach=2), streams=("a", "b")))
    world.take("a", 1, 2, 3)
    world.take("b", 5, None)
    world.take("a", 2)
    world.take("b", 6)
    for _ in range(2):
        timeline = world.timeline
        assert [timeline.marks(end, "rows")["b"] for end in range(5)] == [0, 0, 2, 2, 3]
        assert timeline.seen("a", np.arange(4), "b").tolist() == [0, 0, 0, 2]
        assert timeline.seen("b", np.arange(3), "a").tolist() == [3, 3, 4]
        assert timeline.seen("a", np.arange(4), "a").tolist() == [1, 2, 3, 4]
        world.begin()


def test_the_last_tuples_of_every_stream_are_kept(make: Make) -> None:
    world = make(stream("a"), stream("b"))
    world.reads(over(2, axis="rows", kind=Joins, join=Join(reach=2), streams=("a", "b")))
    for time in range(4):
        world.take("a", time)
        world.take("b", time)
    world.timeline.drop(world.end)
    assert (world.timeline.held("a"), world.timeline.held("b")) == (2, 2)
    for time in range(4):
        world.take("a", time)
    world.timeline.drop(world.end)
    # What is left begins with the oldest tuple that is in a window.
    assert (world.timeline.held("a"), world.timeline.held("b")) == (3, 2)
    world.begin()
    assert world.timeline.marks(world.end, "rows")["b"] == 4
    assert world.timeline.seen("a", np.array([3, 7]), "b").tolist() == [3, 4]


def test_the_watermark_is_the_least(make: Make) -> None:
    world = make(stream("a"), stream("b", lateness_s=5e-6))
    world.take("a", 100)
    assert world.timeline.watermark(1) == NEVER
    world.take("b", None)
    assert world.timeline.watermark(2) == NEVER
    world.take("b", 50)
    assert [world.timeline.watermark(end) for end in (2, 3)] == [NEVER, 45]


times = st.lists(st.none() | st.integers(-60, 60), min_size=1, max_size=4)
trains = st.lists(st.tuples(st.sampled_from("ab"), times), max_size=14)


@given(
    trains=trains, size=st.integers(1, 20), moves=st.lists(st.booleans(), min_size=14, max_size=14)
)
def test_nothing_needed_is_dropped(
    tmp_path_factory: pytest.TempPathFactory, trains: Any, size: int, moves: list[bool]
) -> None:
    """A timeline that drops trains and restarts equals one that keeps everything."""
    folder = tmp_path_factory.mktemp("timelines")
    whole = World(folder / "1", stream("a", 4e-6), stream("b", 0))
    small = World(folder / "2", stream("a", 4e-6), stream("b", 0))
    small.reads(over(size, 5, streams=("a", "b")))
    for (name, times), restart in zip(trains, moves, strict=False):
        whole.take(name, *times)
        small.take(name, *times)
        small.timeline.drop(small.end)
        if restart:
            small.begin()
        end = whole.end
        assert small.end == end
        assert small.timeline.watermark(end) == whole.timeline.watermark(end)
        mark = whole.timeline.watermark(end)
        low = NEVER if mark == NEVER else mark - size
        for stream_name in "ab":
            rows = [
                world.timeline.rows(stream_name, end, end, "time", low) for world in (whole, small)
            ]
            places = [
                None if timeline_rows is None else timeline_rows.place.tolist()
                for timeline_rows in rows
            ]
            assert places[0] == places[1]
            assert small.timeline.held(stream_name) <= len(small.logs[stream_name].tables)
    whole.journal.close()
    small.journal.close()


def test_what_no_window_needs_is_dropped(make: Make) -> None:
    world = make(stream("a"))
    world.reads(over(10, 5))
    for number in range(100):
        world.take("a", number)
        world.timeline.drop(world.end)
        assert world.timeline.held("a") >= number - 10
    assert len(TimelineEntries(world.journal, "t")()) <= 11


def test_rows_without_a_time_are_dropped_by_number(make: Make) -> None:
    world = make(Stream(name="a", format="parquet"))
    world.reads(over(3, 3, axis="rows"))
    for number in range(20):
        world.take("a", None, None)
        world.timeline.drop(world.end)
        assert world.timeline.held("a") >= number - 1


def test_trains_come_once_after_a_restart(make: Make) -> None:
    world = make(stream("a"), stream("b"))
    world.take("a", 1, 2)
    world.logs["b"].add(5)  # in the log, but not yet in the timeline
    world.logs["a"].add(3)
    world.begin()
    world.timeline.publish()
    assert [train.tuples for train in world.heard] == [2, 1, 1]
    assert [(entry.stream, entry.train) for entry in TimelineEntries(world.journal, "t")()] == [
        ("a", 0), ("b", 0), ("a", 1),
    ]  # fmt: skip
    world.take("b", 6)
    assert world.timeline.tuples(0, world.end) == 5
    assert len(world.heard) == 4


def test_trains_that_the_log_has_dropped_are_passed_over(make: Make) -> None:
    world = make(stream("a"), stream("b"))
    for number in range(3):
        world.take("a", number)
        world.take("b", number)
    world.journal.drop_trains("a", 2)  # no query had windows then
    world.logs["a"].tables[:2] = [None, None]
    world.begin()
    axes: tuple[Axis, ...] = ("time", "rows")
    for axis in axes:
        rows = world.timeline.rows("a", 0, world.end, axis, NEVER)
        assert rows is not None
        assert rows.place.tolist() == [2]
    # A train lost at the beginning leaves the timeline; one lost later counts as late.
    assert [train.number for train in world.journal.trains("t")] == [1, 2, 3, 4, 5]
    assert world.timeline.late(0, world.end) == (1, 0)
    assert world.timeline.watermark(world.end) == 2


def test_what_retention_dropped_while_a_query_was_away_is_missed_not_late(make: Make) -> None:
    world = make(stream("a"))
    assert Cursors(world.journal).remember("w", "text", "t", ("a",)).train == 0
    for number in range(5):
        world.take("a", number, number)
    world.journal.drop_trains("a", 3)  # no query had windows then
    world.begin()
    cursor = Cursors(world.journal).remember("w", "text", "t", ("a",))
    assert (cursor.train, cursor.missed) == (3, 6)
    assert world.timeline.late(0, world.end) == (0, 0)
    account = Cursors(world.journal).accounts()["w"]
    assert (account.arrived, account.missed, account.queued) == (10, 6, 4)


def test_trains_stay_as_long_as_retention_says(make: Make) -> None:
    world = make(stream("a"))
    world.reads(over(2, 1))
    for number in range(10):
        world.take("a", number * 10)  # train n arrives at second n + 1
    world.timeline.drop(world.end, before_s=4.0)
    assert world.timeline.held("a") == 4
    rows = world.timeline.rows("a", 0, world.end, "time", NEVER)
    assert rows is not None
    assert rows.place.tolist() == [40, 50, 60, 70, 80, 90]
    world.timeline.drop(world.end)
    assert world.timeline.held("a") == 9


def test_what_is_kept_for_queries_to_come_is_not_needed(make: Make) -> None:
    world = make(stream("a"))
    world.reads(over(10, 5))
    for number in range(100):
        world.take("a", number)
        world.timeline.drop(world.end, before_s=0.0)
    assert world.timeline.held("a") == 0
    assert world.timeline.needed_from >= 88
    assert world.timeline.reaching("a", world.end, "time", 95) == [95, 96, 97, 98, 99]
    world.reads(over(50, 5))  # the new query may begin with the oldest train
    assert world.timeline.needed_from == 0


def test_a_journal_that_cannot_be_written_holds_trains_and_beats_up(make: Make) -> None:
    world = make(stream("a"))
    world.reads(over(10, 5))
    world.take("a", 1)
    second, third = world.logs["a"].add(2), world.logs["a"].add(3)
    execute(world, f"CREATE TRIGGER full BEFORE INSERT ON entries {FAILS}")
    world.timeline.take("a", second)
    world.timeline.tick(0)
    world.timeline.tick(90)
    assert world.end == 1
    execute(world, "DROP TRIGGER full")
    world.timeline.take("a", third)
    assert [entry.train for entry in TimelineEntries(world.journal, "t")()] == [0, 1, 2]


def rot(world: World, name: str, train: int) -> Callable[[], None]:
    """Make a train unreadable, and return a function that repairs it."""
    log: Any = world.logs[name]
    whole = log.table

    def rotten(first: int, end: int) -> Any:
        if first <= train < end:
            raise TrainUnreadable(stream=name, train=train, file="x.parquet", cause="rot")
        return whole(first, end)

    def mend() -> None:
        log.table = whole

    log.table = rotten
    return mend


def test_a_train_that_cannot_be_read_holds_up_its_timeline_alone(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    world = make(stream("a"))
    world.reads(over(10, 5))
    mend = rot(world, "a", 1)
    for time in range(3):
        world.take("a", time)
    world.begin()
    world.timeline.tick(0)
    assert world.end == 1
    assert caplog.text.count("queries over 't' wait: train 1 of stream 'a' cannot be read") == 2
    mend()
    world.timeline.tick(1)
    assert [entry.train for entry in TimelineEntries(world.journal, "t")()] == [0, 1, 2]


def test_no_time_passes_in_a_stream_whose_train_cannot_be_read(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    world = make(stream("a"), stream("b"))
    world.reads(over(10 * SECOND, 5 * SECOND, streams=("a", "b")))
    mend = rot(world, "a", 1)
    for second in range(3):
        world.take("a", second * SECOND)
        world.take("b", second * SECOND)
    for second in range(20):
        world.timeline.tick(float(second))
    entries = TimelineEntries(world.journal, "t")()
    assert [(entry.stream, entry.train) for entry in entries] == [
        ("a", 0), ("b", 0), ("b", 1), ("b", 2),
    ]  # fmt: skip
    assert caplog.text.count("cannot be read") == 1
    mend()
    world.timeline.tick(20.0)
    entries = TimelineEntries(world.journal, "t")()
    assert [entry.train for entry in entries if entry.stream == "a"] == [0, 1, 2]
    assert world.timeline.late(0, world.end) == (0, 0)


def test_a_rotten_train_under_open_sessions_stops_nobody(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    world = make(stream("a", max_delay_s=0.0))
    world.reads(over(5 * SECOND, kind=Sessions))
    world.take("a", 0)
    world.take("a", SECOND)
    mend = rot(world, "a", 0)
    world.begin()
    for second in range(20):
        world.timeline.tick(float(second))
    world.timeline.emptied("a", 20.0)
    assert world.end == 2
    assert caplog.text.count("cannot be read") == 1
    mend()
    world.timeline.tick(20.0)
    assert world.end == 3  # a beat ends the session


def test_a_crash_while_trains_are_dropped_leaves_all_or_nothing(make: Make) -> None:
    world = make(stream("a"))
    world.reads(over(2, 1))
    for number in range(10):
        world.take("a", number * 10)
    execute(world, f"CREATE TRIGGER crash BEFORE DELETE ON entries {FAILS}")
    with pytest.raises(sqlite3.IntegrityError, match="a crash"):
        world.timeline.drop(world.end)
    world.begin()
    world.timeline.publish()
    numbers = [train.number for train in world.heard]
    assert numbers == [train.number for train in world.journal.trains("t")] == list(range(10))


def test_nothing_is_kept_for_the_windows_of_a_query_that_was_dropped(make: Make) -> None:
    world = make(stream("a"))
    world.reads(over(1000, 1000))
    world.reads(over(2, 1))
    for number in range(10):
        world.take("a", number * 10)
    world.timeline.drop(world.end)
    assert world.timeline.held("a") == 0
    world.timeline.forget("q0")
    world.timeline.drop(world.end)
    assert world.timeline.held("a") == 9
