"""The log of a derived stream: it commits with the cursor, and its times are the input's."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path as File

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import IntegerType, StructField, StructType, TimestampType
from timelines import SECOND, over

from headgate.errors import LogFull
from headgate.model.network.network import FIRST, REST, Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query, Sink
from headgate.model.stream import ARRIVED_AT, DERIVED, Stream
from headgate.model.window_ends import NEVER
from headgate.spark.event_time.derived_watermark import from_own_times
from headgate.spark.event_time.producers import Producers
from headgate.spark.event_time.store import Store
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.cut_cursors import CutCursors
from headgate.spark.journal.derived_trains import DerivedTrains
from headgate.spark.journal.intents import Result
from headgate.spark.journal.journal import Journal
from headgate.spark.journal.journal_rows import Train
from headgate.spark.output import Output
from headgate.spark.sinks.commit import Commits
from headgate.spark.sinks.derived_streams import DerivedStreams
from headgate.spark.work import Work

SCHEMA = StructType([StructField("v", IntegerType()), StructField("ts", TimestampType())])
STREAMS = (
    Stream(name="s", format="parquet", event_time="ts", lateness_s=1, quiet_s=None),
    Stream(name="v", format=DERIVED, event_time="ts", lateness_s=2, quiet_s=None),
    Stream(name="w", format=DERIVED, event_time="ts", quiet_s=None),
    Stream(name="w__time", format=DERIVED, of=("w",)),
)


def _path(name: str, stream: str, **more: object) -> Path:
    query = Query(name=name, sql=name, query_class="N", sink=Sink(format="stream"))
    project = (Operator(kind="project", expressions=("v", "ts")),)
    return Path(query=query, stream=stream, operators=project, into=name, **more)  # type: ignore[arg-type]


V, W = _path("v", "s"), _path("w", "v")


class World:
    """A source and two views, one over the other, in a state directory that can be reopened."""

    def __init__(self, state: File, most_bytes: float = 1e9, quiet_s: float | None = None) -> None:
        self.journal, self.announced = Journal(state), list[tuple[str, int]]()
        self.producers = Producers(self.journal)
        self.producers.connect((V, W), STREAMS)
        self.store = Store(
            state, self.journal, dict.fromkeys("svw", SCHEMA), lambda: 1 << 20, lambda point: None,
            self.producers.are_idle,
        )  # fmt: skip
        self.derived = DerivedStreams(
            self.journal, self.store, self.producers, self._announce, lambda: most_bytes
        )
        for stream in STREAMS:
            self.store.open(replace(stream, quiet_s=quiet_s), lambda *trains: None)
        self.timeline = self.store.timelines["w__time"]
        self.timeline.reads("q", over(SECOND, SECOND, streams=("w",)))
        self.commits = Commits(self.journal, {}, lambda point: None, self.derived)
        for path in (V, W):
            Cursors(self.journal).remember(path.query.name, path.query.sql, path.stream)
        self.derived.catch_up()

    def _announce(self, stream: str, train: Train) -> None:
        self.announced.append((stream, train.number))
        for timeline in self.store.timelines_of(stream):
            timeline.take(stream, train)

    def feed(self, *seconds: float) -> None:
        """Add a train to the source. The values are its times in milliseconds."""
        log, us = self.store.logs["s"], [int(second * SECOND) for second in seconds]
        new = log.stage(_table(us), log.next_number)
        self.journal.add_trains([new])
        log.added(new)

    def run(self, path: Path, end: int, keep: Callable[[int], bool] = lambda v: True) -> None:
        """Make a view read its stream up to a train, and pass on the values that `keep` accepts."""
        first = Cursors(self.journal).train_of(path.query.name)
        assert first is not None
        table = self.store.logs[path.stream].table(first, end)
        places = np.array([n for n, v in enumerate(table["v"].to_pylist()) if keep(v)], np.int64)
        arrived_s = table[ARRIVED_AT].to_numpy()[places]
        rows = table.drop_columns([ARRIVED_AT]).take(places)
        work = Work((path,), first, end, table.num_rows)
        refused = self.commits(work, [(path, Output(rows, arrived_s, places=places))])
        for error in refused.values():
            raise error

    def marks(self, stream: str) -> list[int]:
        log = self.store.logs[stream]
        return [
            int(mark) for train in self.journal.trains(stream) for mark in log.marks(train.number)
        ]

    def top(self, stream: str) -> int | None:
        return DerivedTrains(self.journal).end(stream)[1]


def _table(us: list[int]) -> pa.Table:
    return pa.table(
        {
            "v": pa.array([time_us // 1000 for time_us in us], pa.int32()),
            "ts": pa.array(us, pa.timestamp("us", tz="UTC")),
            ARRIVED_AT: np.arange(len(us)) * 1.0,
        }
    )


@pytest.fixture
def world(tmp_path: File) -> Iterator[World]:
    world = World(tmp_path / "one")
    yield world
    world.journal.close()


TIMES = [(1, 5, 3), (9, 2), (4,), (20, 8, 8, 19), (7,)]


def test_a_tuple_has_the_watermark_before_its_own_however_many_trains_a_call_takes(
    tmp_path: File, world: World
) -> None:
    other = World(tmp_path / "other")
    for times in TIMES:
        world.feed(*times)
        other.feed(*times)
    for end in range(1, 6):
        world.run(V, end)
    for end in range(1, 6):
        world.run(W, end)
    other.run(V, 3)
    other.run(V, 5)
    other.run(W, 2)
    tops = np.maximum.accumulate([second for times in TIMES for second in times])
    before = [NEVER, *((tops - 1) * SECOND).tolist()]
    for variant in (world, other):
        assert variant.marks("v") == before[:-1]
        assert variant.top("v") == before[-1]
        assert variant.marks("w") == [
            mark if mark == NEVER else mark - 2 * SECOND for mark in before[:-1]
        ]
        assert variant.top("w") == before[-1] - 2 * SECOND
        assert variant.store.logs["w"].table(0, variant.store.logs["w"].next_number)[
            "v"
        ].to_pylist() == [1000 * second for times in TIMES for second in times]
    other.journal.close()


def test_time_passes_without_a_tuple_through_views_of_views_and_after_a_crash(
    world: World, tmp_path: File
) -> None:
    world.feed(10, 10.5)
    world.run(V, 1)
    world.run(W, 1)
    assert world.timeline.watermark(world.timeline.next_number) == 7.5 * SECOND
    world.feed(30)
    world.run(V, 2, lambda v: False)
    # No train has come, but windows over both have closed.
    assert world.announced == [("v", 0), ("w", 0)]
    assert (world.top("v"), world.top("w")) == (29 * SECOND, 27 * SECOND)
    assert world.timeline.watermark(world.timeline.next_number) == 27 * SECOND
    # Because of a crash right after the step, the second view does not know of it.
    world.feed(50)
    world.derived.added = lambda derived: None  # type: ignore[method-assign]
    world.run(V, 3, lambda v: False)
    assert (world.top("v"), world.top("w")) == (49 * SECOND, 27 * SECOND)
    world.journal.close()
    again = World(tmp_path / "one")
    assert again.top("w") == 47 * SECOND
    # While a train waits for the view, its time waits too, and comes with the train.
    again.feed(60)
    again.run(V, 4)
    assert again.top("w") == 47 * SECOND
    again.feed(70)
    again.run(V, 5, lambda v: False)
    assert again.top("w") == 47 * SECOND
    again.run(W, 2)
    assert (again.top("v"), again.top("w")) == (69 * SECOND, 67 * SECOND)
    world.journal = again.journal


def test_a_journal_that_is_full_after_a_step_fails_no_step_and_time_passes_later(
    world: World, tmp_path: File
) -> None:
    world.feed(10, 10.5)
    world.run(V, 1)
    world.run(W, 1)
    world.feed(30)
    condition = "WHEN NEW.stream = 'w' BEGIN SELECT RAISE(ABORT, 'full'); END"
    _execute(tmp_path, f"CREATE TRIGGER full BEFORE INSERT ON positions {condition}")
    world.run(V, 2, lambda v: False)
    assert (world.producers.cursor(V), world.top("v")) == (2, 29 * SECOND)
    assert (world.top("w"), world.derived.is_behind) == (7.5 * SECOND, True)
    _execute(tmp_path, "DROP TRIGGER full")
    world.derived.catch_up()
    assert (world.top("w"), world.derived.is_behind) == (27 * SECOND, False)
    assert world.timeline.watermark(world.timeline.next_number) == 27 * SECOND


def _execute(folder: File, statement: str) -> None:
    with closing(sqlite3.connect(folder / "one" / "journal.db")) as db:
        db.execute(statement)
        db.commit()


def test_the_clock_counts_for_a_view_whose_producer_has_nothing_left_to_read(world: World) -> None:
    assert world.producers.are_idle("v")
    world.feed(10)
    assert not world.producers.are_idle("v")
    assert not world.producers.are_idle("w")
    world.run(V, 1)
    assert world.producers.are_idle("v")
    assert not world.producers.are_idle("w")
    world.run(W, 1, lambda v: False)
    assert world.producers.are_idle("w")


def test_a_view_is_quiet_while_its_source_is_and_not_while_it_has_not_run(tmp_path: File) -> None:
    world = World(tmp_path / "one", quiet_s=1.0)
    timeline = world.timeline
    world.feed(10)
    world.run(V, 1)
    world.run(W, 1)
    assert timeline.watermark(timeline.next_number) == 7 * SECOND
    for now_s in (0.0, 0.5, 5.0):
        timeline.tick(now_s)
    assert timeline.watermark(timeline.next_number) == 12 * SECOND
    world.feed(11, 30)
    timeline.tick(60.0)
    assert timeline.watermark(timeline.next_number) == 12 * SECOND
    world.run(V, 2)
    world.run(W, 2)
    assert timeline.watermark(timeline.next_number) == 27 * SECOND
    assert timeline.late(timeline.next_number - 1, timeline.next_number) == (1, 0)
    world.journal.close()


def test_a_step_that_the_journal_does_not_have_has_left_nothing(
    world: World, tmp_path: File
) -> None:
    world.feed(10)
    world.commits.intents.intend = _full_disk  # type: ignore[method-assign]
    with pytest.raises(OSError, match="full"):
        world.run(V, 1)
    world.journal.close()
    again = World(tmp_path / "one")
    again.store.sweep()
    assert not list((tmp_path / "one" / "log" / "v").iterdir())
    again.run(V, 1)
    assert [train.tuples for train in again.journal.trains("v")] == [1]
    world.journal = again.journal


def _full_disk(*step: object) -> int:
    raise OSError("disk full")


def test_a_producer_waits_where_the_log_is_full_and_readers_are_behind(tmp_path: File) -> None:
    world = World(tmp_path / "one", most_bytes=100)
    world.feed(1)
    world.feed(2)
    world.run(V, 1)
    with pytest.raises(LogFull, match="the log of stream 'v' cannot be written: log_bytes is used"):
        world.run(V, 2)
    world.run(W, 1, lambda v: False)
    world.store.drop("v", 1, before_s=1e9)
    world.run(V, 2)
    world.journal.close()


def test_a_query_that_is_cut_goes_on_as_one_and_back_with_what_it_has_not_committed(
    world: World,
) -> None:
    journal, cuts, cursors = world.journal, CutCursors(world.journal), Cursors(world.journal)
    hidden = Stream(name="q" + REST, format=DERIVED)
    world.store.schemas[hidden.name] = SCHEMA
    world.store.open(hidden, lambda *trains: None)
    first = replace(_path("q" + FIRST, "s"), into=hidden.name, first_of="q")
    world.producers.connect((V, W, first), (*STREAMS, hidden))
    cursors.remember("q", "text", "s")
    for second in range(1, 7):
        world.feed(second, second + 0.5)
    world.commits.intents.intend([_result("q", 0, 2, 4, 3)])

    assert cuts.cut("q", "first")
    cursors.remember("q" + FIRST, "first", "s")
    cursors.remember("q", "text", hidden.name)
    assert cursors.counts()["q"] == (4, 3)
    world.run(first, 3)
    world.run(first, 5, lambda v: v > 4000)
    world.commits.intents.intend([_result("q", 0, 1, 2, 1)])
    account = cursors.accounts()["q"]
    assert (account.arrived, account.delivered, account.filtered, account.queued) == (12, 4, 3, 5)
    assert cursors.counts()["q"] == (10 - 3, 4)
    assert cursors.origin(hidden.name) == 3

    cuts.rejoin("q")
    assert (cursors.train_of("q"), cursors.train_of("q" + FIRST)) == (3, None)
    account = cursors.accounts()["q"]
    assert (account.arrived, account.delivered, account.filtered, account.queued) == (12, 4, 2, 6)
    assert not journal.trains(hidden.name)


def _result(query: str, first: int, end: int, tuples: int, out: int) -> Result:
    return Result(query, first, end, tuples, out, out, None, None)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), max_size=12), st.integers(0, 12))
def test_the_greatest_time_before_a_row_does_not_depend_on_how_rows_are_taken_together(
    rows: list[tuple[int, int]], split: int
) -> None:
    places = np.cumsum([step for step, _ in rows], dtype=np.int64)
    times = np.array([time for _, time in rows], dtype=np.int64)
    split = next(
        (n for n in range(min(split, len(rows)), len(rows)) if n and places[n] > places[n - 1]), 0
    )
    whole, top = from_own_times(times, places, NEVER)
    first, between = from_own_times(times[:split], places[:split], NEVER)
    second, last = from_own_times(times[split:], places[split:], between)
    assert np.concatenate([first, second]).tolist() == whole.tolist()
    assert last == top == max([NEVER, *times.tolist()])
