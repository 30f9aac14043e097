"""Windows and sessions over unusual rows: old times, odd keys, wide rows."""

import csv
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from independent import committed_rows
from kit.gates import consume_streams, new_gate, stop_without_errors
from kit.streams import file_stream
from pyspark.sql import SparkSession
from sources import consume, until

from headgate import Headgate, Query, Sink, Stream

pytestmark = pytest.mark.spark

US = pa.timestamp("us", tz="UTC")
TWO = 2_000_000


def seconds(numbers: Sequence[float]) -> pa.Array:
    """Return times, in seconds since 1970."""
    return pa.array([round(number * 1_000_000) for number in numbers]).cast(US)


STARTS = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1500, 2, 28, 23, 59, 59, tzinfo=UTC),
    datetime(1582, 10, 10, tzinfo=UTC),
    datetime(1899, 12, 31, 23, 59, 57, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 57, tzinfo=UTC),
]
OLD_TIMES = [
    (start + timedelta(seconds=0.5 * n) - datetime(1970, 1, 1, tzinfo=UTC))
    // timedelta(microseconds=1)
    for start in STARTS
    for n in range(13)
]
"""Microseconds since 1970."""

KEYS = [None, math.nan, -0.0, 0.0, 1.5, None, math.nan, 0.0]
ODD = pa.table(
    {"k": pa.array(KEYS, pa.float64()), "ts": seconds([0.1 * n for n in range(len(KEYS))])}
)
MEGA = 1 << 20
WIDE_ROWS, WIDE_COLUMNS = 12, 300


def wide_table() -> pa.Table:
    """Return rows of 300 numbers and a text of a megabyte, a second apart."""
    columns = {
        f"c{n}": pa.array([n + row for row in range(WIDE_ROWS)]) for n in range(WIDE_COLUMNS)
    }
    long_texts = pa.array([chr(97 + row % 2) * MEGA + str(row) for row in range(WIDE_ROWS)])
    return pa.table({**columns, "t": long_texts, "ts": seconds(range(WIDE_ROWS))})


SCHEMAS = {
    "old": "ts TIMESTAMP",
    "odd": "k DOUBLE, ts TIMESTAMP",
    "wide": ", ".join([*(f"c{n} BIGINT" for n in range(WIDE_COLUMNS)), "t STRING", "ts TIMESTAMP"]),
}
SUMS = ", ".join(f"sum(c{n}) AS c{n}" for n in range(WIDE_COLUMNS))
TEXTS = {
    "old_windows": "SELECT unix_micros(window.end) AS e, count(*) AS n FROM old [RANGE 2 SECONDS]",
    "old_each": "SELECT unix_micros(max(ts)) AS e FROM old [RANGE 2 SECONDS] LIMIT 1",
    "old_sessions": "SELECT unix_micros(session_window.start) AS s, count(*) AS n FROM old"
    " GROUP BY session_window(ts, '1 second')",
    "odd_windows": "SELECT CAST(k AS STRING) AS k, n FROM"
    " (SELECT k, count(*) AS n FROM odd [RANGE 5 SECONDS] GROUP BY k)",
    "odd_at_once": "SELECT CAST(k AS STRING) AS t, count(*) AS n FROM odd [RANGE 5 SECONDS]"
    " GROUP BY k",
    "odd_sessions": "SELECT CAST(k AS STRING) AS t, count(*) AS n FROM odd"
    " GROUP BY k, session_window(ts, '5 seconds')",
    "wide_sums": f"SELECT {SUMS} FROM wide [RANGE 4 SECONDS]",
    "wide_all": "SELECT * FROM wide [RANGE 4 SECONDS] ORDER BY c0 DESC LIMIT 1",
    "wide_long": "SELECT max(t) AS t, count(*) AS n FROM wide [RANGE 4 SECONDS]"
    " GROUP BY left(t, 1)",
    "wide_sessions": "SELECT max(t) AS t, sum(c299) AS n FROM wide"
    " GROUP BY substring(t, 1, 1000000), session_window(ts, '1 second')",
}


