"""Two output columns of one name reach every sink that knows columns by position."""

import csv
import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from independent import expected_rows
from pyspark.sql import SparkSession
from sinks_run import Receiver, rows_of, run
from sources import gate_over, write_readings

from headgate import Query, Sink
from headgate.errors import QueryRefused

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LATER = "a.humidity + 0 = b.humidity AND a.ts = b.ts AND a.location = b.location"
TEXTS = {
    "twice": (
        "SELECT temperature, temperature FROM sensors",
        "SELECT temperature, temperature FROM sensors",
    ),
    "other": (
        "SELECT temperature, humidity + 1 AS Temperature FROM sensors WHERE temperature > 20",
        "SELECT temperature, humidity + 1 FROM sensors WHERE temperature > 20",
    ),
    "rows": (
        "SELECT temperature, explode(array(humidity, 1)) AS temperature FROM sensors",
        "SELECT temperature, unnest([humidity, 1]) FROM sensors",
    ),
    "windows": (
        "SELECT temperature, max(humidity) AS temperature FROM sensors [ROWS 1]"
        " GROUP BY temperature",
        "SELECT temperature, humidity FROM sensors",
    ),
    "pairs": (
        "SELECT a.temperature, b.temperature FROM sensors [ROWS 1] a JOIN sensors [ROWS 1] b"
        f" ON {LATER}",
        "SELECT temperature, temperature FROM sensors",
    ),
}
"""Queries with two output columns of one name, and the query for DuckDB with the same rows."""


@pytest.mark.parametrize("lane", ["driver", "job"])
def test_columns_of_one_name_come_out_by_place(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], lane: str
) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=20)
    gate = gate_over(spark, tmp_path, {}, lane=lane)
    receivers = {name: Receiver() for name in TEXTS}
    for name, (sql, _) in TEXTS.items():
        headed = Sink(format="csv", options={"header": "true"})
        for word, sink in {
            "csv": headed, "memory": Sink(format="memory"), "console": Sink(format="console"),
        }.items():  # fmt: skip
            gate.add_query(Query(name=f"{name}_{word}", sql=sql, query_class="H", sink=sink))
        query = Query(
            name=f"{name}_callback", sql=sql, query_class="H", sink=Sink(format="callback")
        )
        gate.add_query(query, deliver=receivers[name])
    run(gate, offered)
    printed = [line.partition(": ") for line in capsys.readouterr().out.splitlines()]
    for name, (sql, duckdb_sql) in TEXTS.items():
        expected = expected_rows(duckdb_sql, tmp_path / "source")
        assert expected, name
        table: pa.Table = gate.query(f"{name}_memory").rows()
        assert [column.lower() for column in table.column_names] == ["temperature"] * 2, sql
        assert rows_of(table) == expected, sql
        assert receivers[name].all() == expected, sql
        lines = Counter(
            tuple(value for _, value in json.loads(line, object_pairs_hook=list))
            for query, _, line in printed
            if query == f"{name}_console"
        )
        assert lines == expected, sql
        csv_rows: Counter[tuple[int, ...]] = Counter()
        for file in (tmp_path / "state/results" / f"{name}_csv").glob("*.csv"):
            head, *rows = csv.reader(file.read_text().splitlines())
            assert [column.lower() for column in head] == ["temperature"] * 2, sql
            csv_rows.update(tuple(map(int, row)) for row in rows)
        assert csv_rows == expected, sql


@pytest.mark.parametrize("format", ["parquet", "json", "stream"])
def test_a_sink_that_knows_columns_by_name_refuses_two_of_one_name(
    spark: SparkSession, tmp_path: Path, format: str
) -> None:
    (tmp_path / "source").mkdir()
    gate = gate_over(spark, tmp_path, {})
    for sql, _ in TEXTS.values():
        query = Query(name="twins", sql=sql, query_class="H", sink=Sink(format=format))
        with pytest.raises(QueryRefused) as refusal:
            gate.add_query(query)
        assert f"comes out twice, and {format} knows columns by name" in str(refusal.value)
        assert "with AS, or use a sink of format csv, console, memory or callback" in str(
            refusal.value
        )
