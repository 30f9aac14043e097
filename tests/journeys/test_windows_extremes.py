"""Windows and sessions over unusual rows: old times, odd keys, wide rows."""

import csv
import math
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from independent import committed_rows
from kit.streams import file_stream
from pyspark.sql import SparkSession
from sources import consume, until

from headgate import Headgate, Query, Sink, Stream

pytestmark = pytest.mark.spark

US = pa.timestamp("us", tz="UTC")


def run(
    spark: SparkSession,
    folder: Path,
    tables: Sequence[pa.Table],
    ddl: str,
    texts: dict[str, str],
    **more: Any,
) -> Path:
    """Run queries over a stream `s` of files until all is consumed; return the results folder."""
    (folder / "s").mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, folder / "s" / f"{number:04d}.parquet")
    gate = Headgate(spark, state=folder / "state", rehearsal_s=0, **more)
    gate.add_stream(file_stream("s", folder / "s", ddl))
    for name, sql in texts.items():
        gate.add_query(Query(name=name, sql=sql, query_class="default"))
    gate.start()
    consume(gate, sum(table.num_rows for table in tables))
    report = gate.stop()
    assert report is not None
    assert not report.errors
    return folder / "state" / "results"


def test_times_before_1970(spark: SparkSession, tmp_path: Path) -> None:
    starts = [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1500, 2, 28, 23, 59, 59, tzinfo=UTC),
        datetime(1582, 10, 10, tzinfo=UTC),
        datetime(1899, 12, 31, 23, 59, 57, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 57, tzinfo=UTC),
    ]
    zero = datetime(1970, 1, 1, tzinfo=UTC)
    micros = [
        (start + timedelta(seconds=0.5 * n) - zero) // timedelta(microseconds=1)
        for start in starts
        for n in range(13)
    ]
    table = pa.table({"ts": pa.array(micros, pa.int64()).cast(US)})
    end = pa.table({"ts": pa.array([60_000_000], pa.int64()).cast(US)})
    texts = {
        "windows": "SELECT unix_micros(window.end) AS e, count(*) AS n FROM s [RANGE 2 SECONDS]",
        "each": "SELECT unix_micros(max(ts)) AS e FROM s [RANGE 2 SECONDS] LIMIT 1",
        "sessions": "SELECT unix_micros(session_window.start) AS s, count(*) AS n FROM s"
        " GROUP BY session_window(ts, '1 second')",
    }
    results = run(spark, tmp_path, [table, end], "ts TIMESTAMP", texts)
    two = 2_000_000
    ends = Counter(instant // two * two + two for instant in micros)
    assert committed_rows(results / "windows") == Counter((e, n) for e, n in ends.items())
    last = {instant // two: instant for instant in micros}
    assert committed_rows(results / "each") == Counter((instant,) for instant in last.values())
    assert committed_rows(results / "sessions") == Counter((first, 13) for first in micros[::13])


@pytest.mark.parametrize("lane", ["driver", pytest.param("job", marks=pytest.mark.long)])
def test_keys_that_equal_nothing_or_each_other(
    spark: SparkSession, tmp_path: Path, lane: str
) -> None:
    keys = [None, math.nan, -0.0, 0.0, 1.5, None, math.nan, 0.0]
    times = [n * 100_000 for n in range(len(keys))]
    table = pa.table({"k": pa.array(keys, pa.float64()), "ts": pa.array(times).cast(US)})
    end = pa.table({"k": pa.array([7.0]), "ts": pa.array([20_000_000]).cast(US)})
    texts = {
        "windows": "SELECT CAST(k AS STRING) AS k, n FROM"
        " (SELECT k, count(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k)",
        "at_once": "SELECT CAST(k AS STRING) AS t, count(*) AS n FROM s [RANGE 5 SECONDS]"
        " GROUP BY k",
        "sessions": "SELECT CAST(k AS STRING) AS t, count(*) AS n FROM s"
        " GROUP BY k, session_window(ts, '5 seconds')",
    }
    results = run(spark, tmp_path, [table, end], "k DOUBLE, ts TIMESTAMP", texts, lane=lane)
    session = spark.newSession()
    session.createDataFrame(table).createOrReplaceTempView("s")
    batch = session.sql("SELECT CAST(k AS STRING), count(*) FROM s GROUP BY k").collect()
    assert len(batch) == 4
    for name in texts:
        rows = committed_rows(results / name)
        assert rows == Counter(tuple(row) for row in batch), name


def test_windows_without_tuples_have_no_results(spark: SparkSession, tmp_path: Path) -> None:
    seconds = [0, 1, 7200, 7201, 90_000]
    tables = [pa.table({"ts": pa.array([second * 1_000_000]).cast(US)}) for second in seconds]
    texts = {
        "windows": "SELECT count(*) AS n, CAST(window.end AS BIGINT) AS e FROM s"
        " [RANGE 4 SECONDS SLIDE 2 SECONDS]",
        "each": "SELECT count(*) AS n FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS] LIMIT 1",
        "sessions": "SELECT count(*) AS n FROM s GROUP BY session_window(ts, '2 seconds')",
        "nobody": "SELECT count(*) AS n FROM s WHERE false GROUP BY session_window(ts, '1 second')",
    }
    results = run(spark, tmp_path, tables, "ts TIMESTAMP", texts, train_tuples=1)
    assert committed_rows(results / "windows") == {
        (2, 2): 1, (2, 4): 1, (2, 7202): 1, (2, 7204): 1,
    }  # fmt: skip
    assert committed_rows(results / "each") == {(2,): 4}
    assert committed_rows(results / "sessions") == {(2,): 2}
    assert not committed_rows(results / "nobody")


@pytest.mark.parametrize("lane", ["driver", pytest.param("job", marks=pytest.mark.long)])
def test_wide_rows(spark: SparkSession, tmp_path: Path, lane: str) -> None:
    count, mega = 12, 1 << 20
    columns = {f"c{n}": pa.array([n + row for row in range(count)]) for n in range(300)}
    long_texts = pa.array([chr(97 + row % 2) * mega + str(row) for row in range(count)])
    times = pa.array([row * 1_000_000 for row in range(count)]).cast(US)
    table = pa.table({**columns, "t": long_texts, "ts": times})
    ddl = ", ".join([*(f"c{n} BIGINT" for n in range(300)), "t STRING", "ts TIMESTAMP"])
    sums = ", ".join(f"sum(c{n}) AS c{n}" for n in range(300))
    texts = {
        "sums": f"SELECT {sums} FROM s [RANGE 4 SECONDS]",
        "all": "SELECT * FROM s [RANGE 4 SECONDS] ORDER BY c0 DESC LIMIT 1",
        "long": "SELECT max(t) AS t, count(*) AS n FROM s [RANGE 4 SECONDS] GROUP BY left(t, 1)",
        "sessions": "SELECT max(t) AS t, sum(c299) AS n FROM s"
        " GROUP BY substring(t, 1, 1000000), session_window(ts, '1 second')",
    }
    files = [table.slice(row, 4) for row in range(0, count, 4)]
    results = run(spark, tmp_path, files, ddl, texts, lane=lane)
    assert committed_rows(results / "sums") == Counter(
        tuple(sum(n + row for row in range(first, first + 4)) for n in range(300))
        for first in (0, 4)
    )
    rows = [tuple(row.values()) for row in table.slice(0, 8).to_pylist()]
    assert committed_rows(results / "all") == Counter(
        (*row[:-1], row[-1].timestamp()) for row in (rows[3], rows[7])
    )
    a, b = "a" * mega, "b" * mega
    assert committed_rows(results / "long") == {
        (a + "2", 2): 1, (b + "3", 2): 1, (a + "6", 2): 1, (b + "7", 2): 1,
    }  # fmt: skip
    texts_of_sessions = Counter((row[300], row[299]) for row in rows)
    assert committed_rows(results / "sessions") > texts_of_sessions, "plus two more sessions"


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
    wanted = {name: committed_rows(results / name).total() for name in texts}
    until(
        lambda: all(
            sum(map(len, delivered[name].values())) == count for name, count in wanted.items()
        ),
        gate,
    )
    gate.stop()
    assert wanted == {"windows": 12, "each": 6, "sessions": 27}
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
