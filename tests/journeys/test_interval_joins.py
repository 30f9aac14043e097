"""Joins without windows whose conditions bound the times answer as Spark does in batch."""

from pathlib import Path

import pytest
from independent import committed_rows
from join_streams import Batch, consume_closed, gate_of_three, rows_on_edges
from kit.gates import stop_without_errors
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PAIR = "SELECT a.k, a.v AS x, b.v AS y FROM lefts a"
ROWS = "a.v AS x, b.v AS y, c.v AS z"
AB = "a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts + INTERVAL 2 SECONDS"
TEXTS = {
    "between": f"{PAIR} JOIN rights b ON a.k = b.k"
    " AND b.ts BETWEEN a.ts - INTERVAL 2 SECONDS AND a.ts",
    "strict": f"{PAIR} JOIN rights b ON a.k = b.k AND b.ts > a.ts - INTERVAL 2 SECONDS"
    " AND b.ts < a.ts + INTERVAL '1.5' SECOND",
    "half_open": f"{PAIR} JOIN rights b ON a.k = b.k AND a.ts >= b.ts AND a.ts < b.ts +"
    " INTERVAL 1 SECOND",
    "behind": f"{PAIR}, rights b WHERE a.k = b.k AND a.ts + INTERVAL 1 SECOND <= b.ts"
    " AND b.ts - INTERVAL 3 SECONDS < a.ts",
    "both_clauses": f"{PAIR} JOIN rights b ON a.k = b.k AND b.ts >= a.ts WHERE b.v > 3"
    " AND a.ts + INTERVAL 2 SECONDS >= b.ts AND a.v < 50",
    "difference": f"{PAIR} JOIN rights b ON a.k = b.k"
    " AND b.ts - a.ts BETWEEN INTERVAL '-1' SECOND AND INTERVAL '2' SECOND",
    "distance": f"{PAIR} JOIN rights b USING (k) WHERE abs(a.ts - b.ts) < INTERVAL 1 SECOND",
    "numbers": f"{PAIR} JOIN rights b ON unix_micros(b.ts) - unix_micros(a.ts) <= 1000000"
    " AND unix_micros(a.ts) <= unix_micros(b.ts) AND a.k = b.k",
    "added": f"{PAIR} JOIN rights b ON a.k = b.k AND b.ts >= timestampadd(SECOND, -2, a.ts)"
    " AND b.ts < dateadd(MILLISECOND, 500, a.ts)",
    "days": f"{PAIR} JOIN rights b ON a.k = b.k AND b.ts > a.ts - INTERVAL 1 DAY"
    " AND b.ts < a.ts AND a.v % 10 = 3",
    "same_time": "SELECT k, ts, a.v AS x, b.v AS y FROM lefts a JOIN rights b USING (k, ts)",
    "itself": "SELECT a.v AS x, b.v AS y FROM lefts a JOIN lefts b ON a.k = b.k AND b.ts > a.ts"
    " AND b.ts <= a.ts + INTERVAL 1 SECOND",
    "derived": "WITH due AS (SELECT k, v, ts + INTERVAL 1 SECOND AS until FROM lefts WHERE v > 3)"
    " SELECT a.v AS x, b.v AS y, a.until FROM due a JOIN (SELECT * FROM rights) b"
    " ON b.ts <= a.until AND b.ts >= a.until - INTERVAL 2 SECONDS AND a.k = b.k",
    "piped": "FROM lefts AS a |> JOIN rights AS b ON a.k = b.k AND b.ts BETWEEN a.ts"
    " AND a.ts + INTERVAL 1 SECOND |> WHERE a.v > 5 |> SELECT a.v AS x, b.v AS y",
    "hinted": f"SELECT /*+ BROADCAST(b) */ a.k, b.v AS y FROM lefts a JOIN rights b ON {AB}",
    "chain": f"SELECT {ROWS} FROM lefts a JOIN rights b ON {AB}"
    " JOIN others c ON c.k = b.k AND c.ts BETWEEN b.ts AND b.ts + INTERVAL 1 SECOND",
    "by_the_third": f"SELECT {ROWS} FROM lefts a JOIN rights b ON a.k = b.k JOIN others c"
    " ON c.k = a.k AND c.ts >= a.ts AND c.ts < a.ts + INTERVAL 1 SECOND AND b.ts = c.ts",
    **{
        kind.lower(): f"SELECT a.k AS ak, b.k AS bk, a.v AS x, b.v AS y FROM lefts a {kind} JOIN"
        f" rights b ON {AB} AND a.v < b.v + 9"
        for kind in ("LEFT", "RIGHT", "FULL")
    },
    "right_behind": "SELECT a.v AS x, b.v AS y FROM lefts a RIGHT JOIN rights b ON a.k = b.k"
    " AND b.ts BETWEEN a.ts + INTERVAL 1 SECOND AND a.ts + INTERVAL 2 SECONDS",
    "semi": f"SELECT a.k, a.v FROM lefts a LEFT SEMI JOIN rights b ON {AB}",
    "anti": f"SELECT a.k, a.v FROM lefts a LEFT ANTI JOIN rights b ON {AB}",
    "not_outer": "SELECT a.v AS x, b.v AS y FROM lefts a LEFT JOIN rights b ON a.k = b.k"
    " WHERE b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts",
    "lonely": f"SELECT a.v AS x FROM lefts a LEFT JOIN rights b ON {AB} WHERE b.k IS NULL",
}  # fmt: skip


@pytest.mark.parametrize("lane", ["driver", pytest.param("job", marks=pytest.mark.long)])
def test_a_join_with_bounded_times_is_spark_s(
    spark: SparkSession, tmp_path: Path, lane: str
) -> None:
    rows = {
        name: rows_on_edges(seed, count)
        for name, seed, count in [("lefts", 1, 110), ("rights", 2, 90), ("others", 3, 70)]
    }
    gate = gate_of_three(spark, tmp_path, rows, TEXTS, 3, train_tuples=30, lane=lane)
    gate.start()
    consume_closed(gate, TEXTS, rows)
    stop_without_errors(gate)
    batch = Batch(spark, rows)
    for name, sql in TEXTS.items():
        answer = committed_rows(tmp_path / "state" / "results" / name)
        assert answer == batch(sql), name
        assert answer, name
