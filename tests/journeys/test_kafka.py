"""From a Kafka topic, read in the driver, to results: nothing is lost, nothing comes twice."""

import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from confluent_kafka import OFFSET_END
from crash import CrashAt, CrashingHeadgate
from independent import committed_rows, expected_rows
from kafka_broker import Broker
from pyspark.sql import SparkSession
from sources import consume, until

from headgate import Headgate, Query, Stream

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NUMBER = "CAST(CAST(value AS STRING) AS INT)"
QUERIES = {
    "large": f"SELECT {NUMBER} AS number, r.offset FROM readings r WHERE {NUMBER} > 60",
    "place": "SELECT r.topic, r.partition, r.offset, r.timestamp, r.timestampType FROM readings r",
    "keyed": "SELECT CAST(key AS STRING) AS k, value FROM readings WHERE key IS NOT NULL",
}
"""Queries that mean the same to Spark and to DuckDB."""


class Readings:
    """A topic, and a Parquet file of its records as the broker acknowledged them."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self._broker, self._folder = broker, folder / "produced"
        self._folder.mkdir()
        self.topic = broker.new_topic(3)
        self.offered, self._rng = 0, random.Random(5)

    def produce(self, records: int) -> None:
        keys = [None, b"a", b"b"]
        rows = self._broker.produce(
            self.topic,
            [
                {"key": self._rng.choice(keys), "value": str(self._rng.randrange(100)).encode()}
                for _ in range(records)
            ],
        )
        names = ("key", "value", "topic", "partition", "offset")
        columns: dict[str, Any] = {name: [row[name] for row in rows] for name in names}
        columns["key"] = pa.array(columns["key"], pa.binary())
        columns["timestamp"] = pa.array(
            [row["timestamp_ms"] for row in rows], pa.timestamp("ms", "UTC")
        )
        columns["timestampType"] = [0] * records
        pq.write_table(pa.table(columns), self._folder / f"{self.offered}.parquet")
        self.offered += records

    def check(self, state: Path) -> None:
        for name, sql in QUERIES.items():
            committed = committed_rows(state / "results" / name)
            assert committed == expected_rows(sql, self._folder, "readings"), name


def _gate(
    spark: SparkSession,
    broker: Broker,
    readings: Readings,
    state: Path,
    reached: Callable[[str], None] = lambda point: None,
    **options: str,
) -> Headgate:
    source = broker.source(readings.topic, maxOffsetsPerTrigger="40", **options)
    gate = CrashingHeadgate(
        spark, state=state, classes={"H": 1}, rehearsal_s=0, train_tuples=50, reached=reached
    )
    gate.add_stream(Stream(name="readings", format="kafka", options=source))
    for name, sql in QUERIES.items():
        gate.add_query(Query(name=name, sql=sql, query_class="H"))
    return gate


def test_results_over_a_topic_are_those_of_duckdb_over_its_records(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    readings = Readings(broker, tmp_path)
    readings.produce(300)
    gate = _gate(spark, broker, readings, tmp_path / "state")
    gate.start()
    consume(gate, readings.offered)
    readings.produce(200)
    consume(gate, readings.offered)
    gate.stop()
    readings.check(tmp_path / "state")


@pytest.mark.parametrize(
    "point", ["train named", pytest.param("train journalled", marks=pytest.mark.long)]
)
def test_a_run_over_a_topic_that_crashed_ends_like_one_that_did_not(
    spark: SparkSession, broker: Broker, tmp_path: Path, point: str
) -> None:
    readings = Readings(broker, tmp_path)
    readings.produce(200)
    for times in (2, 3):
        crash = CrashAt(point, times - 1)
        gate = _gate(spark, broker, readings, tmp_path / "state", crash)
        gate.start()
        assert crash.dead.wait(30), f"the run never reached '{point}'"
        readings.produce(100)
        gate.stop()
    gate = _gate(spark, broker, readings, tmp_path / "state")
    gate.start()
    consume(gate, readings.offered)
    gate.stop()
    readings.check(tmp_path / "state")


@pytest.mark.long
def test_records_that_are_gone_end_the_stream_and_no_other(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    readings = Readings(broker, tmp_path)
    readings.produce(90)
    gate = _gate(spark, broker, readings, tmp_path / "state")
    gate.start()
    consume(gate, 90)
    gate.stop()
    broker.produce(readings.topic, [{"value": b"99"}] * 90)
    for partition in range(3):
        broker.forget(readings.topic, OFFSET_END, partition)
    gate = _gate(spark, broker, readings, tmp_path / "state")
    gate.add_stream(Stream(name="other", format="headgate", options={"rate_per_s": "100"}))
    gate.add_query(Query(name="on", sql="SELECT ts FROM other", query_class="H"))
    gate.start()
    until(lambda: bool(gate.report().errors), gate)
    (error,) = gate.report().errors
    assert "stream 'readings' stopped: " in error
    assert f"records of {readings.topic}/" in error
    assert "option failOnDataLoss to false" in error
    before = gate.totals()["on"][0]
    until(lambda: gate.totals()["on"][0] > before + 50, gate)
    gate.stop()
    gate = _gate(spark, broker, readings, tmp_path / "state", failOnDataLoss="false")
    gate.start()
    readings.produce(50)
    consume(gate, readings.offered, but=("on",))
    gate.stop()
    readings.check(tmp_path / "state")


@pytest.mark.long
@pytest.mark.parametrize(
    "point",
    [
        pytest.param("train written", marks=pytest.mark.long),
        "train journalled",
        pytest.param("results written", marks=pytest.mark.long),
    ],
)
def test_runs_over_a_topic_that_are_killed_end_like_one_that_was_not(
    broker: Broker, tmp_path: Path, point: str
) -> None:
    readings = Readings(broker, tmp_path)
    options = broker.source(readings.topic, maxOffsetsPerTrigger="40")
    pipeline = {
        "state": str(tmp_path / "state"), "rehearsal_s": 0, "train_tuples": 50,
        "spark": {"master": "local[2]"}, "classes": {"H": 1},
        "streams": {"readings": {"format": "kafka", "options": options, "ingest": "driver"}},
        "queries": {name: {"class": "H", "sql": sql} for name, sql in QUERIES.items()},
    }  # fmt: skip
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline))
    script = Path(__file__).with_name("consumer.py")
    for times in (1, 3, 2, 0):
        readings.produce(300)
        command = [
            sys.executable,
            script,
            file,
            readings.offered,
            *([point, times] if times else []),
        ]
        ended = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, start_new_session=True,
            timeout=300,
        )  # fmt: skip
        assert ended.returncode == (-signal.SIGKILL if times else 0), ended.stderr
    readings.check(tmp_path / "state")