def run(
    spark: SparkSession,
    folder: Path,
    tables: Mapping[str, Sequence[pa.Table]],
    schemas: Mapping[str, str],
    texts: Mapping[str, str],
    **more: Any,
) -> Path:
    """Run queries over streams of files until all is consumed; return the results folder.

    Args:
        tables, schemas: by stream, its files and its columns.
    """
    streams = []
    for name, files in tables.items():
        (folder / name).mkdir()
        for number, table in enumerate(files):
            pq.write_table(table, folder / name / f"{number:04d}.parquet")
        streams.append(file_stream(name, folder / name, schemas[name]))
    queries = [Query(name=name, sql=sql, query_class="default") for name, sql in texts.items()]
    gate = new_gate(spark, folder, streams, queries, **more)
    gate.start()
    offered = {name: sum(table.num_rows for table in files) for name, files in tables.items()}
    consume_streams(gate, texts, offered)
    stop_without_errors(gate)
    return folder / "state" / "results"


@pytest.fixture(scope="module", params=["driver", pytest.param("job", marks=pytest.mark.long)])
def results(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the results of all texts, run in one gate on one lane."""
    folder, wide = tmp_path_factory.mktemp("extremes"), wide_table()
    tables = {
        "old": [
            pa.table({"ts": pa.array(OLD_TIMES, pa.int64()).cast(US)}),
            pa.table({"ts": seconds([60])}),
        ],
        "odd": [ODD, pa.table({"k": pa.array([7.0]), "ts": seconds([20])})],
        "wide": [wide.slice(row, 4) for row in range(0, WIDE_ROWS, 4)],
    }
    return run(spark, folder, tables, SCHEMAS, TEXTS, lane=request.param)


def test_times_before_1970(results: Path) -> None:
    ends = Counter(instant // TWO * TWO + TWO for instant in OLD_TIMES)
    assert committed_rows(results / "old_windows") == Counter((e, n) for e, n in ends.items())
    last = {instant // TWO: instant for instant in OLD_TIMES}
    assert committed_rows(results / "old_each") == Counter((instant,) for instant in last.values())
    firsts = OLD_TIMES[::13]
    assert committed_rows(results / "old_sessions") == Counter((first, 13) for first in firsts)


def test_keys_that_equal_nothing_or_each_other(spark: SparkSession, results: Path) -> None:
    session = spark.newSession()
    session.createDataFrame(ODD).createOrReplaceTempView("odd")
    batch = session.sql("SELECT CAST(k AS STRING), count(*) FROM odd GROUP BY k").collect()
    assert len(batch) == 4
    for name in ("odd_windows", "odd_at_once", "odd_sessions"):
        assert committed_rows(results / name) == Counter(tuple(row) for row in batch), name


def test_windows_without_tuples_have_no_results(spark: SparkSession, tmp_path: Path) -> None:
    files = [pa.table({"ts": seconds([second])}) for second in (0, 1, 7200, 7201, 90_000)]
    texts = {
        "windows": "SELECT count(*) AS n, CAST(window.end AS BIGINT) AS e FROM s"
        " [RANGE 4 SECONDS SLIDE 2 SECONDS]",
        "each": "SELECT count(*) AS n FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS] LIMIT 1",
        "sessions": "SELECT count(*) AS n FROM s GROUP BY session_window(ts, '2 seconds')",
        "nobody": "SELECT count(*) AS n FROM s WHERE false GROUP BY session_window(ts, '1 second')",
    }
    schemas = {"s": "ts TIMESTAMP"}
    results = run(spark, tmp_path, {"s": files}, schemas, texts, train_tuples=1)
    assert committed_rows(results / "windows") == {
        (2, 2): 1, (2, 4): 1, (2, 7202): 1, (2, 7204): 1,
    }  # fmt: skip
    assert committed_rows(results / "each") == {(2,): 4}
    assert committed_rows(results / "sessions") == {(2,): 2}
    assert not committed_rows(results / "nobody")


def test_a_mean_does_not_depend_on_trains(spark: SparkSession, tmp_path: Path) -> None:
    # Spark adds up doubles for it, in which 2^53 + 1 is 2^53, and 2^53 + 2 is more.
    parts = [([2**53], [0]), ([1, 1], [1, 2]), ([0], [60])]
    files = [
        pa.table({"k": pa.array(["a"] * len(numbers)), "v": numbers, "ts": seconds(times)})
        for numbers, times in parts
    ]
    texts = {"means": "SELECT k, avg(v) AS mean FROM s [RANGE 10 SECONDS] GROUP BY k"}
    schemas = {"s": "k STRING, v BIGINT, ts TIMESTAMP"}
    results = run(spark, tmp_path, {"s": files}, schemas, texts, train_tuples=1)
    assert committed_rows(results / "means") == {("a", 2**53 / 3): 1}


def test_wide_rows(results: Path) -> None:
    assert committed_rows(results / "wide_sums") == Counter(
        tuple(sum(n + row for row in range(first, first + 4)) for n in range(WIDE_COLUMNS))
        for first in (0, 4)
    )
    rows = [tuple(row.values()) for row in wide_table().slice(0, 8).to_pylist()]
    assert committed_rows(results / "wide_all") == Counter(
        (*row[:-1], row[-1].timestamp()) for row in (rows[3], rows[7])
    )
    a, b = "a" * MEGA, "b" * MEGA
    assert committed_rows(results / "wide_long") == {
        (a + "2", 2): 1, (b + "3", 2): 1, (a + "6", 2): 1, (b + "7", 2): 1,
    }  # fmt: skip
    texts_of_sessions = Counter((row[300], row[299]) for row in rows)
    assert committed_rows(results / "wide_sessions") > texts_of_sessions, "plus two more sessions"


def test_sinks_of_text_and_of_python(spark: SparkSession, tmp_path: Path) -> None:
    words = ["a,b", 'say "so"', None, "line\nbreak"]
    table = pa.table(
        {
            "k": pa.array([words[row % 4] for row in range(40)]),
            "ts": pa.array([row * 1_000_000 for row in range(40)]).cast(US),
        }
    )
    (tmp_path / "s").mkdir()
    for number in range(4):
        pq.write_table(table.slice(number * 10, 10), tmp_path / "s" / f"{number}.parquet")
    texts = {
        "windows": "SELECT k, count(*) AS n, window.end AS e FROM s [RANGE 10 SECONDS] GROUP BY k",
        "each": "SELECT k, ts FROM s [RANGE 10 SECONDS] ORDER BY ts DESC LIMIT 2",
        "sessions": "SELECT k, max(ts) AS e FROM s WHERE k IS NULL OR k <> 'a,b'"
        " GROUP BY k, session_window(ts, '3 seconds')",
    }
    gate = Headgate(spark, state=tmp_path / "state", rehearsal_s=0)
    gate.add_stream(
        Stream(
            name="s", format="parquet", schema="k STRING, ts TIMESTAMP", event_time="ts",
            quiet_s=None, options={"path": str(tmp_path / "s"), "maxFilesPerTrigger": "1"},
        )
    )  # fmt: skip
    delivered: dict[str, dict[str, list[dict[str, Any]]]] = {name: {} for name in texts}
    options = {"header": "true", "multiLine": "true"}
    for name, sql in texts.items():
        gate.add_query(Query(name=name, sql=sql, query_class="default"))
        sink = Sink(format="csv", options=options)
        gate.add_query(Query(name=f"{name}_csv", sql=sql, query_class="default", sink=sink))

        def deliver(result: pa.Table, key: Any, name: str = name) -> None:
            delivered[name][str(key)] = result.to_pylist()

        to_python = Sink(format="callback")
        gate.add_query(
            Query(name=f"{name}_call", sql=sql, query_class="default", sink=to_python), deliver
        )
    gate.start()
    consume(gate, 40)
    results = tmp_path / "state" / "results"
    wanted = {"windows": 12, "each": 6, "sessions": 27}
    until(
        lambda: all(
            sum(map(len, delivered[name].values())) == count for name, count in wanted.items()
        ),
        gate,
    )
    gate.stop()
    assert {name: committed_rows(results / name).total() for name in texts} == wanted
    for name in texts:
        committed = committed_rows(results / name)
        rows = [row for part in delivered[name].values() for row in part]
        assert Counter(_plain(row.values()) for row in rows) == committed, name
        lines = []
        for file in sorted((results / f"{name}_csv").glob("*.csv")):
            text = file.read_text().splitlines(keepends=True)
            lines += list(csv.reader(text, escapechar="\\", doublequote=False))[1:]
        assert Counter(line[0] for line in lines) == Counter(
            key or "" for key, *_ in committed.elements()
        ), name


def _plain(row: Any) -> tuple[Any, ...]:
    return tuple(value.timestamp() if isinstance(value, datetime) else value for value in row)
