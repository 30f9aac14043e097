"""Windows and joins of streams that are joined with a stored table."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from independent import committed_rows
from pyspark.sql import SparkSession
from sources import balanced, consume
from two_streams import answer, gate_over, in_time, rows_of, windows, write

from headgate import Query
from headgate.errors import QueryRefused

pytestmark = pytest.mark.spark

NEAR = "a.ts >= b.ts - INTERVAL 1 SECOND AND b.ts >= a.ts - INTERVAL 2 SECOND"


def names(folder: Path) -> Path:
    path = folder / "names.parquet"
    pq.write_table(pa.table({"k": ["a", "b", "z"], "label": ["A", "B", "Z"]}), path)
    return path


def test_stored_rows_without_a_tuple_come_out_for_every_window(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = rows_of(41, 120)
    write(tmp_path / "left", rows, 1)
    path, stream = names(tmp_path), "lefts [RANGE 10 SECONDS SLIDE 5 SECONDS] s"
    table = f"parquet.`{path}` t"
    texts = {
        "right": f"SELECT t.label, count(s.v) AS n FROM {stream} RIGHT JOIN {table}"
        " ON s.k = t.k GROUP BY t.label",
        "first": f"SELECT count(*) AS n FROM {table} LEFT JOIN {stream} ON s.k = t.k AND s.v > 17",
        "full": f"SELECT t.label, s.v FROM {table} FULL JOIN {stream} ON s.k = t.k AND s.v > 17",
        "left": f"SELECT t.label, count(*) AS n FROM {stream} LEFT JOIN {table}"
        " ON s.k = t.k GROUP BY t.label",
    }
    gate = gate_over(spark, tmp_path, texts, allows_paths=True)
    gate.start()
    consume(gate, len(rows))
    assert "window by window" not in (gate.explanation("left").lane or "")
    gate.stop()
    punctual, upto = in_time(rows)
    tuples, ends = windows(10, 5, upto), f"(SELECT DISTINCT e FROM {windows(10, 5, upto)})"
    every = f"(SELECT t.*, e FROM '{path}' t, {ends}) t"
    for name, sql in {
        "right": f"SELECT t.label, count(s.v) FROM {tuples} s RIGHT JOIN {every}"
        " ON s.k = t.k AND s.e = t.e GROUP BY t.label, t.e",
        "first": f"SELECT count(*) FROM {every} LEFT JOIN {tuples} s"
        " ON s.k = t.k AND s.v > 17 AND s.e = t.e GROUP BY t.e",
        "full": f"SELECT t.label, s.v FROM {every} FULL JOIN {tuples} s"
        " ON s.k = t.k AND s.v > 17 AND s.e = t.e",
        "left": f"SELECT t.label, count(*) FROM {tuples} s LEFT JOIN '{path}' t ON s.k = t.k"
        " GROUP BY t.label, s.e",
    }.items():
        joined = committed_rows(tmp_path / "state" / "results" / name)
        assert joined == answer(sql, lefts=punctual), name
        assert joined, name


def test_tuples_that_are_joined_as_they_come_are_joined_with_stored_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    lefts, rights = rows_of(42, 80), rows_of(43, 60)
    write(tmp_path / "left", lefts, 4)
    write(tmp_path / "right", rights, 3)
    path = names(tmp_path)
    table, a, b = f"parquet.`{path}` t", "lefts [RANGE 1 SECOND] a", "rights [RANGE 2 SECONDS] b"
    texts = {
        "left": f"SELECT a.v AS x, b.v AS y, t.label FROM {a}, {b} LEFT JOIN {table} ON b.k = t.k"
        " WHERE a.v < b.v",
        "outer": f"SELECT a.v AS x, b.v AS y, t.label FROM {a} JOIN {table} ON a.k = t.k"
        f" LEFT JOIN {b} ON a.v = b.v",
        "union": f"SELECT k, label FROM lefts JOIN {table} USING (k)"
        " UNION ALL SELECT k, 'none' FROM rights",
    }
    gate = gate_over(spark, tmp_path, texts, train_tuples=40, allows_paths=True)
    refused = (
        f"SELECT a.v AS x, t.label FROM {a} JOIN {b} ON a.k = b.k RIGHT JOIN {table} ON a.k = t.k"
    )
    with pytest.raises(QueryRefused, match="JOIN keeps rows of a table that no tuple"):
        gate.add_query(Query(name="kept", sql=refused, query_class="N"))
    gate.start()
    consume(gate, len(lefts) + len(rights))
    report = gate.stop()
    assert report is not None
    assert not report.errors
    (left, left_upto), (right, right_upto) = in_time(lefts), in_time(rights)
    upto = f"TIMESTAMPTZ '{min(left_upto, right_upto).isoformat()}'"
    for name, sql in {
        "left": f"SELECT a.v, b.v, t.label FROM lefts a JOIN rights b ON a.v < b.v AND {NEAR}"
        f" LEFT JOIN '{path}' t ON b.k = t.k",
        "outer": f"SELECT a.v, b.v, t.label FROM lefts a JOIN '{path}' t ON a.k = t.k LEFT JOIN"
        f" rights b ON a.v = b.v AND {NEAR}"
        f" WHERE b.ts IS NOT NULL OR a.ts + INTERVAL 1 SECOND < {upto}",
        "union": f"SELECT k, label FROM (SELECT ts, a.k, label FROM lefts a JOIN '{path}' t"
        f" ON a.k = t.k UNION ALL SELECT ts, k, 'none' FROM rights) WHERE ts < {upto}",
    }.items():
        joined = committed_rows(tmp_path / "state" / "results" / name)
        assert joined == answer(sql, lefts=left, rights=right), name
        assert joined, name
    balanced(gate)


def test_stored_rows_may_be_aggregated_before_a_tuple_is_joined_with_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = rows_of(44, 60)
    write(tmp_path / "left", rows, 3)
    path = names(tmp_path)
    texts = {
        "tuples": "SELECT s.v, t.n FROM lefts s LEFT JOIN (SELECT k, count(*) AS n FROM {}"
        " GROUP BY k ORDER BY n) t ON s.k = t.k",
        "cte": "WITH t AS (SELECT DISTINCT k FROM {}) SELECT s.v FROM lefts s JOIN t ON s.k = t.k",
    }
    texts = {name: sql.format(f"parquet.`{path}`") for name, sql in texts.items()}
    gate = gate_over(spark, tmp_path, texts, allows_paths=True)
    some = f"SELECT s.v FROM lefts s JOIN (SELECT k FROM parquet.`{path}` LIMIT 1) t ON s.k = t.k"
    with pytest.raises(QueryRefused, match="LIMIT cannot run continuously"):
        gate.add_query(Query(name="some", sql=some, query_class="N"))
    gate.start()
    consume(gate, len(rows))
    gate.stop()
    for name, sql in texts.items():
        joined = committed_rows(tmp_path / "state" / "results" / name)
        assert joined == answer(sql.replace(f"parquet.`{path}`", f"'{path}'"), lefts=rows), name
        assert joined, name
