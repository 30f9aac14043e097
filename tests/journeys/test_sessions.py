"""A session is output once, as in Spark's batch answer, when no tuple can extend it any more."""

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from crash import CrashAt
from independent import committed_rows
from kit.engines import engine_of
from pyspark.sql import SparkSession
from sources import balanced, consume, until
from two_streams import BASE, Row, gate_over, in_time, rows_of, write

from headgate import Headgate, Query, Stream
from headgate.errors import QueryRefused

pytestmark = pytest.mark.spark

TEXTS = {
    "by_place": "SELECT k, count(*) AS n, sum(v) AS t, session_window.start AS s,"
    " session_window.end AS e FROM lefts GROUP BY k, session_window(ts, '2 seconds')",
    "having": "SELECT k, avg(v) AS mean FROM lefts WHERE v > 4"
    " GROUP BY session_window(ts, '1500 milliseconds'), k HAVING count(*) > 1",
    "alone": "SELECT session_window.end AS e, count(DISTINCT k) AS n FROM lefts"
    " GROUP BY session_window(lefts.ts, '500 milliseconds')",
}


def batch(spark: SparkSession, rows: list[Row], sql: str, gap_s: float) -> Counter[tuple[Any, ...]]:
    """Return Spark's batch answer over the rows that are not late, for sessions that have ended."""
    punctual, mark = in_time(rows)
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    frame = session.createDataFrame(punctual, "k STRING, v INT, ts TIMESTAMP")
    frame.createOrReplaceTempView("lefts")
    answer = session.sql(sql.replace(" FROM", ", unix_micros(max(ts)) AS latest FROM", 1))
    table = answer.toArrow()
    answer_rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return Counter(
        tuple(value.timestamp() if hasattr(value, "timestamp") else value for value in row[:-1])
        for row in answer_rows
        if row[-1] / 1e6 + gap_s < mark.timestamp()
    )


def check(spark: SparkSession, folder: Path, rows: list[Row]) -> None:
    for (name, sql), gap_s in zip(TEXTS.items(), (2, 1.5, 0.5), strict=True):
        results = committed_rows(folder / "state" / "results" / name)
        assert results == batch(spark, rows, sql, gap_s), name
        assert results, name


@pytest.mark.parametrize(
    ("train_tuples", "lane"),
    [(1, "driver"), pytest.param(1000, "driver", marks=pytest.mark.long), (1000, "job")],
)
def test_sessions_that_have_ended(
    spark: SparkSession, tmp_path: Path, train_tuples: int, lane: str
) -> None:
    rows = rows_of(11, 150)
    write(tmp_path / "left", rows, 8)
    gate = gate_over(spark, tmp_path, TEXTS, train_tuples=train_tuples, retention_s=0, lane=lane)
    gate.start()
    consume(gate, len(rows))
    lanes = {name: (gate.explanation(name).lane or "").split(":")[0] for name in TEXTS}
    assert lanes == dict.fromkeys(TEXTS, lane)
    assert "sessions that have ended" in (gate.explanation("alone").lane or "")
    report = gate.stop()
    assert report is not None
    assert not report.errors
    check(spark, tmp_path, rows)
    balanced(gate)


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("results written", marks=pytest.mark.long),
        "step journalled",
        pytest.param("train journalled", marks=pytest.mark.long),
    ],
)
def test_a_crash_changes_no_session(spark: SparkSession, tmp_path: Path, point: str) -> None:
    rows = rows_of(12, 150)
    write(tmp_path / "left", rows, 8)
    crash = CrashAt(point, 3)
    more: dict[str, Any] = {"workers": 1, "train_tuples": 20, "retention_s": 0}
    first = gate_over(spark, tmp_path, TEXTS, reached=crash, **more)
    first.start()
    until(crash.dead.is_set, first)
    first.stop()
    second = gate_over(spark, tmp_path, TEXTS, **more)
    second.start()
    consume(second, len(rows))
    second.stop()
    check(spark, tmp_path, rows)
    balanced(second)


def test_tuples_just_the_gap_apart_are_of_one_session(spark: SparkSession, tmp_path: Path) -> None:
    # The lateness is 4 s and the gap is 2 s: after "b" the watermark is exactly the end of the
    # session of the first two tuples, where another tuple can still join it.
    arrivals = [("a", 4), ("a", 6), ("b", 12), ("a", 8), ("a", 13), ("a", 15.000001), ("a", 34)]
    rows: list[Row] = [(k, 1, BASE + timedelta(seconds=time_s)) for k, time_s in arrivals]
    write(tmp_path / "left", rows, len(rows))
    gate = gate_over(spark, tmp_path, {"by_place": TEXTS["by_place"]}, train_tuples=1)
    gate.start()
    consume(gate, len(rows))
    gate.stop()
    results = committed_rows(tmp_path / "state" / "results" / "by_place")
    assert results == batch(spark, rows, TEXTS["by_place"], 2)
    assert sorted(row[:2] for row in results) == [("a", 1), ("a", 1), ("a", 3), ("b", 1)]


