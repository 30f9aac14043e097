"""Windows answer as the same SQL does over the rows that are not late."""

import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from crash import CrashAt
from independent import committed_rows
from kit.batch import batch_session
from kit.engines import engine_of, names_of
from kit.gates import consume, new_gate, stop_without_errors, until
from kit.streams import file_stream
from pyspark.sql import SparkSession
from two_streams import (
    BASE,
    LATENESS_S,
    SCHEMA,
    Row,
    answer,
    gate_over,
    in_time,
    rows_of,
    windows,
    write,
)

from headgate import Query
from headgate.errors import RecoveryRefused
from headgate.model.events import StepFinished
from headgate.spark.jvm.arrow_frames import collected

pytestmark = pytest.mark.spark

AGGREGATES = {
    "sliding": (
        "SELECT k, count(*) AS n, sum(v) AS total, window.end AS e FROM lefts"
        " [RANGE 20 SECONDS SLIDE 5 SECONDS] WHERE v > 2 GROUP BY k HAVING count(*) > 1",
        "SELECT k, count(*), sum(v)::BIGINT, e FROM {20,5} WHERE v > 2 GROUP BY k, e"
        " HAVING count(*) > 1",
    ),
    "tumbling": (
        "SELECT count(*) AS n, max(v) AS top, min(ts) AS first FROM lefts [RANGE 10 SECONDS]",
        "SELECT count(*), max(v), min(ts) FROM {10,10} GROUP BY e",
    ),
    "spark": (
        "SELECT window.start AS s, k, avg(v) AS mean FROM lefts"
        " GROUP BY window(ts, '30 seconds', '10 seconds'), k",
        "SELECT e - INTERVAL 30 SECOND, k, avg(v) FROM {30,10} GROUP BY k, e",
    ),
    "distinct": (
        "SELECT DISTINCT k FROM lefts [RANGE 10 SECONDS SLIDE 10 SECONDS]",
        "SELECT k FROM (SELECT DISTINCT k, e FROM {10,10})",
    ),
    "best": (
        "SELECT v, k FROM lefts [RANGE 20 SECONDS SLIDE 10 SECONDS] WHERE k IS NOT NULL"
        " ORDER BY v DESC, k, ts LIMIT 2",
        "SELECT v, k FROM (SELECT *, row_number() OVER (PARTITION BY e ORDER BY v DESC, k, ts) AS p"
        " FROM {20,10} WHERE k IS NOT NULL) WHERE p <= 2",
    ),
    "around": (
        "SELECT window.start AS s, count(*) AS n, (SELECT count(*) FROM lefts"
        " [RANGE 20 SECONDS SLIDE 10 SECONDS]) AS m FROM lefts [RANGE 10 SECONDS SLIDE 10 SECONDS]",
        "SELECT b.e - INTERVAL 10 SECOND, coalesce(n, 0), m FROM (SELECT e, count(*) AS m"
        " FROM {20,10} GROUP BY e) b LEFT JOIN (SELECT e, count(*) AS n FROM {10,10} GROUP BY e) a"
        " ON a.e = b.e",
    ),
    "median": (
        "WITH lefts AS (SELECT * FROM lefts [RANGE 20 SECONDS] WHERE v > 5)"
        " SELECT k, percentile(v, 0.5) AS m FROM lefts GROUP BY k",
        "SELECT k, quantile_cont(v, 0.5) FROM {20,20} WHERE v > 5 GROUP BY k, e",
    ),
}


def _expected(sql: str, rows: list[Row]) -> Counter[tuple[Any, ...]]:
    punctual, upto = in_time(rows)
    for size, slide in ((20, 5), (10, 10), (30, 10), (20, 10), (20, 20)):
        sql = sql.replace(f"{{{size},{slide}}}", windows(size, slide, upto))
    return answer(sql, lefts=punctual)


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[list[Row]]:
    rows = rows_of(7, 150)
    write(tmp_path / "left", rows, 6)
    return rows


