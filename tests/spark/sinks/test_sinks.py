"""The sinks in memory and on the console, and sinks that are refused."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from independent import expected_rows
from pyspark.sql import SparkSession
from sinks_run import HOT, gate_with, rows_of, run
from sources import gate_over, write_readings

from headgate import Query, Sink
from headgate.errors import QueryRefused

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DERBY = "jdbc:derby:memory:nobody"


def test_memory_keeps_the_newest_rows_and_counts_what_it_drops(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=4, rows=50)
    sql = "SELECT ts, location FROM sensors"
    sinks = {
        "all": Sink(format="memory"),
        "few": Sink(format="memory", options={"rows": "70"}),
    }
    gate = gate_with(spark, tmp_path, sinks, sql=sql, train_tuples=1)
    with pytest.raises(QueryRefused, match="that has started"):
        gate.query("all").rows()
    run(gate, offered)
    every = gate.query("all").rows()
    assert isinstance(every, pa.Table)
    expected = expected_rows("SELECT epoch_us(ts), location FROM sensors", tmp_path / "source")
    times = every["ts"].cast(pa.int64())
    assert rows_of(every.set_column(0, "ts", times)) == expected
    assert gate.query("all").rows_dropped == 0
    few = gate.query("few")
    assert few.rows().equals(every.slice(130))
    assert few.rows_dropped == 130


def test_the_console_shows_rows_behind_the_querys_name(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=50)
    run(gate_with(spark, tmp_path, {"hot": Sink(format="console")}), offered)
    lines = [
        line.removeprefix("hot: ")
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("hot: ")
    ]
    rows = Counter(tuple(json.loads(line).values()) for line in lines)
    assert rows == expected_rows(HOT, tmp_path / "source")


@pytest.mark.parametrize(
    ("sink", "deliver", "message"),
    [
        (Sink(format="callback"), None, "sink format callback has no function"),
        (Sink(), print, "sink format parquet takes no function"),
        (
            Sink(format="jdbc", options={"url": DERBY, "table": "t", "key": "place"}),
            None,
            "sink options.key 'place' is not a column of the query, which returns location,"
            " temperature",
        ),
        (
            Sink(format="jdbc", options={"url": "jdbc:none:x", "table": "t", "key": "location"}),
            None,
            "sink options.url has no driver on the class path: No suitable driver",
        ),
        (
            Sink(format="kafka", options={"kafka.bootstrap.servers": "h:9092", "topic": "t"}),
            None,
            "add  spark.jars.packages: org.apache.spark:spark-sql-kafka-0-10_2.13:",
        ),
    ],
)
def test_a_sink_that_cannot_be_is_refused_when_the_query_comes(
    spark: SparkSession, tmp_path: Path, sink: Sink, deliver: Any, message: str
) -> None:
    write_readings(tmp_path / "source", files=1, rows=5)
    gate = gate_over(spark, tmp_path, {})
    query = Query(name="hot", sql=HOT, query_class="H", sink=sink)
    with pytest.raises(QueryRefused) as refused:
        gate.add_query(query, deliver=deliver)
    assert message in str(refused.value)
    assert str(refused.value).startswith("query 'hot': ")
    gate.stop()


def test_only_files_want_a_directory_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    write_readings(tmp_path / "source", files=1, rows=5)
    console = {"one": Sink(format="console"), "two": Sink(format="console")}
    gate = gate_with(spark, tmp_path, {**console, "a": Sink(path=str(tmp_path / "same"))})
    query = Query(name="b", sql=HOT, query_class="H", sink=Sink(path=str(tmp_path / "same")))
    with pytest.raises(QueryRefused, match="is also that of 'a'"):
        gate.add_query(query)
    gate.stop()
