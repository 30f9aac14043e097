"""Results at a rhythm, in directories and compacted, in a run: Spark's answers in batch."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from kit.gates import consume, stop_without_errors, until
from pyspark.sql import SparkSession
from sinks_run import gate_with
from sources import gate_over, write_readings

import headgate as hg
from headgate.errors import QueryRefused, UnknownName
from headgate.result_files import visible
from headgate.spark.sinks.files import compaction
from headgate.workloads.testbeds.forest import SCHEMA

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SQL = (
    "SELECT temperature, humidity > 50 AS `is wet`,"
    " CASE WHEN temperature > 30 THEN concat(location, '/%=: é') WHEN temperature < 10 THEN ''"
    " ELSE NULLIF(location, 'l1') END AS place, date_sub(DATE'2024-03-31', humidity) AS day"
    " FROM sensors"
)
SINKS = {
    "whole": hg.Sink(commit_every_s=600.0),
    "soon": hg.Sink(commit_every_s=0.2, compact=True),
    "small": hg.Sink(compact=True),
    "parts": hg.Sink(partition_by=("Place", "is wet")),
    "days": hg.Sink(partition_by=("day",), commit_every_s=0.3, compact=True),
    "lines": hg.Sink(format="json", commit_every_s=600.0),
}


def rows_in(frame: Any) -> Counter[Any]:
    # Spark reads the directories of a BOOLEAN as text.
    columns = ("temperature", "CAST(`is wet` AS STRING)", "place", "CAST(day AS STRING)")
    return Counter(map(tuple, frame.selectExpr(*columns).collect()))


def test_results_are_those_of_spark_in_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "FEW", 3)
    monkeypatch.setattr(compaction, "TIERS", 1)
    offered = write_readings(tmp_path / "source", files=8, rows=40)
    gate = gate_with(spark, tmp_path, SINKS, sql=SQL, train_tuples=40)
    folders = {name: gate.state / "results" / name for name in SINKS}
    gate.start()
    consume(gate, offered)
    # Nothing is visible before its time; what has no rhythm is visible at once.
    assert not list(visible(folders["whole"]))
    assert not hg.results(gate.state, "whole").files
    until(lambda: hg.results(gate.state, "parts").count_rows() == offered, gate)
    until(lambda: len(hg.results(gate.state, "small").files) < 8, gate)
    until(lambda: hg.results(gate.state, "soon").count_rows() == offered, gate)
    rows = {row["query"]: row for row in gate.status()["queries"]}
    assert rows["small"]["added_delay_s"] is None
    assert 0.0 < rows["parts"]["added_delay_s"] < rows["whole"]["added_delay_s"]
    assert rows["soon"]["added_delay_s"] >= 0.2
    assert rows["whole"]["mean_response_s"] < 600
    # A query that is dropped shows what it has collected.
    gate.drop_query("lines")
    assert hg.results(gate.state, "lines").count_rows() == offered
    stop_without_errors(gate)
    source = spark.read.schema(SCHEMA).parquet(str(tmp_path / "source"))
    source.createOrReplaceTempView("sensors")
    frame = spark.sql(SQL)
    expected = {name: rows_in(frame) for name in SINKS}
    # Spark's directories cannot tell an empty text from NULL.
    expected["parts"] = rows_in(frame.selectExpr("* EXCEPT (place)", "NULLIF(place, '') AS place"))
    for name, folder in folders.items():
        files = hg.results(folder).files
        reader = spark.read.option("basePath", str(folder))
        read = reader.json(files) if name == "lines" else reader.parquet(*files)
        assert rows_in(read) == expected[name], name
        assert not list(folder.glob("_collected/*")), name
        assert hg.results(folder).count_rows() == offered
    assert [Path(file).name for file in hg.results(folders["whole"]).files] == [
        "000000000000-000000000007.parquet"
    ]
    assert len(list(visible(folders["small"]))) > len(hg.results(folders["small"]).files)
    # The directories are exactly those that Spark writes.
    frame.write.partitionBy("place", "is wet").parquet(str(tmp_path / "spark"))
    of_spark = {str(file.parent.relative_to(tmp_path / "spark"))
                for file in (tmp_path / "spark").rglob("*.parquet")}  # fmt: skip
    assert {str(Path(name).parent) for name in visible(folders["parts"])} == of_spark
    assert spark.read.parquet(str(folders["parts"])).count() == offered
    with pytest.raises(UnknownName, match="Did you mean 'whole'"):
        hg.results(gate.state, "whol")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a column that is not there": (
        {"partition_by": ("plaze",)},
        "query 'q': sink partition_by names 'plaze', which the query does not output.\n"
        "Fix: name output columns; did you mean 'place'?",
    ),
    "a type without a certain text": (
        {"partition_by": ("ts",)},
        "query 'q': sink partition_by names 'ts' of type TIMESTAMP, which directories cannot have."
        "\nFix: write CAST(ts AS STRING) AS ts, or CAST(ts AS DATE)",
    ),
    "all columns": (
        {"partition_by": ("place",)},
        "query 'q': sink partition_by leaves no column for the files.\nFix: output another column",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_columns_that_cannot_be_directories_are_refused(
    spark: SparkSession, tmp_path: Path, case: str
) -> None:
    (tmp_path / "source").mkdir()
    keys, message = REFUSED[case]
    gate = gate_over(spark, tmp_path, {})
    column = ", ts" if case != "all columns" else ""
    sql = f"SELECT location AS place{column} FROM sensors"
    query = hg.Query(name="q", sql=sql, query_class="H", sink=hg.Sink(**keys))
    with pytest.raises(QueryRefused) as refused:
        gate.add_query(query)
    assert str(refused.value) == message
    gate.stop()