@pytest.mark.parametrize(
    ("policy", "train_tuples", "lane"),
    [
        ("cqc", 1, "driver"),
        ("edf", 1000, "job"),
        pytest.param("edf", 1, "driver", marks=pytest.mark.long),
        pytest.param("cqc", 1000, "driver", marks=pytest.mark.long),
        pytest.param("cqc", 1, "job", marks=pytest.mark.long),
    ],
)
def test_windows_that_have_closed(
    spark: SparkSession, tmp_path: Path, rows: list[Row], policy: str, train_tuples: int, lane: str
) -> None:
    texts = {name: sql for name, (sql, _) in AGGREGATES.items()}
    gate = gate_over(spark, tmp_path, texts, policy=policy, train_tuples=train_tuples, lane=lane)
    gate.start()
    consume(gate, len(rows))
    lanes = {name: gate.explanation(name).lane or "" for name in texts}
    assert lanes["sliding"].startswith(f"{lane}: all closed windows at once")
    assert lanes["best"].startswith(f"{lane}: closed windows, one after the other")
    stop_without_errors(gate)
    for name, (_, sql) in AGGREGATES.items():
        results = committed_rows(tmp_path / "state" / "results" / name)
        assert results == _expected(sql, rows), name
        assert results, name
    punctual, _ = in_time(rows)
    timeless = sum(row[2] is None for row in rows)
    account = gate.accounts()["sliding"]
    assert account.late == len(rows) - len(punctual) - timeless > 0
    assert account.delivered == len(punctual)


def test_a_start_in_the_middle_of_windows_keeps_the_lateness(
    spark: SparkSession, tmp_path: Path, rows: list[Row]
) -> None:
    texts = {"tumbling": AGGREGATES["tumbling"][0]}
    gate = gate_over(spark, tmp_path, texts)
    gate.start()
    consume(gate, len(rows))
    stop_without_errors(gate)
    stream = file_stream("lefts", tmp_path / "left", SCHEMA, lateness_s=LATENESS_S + 30)
    queries = [Query(name="tumbling", sql=texts["tumbling"], query_class="H")]
    # With it, windows that were put out would close again.
    other = new_gate(spark, tmp_path, [stream], queries, classes={"H": 6})
    with pytest.raises(RecoveryRefused, match="'lefts': expected event_time: ts and lateness_s: 4"):
        other.start()


