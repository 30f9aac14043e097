"""Python functions in queries: functions of values, and functions of DataFrames (`apply`)."""

from pathlib import Path
from typing import Any

import pytest
from independent import committed_rows, expected_rows
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sources import balanced, consume, gate_over, write_readings

from headgate import Query
from headgate.errors import QueryRefused

pytestmark = pytest.mark.spark

WINDOW = "[RANGE 2 SECONDS SLIDE 2 SECONDS]"


def doubled(frame: DataFrame) -> DataFrame:
    return frame.filter("temperature > 30").withColumn("twice", F.col("temperature") * 2)


def by_python(frame: DataFrame) -> DataFrame:
    def is_hot(value: int) -> bool:
        return value > 35

    return frame.filter(F.udf(is_hot, "boolean", useArrow=False)("temperature"))


def most(frame: DataFrame) -> DataFrame:
    """Return the hottest reading of every place, which needs all tuples of a window."""
    best = frame.groupBy("location").agg(F.max("temperature").alias("most"))
    return best.filter("most > 38")


APPLIED = {
    "rows": ("SELECT location, temperature FROM sensors", doubled),
    "python": ("SELECT location, temperature FROM sensors WHERE humidity < 50", by_python),
    "window": (f"SELECT location, temperature FROM sensors {WINDOW}", most),
}
ORACLES = {
    "rows": "SELECT location, temperature, temperature * 2 FROM sensors WHERE temperature > 30",
    "python": "SELECT location, temperature FROM sensors WHERE humidity < 50 AND temperature > 35",
}


def query(name: str, sql: str, **more: Any) -> Query:
    return Query(name=name, sql=sql, query_class="H", **more)


def test_functions_from_frame_to_frame(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "source"
    offered = write_readings(source, files=6, rows=500)
    gate = gate_over(spark, tmp_path, {}, train_tuples=1)
    for name, (sql, apply) in APPLIED.items():
        gate.add_query(query(name, sql, apply=apply))
    gate.start()
    consume(gate, offered)
    report = gate.stop()
    assert report is not None
    assert not report.errors
    balanced(gate)
    results = {name: committed_rows(tmp_path / "state" / "results" / name) for name in APPLIED}
    for name, oracle in ORACLES.items():
        assert results[name] == expected_rows(oracle, source), name
        assert results[name], name
    last = "(SELECT max(epoch_us(ts)) // 2000000 FROM sensors)"
    assert results["window"] == expected_rows(
        "SELECT location, max(temperature) AS most FROM sensors"
        f" WHERE epoch_us(ts) // 2000000 < {last} GROUP BY location, epoch_us(ts) // 2000000"
        " HAVING most > 38",
        source,
    )
    assert results["window"]


def test_functions_of_values_in_windows(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "source"
    offered = write_readings(source, files=4, rows=500)

    def half(value: int) -> int:
        return value // 2

    spark.udf.register("half_of", half, "int")
    texts = {
        "half": ("H", f"SELECT location, half_of(temperature) AS h FROM sensors {WINDOW}"),
        "sums": (
            "H",
            f"SELECT location, sum(half_of(humidity)) AS s FROM sensors {WINDOW} GROUP BY location",
        ),
    }
    gate = gate_over(spark, tmp_path, texts)
    gate.start()
    consume(gate, offered)
    report = gate.stop()
    assert report is not None
    assert not report.errors
    last = "(SELECT max(epoch_us(ts)) // 2000000 FROM sensors)"
    closed = f"sensors WHERE epoch_us(ts) // 2000000 < {last}"
    results = {name: committed_rows(tmp_path / "state" / "results" / name) for name in texts}
    assert results["half"] == expected_rows(
        f"SELECT location, temperature // 2 FROM {closed}", source
    )
    assert results["sums"] == expected_rows(
        f"SELECT location, sum(humidity // 2)::BIGINT FROM {closed} GROUP BY location,"
        " epoch_us(ts) // 2000000",
        source,
    )
    assert results["half"]
    assert results["sums"]


@pytest.mark.parametrize(
    ("sql", "apply", "message"),
    [
        ("SELECT * FROM sensors", most, "GROUP BY or an aggregate cannot run continuously"),
        ("SELECT * FROM sensors", lambda frame: frame.orderBy("ts"), "ORDER BY"),
        ("SELECT * FROM sensors", lambda frame: 3, "apply returns int, not a DataFrame"),
        ("SELECT * FROM sensors", lambda frame: frame.select("heat"), "apply fails"),
        (
            "SELECT a.ts FROM sensors [RANGE 1 SECOND] a JOIN sensors [RANGE 1 SECOND] b"
            " ON a.location = b.location",
            doubled,
            "write windows with the same SLIDE",
        ),
    ],
)
def test_what_cannot_be_continuous_is_refused(
    spark: SparkSession, tmp_path: Path, sql: str, apply: Any, message: str
) -> None:
    (tmp_path / "source").mkdir()
    gate = gate_over(spark, tmp_path, {})
    with pytest.raises(QueryRefused, match=message) as refused:
        gate.add_query(query("wrong", sql, apply=apply))
    assert "query 'wrong'" in str(refused.value)
    gate.stop()
