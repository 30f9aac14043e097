"""Joins and unions answer as the same SQL does over the rows that are not late."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from independent import Rows, committed_rows
from kit.gates import consume_streams, stop_without_errors
from pyspark.sql import SparkSession
from two_streams import Row, answer, gate_over, in_time, rows_of, windows, write

from headgate.runtime.recording.statistics_file import recorded_statistics

pytestmark = pytest.mark.spark


JOINS = {
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
UNION = "SELECT ts, k, v FROM lefts WHERE v > 3 UNION ALL SELECT ts, 'r', v + 1 FROM rights"
OUTER = {
    "LEFT": "a.k, a.v AS x, b.v AS y",
    "RIGHT": "a.v AS x, b.v AS y",
    "FULL": "a.v AS x, b.v AS y",
    "LEFT SEMI": "a.k, a.v AS x",
    "LEFT ANTI": "a.k, a.v AS x",
}
TEXTS = {
    **JOINS,
    "union": UNION,
    **{
        kind: f"SELECT {columns} FROM lefts [RANGE 1 SECOND] a {kind} JOIN"
        " rights [RANGE 2 SECONDS] b ON a.k = b.k AND a.v < b.v + 5"
        for kind, columns in OUTER.items()
    },
}


def expected_rows(lefts: list[Row], rights: list[Row]) -> dict[str, Rows]:
    """Return DuckDB's answer to every query, over the rows that are not late."""
    (a, a_upto), (b, b_upto) = in_time(lefts), in_time(rights)
    upto = min(a_upto, b_upto)
    mark = f"TIMESTAMPTZ '{upto.isoformat()}'"
    texts = {
        "join": "SELECT a.k, a.v, b.v, b.ts FROM lefts a JOIN rights b ON a.k = b.k"
        " AND a.ts >= b.ts - INTERVAL 6 SECOND AND b.ts >= a.ts - INTERVAL 2 SECOND"
        " WHERE a.v > b.v OR b.v = 3",
        "many": "SELECT a.v, b.v FROM lefts a JOIN rights b ON a.k = b.k"
        " AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 6000000",
        "self": "SELECT a.v, b.v FROM lefts a JOIN lefts b ON a.k = b.k AND a.v < b.v"
        " AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 2000000",
        "whole": f"SELECT a.k, count(b.v) FROM {windows(10, 5, upto)} a"
        f" LEFT JOIN {windows(10, 5, upto, 'rights')} b ON a.k = b.k AND a.e = b.e"
        " GROUP BY a.k, a.e",
        "shown": f"SELECT a.k, a.v, a.e - INTERVAL 5 SECOND, a.e FROM {windows(10, 5, upto)} a"
        f" JOIN {windows(5, 5, upto, 'rights')} b ON a.k = b.k AND a.v = b.v AND a.e = b.e"
        " WHERE a.ts < a.e - INTERVAL 5 SECOND",
        "union": f"SELECT * FROM ({UNION}) WHERE ts < {mark}",
    }
    for kind, columns in OUTER.items():
        final = {
            "LEFT": f"b.ts IS NOT NULL OR a.ts + INTERVAL 1 SECOND < {mark}",
            "RIGHT": f"a.ts IS NOT NULL OR b.ts + INTERVAL 2 SECOND < {mark}",
            "FULL": f"(a.ts IS NOT NULL AND b.ts IS NOT NULL)"
            f" OR coalesce(a.ts + INTERVAL 1 SECOND, b.ts + INTERVAL 2 SECOND) < {mark}",
        }.get(kind, f"a.ts + INTERVAL 1 SECOND < {mark}")
        texts[kind] = (
            f"SELECT {columns} FROM lefts a {kind.replace('LEFT S', 'S').replace('LEFT A', 'A')}"
            " JOIN rights b ON a.k = b.k AND a.v < b.v + 5 AND a.ts >= b.ts - INTERVAL 1 SECOND"
            f" AND b.ts >= a.ts - INTERVAL 2 SECOND WHERE {final}"
        )
    return {name: answer(sql, lefts=a, rights=b) for name, sql in texts.items()}


@pytest.mark.parametrize("lane", ["driver", pytest.param("job", marks=pytest.mark.long)])
def test_joins_and_unions_of_tuples_as_they_come(
    spark: SparkSession, tmp_path: Path, lane: str
) -> None:
    """Include outer joins, where a tuple without a partner comes out once none can come."""
    lefts, rights = rows_of(1, 100), rows_of(2, 80)
    write(tmp_path / "left", lefts, 4)
    write(tmp_path / "right", rights, 3)
    texts = {name.replace(" ", "_"): sql for name, sql in TEXTS.items()}
    gate = gate_over(spark, tmp_path, texts, train_tuples=30, lane=lane)
    gate.start()
    consume_streams(gate, texts, {"lefts": len(lefts), "rights": len(rights)})
    stop_without_errors(gate)
    results = tmp_path / "state" / "results"
    for name, expected in expected_rows(lefts, rights).items():
        assert committed_rows(results / name.replace(" ", "_")) == expected, name
        assert expected, name
    # This join outputs more tuples than it reads, and the next run has that statistic.
    assert committed_rows(results / "many").total() > len(lefts) + len(rights)
    assert recorded_statistics(tmp_path / "state")["many"].selectivity > 1
    files = sorted((results / "union").glob("*.parquet"))
    times = [time for file in files for time in pq.read_table(file)["ts"].to_pylist()]
    assert times == sorted(times), "a union is in the order of time"
    assert len(files) > 1
