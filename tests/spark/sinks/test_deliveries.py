"""Delivered results: none is lost, even by a crash at any point, and each has a key."""

import logging
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from crash import CrashAt
from derby import Database
from independent import committed_rows, expected_rows
from pyspark.sql import SparkSession
from sinks_run import HOT, Receiver, gate_with, run
from sources import consume, until, write_readings

from headgate import Sink

pytestmark = [pytest.mark.spark, pytest.mark.slow]

POINTS = [
    *("result written", "results written", "step journalled", "result visible"),
    *("delivery begun", "result delivered"),
]


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Database:
    return Database(spark, tmp_path)


@pytest.mark.parametrize("point", POINTS)
def test_after_a_crash_files_hold_all_once_and_deliveries_all_once_by_key(
    spark: SparkSession, tmp_path: Path, database: Database, point: str
) -> None:
    offered = write_readings(tmp_path / "source", files=4, rows=50)
    database.execute(
        "CREATE TABLE hot (headgate_key VARCHAR(99) PRIMARY KEY, location VARCHAR(99),"
        " temperature INT)"
    )
    sinks = {
        "parquet": Sink(),
        "json": Sink(format="json"),
        "csv": Sink(format="csv"),
        "callback": Sink(format="callback"),
        "jdbc": database.named("hot", "headgate_key"),
    }
    receiver, crash = Receiver(), CrashAt(point, 1)
    settings: dict[str, Any] = {"deliver": receiver, "train_tuples": 1, "workers": 1}
    gate = gate_with(spark, tmp_path, sinks, reached=crash, **settings)
    gate.start()
    try:
        assert crash.dead.wait(60)
    finally:
        gate.stop()
    run(gate_with(spark, tmp_path, sinks, **settings), offered)
    expected = expected_rows(HOT, tmp_path / "source")
    for name in ("parquet", "json"):
        assert committed_rows(tmp_path / "state/results" / name) == expected
    lines = [
        line
        for file in (tmp_path / "state/results/csv").glob("*.csv")
        for line in file.read_text().splitlines()
    ]
    pairs = expected.elements()
    assert Counter(lines) == Counter(f"{place},{heat}" for place, heat in pairs)
    assert receiver.once() == expected
    assert receiver.all() >= expected
    table = spark.read.jdbc(database.url, "hot").drop("HEADGATE_KEY")
    assert Counter(tuple(row) for row in table.collect()) == expected
    assert not list((tmp_path / "state/outbox").glob("*/*.parquet"))


def test_a_delivery_that_a_crash_made_uncertain_comes_again_with_its_key(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=50)
    receiver, crash = Receiver(), CrashAt("result delivered", 1)
    sinks = {"hot": Sink(format="callback")}
    gate = gate_with(spark, tmp_path, sinks, deliver=receiver, reached=crash, train_tuples=1)
    gate.start()
    assert crash.dead.wait(60)
    gate.stop()
    run(gate_with(spark, tmp_path, sinks, deliver=receiver, train_tuples=1), offered)
    assert receiver.keys == ["hot/0-0", "hot/1-1", "hot/1-1"]
    assert receiver.once() == expected_rows(HOT, tmp_path / "source")


