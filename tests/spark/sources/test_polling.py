"""Sources that fail, recover and continue: nothing is lost, nothing comes twice."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from driver_reads import generated, polled_of, schema_of, source_of_rows, source_over
from pyspark.sql import SparkSession

from headgate import Stream
from headgate.extensions import Polled, Source
from headgate.model.settings import Settings
from headgate.spark.journal.journal import Journal
from headgate.spark.journal.journal_rows import Train
from headgate.spark.log.budget import Budget
from headgate.spark.log.byte_cache import ByteCache
from headgate.spark.log.stream_log import StreamLog
from headgate.spark.sources.generator import GeneratorSource
from headgate.spark.sources.line import Line
from headgate.spark.sources.poller import REST_S, Poller
from headgate.workloads.testbeds.forest import SCHEMA

pytestmark = pytest.mark.spark


class Rig:
    """A poller over one source, as the engine uses it."""

    def __init__(
        self, session: SparkSession, state: Path, source: Source, ddl: str, trigger_s: float = 0.01
    ) -> None:
        self.journal = Journal(state)
        cache = ByteCache(lambda: Budget(Settings()).cache_bytes)
        self.log = StreamLog(state, "s", self.journal, schema_of(session, ddl), cache)
        stream = Stream(name="s", format="parquet", schema=ddl, trigger_s=trigger_s)
        self.line = Line(0, stream, self.log, source)
        self.trains: list[Train] = []
        self.letters = state / "dead-letters" / "s.jsonl"
        self.poller = Poller(
            [self.line],
            self.journal,
            lambda _, train: self.trains.append(train),
        )
        self.poller.start()

    def until(self, done: Any, deadline_s: float = 20.0) -> None:
        ends_at_s = time.monotonic() + deadline_s
        while not done():
            assert time.monotonic() < ends_at_s, "timed out"
            time.sleep(0.005)

    def rows(self) -> list[dict[str, Any]]:
        table = self.log.table(0, self.log.next_number)
        return [{**row} for row in table.drop_columns(["_arrived_at_s"]).to_pylist()]

    def close(self) -> None:
        self.poller.stop()
        self.journal.close()


def test_a_directory_that_vanishes_and_returns_is_told_of_once(
    session: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a.json").write_text('{"i": 1}\n')
    source = source_over(session, "json", folder, "i INT", {})
    assert source is not None
    rig = Rig(session, tmp_path / "state", source, "i INT")
    rig.until(lambda: len(rig.trains) == 1)
    folder.rename(tmp_path / "away")
    rig.until(lambda: rig.line.trouble)
    failed_at_s = rig.line.due_at_s
    rig.until(lambda: rig.line.due_at_s > failed_at_s)  # polled again, and failed again
    (tmp_path / "away" / "b.json").write_text('{"i": 2}\n')
    (tmp_path / "away").rename(folder)
    rig.until(lambda: len(rig.trains) == 2)
    rig.close()
    assert rig.rows() == [{"i": 1}, {"i": 2}]
    assert caplog.text.count("stream 's' stopped") == 1
    assert caplog.text.count("stream 's' is back") == 1


class Empty(Source):
    """A source that has nothing, and counts how often it is polled."""

    polls = 0

    def resume(self, position: Mapping[str, str]) -> None:
        pass

    def poll(self) -> Polled | None:
        self.polls += 1
        return None

    def taken(self, polled: Polled) -> None:
        raise AssertionError("it has nothing")


def test_a_source_that_has_nothing_is_left_alone_for_a_moment(
    session: SparkSession, tmp_path: Path
) -> None:
    source, began_s = Empty(), time.monotonic()
    rig = Rig(session, tmp_path / "state", source, "i INT", trigger_s=0)
    rig.until(lambda: source.polls > 20)
    rig.close()
    assert time.monotonic() - began_s >= 20 * REST_S


class Raising(Source):
    """Three tuples, one by one; some methods raise the first time, and `close` always."""

    def __init__(self, *methods: str) -> None:
        self._left, self._next = set(methods), 0

    def _raise(self, method: str) -> None:
        if method in self._left:
            self._left.discard(method)
            raise RuntimeError(method)

    def resume(self, position: Mapping[str, str]) -> None:
        self._raise("resume")
        self._next = int(position.get("next", "0"))

    def poll(self) -> Polled | None:
        self._raise("poll")
        if self._next == 3:
            return None
        table = pa.table({"i": pa.array([self._next], pa.int32())})
        if "position" in self._left:
            self._left.discard("position")
            wrong: Any = {"next": self._next + 1}
            return Polled(table, wrong)
        return Polled(table, {"next": str(self._next + 1)})

    def taken(self, polled: Polled) -> None:
        self._raise("taken")
        self._next = int(polled.position["next"])

    @property
    def trouble(self) -> str:
        self._raise("trouble")
        return ""

    def close(self) -> None:
        raise RuntimeError("close")


def test_a_source_that_raises_in_any_method_stops_nobody_and_is_tried_again(
    session: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("headgate.spark.sources.poller.PAUSE_S", 0.01)
    methods = ("resume", "poll", "position", "taken", "trouble")
    rig = Rig(session, tmp_path / "state", Raising(*methods), "i INT")
    cache = ByteCache[tuple[str, int]](lambda: 1 << 20)
    log = StreamLog(tmp_path / "state", "t", rig.journal, schema_of(session, "i INT"), cache)
    stream = Stream(name="t", format="parquet", schema="i INT", trigger_s=0.01)
    rig.poller.add(Line(1, stream, log, Raising()))
    rig.until(lambda: len(rig.trains) == 6)
    rig.until(lambda: not rig.line.trouble)
    rig.close()
    assert rig.poller.broken is None
    assert not rig.poller.failed
    for method in ("resume", "poll", "taken", "trouble"):
        assert f"stream 's' stopped: RuntimeError: {method}; it is tried again" in caplog.text
    assert "a position with 1, which is not a text" in caplog.text
    assert caplog.text.count("its source cannot be closed: close") == 2
    assert rig.rows() == [{"i": number} for number in range(3)]
    rows = log.table(0, log.next_number).column("i").to_pylist()
    assert rows == [0, 1, 2]


def test_letters_are_kept_once_though_the_journal_fails_for_a_while(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.spark.sources.poller.PAUSE_S", 0.01)
    (tmp_path / "a.json").write_text('{"i": 1}\nnonsense\n')
    source = source_over(session, "json", tmp_path, "i INT", {})
    assert source is not None
    add, left = Journal.add_trains, [3]

    def full(journal: Journal, *args: Any) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise OSError("no space left on device")
        add(journal, *args)

    monkeypatch.setattr(Journal, "add_trains", full)
    rig = Rig(session, tmp_path / "state", source, "i INT")
    rig.until(lambda: rig.trains)
    rig.close()
    assert rig.rows() == [{"i": 1}]
    (line,) = rig.letters.read_text().splitlines()
    letter = json.loads(line)
    assert letter["record"] == "nonsense"
    assert letter["place"].endswith("a.json:2")


def test_a_train_that_came_again_longer_is_in_memory_as_it_is_on_disk(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The generator has more tuples when it is polled again after a failure of the journal."""
    monkeypatch.setattr("headgate.spark.sources.poller.PAUSE_S", 0.2)
    add, left = Journal.add_trains, [2]

    def full(journal: Journal, *args: Any) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise OSError("no space left on device")
        add(journal, *args)

    monkeypatch.setattr(Journal, "add_trains", full)
    rig = Rig(session, tmp_path, generated({"rate_per_s": "2000", "seed": "3"}), SCHEMA)
    rig.until(lambda: len(rig.trains) > 3)
    rig.close()
    for number in range(rig.log.next_number):
        on_disk = pq.read_table(rig.log.path(number)).num_rows
        assert rig.log.table(number, number + 1).num_rows == on_disk


