"""The driver reads many small trains, and gets the same rows as Spark."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headgate.errors import TrainUnreadable
from headgate.spark.engine import history
from headgate.spark.journal.journal import Journal
from headgate.spark.jvm.session import own_session
from headgate.spark.log.byte_cache import ByteCache
from headgate.spark.log.stream_log import StreamLog

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = """
SELECT CAST(id AS INT) AS i, timestamp_micros(id * 7777777777777 - 3) AS ts,
  array(id, NULL) AS many,
  CAST(timestamp_micros(id) AS TIMESTAMP_NTZ) AS local, named_struct('a', id, 'B', 'x') AS inner,
  map('k', id) AS pairs, CAST(id AS DECIMAL(20, 3)) AS d, DATE'2020-01-01' AS day,
  CAST('b' AS BINARY) AS bytes, IF(id % 2 = 0, NULL, 'odd') AS t, 0.5D * id AS _arrived_at_s
FROM range({0}, {1})
"""


def state_of(spark: SparkSession, state: Path, trains: int) -> None:
    """Write a log of small trains, and a last train that Spark writes."""
    session = own_session(spark)
    journal = Journal(state)
    schema = session.sql(ROWS.format(0, 1)).drop("_arrived_at_s").schema
    journal.remember_stream("s", schema.simpleString())
    journal.remember_stream("other", "a INT")
    log = StreamLog(state, "s", journal, schema, ByteCache(lambda: 1 << 20))
    rows: pa.Table = session.sql(ROWS.format(0, 3 * trains)).toArrow()
    for number in range(trains):
        new = log.stage(rows.slice(3 * number, 3), number)
        journal.add_trains([new])
        log.added(new)
    log.expected_tuples = 10**9
    log.append(session.sql(ROWS.format(1000, 1007)), trains, 1.0)
    assert log.path(trains).is_dir()
    journal.close()


def test_small_trains_come_as_spark_reads_them_without_a_task_for_each(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state_of(spark, tmp_path, trains=40)
    text = "SELECT * FROM s ORDER BY i"
    quick = history.history_of(own_session(spark), tmp_path, text)
    assert len(quick.inputFiles()) == len(list((tmp_path / "log/s").glob("*/*.parquet")))
    monkeypatch.setattr(history, "MANY_FILES", 10**9)
    slow = history.history_of(own_session(spark), tmp_path, text)
    assert len(slow.inputFiles()) >= 41
    assert quick.schema == slow.schema
    assert quick.collect() == slow.collect()
    assert quick.count() == 127


def test_a_stream_without_trains_is_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    state_of(spark, tmp_path, trains=1)
    assert history.history_of(own_session(spark), tmp_path, "SELECT a FROM OTHER").collect() == []


def test_a_train_that_has_changed_is_named_if_the_text_reads_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    state_of(spark, tmp_path, trains=2)
    for train in (tmp_path / "log/s/000000000001.parquet", tmp_path / "log/s/000000000002.parquet"):
        file = next(train.glob("*.parquet")) if train.is_dir() else train
        whole = file.read_bytes()
        damaged = bytearray(whole)
        damaged[len(whole) // 2] ^= 1
        file.write_bytes(damaged)
        message = f"train {int(train.stem)} of stream 's' cannot be read: its checksum is"
        with pytest.raises(TrainUnreadable, match=message):
            history.history_of(own_session(spark), tmp_path, "SELECT count(*) FROM s")
        file.write_bytes(whole)