def test_the_log_keeps_what_open_sessions_need(spark: SparkSession, tmp_path: Path) -> None:
    """Use a stream that is never quiet, but in which each place is quiet after a minute."""
    rows: list[Row] = [("abc"[n // 60], n, BASE + timedelta(seconds=n)) for n in range(180)]
    write(tmp_path / "left", rows, 30)
    texts = {name: TEXTS[name] for name in ("by_place", "having")}
    texts["twin"] = TEXTS["by_place"]  # in the same class, so that both share one answer
    gate = gate_over(spark, tmp_path, texts, train_tuples=6, retention_s=0)
    gate.start()
    consume(gate, len(rows))
    timeline = engine_of(gate).parts.store.timelines["lefts__time"]
    for name in texts:
        results = committed_rows(tmp_path / "state" / "results" / name)
        gap_s = 1.5 if name == "having" else 2
        assert results == batch(spark, rows, texts[name], gap_s), name
        assert results, name
    gate.drop_query("twin")
    assert set(timeline.open_sessions.queries) == {"by_place", "having"}
    gate.stop()
    assert 10 <= timeline.held("lefts") <= 20, "the session of c begins with train 20"


def test_a_quiet_stream_ends_its_sessions(spark: SparkSession, tmp_path: Path) -> None:
    rows: list[Row] = [("a", 1, BASE), ("b", 2, BASE + timedelta(seconds=1))]
    write(tmp_path / "left", rows, 1)
    gate = Headgate(spark, state=tmp_path / "state", rehearsal_s=0)
    gate.add_stream(
        Stream(
            name="lefts", format="parquet", schema="k STRING, v INT, ts TIMESTAMP",
            event_time="ts", quiet_s=0.2, options={"path": str(tmp_path / "left")},
        )
    )  # fmt: skip
    sql = "SELECT k, count(*) AS n FROM lefts GROUP BY k, session_window(ts, '1 second')"
    gate.add_query(Query(name="q", sql=sql, query_class="default"))
    gate.start()
    until(lambda: gate.totals()["q"][1] == 2, gate)
    gate.stop()
    results = committed_rows(tmp_path / "state" / "results" / "q")
    assert results == Counter({("a", 1): 1, ("b", 1): 1})


@pytest.mark.parametrize("lane", ["driver", pytest.param("job", marks=pytest.mark.long)])
def test_sessions_inside_a_window_are_merged(
    spark: SparkSession, tmp_path: Path, lane: str
) -> None:
    rows: list[Row] = [("a", 1, BASE + timedelta(seconds=time_s)) for time_s in (0, 1, 2, 9, 70)]
    write(tmp_path / "left", rows, 1)
    sql = "SELECT k, count(*) AS n FROM lefts [RANGE 1 MINUTE]" \
        " GROUP BY k, session_window(ts, '2 seconds')"  # fmt: skip
    gate = gate_over(spark, tmp_path, {"q": sql}, lane=lane)
    gate.start()
    consume(gate, len(rows))
    assert (gate.explanation("q").lane or "").startswith(lane)
    gate.stop()
    results = committed_rows(tmp_path / "state" / "results" / "q")
    assert results == Counter({("a", 3): 1, ("a", 1): 1})


def test_a_function_of_python_makes_keys_of_sessions(spark: SparkSession, tmp_path: Path) -> None:
    spark.udf.register("is_odd", lambda value: value % 2 == 1, "boolean")
    rows = rows_of(13, 60)
    write(tmp_path / "left", rows, 3)
    sql = "SELECT {0} AS odd, count(*) AS n FROM lefts GROUP BY {0}, session_window(ts, '1 second')"
    gate = gate_over(spark, tmp_path, {"q": sql.format("is_odd(v)")})
    gate.start()
    consume(gate, len(rows))
    assert (gate.explanation("q").lane or "").startswith("job")
    gate.stop()
    results = committed_rows(tmp_path / "state" / "results" / "q")
    assert results == batch(spark, rows, sql.format("(v % 2 = 1)"), 1)
    assert results


REFUSED = {
    "SELECT k, count(*) AS n FROM lefts GROUP BY k, session_window(ts, '2 seconds') ORDER BY n":
        "ORDER BY cannot be used on sessions",
    "SELECT count(*) AS n FROM lefts GROUP BY k, session_window(ts, '2 seconds') LIMIT 3":
        "LIMIT cannot be used on sessions",
    "SELECT DISTINCT count(*) AS n FROM lefts GROUP BY k, session_window(ts, '2 seconds')":
        "DISTINCT cannot be used on sessions",
    "SELECT count(*) AS n FROM lefts GROUP BY ROLLUP (k), session_window(ts, '2 seconds')":
        "Expand cannot be used on sessions",
    "SELECT count(*) AS n, rank() OVER (ORDER BY k) AS r FROM lefts"
    " GROUP BY k, session_window(ts, '2 seconds')": "OVER cannot be used on sessions",
    "SELECT nobody, count(*) AS n FROM lefts GROUP BY nobody, session_window(ts, '2 seconds')":
        "column `nobody` does not exist",
    "SELECT count(*) AS n, current_date() AS d FROM lefts"
    " GROUP BY session_window(ts, '2 seconds')": "CurrentDate",
    "SELECT count(*) AS n FROM lefts GROUP BY session_window(ts, concat(v, ' seconds'))":
        "has no gap that is the same for all tuples",
    "SELECT session_window(ts, '2 seconds') AS w FROM lefts":
        "line 1: session_window() does not stand by itself in GROUP BY",
    "SELECT session_window(ts, '2 seconds') AS w FROM lefts ORDER BY w":
        "session_window() does not stand by itself in GROUP BY",
}  # fmt: skip


def test_refusals_say_what_sessions_cannot_do(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "left", rows_of(1, 5), 1)
    gate = gate_over(spark, tmp_path, {})
    messages = {}
    for sql in REFUSED:
        with pytest.raises(QueryRefused) as refused:
            gate.add_query(Query(name="q", sql=sql, query_class="N"))
        messages[sql] = str(refused.value)
    wrong = {
        sql: text for sql, text in messages.items() if REFUSED[sql] not in text or "__hg" in text
    }
    assert not wrong
    with pytest.raises(QueryRefused, match="apply is not possible after session_window"):
        gate.add_query(
            Query(name="q", sql=TEXTS["alone"], query_class="N", apply=lambda frame: frame)
        )