def test_a_receiver_that_is_away_delays_its_own_results_only_and_loses_none(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    offered = write_readings(tmp_path / "source", files=3, rows=50)
    receiver, here, complete = Receiver(), threading.Event(), threading.Event()

    def deliver(table: pa.Table, key: str) -> None:
        if not here.is_set():
            raise ConnectionError("the database is away")
        receiver(table, key)
        if len(receiver.keys) == 3:
            complete.set()

    sinks = {"hot": Sink(format="callback"), "files": Sink()}
    gate = gate_with(spark, tmp_path, sinks, deliver=deliver, train_tuples=1)
    gate.start()
    consume(gate, offered)
    expected = expected_rows(HOT, tmp_path / "source")
    assert committed_rows(tmp_path / "state/results/files") == expected
    assert gate.query("hot").exception() is None
    assert not receiver.keys
    here.set()
    assert complete.wait(30)
    gate.stop()
    assert receiver.keys == ["hot/0-0", "hot/1-1", "hot/2-2"]
    assert receiver.all() == expected
    warnings = [
        record.getMessage() for record in caplog.records if record.levelno == logging.WARNING
    ]
    assert [line for line in warnings if "its results wait in the outbox" in line] == [
        "query 'hot': its results wait in the outbox, the callback sink does not take them:"
        " ConnectionError: the database is away"
    ]


def test_a_receiver_that_hangs_holds_nobody_up(spark: SparkSession, tmp_path: Path) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=50)
    receiver, release = Receiver(), threading.Event()

    def deliver(table: pa.Table, key: str) -> None:
        assert release.wait(60)
        receiver(table, key)

    sinks = {"hot": Sink(format="callback"), "files": Sink()}
    gate = gate_with(spark, tmp_path, sinks, deliver=deliver, train_tuples=1, workers=1)
    gate.start()
    consume(gate, offered)
    assert not receiver.keys
    release.set()
    gate.stop()
    expected = expected_rows(HOT, tmp_path / "source")
    assert committed_rows(tmp_path / "state/results/files") == receiver.all() == expected


def test_a_receiver_that_stays_away_stops_its_query_before_the_disk_is_full(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=12, rows=50)
    sinks = {"hot": Sink(format="callback"), "files": Sink()}

    def away(table: pa.Table, key: str) -> None:
        raise ConnectionError("the database is away")

    sql = "SELECT md5(location) AS place, temperature FROM sensors"
    limits = {"train_tuples": 1, "log_bytes": 100_000}  # a tenth of it may wait for receivers
    gate = gate_with(spark, tmp_path, sinks, deliver=away, sql=sql, **limits)
    gate.start()
    consume(gate, offered, but=("hot",))
    until(lambda: gate.query("hot").exception() is not None, gate)
    gate.stop()
    expected = expected_rows(sql, tmp_path / "source")
    assert committed_rows(tmp_path / "state/results/files") == expected
    message = str(gate.query("hot").exception())
    assert "its callback sink accepts nothing, and " in message
    assert "Fix: restore the receiver of the results" in message
    receiver = Receiver()
    run(gate_with(spark, tmp_path, sinks, deliver=receiver, sql=sql), offered)
    assert receiver.all() == expected


def test_what_has_not_arrived_at_the_end_is_delivered_by_the_next_start(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=50)
    sinks = {"hot": Sink(format="callback")}

    def away(table: pa.Table, key: str) -> None:
        raise ConnectionError("the database is away")

    run(gate_with(spark, tmp_path, sinks, deliver=away, train_tuples=1), offered)
    assert "query 'hot': 2 results have not arrived; the next start delivers them" in caplog.text
    receiver = Receiver()
    run(gate_with(spark, tmp_path, sinks, deliver=receiver), offered)
    assert receiver.keys == ["hot/0-0", "hot/1-1"]
    assert receiver.all() == expected_rows(HOT, tmp_path / "source")


def test_a_table_keeps_the_latest_row_of_every_key(
    spark: SparkSession, tmp_path: Path, database: Database
) -> None:
    offered = write_readings(tmp_path / "source", files=3, rows=60)
    database.execute(
        "CREATE TABLE latest (location VARCHAR(99) PRIMARY KEY, temperature INT, ts TIMESTAMP)"
    )
    sql = "SELECT ts, location, temperature FROM sensors"
    sinks = {"latest": database.named("latest", "location")}
    run(gate_with(spark, tmp_path, sinks, sql=sql), offered)
    rows = spark.read.jdbc(database.url, "latest").select("LOCATION", "TEMPERATURE").collect()
    latest = "SELECT location, arg_max(temperature, ts) FROM sensors GROUP BY location"
    assert Counter(map(tuple, rows)) == expected_rows(latest, tmp_path / "source")
