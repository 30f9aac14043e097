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

from headgate import Headgate, HeadgateError, Query, Sink, Stream
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


MIXED = {
    "hot": (HOT, HOT),
    "all": (ALL, ALL),
    "halves": (
        "SELECT half(temperature) AS h FROM sensors",
        "SELECT temperature // 2 FROM sensors",
    ),
    "twice": (
        "SELECT explode(array(temperature, humidity)) AS x FROM sensors",
        "SELECT unnest([temperature, humidity]) FROM sensors",
    ),
    "chained": (
        "SELECT temperature + 1 AS x, x * 2 AS y FROM sensors",
        "SELECT temperature + 1, (temperature + 1) * 2 FROM sensors",
    ),
}
"""Queries of all kinds, and equivalent queries for DuckDB: a function that the user's session has
registered, several rows of one, an alias inside an expression."""

BAD = "SELECT 1 / (temperature - temperature) AS x FROM sensors"
PACKED = "SELECT to_json(struct(*)) AS packed FROM sensors"


def test_queries_of_all_kinds_answer_and_their_handles_tell_what_users_expect(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Let one query fail, too: it stops alone and says why."""
    source, results = tmp_path / "source", tmp_path / "state/results"
    offered = write_readings(source, files=3, rows=50)
    spark.udf.register("half", lambda value: value // 2, "int")
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    spark.range(3).createOrReplaceTempView("sensors")
    try:
        gate = gate_over(spark, tmp_path, {name: ("H", sql) for name, (sql, _) in MIXED.items()})
        for name, sql in (("packed", PACKED), ("bad", BAD)):
            gate.add_query(Query(name=name, sql=sql, query_class="N"))
        for name, sql in (("hot", HOT), ("all", ALL)):
            sink = Sink(format="json")
            gate.add_query(Query(name=f"{name}_json", sql=sql, query_class="C", sink=sink))
        handle = gate.query("hot")
        assert handle.status["message"] == "Not started"
        assert f"{gate}" == (
            f"Headgate(state='{tmp_path}/state', policy='cqc', streams=1, queries=9, running=False)"
        )
        for method in (gate.totals, gate.accounts, gate.report, gate.drain, gate.wait):
            with pytest.raises(
                HeadgateError, match=rf"{method.__name__} must be called after start"
            ):
                method()
        gate.start()
        assert handle.isActive
        consume(gate, offered, but=("bad",))
        assert gate.drain(30)
        report = gate.stop()
        assert (handle.state, handle.status["message"]) == ("STOPPED", "Stopped")
        assert not gate.running
        assert gate.totals()["hot"][0] == offered
        with pytest.raises(HeadgateError, match="add_query must be called before stop; a new He"):
            gate.add_query(Query(name="more", sql=HOT, query_class="H"))
        assert spark.conf.get("spark.sql.shuffle.partitions") == "7"
        assert spark.table("sensors").count() == 3, "the user's view stays"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
        spark.catalog.dropTempView("sensors")

    progress = handle.lastProgress
    assert progress is not None
    native = {"id", "runId", "name", "timestamp", "batchId", "numInputRows", "sources", "sink"}
    assert native <= set(progress)
    assert sum(entry["numInputRows"] for entry in handle.recentProgress) == offered
    assert handle.exception() is None
    assert 0 < handle.statistics()["selectivity"] < 1
    handle.explain()
    assert "temperature > 35" in capsys.readouterr().out

    answers = {name: committed_rows(results / name) for name in MIXED}
    for name, (_, oracle) in MIXED.items():
        assert answers[name] == expected_rows(oracle, source), name
    assert report is not None
    counts = {line.name: line.response_s.count for line in report.queries}
    assert counts["hot"] == answers["hot"].total()
    frame = spark.read.parquet(str(source))
    packed = frame.selectExpr("to_json(struct(*)) AS packed").collect()
    assert committed_rows(results / "packed") == Counter(tuple(row) for row in packed)

    for name in ("hot", "all"):
        assert committed_rows(results / f"{name}_json") == answers[name]
    file = next((results / "hot_json").glob("*.json"))
    assert set(json.loads(file.read_text().splitlines()[0])) == {"location", "temperature"}

    error = str(gate.query("bad").exception())
    assert "query 'bad' failed on trains 0.." in error
    assert "Division by zero" in error
    assert "Fix: " in error
    assert gate.query("bad").status["message"].startswith("Failed")
    assert len(report.errors) == 1
    assert committed_rows(results / "bad").total() == 0

    trains = pq.read_table(tmp_path / "state/log/sensors")
    assert trains.num_rows == offered
    assert trains.column_names == ["location", "temperature", "humidity", "ts", "_arrived_at_s"]


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
