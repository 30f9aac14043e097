"""Windows and joins of streams, joined with stored rows."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from independent import committed_rows
from pyspark.sql import SparkSession
from sources import consume
from two_streams import answer, gate_over, in_time, rows_of, windows, write

pytestmark = pytest.mark.spark


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
    gate = gate_over(spark, tmp_path, texts)
    gate.start()
    consume(gate, len(rows))
    assert "window by window" not in (gate.explanation("left").lane or "")
    gate.stop()
    kept, upto = in_time(rows)
    of, ends = windows(10, 5, upto), f"(SELECT DISTINCT e FROM {windows(10, 5, upto)})"
    every = f"(SELECT t.*, e FROM '{path}' t, {ends}) t"
    for name, sql in {
        "right": f"SELECT t.label, count(s.v) FROM {of} s RIGHT JOIN {every}"
        " ON s.k = t.k AND s.e = t.e GROUP BY t.label, t.e",
        "first": f"SELECT count(*) FROM {every} LEFT JOIN {of} s"
        " ON s.k = t.k AND s.v > 17 AND s.e = t.e GROUP BY t.e",
        "full": f"SELECT t.label, s.v FROM {every} FULL JOIN {of} s"
        " ON s.k = t.k AND s.v > 17 AND s.e = t.e",
        "left": f"SELECT t.label, count(*) FROM {of} s LEFT JOIN '{path}' t ON s.k = t.k"
        " GROUP BY t.label, s.e",
    }.items():
        found = committed_rows(tmp_path / "state" / "results" / name)
        assert found == answer(sql, lefts=kept), name
        assert found, name
