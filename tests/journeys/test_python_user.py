"""How a Python user works: pass in a session, run queries, read their handles and result files."""

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from independent import committed_rows, expected_rows
from kit.engines import names_of
from pyspark.sql import SparkSession
from sources import consume, gate_over, write_readings

from headgate import Headgate, HeadgateError, Query, Stream
from headgate.model.events import Event, StepStarted

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOT = "SELECT location, temperature FROM sensors WHERE temperature > 35"
ALL = "SELECT temperature FROM sensors"
QUERIES = {
    f"{letter.lower()}{number}": (
        letter,
        f"SELECT location FROM sensors WHERE temperature > {30 + number}",
    )
    for letter in "HCN"
    for number in range(3)
}


def test_a_handle_tells_what_structured_streaming_users_expect(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=100)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)})
    handle = gate.query("hot")
    assert handle.status["message"] == "Not started"
    assert f"{gate}" == (
        f"Headgate(state='{tmp_path}/state', policy='cqc', streams=1, queries=1, running=False)"
    )
    for method in (gate.totals, gate.accounts, gate.report, gate.drain, gate.wait):
        with pytest.raises(HeadgateError, match=rf"{method.__name__} must be called after start"):
            method()
    gate.start()
    assert handle.isActive
    consume(gate, offered)
    report = gate.stop()
    assert (handle.state, handle.status["message"], gate.running) == ("STOPPED", "Stopped", False)
    assert gate.totals()["hot"][0] == offered
    with pytest.raises(HeadgateError, match="add_query must be called before stop; a new Headgate"):
        gate.add_query(Query(name="more", sql=HOT, query_class="H"))
    progress = handle.lastProgress
    assert progress is not None
    native = {"id", "runId", "name", "timestamp", "batchId", "numInputRows", "sources", "sink"}
    assert native <= set(progress)
    assert sum(entry["numInputRows"] for entry in handle.recentProgress) == offered
    assert handle.exception() is None
    assert 0 < handle.statistics()["selectivity"] < 1
    handle.explain()
    assert "temperature > 35" in capsys.readouterr().out
    assert report is not None
    committed = committed_rows(tmp_path / "state/results/hot")
    assert report.classes[0].response_s.count == committed.total()


def test_settings_and_views_of_the_users_session_stay(spark: SparkSession, tmp_path: Path) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=20)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    spark.range(3).createOrReplaceTempView("sensors")
    try:
        gate = gate_over(spark, tmp_path, {"all": ("H", ALL)})
        gate.start()
        consume(gate, offered)
        gate.stop()
        assert spark.conf.get("spark.sql.shuffle.partitions") == "7"
        assert spark.table("sensors").count() == 3
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
        spark.catalog.dropTempView("sensors")
    assert committed_rows(tmp_path / "state/results/all").total() == offered


def test_a_function_registered_in_the_users_session_is_known(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=50)
    spark.udf.register("half", lambda value: value // 2, "int")
    sql = "SELECT half(temperature) AS h FROM sensors"
    gate = gate_over(spark, tmp_path, {"halves": ("H", sql)})
    gate.start()
    consume(gate, offered)
    gate.stop()
    expected = expected_rows("SELECT temperature // 2 FROM sensors", tmp_path / "source")
    assert committed_rows(tmp_path / "state/results/halves") == expected


def test_json_results_are_lines_that_spark_wrote(spark: SparkSession, tmp_path: Path) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=60)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT), "all": ("H", ALL)}, sink="json")
    gate.start()
    consume(gate, offered)
    gate.stop()
    for name, sql in (("hot", HOT), ("all", ALL)):
        folder = tmp_path / "state/results" / name
        assert committed_rows(folder) == expected_rows(sql, tmp_path / "source")
    file = next((tmp_path / "state/results/hot").glob("*.json"))
    assert set(json.loads(file.read_text().splitlines()[0])) == {"location", "temperature"}