def test_windows_of_many_sizes_share_their_panes_until_their_query_is_dropped(
    spark: SparkSession, tmp_path: Path, rows: list[Row]
) -> None:
    sizes = [(20, 5), (10, 10), (30, 10), (6, 4), (3, 6)]
    aggregates = "count(*) AS n, sum(v) AS s, avg(v) AS m, min(v) AS low, max(ts) AS last"
    texts = {
        f"w{size}_{slide}": f"SELECT k, {aggregates} FROM lefts [RANGE {size} SECONDS"
        f" SLIDE {slide} SECONDS] WHERE v > 2 GROUP BY k HAVING sum(v) > 3"
        for size, slide in sizes
    }
    only = "WHERE v % 3 = 1 GROUP BY k"
    texts |= {
        "most": f"SELECT k, max(v) AS most FROM lefts [RANGE 10 SECONDS] {only}",
        "dropped": f"SELECT 1 FROM lefts [RANGE 10 SECONDS] {only}",
        "many": f"SELECT k, count(*) AS n FROM lefts [RANGE 20 SECONDS SLIDE 5 SECONDS] {only}",
    }
    gate = gate_over(spark, tmp_path, texts, train_tuples=30)
    calls = Counter[frozenset[str]]()

    def hear(event: object) -> None:
        if isinstance(event, StepFinished):
            calls[frozenset(names_of(gate, event.call))] += 1

    gate.start(listeners=[hear])
    consume(gate, len(rows))
    # After each was probed alone, the queries of a class run together, whatever their windows.
    for pair in ({"w20_5", "w30_10"}, {"w10_10", "w6_4"}):
        assert any(pair <= members for members in calls), calls
    windowed = engine_of(gate).parts.executor.windowed
    panes = windowed.panes
    assert windowed.memory_bytes > 0
    windowed.spare_memory()
    assert windowed.memory_bytes == 0
    # The queries of many sizes share one pane per class, the other three have their own.
    widths_s = sorted(shared.width // 1_000_000 for shared in panes.values())
    assert widths_s == [1, 2, 5, 10, 10]
    gate.drop_query("dropped")
    assert len(windowed.panes) == 4
    gate.stop()
    punctual, upto = in_time(rows)
    for (size, slide), name in zip(sizes, texts, strict=False):
        results = committed_rows(tmp_path / "state" / "results" / name)
        assert results == answer(
            "SELECT k, count(*), sum(v)::BIGINT, avg(v), min(v), max(ts) FROM"
            f" {windows(size, slide, upto)} WHERE v > 2 GROUP BY k, e HAVING sum(v) > 3",
            lefts=punctual,
        ), name
        assert results
    for name, (size, slide, aggregate) in {
        "most": (10, 10, "max(v)"), "many": (20, 5, "count(*)"),
    }.items():  # fmt: skip
        results = committed_rows(tmp_path / "state" / "results" / name)
        assert results == answer(
            f"SELECT k, {aggregate} FROM {windows(size, slide, upto)} WHERE v % 3 = 1"
            " GROUP BY k, e",
            lefts=punctual,
        ), name
        assert results


OF_FUNCTION = {
    "tens": "SELECT window.start AS s, k, sum(v) AS t, count(*) AS n FROM lefts WHERE v > 2"
    " GROUP BY window(ts, '10 seconds'), k",
    "sliding": "SELECT k AS place, sum(v) + count(*) AS t, window.end AS e FROM lefts WHERE v > 2"
    " GROUP BY window(ts, '30 seconds', '10 seconds'), k",
    "with_offset": "SELECT window, k, sum(v) AS t, count(*) AS n FROM lefts WHERE v > 2"
    " GROUP BY window(ts, '9 seconds', '3 seconds', '2 seconds'), k HAVING sum(v) > 7",
    "of_subquery": "SELECT w.start AS s, max(v) AS most FROM"
    " (SELECT window(ts, '8 seconds') AS w, v FROM lefts WHERE k <> 'b') GROUP BY w",
    "computes": "SELECT k, count(*) AS n FROM"
    " (SELECT window(ts, '8 seconds') AS w, k, ts FROM lefts)"
    " WHERE ts < w.start + INTERVAL 3 SECONDS GROUP BY w, k",
    "aggregates": "SELECT k, max(window.start) AS s, max(v) AS most FROM lefts"
    " GROUP BY window(ts, '8 seconds'), k",
}


def test_window_functions_of_many_sizes_share_their_panes_where_nothing_is_computed_from_them(
    spark: SparkSession, tmp_path: Path, rows: list[Row]
) -> None:
    gate = gate_over(spark, tmp_path, OF_FUNCTION, train_tuples=30, share="all")
    gate.start()
    consume(gate, len(rows))
    windowed = engine_of(gate).parts.executor.windowed
    with_panes = {name: windowed.with_panes_of(name) for name in OF_FUNCTION}
    stop_without_errors(gate)
    alike = ["sliding", "tens", "with_offset"]
    assert with_panes == {
        **dict.fromkeys(alike, alike),
        "of_subquery": ["of_subquery"],
        "computes": [],
        "aggregates": [],
    }
    punctual, upto = in_time(rows)
    with batch_session(spark) as batch:
        frame = batch.createDataFrame(punctual, SCHEMA)
        for name, sql in OF_FUNCTION.items():
            window = "w" if " AS w," in sql else "window"
            closed = f"{window}.end <= TIMESTAMP'{upto.isoformat()}'"
            text = f"{sql} AND {closed}" if "HAVING" in sql else f"{sql} HAVING {closed}"
            table = collected(batch.sql(text.replace("FROM lefts", "FROM {lefts}"), lefts=frame))
            results = pq.read_table(tmp_path / "state" / "results" / name)
            answers, expected = (Counter(map(str, rows.to_pylist())) for rows in (results, table))
            assert answers == expected, name
            assert answers, name


def test_crashes_change_nothing(spark: SparkSession, tmp_path: Path, rows: list[Row]) -> None:
    texts = {name: AGGREGATES[name][0] for name in ("sliding", "best")}
    for point in ("train journalled", "results written", "step journalled"):
        crash = CrashAt(point, 1)
        # A step takes no more than one train, so that there are steps left for every crash.
        gate = gate_over(spark, tmp_path, texts, workers=1, train_tuples=20, reached=crash)
        gate.start()
        until(crash.dead.is_set, gate)
        gate.stop()
    gate = gate_over(spark, tmp_path, texts)
    gate.start()
    consume(gate, len(rows))
    stop_without_errors(gate)
    for name in texts:
        results = committed_rows(tmp_path / "state" / "results" / name)
        assert results == _expected(AGGREGATES[name][1], rows), name


@pytest.mark.parametrize("lane", ["driver", "job"])
def test_a_tuple_at_fault_fails_its_own_windows_alone(
    spark: SparkSession, tmp_path: Path, lane: str
) -> None:
    keys = ["1", "2", "bad", "3"]
    rows: list[Row] = [
        (key, 1, BASE + timedelta(seconds=2 * number)) for number, key in enumerate(keys)
    ]
    write(tmp_path / "left", rows, 1)  # all in one train
    sql = "SELECT sum(CAST(k AS INT)) AS s, count(*) AS n FROM lefts [RANGE 2 SECONDS] GROUP BY v"
    gate = gate_over(spark, tmp_path, {"q": sql}, lane=lane)
    gate.start()
    consume(gate, len(rows))
    gate.stop()
    assert gate.query("q").exception() is None  # the window of the bad tuple is still open
    assert committed_rows(tmp_path / "state" / "results" / "q") == Counter({(1, 1): 1})


def test_a_quiet_stream_ends_windows_and_sessions_but_not_while_its_source_is_away(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows: list[Row] = [("a", 1, BASE), ("b", 2, BASE + timedelta(seconds=1))]
    write(tmp_path / "left", rows, 1)
    stream = file_stream("lefts", tmp_path / "left", SCHEMA, quiet_s=1.0)
    texts = {
        "window": "SELECT count(*) AS n FROM lefts [RANGE 2 SECONDS SLIDE 2 SECONDS]",
        "session": "SELECT k, count(*) AS n FROM lefts GROUP BY k, session_window(ts, '1 second')",
    }
    queries = [Query(name=name, sql=sql, query_class="default") for name, sql in texts.items()]
    gate = new_gate(spark, tmp_path, [stream], queries)
    gate.start()
    consume(gate, 2)
    (tmp_path / "left").rename(tmp_path / "away")
    back_at_s = time.monotonic() + 3.0
    write(tmp_path / "more", [("a", 3, BASE + timedelta(seconds=1.5))], 1)
    (tmp_path / "more/0000.parquet").rename(tmp_path / "away/0001.parquet")
    until(lambda: time.monotonic() > back_at_s, gate)
    (tmp_path / "away").rename(tmp_path / "left")
    until(lambda: gate.totals()["window"][1] == 1 and gate.totals()["session"][1] == 3, gate)
    gate.stop()
    assert [account.late for account in gate.accounts().values()] == [0, 0]
    results = tmp_path / "state" / "results"
    assert committed_rows(results / "window") == Counter({(3,): 1})
    assert committed_rows(results / "session") == Counter({("a", 1): 2, ("b", 1): 1})
