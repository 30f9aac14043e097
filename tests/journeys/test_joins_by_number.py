"""Joins of ROWS windows: an arriving tuple joins with the last n tuples of the other stream."""

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from crash import CrashAt
from independent import committed_rows
from kit.engines import engine_of
from kit.gates import consume, consume_streams, stop_without_errors, until
from pyspark.sql import SparkSession
from two_streams import Row, gate_over, rows_of, write

from headgate import Headgate, Query
from headgate.errors import QueryRefused

pytestmark = pytest.mark.spark

TEXTS = {
    "two": "SELECT a.v AS x, b.v AS y FROM lefts [ROWS 7] a JOIN rights [ROWS 4] b ON a.k = b.k",
    "where": "SELECT a.v AS x, b.v AS y FROM lefts [ROWS 7] a, (SELECT k, v + 1 AS v"
    " FROM rights [ROWS 4]) b WHERE a.k <=> b.k AND a.v < b.v",
    "three": "SELECT a.v AS x, b.v AS y, c.v AS z FROM lefts [ROWS 3] a JOIN rights [ROWS 4] b"
    " ON a.k = b.k JOIN lefts [ROWS 2] c ON b.k = c.k",
    "twice": "WITH s AS (SELECT * FROM lefts [ROWS 3]) SELECT a.v AS x, b.v AS y, c.v AS z FROM s a"
    " JOIN rights [ROWS 4] b ON a.k = b.k JOIN s c ON b.k = c.k",
    "whole": "SELECT count(*) AS n FROM lefts [ROWS 10 SLIDE 5] a JOIN lefts [ROWS 5 SLIDE 5] b"
    " ON a.k = b.k",
}


def in_order(gate: Headgate, streams: dict[str, list[Row]]) -> list[tuple[str, int, Row]]:
    """Return all tuples in the order of the timeline, with their stream and number."""
    entries = engine_of(gate).parts.store.timelines["lefts__rights__time"].entries
    return [
        (entry.stream, number, streams[entry.stream][number])
        for entry in entries
        for number in range(entry.first_tuple, entry.first_tuple + entry.tuples)
    ]


def cross_join(
    order: list[tuple[str, int, Row]], *windows: tuple[str, int]
) -> list[tuple[Row, ...]]:
    """Return the combinations of tuples, one from each window, that join without a condition.

    Tuples join if each is still in its window when the last of them arrives.
    """
    joined: list[tuple[Row, ...]] = []
    lasts: dict[str, list[Row]] = {"lefts": [], "rights": []}
    for stream, _, row in order:
        lasts[stream].append(row)
        for turn in [n for n, window in enumerate(windows) if window[0] == stream]:
            combinations: list[tuple[Row, ...]] = [()]
            for number, (name, size) in enumerate(windows):
                rows = lasts[name][-size:]
                if number == turn:
                    rows = rows[-1:]
                elif name == stream and number < turn:
                    rows = rows[:-1]
                combinations = [(*combination, one) for combination in combinations for one in rows]
            joined += combinations
    return joined


def check(folder: Path, order: list[tuple[str, int, Row]]) -> None:
    pairs = cross_join(order, ("lefts", 7), ("rights", 4))
    triples = cross_join(order, ("lefts", 3), ("rights", 4), ("lefts", 2))
    twice = cross_join(order, ("lefts", 3), ("rights", 4), ("lefts", 3))
    expected: dict[str, Counter[Any]] = {
        "two": Counter((a[1], b[1]) for a, b in pairs if a[0] == b[0] is not None),
        "where": Counter((a[1], b[1] + 1) for a, b in pairs if a[0] == b[0] and a[1] < b[1] + 1),
        "three": Counter(
            (a[1], b[1], c[1]) for a, b, c in triples if a[0] == b[0] == c[0] is not None
        ),
        "twice": Counter(
            (a[1], b[1], c[1]) for a, b, c in twice if a[0] == b[0] == c[0] is not None
        ),
    }
    lefts = [row for stream, _, row in order if stream == "lefts"]
    expected["whole"] = Counter(
        (sum(a[0] == b[0] is not None for a, b in product(tens, fives)),)
        for end in range(5, len(lefts) + 1, 5)
        for tens, fives in [(lefts[max(0, end - 10) : end], lefts[end - 5 : end])]
    )
    for name, rows in expected.items():
        assert committed_rows(folder / "state" / "results" / name) == rows, name
        assert rows, name


