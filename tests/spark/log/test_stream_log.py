"""Trains written by Spark and trains written by the driver are one log."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from headgate.spark.log.byte_cache import ByteCache
from headgate.spark.log.journal import Journal
from headgate.spark.log.stream_log import ARRIVED, StreamLog
from headgate.spark.log.trains import Trains


@pytest.mark.parametrize("nullable", [[False, True], [True, False]])
def test_the_mean_arrival_over_trains_of_spark_and_of_the_driver(
    tmp_path: Path, nullable: list[bool]
) -> None:
    files = []
    for number, may_be_null in enumerate(nullable):
        schema = pa.schema([pa.field(ARRIVED.name, pa.float64(), nullable=may_be_null)])
        files.append(str(tmp_path / f"{number}.parquet"))
        pq.write_table(
            pa.table([pa.array([1.0 + number] * (number + 1))], schema=schema), files[-1]
        )
    trains = Trains(StructType([ARRIVED]), files, 3, lambda: pa.table({}))
    assert trains.mean_arrived_at_s() == pytest.approx(5 / 3)


def log_of(journal: Journal, state: Path) -> StreamLog:
    schema = StructType([StructField("i", LongType())])
    return StreamLog(state, "s", journal, schema, ByteCache(lambda: 1 << 20))


def add(log: StreamLog, journal: Journal, rows: int) -> None:
    table = pa.table({"i": list(range(rows)), ARRIVED.name: [1.0] * rows})
    new = log.stage(table, log.next_number)
    journal.add_trains([new])
    log.added(new)


def test_files_of_trains_that_were_dropped_before_a_crash_are_cleared_away(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    log = log_of(journal, tmp_path)
    for _ in range(4):
        add(log, journal, 3)
    journal.drop_trains("s", 2)  # then the process died, and the files stayed
    again = log_of(journal, tmp_path)
    assert sorted(file.name[:12] for file in (tmp_path / "log/s").iterdir()) == [
        "000000000002", "000000000003",
    ]  # fmt: skip
    assert again.table(2, 4)["i"].to_pylist() == [0, 1, 2] * 2
    journal.drop_trains("s", 4)
    log_of(journal, tmp_path)
    assert not list((tmp_path / "log/s").iterdir())
    journal.close()


def test_numbered_tuples_have_their_place_in_the_log_whatever_order_a_job_reads_them_in(
    spark: SparkSession, tmp_path: Path
) -> None:
    journal = Journal(tmp_path)
    log = log_of(journal, tmp_path)
    log.append(spark.range(0, 100, 1, 3).withColumnRenamed("id", "i"), 0, 1.0)  # a folder of files
    for rows in (5, 700, 3):
        add(log, journal, rows)
    trains = log.numbered(0, 4, 808)
    columns = ["i", ARRIVED.name]
    table, rows = trains.table(), trains.frame(spark).select(*columns).toArrow()
    assert table[ARRIVED.name].to_pylist() == list(range(808))
    assert rows[ARRIVED.name].to_pylist() != list(range(808)), "Spark reads large files first"
    assert rows.sort_by(ARRIVED.name).equals(table.select(columns).cast(rows.schema))
    assert trains.mean_arrived_at_s() == 1.0
    journal.close()