def test_the_generator_goes_on_with_the_next_tuple(session: SparkSession, tmp_path: Path) -> None:
    options = {"rate_per_s": "3000", "seed": "5", "tuples": "900"}
    seen: list[dict[str, Any]] = []
    for most in (200, 500, 900):
        rig = Rig(session, tmp_path, generated({**options, "tuples": str(most)}), SCHEMA)
        rig.until(lambda rig=rig, most=most: rig.journal.positions("s").get("tuple") == str(most))
        seen = rig.rows()
        rig.close()
        assert len(seen) == most
    alone = generated(options)
    parts: list[dict[str, Any]] = []
    while len(parts) < 900:
        if (polled := alone.poll()) is not None:
            parts += polled.table.drop_columns(["ts"]).to_pylist()
            alone.taken(polled)
    assert [{k: v for k, v in row.items() if k != "ts"} for row in seen] == parts


def test_an_iterator_that_fails_is_asked_for_the_rows_that_follow(session: SparkSession) -> None:
    starts: list[int] = []

    def rows(first: int) -> Iterator[dict[str, Any]]:
        starts.append(first)
        for number in range(first, 6):
            if number == 4 and len(starts) == 1:
                raise OSError("the line is down")
            yield {"i": number, "extra": "passed over"} if number != 2 else {"i": "two"}

    source = source_of_rows(session, "i INT", rows, rowsPerPoll="3")
    source.resume({})
    seen: list[dict[str, Any]] = []
    letters: list[str] = []
    failures: list[str] = []
    while len(seen) < 5:
        try:
            polled = polled_of(source)
        except OSError as error:
            failures.append(str(error))
            continue
        assert source.poll() is polled
        seen += polled.table.to_pylist()
        letters += [letter.place for letter in polled.letters]
        source.taken(polled)
    assert seen == [{"i": number} for number in (0, 1, 3, 4, 5)]
    assert (letters, failures) == (["row 2"], ["the line is down"])
    assert starts == [0, 4]


