"""On a version of Spark that cannot run plans in the driver, every query is answered by jobs."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from independent import Rows, committed_rows
from kit.batch import batch_session
from kit.gates import balanced, consume_each
from pyspark.sql import SparkSession
from two_streams import gate_over, in_time, plain, rows_of, write

from headgate import Headgate, Query, View
from headgate.model.events import StepFinished
from headgate.spark.jvm import java_classes
from headgate.spark.jvm.arrow_frames import collected
from headgate.spark.jvm.lane import compatibility
from headgate.spark.jvm.lane.plan_runner import PlanRunner

pytestmark = pytest.mark.spark

LEFTS, RIGHTS = rows_of(11, 90), rows_of(12, 70)
OVER = "[RANGE 10 SECONDS SLIDE 5 SECONDS]"
WIDER = "[RANGE 20 SECONDS SLIDE 5 SECONDS]"
NEAR = "a.ts >= b.ts - INTERVAL 6 SECONDS AND b.ts >= a.ts - INTERVAL 2 SECONDS"
PAIRS = "FROM lefts [RANGE 6 SECONDS] a {} JOIN rights [RANGE 2 SECONDS] b ON a.k = b.k"
SELECTION = "SELECT k, v FROM lefts WHERE v > 10"
QUERIES = {
    "selection": (SELECTION, "SELECT k, v FROM all_lefts WHERE v > 10"),
    "equal": (f"{SELECTION} ", "SELECT k, v FROM all_lefts WHERE v > 10"),
    "masked": (
        "SELECT v * 2 AS d FROM lefts WHERE v < 5",
        "SELECT v * 2 FROM all_lefts WHERE v < 5",
    ),
    "whole": (
        "SELECT k, explode(array(v, v + 1)) AS x FROM lefts",
        "SELECT k, explode(array(v, v + 1)) FROM all_lefts",
    ),
    "panes": (
        f"SELECT k, sum(v) AS n FROM lefts {OVER} GROUP BY k",
        "SELECT k, sum(v) FROM {lefts_10} GROUP BY k, e",
    ),
    "same_panes": (
        f"SELECT k, sum(v) AS n, window.end AS e FROM lefts {WIDER} GROUP BY k",
        "SELECT k, sum(v), e FROM {lefts_20} GROUP BY k, e",
    ),
    "window_function": (
        "SELECT window.start AS s, k, count(*) AS n FROM lefts"
        " GROUP BY window(ts, '10 seconds', '5 seconds'), k",
        "SELECT e - INTERVAL 10 SECONDS, k, count(*) FROM {lefts_10} GROUP BY k, e",
    ),
    "empty_windows": (
        f"SELECT count(*) AS n, window.end AS e FROM lefts {OVER} WHERE v > 18",
        "SELECT count_if(v > 18), e FROM {lefts_10} GROUP BY e",
    ),
    "ranked": (
        f"SELECT k, v FROM lefts {OVER} ORDER BY v DESC, k, ts LIMIT 2",
        "SELECT k, v FROM {lefts_10}"
        " QUALIFY row_number() OVER (PARTITION BY e ORDER BY v DESC, k, ts) <= 2",
    ),
    "join": (
        f"SELECT a.k, a.v AS x, b.v AS y {PAIRS.format('')}",
        f"SELECT a.k, a.v, b.v FROM lefts a JOIN rights b ON a.k = b.k AND {NEAR}",
    ),
    "outer_join": (
        f"SELECT a.k, a.v AS x, b.v AS y {PAIRS.format('LEFT')}",
        f"SELECT a.k, a.v, b.v FROM lefts a LEFT JOIN rights b ON a.k = b.k AND {NEAR}"
        " WHERE b.ts IS NOT NULL OR a.ts + INTERVAL 6 SECONDS < {both}",
    ),
    "session": (
        "SELECT k, count(*) AS n FROM lefts GROUP BY k, session_window(ts, '2 seconds')",
        "SELECT k, n FROM (SELECT k, n, last, count(*) OVER () AS barrier FROM (SELECT k, count(*)"
        " AS n, session_window.end AS last FROM lefts GROUP BY k, session_window(ts, '2 seconds')))"
        " WHERE last < {left} AND barrier > 0",
    ),
    "union": (
        "SELECT k, v FROM lefts UNION ALL SELECT k, v + 100 FROM rights",
        "SELECT k, v FROM lefts WHERE ts < {both}"
        " UNION ALL SELECT k, v + 100 FROM rights WHERE ts < {both}",
    ),
    "in_table": (
        "SELECT k, v FROM lefts WHERE k IN (SELECT k FROM known_places)",
        "SELECT k, v FROM all_lefts WHERE k IN ('a', 'c')",
    ),
    "subquery": (
        f"SELECT k, v FROM lefts {OVER} WHERE v > (SELECT avg(v) FROM rights {OVER})",
        "SELECT a.k, a.v FROM {lefts_10_of_both} a JOIN (SELECT e, avg(v) AS m FROM"
        " {rights_10_of_both} GROUP BY e) b ON a.e = b.e WHERE a.v > b.m",
    ),
    "of_view": (
        "SELECT k, w + 1 AS x FROM large WHERE w < 30",
        "SELECT k, v * 2 + 1 FROM all_lefts WHERE v > 4 AND v * 2 < 30",
    ),
}  # fmt: skip
"""Queries, and equivalent queries for Spark in batch; `{lefts_10}` has the rows of closed windows
of 10 seconds."""

CONSTANTS = {
    f"constant_{n}": (
        f"SELECT k, v, ts FROM lefts WHERE v = {n} AND k = 'a'",
        f"SELECT k, v, ts FROM all_lefts WHERE v = {n} AND k = 'a'",
    )
    for n in range(24)
}
CUT = (
    "SELECT upper(k) AS u FROM lefts WHERE v > 3 AND length(k) > 0",
    "SELECT upper(k) FROM all_lefts WHERE v > 3 AND length(k) > 0",
)
ALL = {**QUERIES, **CONSTANTS, "cut": CUT}
NOT_TWICE = {"equal", "whole", "same_panes", "window_function", *CONSTANTS}
OF_EVERY_KIND = [name for name in ALL if name not in NOT_TWICE]
"""Queries that take every way through the engine that has a lane of its own."""

WHY = "this version of Spark does not run plans in the driver as expected"


@pytest.fixture
def other_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the driver lane's Java code use a class that this version of Spark does not have."""
    source = java_classes._source

    def changed(package: str, names: Any, imports: Any) -> str:
        return source(package, names, imports).replace("ShuffledHashJoinExec", "RenamedJoinExec")

    first_units = {key: unit for key, unit in java_classes._LOADERS.items() if key[1] == 0}
    monkeypatch.setattr(java_classes, "_LOADERS", first_units)
    monkeypatch.setattr(java_classes, "_source", changed)
    monkeypatch.setattr(compatibility, "_WORKS", {})


