"""Trains written by Spark and trains written by the driver are one log."""

import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from headgate.errors import RecoveryRefused, TrainUnreadable
from headgate.spark.journal.journal import Journal
from headgate.spark.log.byte_cache import ByteCache
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
    assert len(list((tmp_path / "log/s").iterdir())) == 4, "nothing yet: the start may be refused"
    again.sweep()
    assert sorted(file.name[:12] for file in (tmp_path / "log/s").iterdir()) == [
        "000000000002", "000000000003",
    ]  # fmt: skip
    assert again.table(2, 4)["i"].to_pylist() == [0, 1, 2] * 2
    journal.drop_trains("s", 4)
    log_of(journal, tmp_path).sweep()
    assert not list((tmp_path / "log/s").iterdir())
    (tmp_path / "log/s/000000000004.parquet").touch()  # died before the journal had it
    log_of(journal, tmp_path)
    (tmp_path / "log/s/000000000005.parquet").touch()
    with pytest.raises(RecoveryRefused, match="after train 4, as the journal says, found train 5"):
        log_of(journal, tmp_path)
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
    # A bit flips: every reader notices, and names the file.
    paths = [log.path(0), log.path(1)]
    for file in (*paths[0].glob("part-*"), paths[1]):
        data = bytearray(file.read_bytes())
        data[len(data) // 8] ^= 1
        file.write_bytes(data)
    again = log_of(journal, tmp_path)
    for number, read in (
        (0, lambda: again.trains(0, 1, 100).frame(spark)),
        (0, lambda: again.numbered(0, 1, 100).frame(spark)),
        (1, lambda: again.table(1, 2)),
        (1, lambda: again.columns(1, 4, ["i"])),
        (1, lambda: again.marks(1)),
    ):
        with pytest.raises(TrainUnreadable, match=r"its checksum is \w{8}, the journal has") as bad:
            read()
        assert bad.value.file == str(paths[number])
    journal.close()


def test_a_thread_of_a_run_that_has_ended_replaces_no_train(tmp_path: Path) -> None:
    """Structured Streaming may return from a batch only after the next run has begun."""
    journal = Journal(tmp_path)
    abandoned = log_of(journal, tmp_path)
    journal.close()
    journal = Journal(tmp_path)
    log = log_of(journal, tmp_path)
    add(log, journal, 3)
    with pytest.raises(sqlite3.ProgrammingError):
        abandoned.stage(pa.table({"i": [7], ARRIVED.name: [2.0]}), 0)
    assert log_of(journal, tmp_path).table(0, 1)["i"].to_pylist() == [0, 1, 2]
    journal.close()
