"""Result files of Spark: their rows are DuckDB's answer, written as the options say."""

import json
from collections import Counter
from pathlib import Path

import duckdb
import pytest
from independent import committed_rows, expected_rows
from pyspark.sql import SparkSession
from sinks_run import gate_with, rows_of, run
from sources import write_readings

from headgate import Sink

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TEXT = "SELECT location, temperature, concat(location, '; \"so\"') AS said FROM sensors"


def test_csv_has_a_header_and_a_separator_if_asked(spark: SparkSession, tmp_path: Path) -> None:
    offered = write_readings(tmp_path / "source", files=3, rows=40)
    sinks = {
        "plain": Sink(format="csv"),
        "headed": Sink(format="csv", options={"header": "true", "sep": ";"}),
    }
    run(gate_with(spark, tmp_path, sinks, sql=TEXT), offered)
    expected = expected_rows(TEXT, tmp_path / "source")
    for name, header, separator in (("plain", False, ","), ("headed", True, ";")):
        folder = tmp_path / "state/results" / name
        (first, *_) = sorted(folder.glob("*.csv"))
        line = first.read_text().splitlines()[0]
        assert (line == separator.join(["location", "temperature", "said"])) is header
        columns = "{location: 'VARCHAR', temperature: 'INT', said: 'VARCHAR'}"
        table = duckdb.sql(
            f"SELECT * FROM read_csv('{folder}/*.csv', header = {header}, delim = '{separator}',"
            f" quote = '\"', escape = '\\', columns = {columns}, strict_mode = false)"
        ).to_arrow_table()
        assert rows_of(table) == expected, name


def test_a_row_of_nothing_is_a_line_of_csv_too(spark: SparkSession, tmp_path: Path) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=30)
    sql = "SELECT CASE WHEN temperature > 35 THEN location END AS place FROM sensors"
    named = Sink(format="csv", options={"nullValue": "none"})
    run(
        gate_with(spark, tmp_path, {"places": Sink(format="csv"), "named": named}, sql=sql), offered
    )
    for name, nothing in (("places", '""'), ("named", "none")):
        (file,) = (tmp_path / "state/results" / name).glob("*.csv")
        rows = expected_rows(sql, tmp_path / "source").elements()
        assert Counter(file.read_text().splitlines()) == Counter(row[0] or nothing for row in rows)


def test_a_query_that_runs_whole_has_lines_too(spark: SparkSession, tmp_path: Path) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=30)
    sql = "SELECT explode(array(temperature, NULL)) AS `a b` FROM sensors"
    sinks = {"lines": Sink(format="json"), "csv": Sink(format="csv")}
    run(gate_with(spark, tmp_path, sinks, sql=sql), offered)
    unnested = "SELECT unnest([temperature, NULL]) FROM sensors"
    rows = expected_rows(unnested, tmp_path / "source")
    (file,) = (tmp_path / "state/results/lines").glob("*.json")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert Counter((line.get("a b"),) for line in lines) == rows
    (file,) = (tmp_path / "state/results/csv").glob("*.csv")
    values = ('""' if value is None else str(value) for (value,) in rows.elements())
    assert Counter(file.read_text().splitlines()) == Counter(values)


def test_options_of_json_and_parquet_arrive(spark: SparkSession, tmp_path: Path) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=30)
    sql = "SELECT location, CAST(NULL AS INT) AS nothing FROM sensors"
    sinks = {
        "lines": Sink(format="json", options={"ignoreNullFields": "false"}),
        "files": Sink(options={"compression": "gzip"}),
    }
    run(gate_with(spark, tmp_path, sinks, sql=sql), offered)
    expected = expected_rows("SELECT location, NULL FROM sensors", tmp_path / "source")
    for name in sinks:
        assert committed_rows(tmp_path / "state/results" / name) == expected
    folder = tmp_path / "state/results/files"
    used = duckdb.sql(f"SELECT DISTINCT compression FROM parquet_metadata('{folder}/*.parquet')")
    assert used.fetchall() == [("GZIP",)]
