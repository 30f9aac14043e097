"""Windows and joins of streams that are joined with a stored table."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from independent import committed_rows
from kit.gates import consume_streams, stop_without_errors
from pyspark.sql import SparkSession
from two_streams import answer, gate_over, in_time, rows_of, windows, write

from headgate import Query
from headgate.errors import QueryRefused

pytestmark = pytest.mark.spark

NEAR = "a.ts >= b.ts - INTERVAL 1 SECOND AND b.ts >= a.ts - INTERVAL 2 SECOND"


A, B = "lefts [RANGE 1 SECOND] a", "rights [RANGE 2 SECONDS] b"
STREAM = "lefts [RANGE 10 SECONDS SLIDE 5 SECONDS] s"
OF_TUPLES = {
    "tuples_inner": "SELECT s.v, t.label FROM lefts s JOIN @table t ON s.k = t.k WHERE v > 3",
    "tuples_left": "SELECT s.v, t.label FROM lefts s LEFT JOIN @table t ON s.k = t.k",
    "tuples_anti": "SELECT s.v FROM lefts s LEFT ANTI JOIN @table t ON s.k = t.k",
    "aggregated": "SELECT s.v, t.n FROM lefts s LEFT JOIN (SELECT k, count(*) AS n FROM @table"
    " GROUP BY k ORDER BY n) t ON s.k = t.k",
    "cte": "WITH t AS (SELECT DISTINCT k FROM @table) SELECT s.v FROM lefts s JOIN t ON s.k = t.k",
}
"""Joins of single tuples with stored rows, late tuples included: DuckDB runs the same texts."""

CASES = {
    "number": (
        "SELECT t.label, count(*) AS n FROM lefts [ROWS 20] s JOIN @table t ON s.k = t.k"
        " GROUP BY t.label",
        "SELECT t.label, count(*) FROM (SELECT *, (row_number() OVER () - 1) // 20 AS w FROM"
        " all_lefts LIMIT @twenties) s JOIN @table t ON s.k = t.k GROUP BY t.label, w",
    ),
    "right": (
        f"SELECT t.label, count(s.v) AS n FROM {STREAM} RIGHT JOIN @table t ON s.k = t.k"
        " GROUP BY t.label",
        "SELECT t.label, count(s.v) FROM @windows s RIGHT JOIN @every t"
        " ON s.k = t.k AND s.e = t.e GROUP BY t.label, t.e",
    ),
    "first": (
        f"SELECT count(*) AS n FROM @table t LEFT JOIN {STREAM} ON s.k = t.k AND s.v > 17",
        "SELECT count(*) FROM @every t LEFT JOIN @windows s"
        " ON s.k = t.k AND s.v > 17 AND s.e = t.e GROUP BY t.e",
    ),
    "called": (
        "SELECT t.label, count(*) AS n FROM lefts s RIGHT JOIN @table t ON s.k = t.k"
        " GROUP BY t.label, window(s.ts, '10 seconds', '5 seconds')",
        "SELECT t.label, count(*) FROM @windows s JOIN @table t ON s.k = t.k GROUP BY t.label, s.e",
    ),
    "full": (
        f"SELECT t.label, s.v FROM @table t FULL JOIN {STREAM} ON s.k = t.k AND s.v > 17",
        "SELECT t.label, s.v FROM @every t FULL JOIN @windows s"
        " ON s.k = t.k AND s.v > 17 AND s.e = t.e",
    ),
    "left": (
        f"SELECT t.label, count(*) AS n FROM {STREAM} LEFT JOIN @table t ON s.k = t.k"
        " GROUP BY t.label",
        "SELECT t.label, count(*) FROM @windows s LEFT JOIN @table t ON s.k = t.k"
        " GROUP BY t.label, s.e",
    ),
    "pairs_left": (
        f"SELECT a.v AS x, b.v AS y, t.label FROM {A}, {B} LEFT JOIN @table t ON b.k = t.k"
        " WHERE a.v < b.v",
        f"SELECT a.v, b.v, t.label FROM lefts a JOIN rights b ON a.v < b.v AND {NEAR}"
        " LEFT JOIN @table t ON b.k = t.k",
    ),
    "pairs_outer": (
        f"SELECT a.v AS x, b.v AS y, t.label FROM {A} JOIN @table t ON a.k = t.k"
        f" LEFT JOIN {B} ON a.v = b.v",
        "SELECT a.v, b.v, t.label FROM lefts a JOIN @table t ON a.k = t.k LEFT JOIN"
        f" rights b ON a.v = b.v AND {NEAR}"
        " WHERE b.ts IS NOT NULL OR a.ts + INTERVAL 1 SECOND < @upto",
    ),
    "union": (
        "SELECT k, label FROM lefts JOIN @table USING (k) UNION ALL SELECT k, 'none' FROM rights",
        "SELECT k, label FROM (SELECT ts, a.k, label FROM lefts a JOIN @table t"
        " ON a.k = t.k UNION ALL SELECT ts, k, 'none' FROM rights) WHERE ts < @upto",
    ),
    **{
        name: (sql, sql.replace("lefts", "all_lefts").replace("LEFT ANTI", "ANTI"))
        for name, sql in OF_TUPLES.items()
    },
}
"""Queries, and equivalent queries for DuckDB. Windows without a tuple have stored rows, too."""

REFUSED = {
    "SELECT s.v, t.label FROM lefts s RIGHT JOIN @table t ON s.k = t.k":
        "JOIN cannot run continuously without a window",
    f"SELECT a.v AS x, t.label FROM {A} JOIN {B} ON a.k = b.k RIGHT JOIN @table t ON a.k = t.k":
        "JOIN keeps rows of a table that no tuple",
    "SELECT s.v FROM lefts s JOIN (SELECT k FROM @table LIMIT 1) t ON s.k = t.k":
        "LIMIT cannot run continuously",
}  # fmt: skip


def test_streams_are_joined_with_stored_rows(spark: SparkSession, tmp_path: Path) -> None:
    streams = {"lefts": rows_of(42, 60), "rights": rows_of(43, 45)}
    write(tmp_path / "left", streams["lefts"], 2)
    write(tmp_path / "right", streams["rights"], 2)
    file = tmp_path / "names.parquet"
    labels = {"k": ["a", "b", "b", "z"], "label": ["A", "B", "Be", "Z"]}
    pq.write_table(pa.table(labels), file)
    table = f"parquet.`{file}`"
    texts = {name: sql.replace("@table", table) for name, (sql, _) in CASES.items()}
    gate = gate_over(spark, tmp_path, texts, allows_paths=True)
    for sql, message in REFUSED.items():
        with pytest.raises(QueryRefused, match=message):
            gate.add_query(Query(name="q", sql=sql.replace("@table", table), query_class="N"))
    gate.start()
    consume_streams(gate, texts, {name: len(rows) for name, rows in streams.items()})
    assert "window by window" not in (gate.explanation("left").lane or "")
    stop_without_errors(gate)
    (lefts, left_upto), (rights, right_upto) = (in_time(rows) for rows in streams.values())
    tuples = windows(10, 5, left_upto)
    places = {
        "@table": f"'{file}'",
        "@every": f"(SELECT t.*, e FROM '{file}' t, (SELECT DISTINCT e FROM {tuples}))",
        "@windows": tuples,
        "@upto": f"TIMESTAMPTZ '{min(left_upto, right_upto).isoformat()}'",
        "@twenties": str(len(streams["lefts"]) // 20 * 20),
    }
    for name, (_, oracle) in CASES.items():
        for place, text in places.items():
            oracle = oracle.replace(place, text)
        rows = committed_rows(tmp_path / "state" / "results" / name)
        relations = {"lefts": lefts, "rights": rights, "all_lefts": streams["lefts"]}
        assert rows == answer(oracle, **relations), name
        assert rows, name