def test_a_query_that_makes_several_rows_of_one_stays_apart(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=40)
    twice = "SELECT explode(array(temperature, humidity)) AS x FROM sensors"
    gate = gate_over(spark, tmp_path, {"twice": ("H", twice), "hot": ("H", HOT), "all": ("H", ALL)})
    gate.start()
    consume(gate, offered)
    gate.stop()
    expected = expected_rows(
        "SELECT unnest([temperature, humidity]) FROM sensors", tmp_path / "source"
    )
    assert committed_rows(tmp_path / "state/results/twice") == expected
    for name, sql in (("hot", HOT), ("all", ALL)):
        folder = tmp_path / "state/results" / name
        assert committed_rows(folder) == expected_rows(sql, tmp_path / "source")


def test_a_star_in_a_function_and_an_alias_in_an_expression_mean_what_spark_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=20)
    queries = {
        "packed": ("H", "SELECT to_json(struct(*)) AS packed FROM sensors"),
        "chained": ("H", "SELECT temperature + 1 AS x, x * 2 AS y FROM sensors"),
        "all": ("H", ALL),
    }
    gate = gate_over(spark, tmp_path, queries)
    gate.start()
    consume(gate, offered)
    gate.stop()
    for name in ("packed", "chained"):
        committed = committed_rows(tmp_path / "state/results" / name)
        view = spark.read.parquet(str(tmp_path / "source"))
        view.createOrReplaceTempView("sensors")
        expected = Counter(tuple(row) for row in spark.sql(queries[name][1]).collect())
        spark.catalog.dropTempView("sensors")
        assert committed == expected, name


