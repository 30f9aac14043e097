"""Pipe syntax and `FROM s SELECT ...` answer as Spark does in batch, with and without windows."""

from pathlib import Path

import pytest
from independent import committed_rows
from join_streams import Batch, consume_closed, gate_of_three, rows_on_edges
from kit.gates import stop_without_errors
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TUPLES = {
    "first": "FROM lefts SELECT k, v * 2 AS twice WHERE v > 10",
    "piped": "FROM lefts |> WHERE v > 10 |> EXTEND v % 7 AS rest |> WHERE rest < 3 |> SET v = v + 1"
    " |> SELECT k, v, rest",
    "dropped": "FROM lefts |> AS s |> WHERE s.k = 'a' |> DROP ts |> EXTEND array(v, 1, 2) AS `rows`"
    " |> EXTEND `rows`[v DIV 100] AS first, v % 3 AS range |> SELECT k, first, `rows`[range DIV 2]"
    " AS one",
}
WINDOWS = {
    "first_w": (
        "FROM lefts [RANGE 5 SECONDS] SELECT k, count(*) AS n WHERE v > 10 GROUP BY k",
        "FROM lefts SELECT k, count(*) AS n WHERE v > 10 GROUP BY k, window(ts, '5 seconds')",
    ),
    "piped_w": (
        "FROM lefts [RANGE 5 SECONDS] |> WHERE v > 10 |> AGGREGATE count(*) AS n, sum(v) AS total"
        " GROUP BY k |> WHERE n > 1 |> EXTEND total / n AS mean",
        "SELECT k, count(*), sum(v), sum(v) / count(*) FROM lefts WHERE v > 10"
        " GROUP BY k, window(ts, '5 seconds') HAVING count(*) > 1",
    ),
    "ordered_w": (
        "FROM lefts [RANGE 4 SECONDS SLIDE 4 SECONDS] |> ORDER BY v DESC |> LIMIT 1 |> SELECT k, v",
        "SELECT max_by(k, v), max(v) FROM lefts GROUP BY window(ts, '4 seconds')",
    ),
}  # fmt: skip


@pytest.mark.parametrize("lane", ["driver", pytest.param("job", marks=pytest.mark.long)])
def test_pipes_are_spark_s(spark: SparkSession, tmp_path: Path, lane: str) -> None:
    rows = {"lefts": rows_on_edges(7, 120)}
    texts = TUPLES | {name: text for name, (text, _) in WINDOWS.items()}
    gate = gate_of_three(spark, tmp_path, rows, texts, 4, train_tuples=30, lane=lane)
    gate.start()
    consume_closed(gate, texts, rows)
    lane_text = gate.explanation("piped_w").lane or ""
    assert "all closed windows at once" in lane_text
    stop_without_errors(gate)
    for late, oracles in (
        (True, TUPLES),
        (False, {name: sql for name, (_, sql) in WINDOWS.items()}),
    ):
        batch = Batch(spark, rows, late=late)
        for name, sql in oracles.items():
            answer = committed_rows(tmp_path / "state" / "results" / name)
            assert answer == batch(sql), name
            assert answer, name
