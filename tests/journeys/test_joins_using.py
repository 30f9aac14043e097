"""Joins of tuples as they arrive, in all the ways that SQL can write them."""

from pathlib import Path

import pytest
from independent import committed_rows
from kit.gates import consume, stop_without_errors
from pyspark.sql import SparkSession
from two_streams import answer, gate_over, in_time, rows_of, write

pytestmark = pytest.mark.spark

A, B = "lefts [RANGE 1 SECOND] a", "rights [RANGE 2 SECONDS] b"
NEAR = "a.ts >= b.ts - INTERVAL 1 SECOND AND b.ts >= a.ts - INTERVAL 2 SECOND"
FINAL = {
    "LEFT": "b.ts IS NOT NULL OR a.ts + INTERVAL 1 SECOND < @upto",
    "RIGHT": "a.ts IS NOT NULL OR b.ts + INTERVAL 2 SECOND < @upto",
    "FULL": "CASE WHEN b.ts IS NULL THEN a.ts + INTERVAL 1 SECOND < @upto WHEN a.ts IS NULL"
    " THEN b.ts + INTERVAL 2 SECOND < @upto ELSE true END",
    "ANTI": "a.ts + INTERVAL 1 SECOND < @upto",
}
KEY = {"LEFT": "a.k", "RIGHT": "b.k", "FULL": "coalesce(a.k, b.k)"}

CASES = {
    **{
        f"using_{kind}": (
            f"SELECT k, upper(k) AS u, a.v AS x, b.v AS y FROM {A} {kind} JOIN {B} USING (k)"
            " WHERE k IS NULL OR k <> 'c'",
            f"SELECT {key}, upper({key}), a.v, b.v FROM lefts a {kind} JOIN rights b"
            f" ON a.k = b.k AND {NEAR} WHERE ({FINAL[kind]}) AND ({key} IS NULL OR {key} <> 'c')",
        )
        for kind, key in KEY.items()
    },
    "using_anti": (
        f"SELECT k, v FROM {A} LEFT ANTI JOIN {B} USING (k)",
        f"SELECT a.k, a.v FROM lefts a ANTI JOIN rights b ON a.k = b.k AND {NEAR}"
        f" WHERE {FINAL['ANTI']}",
    ),
    "twice": (
        "WITH x AS (SELECT * FROM lefts [RANGE 1 SECOND] WHERE v > 3) SELECT a.v AS x, c.v AS z,"
        " b.v AS y FROM x a JOIN x c ON a.k = c.k JOIN rights [RANGE 2 SECONDS] b ON a.k = b.k",
        "SELECT a.v, c.v, b.v FROM lefts a JOIN lefts c ON a.k = c.k"
        " AND abs(epoch_us(a.ts) - epoch_us(c.ts)) <= 1000000"
        f" JOIN rights b ON a.k = b.k AND {NEAR} AND {NEAR.replace('a.', 'c.')}"
        " WHERE a.v > 3 AND c.v > 3",
    ),
    "view": (
        f"SELECT a.v AS x, b.v AS y, e FROM {A} LEFT JOIN {B} ON a.k = b.k"
        " LATERAL VIEW explode(array(1, 2)) t AS e",
        f"SELECT a.v, b.v, unnest([1, 2]) FROM lefts a LEFT JOIN rights b ON a.k = b.k AND {NEAR}"
        f" WHERE {FINAL['LEFT']}",
    ),
    "subqueries": (
        "SELECT a.w AS x, b.v AS y FROM (SELECT k, v + 1 AS w FROM lefts [RANGE 1 SECOND]"
        " WHERE v > 3) a LEFT JOIN (SELECT * FROM rights [RANGE 2 SECONDS]) b ON a.k = b.k",
        f"SELECT a.v + 1, b.v FROM (FROM lefts WHERE v > 3) a LEFT JOIN rights b ON a.k = b.k"
        f" AND {NEAR} WHERE {FINAL['LEFT']}",
    ),
    "cte": (
        "WITH c AS (SELECT k, v FROM rights [RANGE 2 SECONDS] WHERE v > 3)"
        f" SELECT a.v AS x, c.v AS y FROM {A} JOIN c ON a.k = c.k",
        f"SELECT a.v, b.v FROM lefts a JOIN rights b ON a.k = b.k AND {NEAR} WHERE b.v > 3",
    ),
    "union": (
        "WITH c AS (SELECT k, v FROM lefts WHERE v > 3) SELECT * FROM c"
        " UNION ALL SELECT x, 1 FROM (SELECT k AS x FROM rights)",
        "SELECT k, v FROM (SELECT ts, k, v FROM lefts WHERE v > 3 UNION ALL SELECT ts, k, 1"
        " FROM rights) WHERE ts < @upto",
    ),
    "renamed": (
        "SELECT a.x FROM lefts [RANGE 1 SECOND] a(x, y, z), rights [RANGE 1 SECOND] b"
        " WHERE a.y = b.v",
        "SELECT a.k FROM lefts a, rights b WHERE a.v = b.v"
        " AND a.ts >= b.ts - INTERVAL 1 SECOND AND b.ts >= a.ts - INTERVAL 1 SECOND",
    ),
}


def test_streams_may_be_joined_by_using_and_inside_subqueries(
    spark: SparkSession, tmp_path: Path
) -> None:
    lefts, rights = rows_of(31, 80), rows_of(32, 60)
    write(tmp_path / "left", lefts, 3)
    write(tmp_path / "right", rights, 2)
    texts = {name: sql for name, (sql, _) in CASES.items()}
    gate = gate_over(spark, tmp_path, texts, train_tuples=40)
    gate.start()
    consume(gate, len(lefts) + len(rights))
    stop_without_errors(gate)
    (a, a_upto), (b, b_upto) = in_time(lefts), in_time(rights)
    upto = f"TIMESTAMPTZ '{min(a_upto, b_upto).isoformat()}'"
    for name, (_, oracle) in CASES.items():
        rows = committed_rows(tmp_path / "state" / "results" / name)
        assert rows == answer(oracle.replace("@upto", upto), lefts=a, rights=b), name
        assert rows, name
