"""Timelines: which windows a tuple is in, the watermark, what is kept, and time without tuples."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model.stream import Stream
from headgate.model.window import Input, Stateful, Window
from headgate.spark.journal import Journal, NewTrain, Train
from headgate.spark.timeline import NEVER, Timeline, windows_of

SECOND = 1_000_000

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
        for number, each in enumerate(place)
        for end in range(each + 1, each + size + 1)
        if (end - offset) % slide == 0 and end <= upto and (after is None or end > after)
    ]
    assert list(zip(tuples.tolist(), ends.tolist(), strict=True)) == expected


class Log:
    """The log of a stream in memory, with its lines in the journal."""

    def __init__(self, name: str, journal: Journal, timed: bool = True) -> None:
        self.name, self._journal, self._timed = name, journal, timed
        self.tables: list[pa.Table] = []

    def add(self, *times: int | None) -> Train:
        column = pa.array(times, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
        self.tables.append(pa.table({"ts": column, "n": pa.array(range(len(times)))}))
        train = Train(len(self.tables) - 1, len(times), 8, len(self.tables), len(self.tables))
        self._journal.add_trains([NewTrain(self.name, train, train.number)])
        return train

    def table(self, first: int, end: int) -> pa.Table:
        return pa.concat_tables(self.tables[first:end])


class World:
    """Streams and one timeline of them, which can be begun again from the journal."""

    def __init__(self, folder: Path, *streams: Stream) -> None:
        self.folder, self.streams = folder, streams
        self.journal = Journal(folder)
        self.logs = {each.name: Log(each.name, self.journal) for each in streams}
        self.heard: list[Train] = []
        self.hows: list[Stateful] = []
        self.begin()

    def begin(self) -> None:
        sources: Any = {each.name: (each, self.logs[each.name]) for each in self.streams}
        self.timeline = Timeline("t", self.journal, sources, lambda *new: self.heard.extend(new))
        for each in self.hows:
            self.timeline.reads(each)
        self.timeline.catch_up()

    def reads(self, how: Stateful) -> None:
        self.hows.append(how)
        self.timeline.reads(how)

    def take(self, stream: str, *times: int | None) -> None:
        self.timeline.take(stream, self.logs[stream].add(*times))

    @property
    def end(self) -> int:
        return self.timeline.next_number


Make = Callable[..., World]


def stream(name: str, lateness_s: float = 0, quiet_s: float | None = 1.0) -> Stream:
    return Stream(name=name, format="parquet", event_time="ts", lateness_s=lateness_s,
                  quiet_s=quiet_s)  # fmt: skip


def over(
    size: int,
    slide: int | None = None,
    axis: Any = "time",
    mode: Any = "windows",
    join: Any = "Inner",
    streams: Sequence[str] = ("a",),
) -> Stateful:
    window = Window(axis=axis, size=size, slide=slide)
    inputs = tuple(Input(stream=name, view=name, window=window) for name in streams)
    return Stateful(mode=mode, text="", inputs=inputs, join=join)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[World] = []

    def make(*streams: Stream) -> World:
        made.append(World(tmp_path / "state", *streams))
        return made[-1]

    yield make
    for each in made:
        each.journal.close()


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


@settings(max_examples=25)
@given(
    trains=trains, size=st.integers(1, 20), moves=st.lists(st.booleans(), min_size=14, max_size=14)
)
def test_nothing_needed_is_dropped(
    tmp_path_factory: pytest.TempPathFactory, trains: Any, size: int, moves: list[bool]
) -> None:
    """A timeline that forgets and begins again has what one has that keeps everything."""
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
        for each in "ab":
            rows = [world.timeline.rows(each, end, end, "time", low) for world in (whole, small)]
            places = [None if found is None else found.place.tolist() for found in rows]
            assert places[0] == places[1]
            assert small.timeline.held(each) <= len(small.logs[each].tables)
    whole.journal.close()
    small.journal.close()


def test_what_no_window_needs_is_dropped(make: Make) -> None:
    world = make(stream("a"))
    world.reads(over(10, 5))
    for number in range(100):
        world.take("a", number)
        world.timeline.drop(world.end)
        assert world.timeline.held("a") >= number - 10
    assert len(world.journal.entries("t")) <= 11


def test_rows_without_a_time_are_dropped_by_number(make: Make) -> None:
    world = make(Stream(name="a", format="parquet"))
    world.reads(over(3, 3, axis="rows"))
    for number in range(20):
        world.take("a", None, None)
        world.timeline.drop(world.end)
        assert world.timeline.held("a") >= number - 1


def test_a_quiet_stream_goes_on_with_the_clock(make: Make) -> None:
    world = make(stream("a"))
    world.reads(over(2 * SECOND, 2 * SECOND))
    world.take("a", SECOND)
    for now_s in (0, 0.9, 1.0, 1.5, 2.5, 4.0, 60.0, 90.0):
        world.timeline.beat(now_s)
    assert world.end == 2, "nothing is open behind the first beat"
    assert world.timeline.watermark(2) == 2 * SECOND


def test_a_watermark_does_not_go_back_when_all_is_dropped(make: Make) -> None:
    world = make(stream("a"))
    world.reads(over(2 * SECOND, 2 * SECOND))
    world.take("a", SECOND)
    world.timeline.beat(0)
    world.timeline.beat(20)
    world.timeline.drop(world.end)
    assert not world.journal.entries("t")
    for _ in range(2):
        assert world.timeline.watermark(world.end) == 21 * SECOND
        assert world.timeline.held("a") == 1
        world.begin()  # takes no train in again that the log still has
        assert world.end == 2
    world.take("a", 3 * SECOND)
    assert world.timeline.late(2, 3) == (1, 0)


def test_streams_that_are_quiet_do_not_wait_for_each_other(make: Make) -> None:
    world = make(stream("a"), stream("b"))
    world.reads(over(2 * SECOND, 2 * SECOND, mode="each", streams=("a", "b")))
    world.take("a", SECOND)
    world.take("b", SECOND)
    for now_s in (0, 1.5, 60, 90):
        world.timeline.beat(now_s)
    assert world.timeline.watermark(world.end) == 2 * SECOND + SECOND // 2
    assert world.end == 4


@pytest.mark.parametrize("nothing", [(), (None, None)])
def test_a_stream_without_times_is_where_the_others_are(make: Make, nothing: Any) -> None:
    world = make(stream("a"), stream("b"))
    world.reads(over(2 * SECOND, 2 * SECOND, mode="each", streams=("a", "b")))
    world.take("a", SECOND)
    if nothing:
        world.take("b", *nothing)
    for now_s in (0, 1.5, 2.5, 60, 90):
        world.timeline.beat(now_s)
    assert world.timeline.watermark(world.end) >= 2 * SECOND
    assert world.end <= 8


def test_no_beat_where_a_stream_waits(make: Make) -> None:
    world = make(stream("a", quiet_s=None), stream("b"))
    world.reads(over(2 * SECOND, 2 * SECOND, mode="each", streams=("a", "b")))
    world.take("a", SECOND)
    world.take("b", SECOND)
    for now_s in range(100):
        world.timeline.beat(now_s)
    assert world.end == 2


def test_the_last_tuple_of_a_union_comes_out(make: Make) -> None:
    world = make(stream("a"))
    world.reads(over(0, mode="union"))
    world.take("a", SECOND)
    for now_s in range(100):
        world.timeline.beat(now_s)
    assert world.timeline.watermark(world.end) > SECOND
    assert world.end == 2


def test_a_quiet_stream_of_a_join_does_not_keep_the_other_for_ever(make: Make) -> None:
    world = make(stream("a"), stream("b"))
    world.reads(over(2 * SECOND, mode="pairs", streams=("a", "b")))
    world.take("a", 0)
    for number in range(60):
        world.take("b", number * SECOND)
        world.timeline.beat(number)
        world.timeline.drop(world.end)
        assert world.timeline.held("b") >= number - 6


def test_beats_of_a_join_end(make: Make) -> None:
    world = make(stream("a"), stream("b"))
    world.reads(over(SECOND, mode="pairs", join="LeftOuter", streams=("a", "b")))
    world.take("a", 0)
    world.take("b", 0)
    for number in range(200):
        world.timeline.beat(number / 2)
    assert world.timeline.watermark(world.end) > SECOND
    assert world.end < 20


def test_trains_come_once_after_a_restart(make: Make) -> None:
    world = make(stream("a"), stream("b"))
    world.take("a", 1, 2)
    world.logs["b"].add(5)  # in the log, but the timeline was not told
    world.logs["a"].add(3)
    world.begin()
    world.timeline.speak()
    assert [train.tuples for train in world.heard] == [2, 1, 1]
    assert [(each.stream, each.train) for each in world.journal.entries("t")] == [
        ("a", 0), ("b", 0), ("a", 1),
    ]  # fmt: skip
    world.take("b", 6)
    assert world.timeline.tuples(0, world.end) == 5
    assert len(world.heard) == 4