@pytest.mark.parametrize(("train_tuples", "lane"), [(1, "driver"), (1000, "job")])
def test_a_tuple_meets_the_last_so_many_of_the_other_stream(
    spark: SparkSession, tmp_path: Path, train_tuples: int, lane: str
) -> None:
    """Include tuples that are late or have no time: ROWS windows ignore time."""
    streams = {"lefts": rows_of(21, 60), "rights": rows_of(22, 45)}
    write(tmp_path / "left", streams["lefts"], 6)
    write(tmp_path / "right", streams["rights"], 4)
    gate = gate_over(spark, tmp_path, TEXTS, train_tuples=train_tuples, lane=lane)
    gate.start()
    consume_streams(gate, TEXTS, {name: len(rows) for name, rows in streams.items()})
    stop_without_errors(gate)
    check(tmp_path, in_order(gate, streams))


def test_a_crash_changes_no_join_by_number(spark: SparkSession, tmp_path: Path) -> None:
    streams = {"lefts": rows_of(23, 45), "rights": rows_of(24, 45)}
    write(tmp_path / "left", streams["lefts"], 4)
    write(tmp_path / "right", streams["rights"], 4)
    crash = CrashAt("step journalled", 4)
    first = gate_over(spark, tmp_path, TEXTS, reached=crash, workers=1, train_tuples=15)
    first.start()
    until(crash.dead.is_set, first)
    first.stop()
    second = gate_over(spark, tmp_path, TEXTS, workers=1, train_tuples=15)
    second.start()
    consume_streams(second, TEXTS, {name: len(rows) for name, rows in streams.items()})
    stop_without_errors(second)
    check(tmp_path, in_order(second, streams))


def test_the_log_keeps_no_more_than_the_last_tuples(spark: SparkSession, tmp_path: Path) -> None:
    lefts, rights = rows_of(25, 90), rows_of(26, 90)
    write(tmp_path / "left", lefts, 10)
    write(tmp_path / "right", rights, 10)
    gate = gate_over(spark, tmp_path, {"two": TEXTS["two"]}, train_tuples=10, retention_s=0)
    gate.start()
    consume(gate, len(lefts) + len(rights))
    timeline = engine_of(gate).parts.store.timelines["lefts__rights__time"]
    gate.stop()
    assert timeline.held("lefts") > 5
    assert timeline.held("rights") > 5


REFUSED = {
    "SELECT a.v AS x FROM lefts [ROWS 5] a JOIN rights [RANGE 5 SECONDS] b ON a.k = b.k":
        "ROWS is mixed with RANGE",
    "SELECT a.v AS x FROM lefts [ROWS 5 SLIDE 5] a JOIN rights [ROWS 5 SLIDE 5] b ON a.k = b.k":
        "SLIDE of ROWS is for one stream",
    "SELECT a.v AS x FROM lefts [ROWS 5] a LEFT JOIN rights [ROWS 5] b ON a.k = b.k":
        "LeftOuter join is not possible over ROWS windows",
}  # fmt: skip


def test_refusals_say_what_windows_by_number_cannot_do(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "left", rows_of(1, 5), 1)
    write(tmp_path / "right", rows_of(2, 5), 1)
    gate = gate_over(spark, tmp_path, {})
    for sql, message in REFUSED.items():
        with pytest.raises(QueryRefused, match=message):
            gate.add_query(Query(name="q", sql=sql, query_class="N"))
