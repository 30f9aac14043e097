"""A session is output once, as in Spark's batch answer, when no tuple can extend it any more."""

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from crash import CrashAt
from independent import committed_rows
from kit.batch import batch_session
from kit.engines import engine_of
from kit.gates import consume, consume_streams, stop_without_errors, until
from pyspark.sql import SparkSession
from two_streams import BASE, Row, gate_over, in_time, rows_of, write

from headgate import Query
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
    with batch_session(spark) as session:
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


ARRIVALS = [
    ("a", 4), ("a", 6), ("b", 12), ("a", 8), ("a", 13), ("a", 15.000001), ("a", 34), ("c", 70),
]  # fmt: skip
"""Places and times of tuples just the gap of 2 s apart. The lateness is 4 s: after "b" the
watermark is exactly the end of the session of the first two tuples, which can still grow."""

EDGES: list[Row] = [
    (place, number, BASE + timedelta(seconds=time_s))
    for number, (place, time_s) in enumerate(ARRIVALS)
]
OF_EDGES = {
    "gap": TEXTS["by_place"].replace("lefts", "rights"),
    "in_window": "SELECT k, count(*) AS n FROM rights [RANGE 1 MINUTE]"
    " GROUP BY k, session_window(ts, '2 seconds')",
    "python": "SELECT is_odd(v) AS odd, count(*) AS n FROM rights"
    " GROUP BY is_odd(v), session_window(ts, '1 second')",
}


@pytest.mark.parametrize(
    ("train_tuples", "lane"),
    [(1, "driver"), pytest.param(1000, "driver", marks=pytest.mark.long), (1000, "job")],
)
def test_sessions_that_have_ended(
    spark: SparkSession, tmp_path: Path, train_tuples: int, lane: str
) -> None:
    """Include sessions inside a window, and a function that only a Python worker can compute."""
    spark.udf.register("is_odd", lambda value: value % 2 == 1, "boolean")
    rows = rows_of(11, 150)
    write(tmp_path / "left", rows, 8)
    write(tmp_path / "right", EDGES, len(EDGES))
    texts = TEXTS | OF_EDGES
    gate = gate_over(spark, tmp_path, texts, train_tuples=train_tuples, retention_s=0, lane=lane)
    gate.start()
    consume_streams(gate, texts, {"lefts": len(rows), "rights": len(EDGES)})
    lanes = {name: (gate.explanation(name).lane or "").split(":")[0] for name in texts}
    assert lanes == dict.fromkeys(texts, lane) | {"python": "job"}
    assert "sessions that have ended" in (gate.explanation("alone").lane or "")
    stop_without_errors(gate)
    check(spark, tmp_path, rows)
    results = {name: committed_rows(tmp_path / "state" / "results" / name) for name in OF_EDGES}
    assert results["gap"] == batch(spark, EDGES, TEXTS["by_place"], 2)
    counts = Counter(row[:2] for row in results["gap"].elements())
    assert counts == Counter({("a", 1): 3, ("a", 3): 1, ("b", 1): 1})
    assert results["in_window"] == counts
    assert results["python"] == Counter({(False, 1): 2, (False, 2): 1, (True, 1): 3})


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
    stop_without_errors(second)
    check(spark, tmp_path, rows)


def test_the_log_keeps_what_open_sessions_need(spark: SparkSession, tmp_path: Path) -> None:
    """Use a stream that is never quiet, but in which each place is quiet after a minute."""
    rows: list[Row] = [("abc"[n // 60], n, BASE + timedelta(seconds=n)) for n in range(180)]
    write(tmp_path / "left", rows, 15)
    texts = {name: TEXTS[name] for name in ("by_place", "having")}
    texts["twin"] = TEXTS["by_place"]  # in the same class, so that both share one answer
    gate = gate_over(spark, tmp_path, texts, train_tuples=12, retention_s=0)
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
    assert 5 <= timeline.held("lefts") <= 10, "the session of c begins with train 10"


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