def test_a_tuple_without_arrival_time_arrives_when_it_is_seen(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    rows = [{"location": "a", "ts": None}, {"location": "b", "ts": None}]
    schema = pa.schema([("location", pa.string()), ("ts", pa.timestamp("us", tz="UTC"))])
    pq.write_table(pa.Table.from_pylist(rows, schema), source / "1.parquet")
    gate = Headgate(spark, state=tmp_path / "state", classes={"H": 1}, rehearsal_s=0)
    options = {"path": str(source)}
    ddl = "location STRING, ts TIMESTAMP"
    gate.add_stream(
        Stream(name="s", format="parquet", options=options, schema=ddl, arrival_time="ts")
    )
    gate.add_query(Query(name="all", sql="SELECT location FROM s", query_class="H"))
    gate.start()
    consume(gate, 2)
    report = gate.stop()
    assert report is not None
    assert report.total.response_s.count == 2
    assert 0 <= report.total.response_s.maximum < 600


def test_a_query_that_was_away_while_its_trains_went_is_told_so(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=20)
    both = {"hot": ("H", HOT), "all": ("H", ALL)}
    for queries in (both, {"all": ("H", ALL)}):
        gate = gate_over(spark, tmp_path, queries, retention_s=0)
        gate.start()
        consume(gate, offered, but=("hot",) if len(queries) == 1 else ())
        gate.drain(30)
        gate.stop()
        offered += write_readings(tmp_path / "source", files=2, rows=20, first_file=offered // 20)
    gate = gate_over(spark, tmp_path, both)
    gate.start()
    consume(gate, offered, but=("hot",))
    gate.drain(30)
    account = gate.accounts()["hot"]
    gate.stop()
    assert "query 'hot' was away too long: retention has dropped 40 tuples" in caplog.text
    assert account.missed == 40
    assert account.arrived == account.delivered + account.filtered + account.missed == offered


def test_a_failing_query_stops_alone_and_says_why(spark: SparkSession, tmp_path: Path) -> None:
    offered = write_readings(tmp_path / "source", files=3, rows=50)
    bad = "SELECT 1 / (temperature - temperature) AS x FROM sensors"
    gate = gate_over(spark, tmp_path, {"bad": ("H", bad), "hot": ("H", HOT), "all": ("N", ALL)})
    gate.start()
    consume(gate, offered, but=("bad",))
    assert gate.drain(30)
    report = gate.stop()
    for name, sql in (("hot", HOT), ("all", ALL)):
        folder = tmp_path / "state/results" / name
        assert committed_rows(folder) == expected_rows(sql, tmp_path / "source")
    error = str(gate.query("bad").exception())
    assert "query 'bad' failed on trains 0.." in error
    assert "Division by zero" in error
    assert "Fix: " in error
    assert gate.query("bad").status["message"].startswith("Failed")
    assert report is not None
    assert len(report.errors) == 1
    assert committed_rows(tmp_path / "state/results/bad").total() == 0


def test_a_stopped_query_stands_still_and_resumes_at_the_next_start(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=50)
    queries = {"hot": ("H", HOT), "all": ("N", ALL)}
    gate = gate_over(spark, tmp_path, queries)
    gate.start()
    consume(gate, offered)
    gate.query("hot").stop()
    offered += write_readings(tmp_path / "source", files=2, rows=50, first_file=1)
    consume(gate, offered, but=("hot",))
    assert gate.totals()["hot"][0] == 50
    gate.stop()
    again = gate_over(spark, tmp_path, queries)
    again.start()
    consume(again, offered)
    again.stop()
    assert committed_rows(tmp_path / "state/results/hot") == expected_rows(HOT, tmp_path / "source")


def test_trains_go_when_every_query_has_passed_and_retention_allows(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=4, rows=20)
    for retention_s, left in ((3600.0, 4), (0.0, 0)):
        gate = gate_over(spark, tmp_path, {"all": ("H", ALL)}, retention_s=retention_s)
        gate.start()
        consume(gate, offered)
        gate.drain(30)
        gate.stop()
        trains = list((tmp_path / "state/log/sensors").glob("*.parquet"))
        assert len(trains) == left
    again = gate_over(spark, tmp_path, {"all": ("H", ALL)}, retention_s=0)
    offered += write_readings(tmp_path / "source", files=1, rows=20, first_file=4)
    again.start()
    consume(again, offered)
    again.stop()
    assert committed_rows(tmp_path / "state/results/all") == expected_rows(ALL, tmp_path / "source")


def test_a_train_keeps_rows_and_their_arrival(spark: SparkSession, tmp_path: Path) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=30)
    gate = gate_over(spark, tmp_path, {"all": ("H", ALL)})
    gate.start()
    consume(gate, offered)
    gate.stop()
    trains = pq.read_table(tmp_path / "state/log/sensors")
    assert trains.num_rows == offered
    assert trains.column_names == ["location", "temperature", "humidity", "ts", "_arrived_at_s"]


def test_rr_and_cqc_take_other_steps_and_cqc_never_fuses_across_classes(
    spark: SparkSession, tmp_path: Path
) -> None:
    sequences = {}
    for policy in ("rr", "cqc"):
        folder = tmp_path / policy
        folder.mkdir()
        offered = write_readings(folder / "source", files=2, rows=50)
        _leave_statistics(folder / "state")
        gate = gate_over(spark, folder, QUERIES, policy=policy, workers=1, most_fused=4)
        calls = _calls_of(gate)
        consume(gate, offered)
        gate.stop()
        sequences[policy] = calls
        spans = [len({name[0] for name in names}) for names in calls]
        assert max(map(len, calls)) > 1
        assert (max(spans) > 1) == (policy == "rr")
    assert sequences["rr"] != sequences["cqc"]


def _leave_statistics(state: Path) -> None:
    """Write the statistics of an earlier run, so that no query is probed alone first."""
    state.mkdir()
    figures = {"cost_s": 1e-5, "selectivity": 0.2, "overhead_s": 0.1}
    (state / "statistics.json").write_text(json.dumps({"queries": dict.fromkeys(QUERIES, figures)}))


def _calls_of(gate: Headgate) -> list[list[str]]:
    calls: list[list[str]] = []

    def hear(event: Event) -> None:
        if isinstance(event, StepStarted):
            calls.append(names_of(gate, event.call))

    gate.start(listeners=[hear])
    return calls