def test_a_spark_that_the_driver_lane_does_not_fit_answers_everything_by_jobs(
    spark: SparkSession,
    tmp_path: Path,
    expected: Mapping[str, Rows],
    other_spark: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate = _gate(spark, tmp_path, ALL)
    lanes: Counter[str] = Counter()
    gate.start(listeners=[lambda event: lanes.update(_lane(event))])
    _consume(gate)
    explained = {name: gate.explanation(name) for name in ALL}
    report = gate.stop()
    assert report is not None
    assert not report.errors
    assert set(lanes) == {"job"}
    assert [WHY in record.message for record in _warnings(caplog)] == [True]
    assert "RenamedJoinExec" in caplog.text
    assert "24 queries that differ in constants alone" in str(explained["constant_3"].shape)
    assert "mask" in str(explained["masked"].shape)
    _check(tmp_path, ALL, expected)
    balanced(gate)


def test_a_lane_that_fails_in_the_middle_of_a_run_blames_no_query(
    spark: SparkSession,
    tmp_path: Path,
    expected: Mapping[str, Rows],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Run the first 20 calls in the driver lane; from then on, the lane fails."""
    calls, run = Counter[str](), PlanRunner._run
    runners: dict[int, int] = {}

    def fails(self: PlanRunner, inputs: Any, folder: Path, tag: str) -> pa.Table:
        calls["all"] += 1
        if calls["all"] <= 20:
            return run(self, inputs, folder, tag)
        # Two kinds of real errors that no query can cause, each for every second plan.
        calls["failed"] += 1
        if runners.setdefault(id(self), len(runners)) % 2:
            self._java.method_that_was_renamed(tag)
        self._java.run(f"{tag}\n0\n/no/such/folder/output\n/no/such/folder/input")
        raise AssertionError("these calls fail")

    monkeypatch.setattr(PlanRunner, "_run", fails)
    gate = _gate(spark, tmp_path, OF_EVERY_KIND, train_tuples=20)
    lanes: list[str] = []
    gate.start(listeners=[lambda event: lanes.extend(_lane(event))])
    _consume(gate)
    report = gate.stop()
    assert report is not None
    assert not report.errors
    assert {lanes[0], lanes[-1]} == {"driver", "job"}
    assert calls["failed"] > 5
    assert "as jobs from now on, the driver lane failed" in caplog.text
    assert "method_that_was_renamed" in caplog.text
    assert "No such file or directory" in caplog.text
    _check(tmp_path, OF_EVERY_KIND, expected)
    balanced(gate)


def _gate(spark: SparkSession, folder: Path, names: Iterable[str], **more: Any) -> Headgate:
    write(folder / "left", LEFTS, 3)
    write(folder / "right", RIGHTS, 2)
    spark.sql("SELECT * FROM VALUES ('a'), ('c') AS p(k)").createOrReplaceTempView("known_places")
    gate = gate_over(spark, folder, {}, policy="rr", **more)
    gate.add_view(View(name="large", sql="SELECT k, v * 2 AS w FROM lefts WHERE v > 4"))
    for name in names:
        text, _ = ALL[name]
        gate.add_query(Query(name=name, sql=text, query_class="H", cut=name == "cut"))
    return gate


def _lane(event: object) -> list[str]:
    return [event.lane] if isinstance(event, StepFinished) else []


def _consume(gate: Headgate) -> None:
    consume_each(gate, {"selection": len(LEFTS), "join": len(LEFTS) + len(RIGHTS)})
    assert gate.drain(120)


def _warnings(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.fixture(scope="module")
def expected(spark: SparkSession) -> Mapping[str, Rows]:
    """Return the answer of Spark in batch to every query."""
    with batch_session(spark) as batch:
        return _answers(batch)


def _answers(batch: SparkSession) -> Mapping[str, Rows]:
    (left_rows, left), (right_rows, right) = in_time(LEFTS), in_time(RIGHTS)
    both = min(left, right)
    relations = {"all_lefts": LEFTS, "lefts": left_rows, "rights": right_rows}
    for name, rows in relations.items():
        columns = {"k": pa.string(), "v": pa.int32(), "ts": pa.timestamp("us", "UTC")}
        arrays = [
            pa.array([row[n] for row in rows], columns[name]) for n, name in enumerate(columns)
        ]
        batch.createDataFrame(pa.table(arrays, list(columns))).createOrReplaceTempView(name)
    places = {
        "left": _literal(left),
        "both": _literal(both),
        "lefts_10": _windows("lefts", 10, left),
        "lefts_20": _windows("lefts", 20, left),
        "lefts_10_of_both": _windows("lefts", 10, both),
        "rights_10_of_both": _windows("rights", 10, both),
    }
    answers: dict[str, Rows] = {}
    for name, (_, oracle) in ALL.items():
        table = collected(batch.sql(oracle.format(**places)))
        values = zip(*(column.to_pylist() for column in table.columns), strict=True)
        answers[name] = Counter(tuple(plain(value) for value in row) for row in values)
        assert answers[name] or name in CONSTANTS, name
    return answers


def _check(folder: Path, names: Iterable[str], expected: Mapping[str, Rows]) -> None:
    for name in names:
        rows = committed_rows(folder / "state" / "results" / name)
        assert rows == expected[name], (name, rows - expected[name], expected[name] - rows)


def _literal(time: datetime) -> str:
    return f"TIMESTAMP'{time.isoformat()}'"


def _windows(relation: str, size_s: int, upto: datetime) -> str:
    """Return a relation that has a row once for each closed window, every 5 s, that contains it.

    The column `e` is the end of the window.
    """
    first = "timestamp_micros(unix_micros(ts) - pmod(unix_micros(ts), 5000000) + 5000000)"
    last = f"{first} + INTERVAL {size_s - 5} SECONDS"
    ends = f"explode(sequence({first}, {last}, INTERVAL 5 SECONDS))"
    return f"(SELECT * FROM (SELECT *, {ends} AS e FROM {relation}) WHERE e <= {_literal(upto)})"