def test_nobody_waits_for_an_iterator_that_waits(session: SparkSession, tmp_path: Path) -> None:
    goes_on = threading.Event()

    def rows(first: int) -> Iterator[dict[str, Any]]:
        yield {"i": first}
        assert goes_on.wait(60)
        yield {"i": first + 1}

    rig = Rig(session, tmp_path, source_of_rows(session, "i INT", rows), "i INT")
    rig.until(lambda: len(rig.trains) == 1)
    goes_on.set()
    rig.until(lambda: len(rig.trains) == 2)
    assert rig.rows() == [{"i": 0}, {"i": 1}]
    rig.close()


def test_a_poller_stops_though_an_iterator_waits(session: SparkSession, tmp_path: Path) -> None:
    goes_on = threading.Event()

    def rows(first: int) -> Iterator[dict[str, Any]]:
        goes_on.wait(60)
        yield {"i": first}

    rig = Rig(session, tmp_path, source_of_rows(session, "i INT", rows), "i INT")
    began_s = time.monotonic()
    rig.close()
    assert time.monotonic() - began_s < 10
    goes_on.set()


def test_a_poller_leaves_a_source_that_does_not_answer_and_takes_nothing_more_of_it(
    session: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Another poller may already work in the same directory when the answer comes."""
    polling, goes_on, closed = threading.Event(), threading.Event(), threading.Event()

    class Hanging(GeneratorSource):
        def poll(self) -> Polled | None:
            polled = super().poll()
            if polled is not None:
                polling.set()
                goes_on.wait(60)
            return polled

        def close(self) -> None:
            closed.set()

    first = Rig(session, tmp_path, generated({"rate_per_s": "1000", "seed": "1"}, Hanging), SCHEMA)
    assert polling.wait(20)
    first.poller.stop(patience_s=0.1)
    assert "the source of stream 's' does not answer" in caplog.text
    first.journal.close()
    second = Rig(session, tmp_path, generated({"rate_per_s": "1000", "seed": "2"}), SCHEMA)
    second.until(lambda: second.trains)
    before = second.log.path(0).read_bytes()
    goes_on.set()
    assert closed.wait(20)
    assert not first.trains
    assert second.log.path(0).read_bytes() == before
    second.close()


def test_trains_of_important_streams_are_told_of_before_others_are_asked(
    spark: SparkSession, tmp_path: Path
) -> None:
    events: list[str] = []

    def rows_of(name: str) -> Callable[[int], Iterator[dict[str, int]]]:
        def rows(first: int) -> Iterator[dict[str, int]]:
            events.append(f"{name} asked")
            return iter([{"n": n} for n in range(first, 3)])

        return rows

    journal, cache = Journal(tmp_path), ByteCache(lambda: Budget(Settings()).cache_bytes)
    lines = []
    for number, name in enumerate("abc"):
        log = StreamLog(tmp_path, name, journal, schema_of(spark, "n INT"), cache)
        stream = Stream(name=name, format="python", schema="n INT")
        lines.append(Line(number, stream, log, source_of_rows(spark, "n INT", rows_of(name))))
    importance = {"a": 1.0, "b": 6.0, "c": 1.0}
    poller = Poller(
        lines, journal, lambda number, train: events.append(f"{'abc'[number]} told"),
        importance=importance.__getitem__,
    )  # fmt: skip
    poller.start()
    ends_at_s = time.monotonic() + 20.0
    while len(events) < 6:
        assert time.monotonic() < ends_at_s, events
        time.sleep(0.005)
    poller.stop()
    journal.close()
    assert events == ["b asked", "b told", "a asked", "c asked", "a told", "c told"]


def test_nobody_waits_long_for_a_stream_that_always_has_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    journal, cache = Journal(tmp_path), ByteCache(lambda: Budget(Settings()).cache_bytes)
    schema, lines = schema_of(spark, "n INT"), []
    for number, name in enumerate("ab"):
        log = StreamLog(tmp_path, name, journal, schema, cache)
        stream = Stream(name=name, format="python", schema="n INT", trigger_s=0.0)
        rows = source_of_rows(spark, "n INT", lambda first: ({"n": n % 9} for n in count(first)))
        lines.append(Line(number, stream, log, rows))
    arrived: Counter[int] = Counter()
    poller = Poller(
        lines, journal, lambda number, train: arrived.update([number]),
        importance={"a": 1.0, "b": 6.0}.__getitem__,
    )  # fmt: skip
    poller.start()
    ends_at_s = time.monotonic() + 20.0
    while arrived[0] < 3:
        assert time.monotonic() < ends_at_s, arrived
        time.sleep(0.005)
    poller.stop()
    journal.close()
    assert arrived[1] > arrived[0]
