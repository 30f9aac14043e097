"""If a query fails on a tuple and handles rows one by one, its error message names the tuple."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from faults import HOT, same
from pyspark.sql import SparkSession
from sources import balanced, consume, gate_over, until, write_readings

pytestmark = pytest.mark.spark

NAMED = {
    "alone": ("C", "SELECT humidity / temperature AS q FROM sensors"),
    "shared": ("H", "SELECT location FROM sensors WHERE 100 / temperature > 50"),
    "explodes": ("N", "SELECT explode(array(1 / temperature)) AS q FROM sensors"),
    "in_window": ("N", "SELECT 1 / temperature AS q FROM sensors [RANGE 1 SECOND]"),
}
UNNAMED = {
    "aggregates": ("N", "SELECT sum(1 / temperature) AS q FROM sensors [RANGE 1 SECOND]"),
    "sorts": ("N", "SELECT 1 / temperature AS q FROM sensors [RANGE 1 SECOND] ORDER BY q LIMIT 2"),
    "of_subquery": ("N", "SELECT location, (SELECT 1 / 0) AS q FROM sensors"),
}
GOOD = {"hot": ("H", HOT), "warm": ("H", HOT.replace("30", "20"))}


@pytest.mark.parametrize("lane", ["driver", "job"])
def test_an_error_names_the_tuple_where_rows_pass_one_by_one_and_none_elsewhere(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, lane: str
) -> None:
    offered = write_readings(tmp_path / "source", files=3, rows=400)
    temperatures = [
        row["temperature"]
        for file in sorted((tmp_path / "source").iterdir())
        for row in pq.read_table(file).to_pylist()
    ]
    first = temperatures.index(0)
    assert first > 0
    gate = gate_over(spark, tmp_path, {**NAMED, **UNNAMED, **GOOD}, lane=lane)
    gate.start()
    assert "mask: one scan, a bit for each of 3 queries" in str(gate.explanation("shared"))
    failing = (*NAMED, *UNNAMED)
    for name in failing:
        until(lambda name=name: gate.query(name).exception() is not None, gate)  # type: ignore[misc]
    consume(gate, offered, but=failing)
    messages = {name: str(gate.query(name).exception()) for name in failing}
    causes = {row["query"]: row["cause"] for row in gate.status()["queries"]}
    gate.stop()
    for name in ("alone", "shared", "explodes"):
        assert f", at tuple {first} of stream 'sensors' (" in messages[name], messages[name]
    for name in NAMED:
        assert "temperature = 0" in messages[name]
        assert messages[name] in caplog.text
        assert causes[name] == messages[name]
    assert ", at a tuple of stream 'sensors' (temperature = 0)" in messages["in_window"]
    for name in UNNAMED:
        assert "Division by zero" in messages[name]
        assert ", at " not in messages[name]
    same(gate, tmp_path / "source", **{name: sql for name, (_, sql) in GOOD.items()})
    balanced(gate)
