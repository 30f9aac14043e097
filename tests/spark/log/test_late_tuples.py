"""Tuples too late for their windows are set aside, each once, before the journal advances."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import IntegerType, StructField, StructType, TimestampType
from timelines import SECOND, Make, over, stream

from headgate.errors import ConfigRefused, RecoveryRefused
from headgate.model.stream import ARRIVED_AT, Stream
from headgate.model.window_ends import NEVER
from headgate.spark.event_time.timeline_entries import TimelineEntries
from headgate.spark.journal.journal import Journal
from headgate.spark.log.byte_cache import ByteCache
from headgate.spark.log.late_tuples import LateTuples
from headgate.spark.log.parquet_bytes import SPARK_SCHEMA
from headgate.spark.log.stream_log import StreamLog

SCHEMA = StructType([StructField("v", IntegerType()), StructField("ts", TimestampType())])


def log_of(state: Path, journal: Journal, schema: StructType = SCHEMA) -> StreamLog:
    return StreamLog(state, "s", journal, schema, ByteCache(lambda: 1 << 20))


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "state")
    yield journal
    journal.close()


def append(log: StreamLog, journal: Journal, *times: int | None) -> np.ndarray:
    """Add a train, and return the times of its tuples as a timeline has them."""
    table = pa.table(
        {
            "v": pa.array(range(len(times)), pa.int32()),
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            ARRIVED_AT: pa.array([1.0] * len(times)),
        }
    )
    new = log.stage(table, log.next_number)
    journal.add_trains([new])
    log.added(new)
    return np.array([NEVER if time is None else time for time in times])


def test_spark_reads_the_types_of_the_stream(tmp_path: Path, journal: Journal) -> None:
    log = log_of(tmp_path / "state", journal)
    late = LateTuples(str(tmp_path / "late"), log)
    times = append(log, journal, 1, 2)
    assert late.put(0, 0, np.array([True, False]), times)
    (file,) = (tmp_path / "late").glob("*.parquet")
    schema = StructType.fromJson(json.loads(pq.read_metadata(file).metadata[SPARK_SCHEMA.encode()]))
    kinds = "struct<v:int,ts:timestamp,_arrived_at_s:double,_number:bigint,_why:string>"
    assert schema.simpleString() == kinds


def rows_in(folder: Path) -> list[tuple[str, int, int, str]]:
    return [
        (file.stem, row["v"], row["_number"], row["_why"])
        for file in sorted(folder.glob("*.parquet"))
        for row in pq.read_table(file).to_pylist()
    ]


def test_a_tuple_is_there_once_whoever_has_it_late(tmp_path: Path, journal: Journal) -> None:
    log, folder = log_of(tmp_path / "state", journal), tmp_path / "late"
    late = LateTuples(str(folder), log)
    append(log, journal, 1, 2)
    times = append(log, journal, 30, None, 10, 40, 20)
    first = "s-000000000001"
    assert late.put(1, 2, np.array([0, 1, 1, 0, 0], bool), times)
    expected = [(first, 1, 3, "no time"), (first, 2, 4, "late")]
    assert rows_in(folder) == expected
    written = (folder / f"{first}.parquet").stat().st_ino
    again = LateTuples(str(folder), log)  # after a restart
    assert again.put(1, 2, np.array([0, 1, 0, 0, 0], bool), times)
    assert (folder / f"{first}.parquet").stat().st_ino == written, "there is nothing new"
    assert again.put(1, 2, np.array([0, 0, 1, 0, 1], bool), times)
    assert rows_in(folder) == [*expected, (first, 4, 6, "late")]
    names = pq.read_schema(folder / f"{first}.parquet").names
    assert names == ["v", "ts", ARRIVED_AT, "_number", "_why"]
    assert not list((folder / "_unfinished").iterdir())


def test_a_directory_that_is_away_is_said_once_and_tried_again(
    tmp_path: Path, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    log, folder = log_of(tmp_path / "state", journal), tmp_path / "late"
    late, one = LateTuples(str(folder), log), np.array([True])
    times = append(log, journal, 5)
    rmtree(folder)
    folder.write_text("a file is in the way")
    with caplog.at_level(logging.WARNING):
        assert not late.put(0, 0, one, times)
        assert not late.put(0, 0, one, times)
    assert caplog.text.count("late tuples of stream 's' cannot be written") == 1
    folder.unlink()
    assert late.put(0, 0, one, times)
    assert rows_in(folder) == [("s-000000000000", 0, 0, "late")]


def test_what_would_mix_or_clash_is_refused(tmp_path: Path, journal: Journal) -> None:
    log, folder = log_of(tmp_path / "state", journal), tmp_path / "late"
    folder.mkdir()
    (folder / "other-000000000000.parquet").touch()
    LateTuples(str(folder), log)
    (folder / "s-000000000000.parquet").touch()
    with pytest.raises(RecoveryRefused, match=r"expected no late tuples in .* of a stream that is"):
        LateTuples(str(folder), log)
    with pytest.raises(ConfigRefused, match=r"late_path is .*, but must be a directory that can"):
        LateTuples(str(folder / "s-000000000000.parquet"), log)
    clashing_schema = StructType([*SCHEMA.fields, StructField("_Why", IntegerType())])
    with pytest.raises(ConfigRefused, match="must be left out: the stream has a column _why"):
        LateTuples(str(folder), log_of(tmp_path / "other", journal, clashing_schema))


def test_a_stream_without_time_has_no_late_tuples() -> None:
    with pytest.raises(ConfigRefused, match="late_path is 'x', but must be set together with"):
        Stream(name="s", format="parquet", late_path="x")
    with pytest.raises(ConfigRefused, match="late_path is '', but must be a directory"):
        Stream(name="s", format="parquet", event_time="ts", late_path="")


def test_a_train_is_taken_in_once_its_late_tuples_are_safe(make: Make) -> None:
    world = make(stream("a"))
    world.reads(over(2 * SECOND, 2 * SECOND))
    world.take("a", SECOND)
    world.can_set_aside = False
    world.take("a", 0, 3 * SECOND, None)
    world.take("a", 2 * SECOND)
    world.timeline.tick(0)
    world.timeline.tick(90)
    assert (world.end, world.aside) == (1, []), "the clock does not pass over a waiting train"
    world.begin()
    assert world.end == 1
    world.can_set_aside = True
    world.timeline.tick(91)
    assert [entry.train for entry in TimelineEntries(world.journal, "t")()] == [0, 1, 2]
    assert world.aside == [("a", 1, 1, [True, False, True]), ("a", 2, 4, [True])]
    world.begin()
    assert len(world.aside) == 2
