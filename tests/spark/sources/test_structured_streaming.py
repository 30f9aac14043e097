"""What the driver cannot read itself is read by Structured Streaming, or is refused."""

import gc
import threading
import time
import weakref
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from driver_reads import schema_of, sorted_rows, source_over
from kit.waiting import until
from pyspark.sql import SparkSession

from headgate import Headgate, Query, Stream
from headgate.errors import ConfigRefused
from headgate.spark.journal.journal import Journal
from headgate.spark.journal.journal_rows import Train
from headgate.spark.log.byte_cache import ByteCache
from headgate.spark.log.stream_log import StreamLog
from headgate.spark.sources import structured_streaming as ingest

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("json", {"multiLine": "true"}), ("csv", {"MULTILINE": "true"}), ("csv", {"comment": "#"}),
        ("csv", {"mode": "DROPMALFORMED"}), ("json", {"encoding": "UTF-16"}),
        ("json", {"modifiedAfter": "2020-01-01T00:00:00"}), ("parquet", {"mergeSchema": "true"}),
        ("json", {"columnNameOfCorruptRecord": "bad"}), ("json", {"pathGlobFilter": "{a,b}.json"}),
        ("csv", {"recursiveFileLookup": "true"}), ("orc", {}), ("text", {}),
    ],
)  # fmt: skip
def test_what_the_driver_does_not_honour_is_left_to_structured_streaming(
    session: SparkSession, tmp_path: Path, kind: str, options: dict[str, str]
) -> None:
    assert source_over(session, kind, tmp_path, "i INT", options) is None


def test_columns_that_spark_fills_are_left_to_structured_streaming(
    session: SparkSession, tmp_path: Path
) -> None:
    assert source_over(session, "json", tmp_path, "i INT, _corrupt_record STRING", {}) is None
    (tmp_path / "day=1").mkdir()
    assert source_over(session, "json", tmp_path, "i INT, day INT", {}) is None


@pytest.mark.slow
def test_lines_that_belong_together_come_by_structured_streaming(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a.json").write_text('{\n"i": 1,\n"t": "a"\n}\n')
    (folder / "b.json").write_text('[\n{"i": 2},\n{"t": "b"}\n]\n')
    options = {"path": str(folder), "multiLine": "true"}
    gate = Headgate(spark, state=tmp_path / "state", classes={"H": 1}, rehearsal_s=0)
    gate.add_stream(Stream(name="s", format="json", options=options, schema="i INT, t STRING"))
    gate.add_query(Query(name="q", sql="SELECT * FROM s", query_class="H"))
    gate.start()
    ends_at_s = time.monotonic() + 60
    while gate.totals()["q"][0] < 3:
        assert time.monotonic() < ends_at_s, gate.report().errors
        gate.wait(0.05)
    gate.stop()
    read = spark.read.schema("i INT, t STRING").options(multiLine="true").json(str(folder))
    files = sorted((tmp_path / "state/results/q").glob("*.parquet"))
    assert sorted_rows(pa.concat_tables(map(pq.read_table, files))) == sorted_rows(read.toArrow())

    left, jvm = weakref.ref(gate), spark.sparkContext._jvm
    del gate

    def is_gone() -> bool:
        jvm.System.gc()
        gc.collect()
        return left() is None

    until(is_gone)  # the JVM's query and our function of its batches do not keep each other


def test_what_only_structured_streaming_can_do_is_refused_where_the_driver_must(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = {"path": str(tmp_path), "multiLine": "true"}
    stream = Stream(name="s", format="json", options=options, schema="i INT", ingest="driver")
    gate = Headgate(spark, state=tmp_path / "state", classes={"H": 1}, rehearsal_s=0)
    gate.add_stream(stream)
    gate.add_query(Query(name="q", sql="SELECT * FROM s", query_class="H"))
    with pytest.raises(ConfigRefused, match="stream 's': ingest is 'driver', but must be auto or"):
        gate.start()
    gate.stop()


@pytest.mark.slow
def test_ingest_that_does_not_end_is_left(
    session: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The batch is in Python code, which Spark cannot interrupt."""
    monkeypatch.setattr(ingest, "STOP_S", 1)
    folder, state = tmp_path / "source", tmp_path / "state"
    folder.mkdir()
    (folder / "a.json").write_text('{"i": 1}\n')
    arrived, goes_on = threading.Event(), threading.Event()

    def take(train: Train) -> None:
        arrived.set()
        goes_on.wait(60)

    options = {"path": str(folder)}
    stream = Stream(name="s", format="json", options=options, schema="i INT", ingest="spark")
    journal = Journal(state)
    log = StreamLog(state, "s", journal, schema_of(session, "i INT"), ByteCache(lambda: 1 << 20))
    running = ingest.start_ingest(session, stream, log, state, take, lambda: 0.0, threading.Event())
    assert arrived.wait(60)
    ingest.end_ingest(running)
    assert not goes_on.is_set()
    assert "headgate-ingest-s does not stop and is abandoned" in caplog.text
    goes_on.set()
    running.stop()
    assert not running.isActive
    journal.close()
