"""Joins and unions answer as the same SQL does over the rows that are not late."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from independent import committed_rows
from pyspark.sql import SparkSession
from sources import balanced, consume, until
from two_streams import answer, gate_over, in_time, rows_of, windows, write

from headgate import Query
from headgate.errors import QueryRefused
from headgate.runtime.recording.statistics_file import recorded_statistics

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("lane", ["driver", pytest.param("job", marks=pytest.mark.long)])
def test_a_join_of_tuples_as_they_come(spark: SparkSession, tmp_path: Path, lane: str) -> None:
    lefts, rights = rows_of(1, 120), rows_of(2, 90)
    write(tmp_path / "left", lefts, 5)
    write(tmp_path / "right", rights, 4)
    texts = {
        "join": "SELECT a.k, a.v AS x, b.v AS y, b.ts FROM lefts [RANGE 6 SECONDS] a"
        " JOIN rights [RANGE 2 SECONDS] AS b ON a.k = b.k WHERE a.v > b.v OR b.v = 3",
        "many": "SELECT a.v AS x, b.v AS y FROM lefts [RANGE 6 SECONDS] a"
        " JOIN rights [RANGE 6 SECONDS] b ON a.k = b.k",
        "self": "SELECT a.v AS x, b.v AS y FROM lefts [RANGE 2 SECONDS] a,"
        " lefts [RANGE 2 SECONDS] b WHERE a.k = b.k AND a.v < b.v",
        "whole": "SELECT a.k, count(b.v) AS n FROM lefts [RANGE 10 SECONDS SLIDE 5 SECONDS] a"
        " LEFT JOIN rights [RANGE 10 SECONDS SLIDE 5 SECONDS] b ON a.k = b.k GROUP BY a.k",
        "shown": "SELECT a.k, a.v AS x, b.window.start AS since, a.window.end AS until"
        " FROM lefts [RANGE 10 SECONDS SLIDE 5 SECONDS] a"
        " JOIN rights [RANGE 5 SECONDS SLIDE 5 SECONDS] b ON a.k = b.k AND a.v = b.v"
        " WHERE a.ts < a.window.end - INTERVAL 5 SECONDS",
    }
    gate = gate_over(spark, tmp_path, texts, train_tuples=30, lane=lane)
    gate.start()
    for name in ("join", "many", "whole", "shown"):
        until(lambda name=name: gate.totals()[name][0] >= len(lefts) + len(rights), gate)
    until(lambda: gate.totals()["self"][0] >= len(lefts), gate)
    report = gate.stop()
    assert report is not None
    assert not report.errors
    (a, a_upto), (b, b_upto) = in_time(lefts), in_time(rights)
    joined = committed_rows(tmp_path / "state" / "results" / "join")
    assert joined == answer(
        "SELECT a.k, a.v, b.v, b.ts FROM lefts a JOIN rights b ON a.k = b.k"
        " AND a.ts >= b.ts - INTERVAL 6 SECOND AND b.ts >= a.ts - INTERVAL 2 SECOND"
        " WHERE a.v > b.v OR b.v = 3", lefts=a, rights=b,
    )  # fmt: skip
    assert joined
    assert committed_rows(tmp_path / "state" / "results" / "self") == answer(
        "SELECT a.v, b.v FROM lefts a JOIN lefts b ON a.k = b.k AND a.v < b.v"
        " AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 2000000", lefts=a,
    )  # fmt: skip
    upto = min(a_upto, b_upto)
    assert committed_rows(tmp_path / "state" / "results" / "whole") == answer(
        f"SELECT a.k, count(b.v) FROM {windows(10, 5, upto)} a"
        f" LEFT JOIN {windows(10, 5, upto, 'rights')} b ON a.k = b.k AND a.e = b.e"
        " GROUP BY a.k, a.e", lefts=a, rights=b,
    )  # fmt: skip
    bounds = committed_rows(tmp_path / "state" / "results" / "shown")
    assert bounds == answer(
        f"SELECT a.k, a.v, a.e - INTERVAL 5 SECOND, a.e FROM {windows(10, 5, upto)} a"
        f" JOIN {windows(5, 5, upto, 'rights')} b ON a.k = b.k AND a.v = b.v AND a.e = b.e"
        " WHERE a.ts < a.e - INTERVAL 5 SECOND", lefts=a, rights=b,
    )  # fmt: skip
    assert bounds
    many = committed_rows(tmp_path / "state" / "results" / "many")
    assert many == answer(
        "SELECT a.v, b.v FROM lefts a JOIN rights b ON a.k = b.k"
        " AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 6000000", lefts=a, rights=b,
    )  # fmt: skip
    # This join outputs more tuples than it reads, and the next run has that statistic.
    assert sum(many.values()) > len(lefts) + len(rights)
    assert recorded_statistics(tmp_path / "state")["many"].selectivity > 1
    balanced(gate)


OUTER = {
    "LEFT": "a.k, a.v AS x, b.v AS y",
    "RIGHT": "a.v AS x, b.v AS y",
    "FULL": "a.v AS x, b.v AS y",
    "LEFT SEMI": "a.k, a.v AS x",
    "LEFT ANTI": "a.k, a.v AS x",
}


@pytest.mark.parametrize("lane", ["driver", pytest.param("job", marks=pytest.mark.long)])
def test_a_tuple_without_a_partner_comes_out_when_none_can_come(
    spark: SparkSession, tmp_path: Path, lane: str
) -> None:
    lefts, rights = rows_of(3, 80), rows_of(4, 60)
    write(tmp_path / "left", lefts, 4)
    write(tmp_path / "right", rights, 3)
    texts = {
        kind.replace(
            " ", "_"
        ).lower(): f"SELECT {columns} FROM lefts [RANGE 1 SECOND] a {kind} JOIN"
        " rights [RANGE 2 SECONDS] b ON a.k = b.k AND a.v < b.v + 5"
        for kind, columns in OUTER.items()
    }
    gate = gate_over(spark, tmp_path, texts, train_tuples=30, lane=lane)
    gate.start()
    consume(gate, len(lefts) + len(rights))
    report = gate.stop()
    assert report is not None
    assert not report.errors
    (a, a_upto), (b, b_upto) = in_time(lefts), in_time(rights)
    upto = f"TIMESTAMPTZ '{min(a_upto, b_upto).isoformat()}'"
    for kind, columns in OUTER.items():
        final = {
            "LEFT": f"b.ts IS NOT NULL OR a.ts + INTERVAL 1 SECOND < {upto}",
            "RIGHT": f"a.ts IS NOT NULL OR b.ts + INTERVAL 2 SECOND < {upto}",
            "FULL": f"(a.ts IS NOT NULL AND b.ts IS NOT NULL)"
            f" OR coalesce(a.ts + INTERVAL 1 SECOND, b.ts + INTERVAL 2 SECOND) < {upto}",
        }.get(kind, f"a.ts + INTERVAL 1 SECOND < {upto}")
        name = kind.replace(" ", "_").lower()
        rows = committed_rows(tmp_path / "state" / "results" / name)
        assert rows == answer(
            f"SELECT {columns} FROM lefts a {kind.replace('LEFT S', 'S').replace('LEFT A', 'A')}"
            " JOIN rights b ON a.k = b.k AND a.v < b.v + 5 AND a.ts >= b.ts - INTERVAL 1 SECOND"
            f" AND b.ts >= a.ts - INTERVAL 2 SECOND WHERE {final}", lefts=a, rights=b,
        ), kind  # fmt: skip
        assert rows, kind
    balanced(gate)


def test_a_union_is_in_the_order_of_time(spark: SparkSession, tmp_path: Path) -> None:
    lefts, rights = rows_of(5, 80), rows_of(6, 60)
    write(tmp_path / "left", lefts, 4)
    write(tmp_path / "right", rights, 3)
    sql = "SELECT ts, k, v FROM lefts WHERE v > 3 UNION ALL SELECT ts, 'r', v + 1 FROM rights"
    gate = gate_over(spark, tmp_path, {"union": sql}, train_tuples=30)
    gate.start()
    consume(gate, len(lefts) + len(rights))
    gate.stop()
    (a, a_upto), (b, b_upto) = in_time(lefts), in_time(rights)
    upto = min(a_upto, b_upto).isoformat()
    folder = tmp_path / "state" / "results" / "union"
    assert committed_rows(folder) == answer(
        f"SELECT * FROM ({sql}) WHERE ts < TIMESTAMPTZ '{upto}'", lefts=a, rights=b
    )
    files = sorted(folder.glob("*.parquet"))
    times = [time for file in files for time in pq.read_table(file)["ts"].to_pylist()]
    assert times == sorted(times)
    assert len(files) > 1
    balanced(gate)


def test_a_stream_is_joined_with_a_table(spark: SparkSession, tmp_path: Path) -> None:
    rows = rows_of(8, 60)
    write(tmp_path / "left", rows, 3)
    names = pa.table({"k": ["a", "b", "b"], "label": ["one", "two", "three"]})
    pq.write_table(names, tmp_path / "names.parquet")
    table = f"parquet.`{tmp_path}/names.parquet`"
    texts = {
        "inner": f"SELECT s.v, t.label FROM lefts s JOIN {table} t ON s.k = t.k WHERE v > 3",
        "left": f"SELECT s.v, t.label FROM lefts s LEFT JOIN {table} t ON s.k = t.k",
        "anti": f"SELECT s.v FROM lefts s LEFT ANTI JOIN {table} t ON s.k = t.k",
        "window": f"SELECT t.label, count(*) AS n FROM lefts [ROWS 20] s JOIN {table} t"
        " ON s.k = t.k GROUP BY t.label",
    }
    gate = gate_over(spark, tmp_path, texts, allows_paths=True)
    right = f"SELECT s.v, t.label FROM lefts s RIGHT JOIN {table} t ON s.k = t.k"
    with pytest.raises(QueryRefused, match="JOIN cannot run continuously without a window"):
        gate.add_query(Query(name="right", sql=right, query_class="N"))
    gate.start()
    consume(gate, len(rows))
    report = gate.stop()
    assert report is not None
    assert not report.errors
    joined = f"FROM lefts s {{}} JOIN '{tmp_path}/names.parquet' t ON s.k = t.k"
    numbered = (
        f"(SELECT *, (row_number() OVER () - 1) // 20 AS w FROM lefts LIMIT {len(rows) // 20 * 20})"
    )
    expected = {
        "inner": "SELECT s.v, t.label " + joined.format("") + " WHERE v > 3",
        "left": "SELECT s.v, t.label " + joined.format("LEFT"),
        "anti": "SELECT s.v " + joined.format("ANTI"),
        "window": "SELECT t.label, count(*) "
        + joined.format("").replace("lefts", numbered) + " GROUP BY t.label, w",
    }  # fmt: skip
    for name, sql in expected.items():
        joined_rows = committed_rows(tmp_path / "state" / "results" / name)
        assert joined_rows == answer(sql, lefts=rows), name
    balanced(gate)
