"""Windows and joins give what the same SQL gives over the rows that are not late."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crash import CrashAt
from independent import committed_rows
from pyspark.sql import SparkSession
from sources import balanced, consume, until

from headgate import Headgate, Query, Stream
from headgate.errors import QueryRefused
from headgate.runtime.recorded import recorded_statistics

pytestmark = pytest.mark.spark

SCHEMA = "k STRING, v INT, ts TIMESTAMP"
BASE = datetime(2024, 3, 31, 0, 59, tzinfo=UTC)  # clocks in Europe go forward a minute later
LATENESS_S = 4

Row = tuple[str | None, int, datetime | None]


def rows_of(seed: int, count: int) -> list[Row]:
    """Readings of some places: mostly in order, some late, some without time or place, twins."""
    luck = np.random.default_rng(seed)
    now, rows = 0.0, []
    for number in range(count):
        now += luck.exponential(0.4)
        at_s = round(now - luck.choice([0, 0, 0, 1.5, 3, 12]), 1)
        time = None if luck.random() < 0.05 else BASE + timedelta(seconds=at_s)
        place = None if luck.random() < 0.1 else "abc"[luck.integers(3)]
        rows.append((place, int(luck.integers(0, 20)), time))
        if number % 9 == 0:
            rows.append(rows[-1])
    return rows


def write(folder: Path, rows: list[Row], files: int) -> None:
    folder.mkdir(exist_ok=True)
    for number in range(files):
        part = rows[number * len(rows) // files : (number + 1) * len(rows) // files]
        table = pa.table(
            {
                "k": pa.array([row[0] for row in part], pa.string()),
                "v": pa.array([row[1] for row in part], pa.int32()),
                "ts": pa.array([row[2] for row in part], pa.timestamp("us", tz="UTC")),
            }
        )
        pq.write_table(table, folder / f"{number:04d}.parquet")


def in_time(rows: list[Row], lateness_s: float = LATENESS_S) -> tuple[list[Row], datetime]:
    """The rows that are not late, one after the other, and the watermark behind the last."""
    kept: list[Row] = []
    top: datetime | None = None
    for row in rows:
        if row[2] is not None:
            if top is None or row[2] >= top - timedelta(seconds=lateness_s):
                kept.append(row)
            top = row[2] if top is None else max(top, row[2])
    assert top is not None
    return kept, top - timedelta(seconds=lateness_s)


def gate_over(spark: SparkSession, folder: Path, texts: Mapping[str, str], **more: Any) -> Headgate:
    settings = {"state": folder / "state", "classes": {"H": 6, "N": 1}, "rehearsal_s": 0}
    gate = Headgate(spark, **{**settings, **more})
    for name in ("left", "right"):
        if (folder / name).exists():
            gate.add_stream(
                Stream(
                    name=name + "s", format="parquet", schema=SCHEMA, event_time="ts",
                    options={"path": str(folder / name), "maxFilesPerTrigger": "1"},
                    trigger_s=0, lateness_s=LATENESS_S, quiet_s=None,
                )
            )  # fmt: skip
    for number, (name, sql) in enumerate(texts.items()):
        gate.add_query(Query(name=name, sql=sql, query_class="HN"[number % 2]))
    return gate


def answer(sql: str, **relations: list[Row]) -> Counter[tuple[Any, ...]]:
    """What DuckDB says over rows; `ends(slide)` are multiples of so many seconds."""
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for name, rows in relations.items():
            table = pa.table(
                {
                    "k": pa.array([row[0] for row in rows], pa.string()),
                    "v": pa.array([row[1] for row in rows], pa.int32()),
                    "ts": pa.array([row[2] for row in rows], pa.timestamp("us", tz="UTC")),
                }
            )
            db.register(name, table)
        found = db.sql(sql).to_arrow_table()
        rows_ = zip(*(column.to_pylist() for column in found.columns), strict=True)
        return Counter(tuple(_plain(value) for value in row) for row in rows_)


def _plain(value: Any) -> Any:
    return value.timestamp() if isinstance(value, datetime) else value


def windows(size_s: int, slide_s: int, upto: datetime, of: str = "lefts") -> str:
    """A relation of rows with the end of each window that has them and has closed, in DuckDB."""
    return (
        f"(SELECT r.*, e.e AS e FROM {of} r JOIN (SELECT unnest(generate_series("
        f"TIMESTAMPTZ '2024-03-31 00:58:00+00', TIMESTAMPTZ '{upto.isoformat()}',"
        f" INTERVAL {slide_s} SECOND)) AS e) e"
        f" ON r.ts < e.e AND r.ts >= e.e - INTERVAL {size_s} SECOND)"
    )


AGGREGATES = {
    "sliding": (
        "SELECT k, count(*) AS n, sum(v) AS total, window.end AS e FROM lefts"
        " [RANGE 20 SECONDS SLIDE 5 SECONDS] WHERE v > 2 GROUP BY k HAVING count(*) > 1",
        "SELECT k, count(*), sum(v)::BIGINT, e FROM {20,5} WHERE v > 2 GROUP BY k, e"
        " HAVING count(*) > 1",
    ),
    "tumbling": (
        "SELECT count(*) AS n, max(v) AS top, min(ts) AS first FROM lefts [RANGE 10 SECONDS]",
        "SELECT count(*), max(v), min(ts) FROM {10,10} GROUP BY e",
    ),
    "spark": (
        "SELECT window.start AS s, k, avg(v) AS mean FROM lefts"
        " GROUP BY window(ts, '30 seconds', '10 seconds'), k",
        "SELECT e - INTERVAL 30 SECOND, k, avg(v) FROM {30,10} GROUP BY k, e",
    ),
    "distinct": (
        "SELECT DISTINCT k FROM lefts [RANGE 10 SECONDS SLIDE 10 SECONDS]",
        "SELECT k FROM (SELECT DISTINCT k, e FROM {10,10})",
    ),
    "best": (
        "SELECT v, k FROM lefts [RANGE 20 SECONDS SLIDE 10 SECONDS] WHERE k IS NOT NULL"
        " ORDER BY v DESC, k, ts LIMIT 2",
        "SELECT v, k FROM (SELECT *, row_number() OVER (PARTITION BY e ORDER BY v DESC, k, ts) AS p"
        " FROM {20,10} WHERE k IS NOT NULL) WHERE p <= 2",
    ),
    "median": (
        "WITH hot AS (SELECT * FROM lefts [RANGE 20 SECONDS] WHERE v > 5)"
        " SELECT k, percentile(v, 0.5) AS m FROM hot GROUP BY k",
        "SELECT k, quantile_cont(v, 0.5) FROM {20,20} WHERE v > 5 GROUP BY k, e",
    ),
}


def _expected(sql: str, rows: list[Row]) -> Counter[tuple[Any, ...]]:
    kept, upto = in_time(rows)
    for size, slide in ((20, 5), (10, 10), (30, 10), (20, 10), (20, 20)):
        sql = sql.replace(f"{{{size},{slide}}}", windows(size, slide, upto))
    return answer(sql, lefts=kept)


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[list[Row]]:
    rows = rows_of(7, 150)
    write(tmp_path / "left", rows, 6)
    return rows


@pytest.mark.parametrize("policy", ["cqc", pytest.param("edf", marks=pytest.mark.long)])
@pytest.mark.parametrize("train_tuples", [1, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("lane", ["driver", "job"])
def test_windows_that_have_closed(
    spark: SparkSession, tmp_path: Path, rows: list[Row], policy: str, train_tuples: int, lane: str
) -> None:
    texts = {name: sql for name, (sql, _) in AGGREGATES.items()}
    gate = gate_over(spark, tmp_path, texts, policy=policy, train_tuples=train_tuples, lane=lane)
    gate.start()
    consume(gate, len(rows))
    lanes = {name: gate.explanation(name).lane or "" for name in texts}
    assert lanes["sliding"].startswith(f"{lane}: all windows that have closed at once")
    assert lanes["best"].startswith("job: one window that has closed after the other")
    report = gate.stop()
    assert report is not None
    assert not report.errors
    for name, (_, sql) in AGGREGATES.items():
        found = committed_rows(tmp_path / "state" / "results" / name)
        assert found == _expected(sql, rows), name
        assert found, name
    kept, _ = in_time(rows)
    timeless = sum(row[2] is None for row in rows)
    account = gate.accounts()["sliding"]
    assert account.late == len(rows) - len(kept) - timeless > 0
    assert account.delivered == len(kept)
    balanced(gate)


def test_windows_of_many_sizes_share_their_panes(
    spark: SparkSession, tmp_path: Path, rows: list[Row]
) -> None:
    sizes = [(20, 5), (10, 10), (30, 10), (6, 4), (3, 6)]
    aggregates = "count(*) AS n, sum(v) AS s, avg(v) AS m, min(v) AS low, max(ts) AS last"
    texts = {
        f"w{size}_{slide}": f"SELECT k, {aggregates} FROM lefts [RANGE {size} SECONDS"
        f" SLIDE {slide} SECONDS] WHERE v > 2 GROUP BY k HAVING sum(v) > 3"
        for size, slide in sizes
    }
    gate = gate_over(spark, tmp_path, texts, train_tuples=30)
    gate.start()
    consume(gate, len(rows))
    windowed = gate._engine._executor.windowed
    panes = windowed._panes
    assert windowed.memory_bytes == sum(
        table.nbytes for each in panes.values() for table in each._made.values() if table
    )
    assert windowed.memory_bytes > 0
    windowed.spare_memory()
    assert windowed.memory_bytes == 0
    gate.stop()
    assert len(panes) == 2  # one a class
    assert sorted(each._width for each in panes.values()) == [1_000_000, 2_000_000]
    kept, upto = in_time(rows)
    for (size, slide), name in zip(sizes, texts, strict=True):
        found = committed_rows(tmp_path / "state" / "results" / name)
        assert found == answer(
            "SELECT k, count(*), sum(v)::BIGINT, avg(v), min(v), max(ts) FROM"
            f" {windows(size, slide, upto)} WHERE v > 2 GROUP BY k, e HAVING sum(v) > 3", lefts=kept
        ), name  # fmt: skip
        assert found


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
    found = committed_rows(tmp_path / "state" / "results" / "join")
    assert found == answer(
        "SELECT a.k, a.v, b.v, b.ts FROM lefts a JOIN rights b ON a.k = b.k"
        " AND a.ts >= b.ts - INTERVAL 6 SECOND AND b.ts >= a.ts - INTERVAL 2 SECOND"
        " WHERE a.v > b.v OR b.v = 3", lefts=a, rights=b,
    )  # fmt: skip
    assert found
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
    shown = committed_rows(tmp_path / "state" / "results" / "shown")
    assert shown == answer(
        f"SELECT a.k, a.v, a.e - INTERVAL 5 SECOND, a.e FROM {windows(10, 5, upto)} a"
        f" JOIN {windows(5, 5, upto, 'rights')} b ON a.k = b.k AND a.v = b.v AND a.e = b.e"
        " WHERE a.ts < a.e - INTERVAL 5 SECOND", lefts=a, rights=b,
    )  # fmt: skip
    assert shown
    many = committed_rows(tmp_path / "state" / "results" / "many")
    assert many == answer(
        "SELECT a.v, b.v FROM lefts a JOIN rights b ON a.k = b.k"
        " AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 6000000", lefts=a, rights=b,
    )  # fmt: skip
    # More comes out than goes in, and the next run knows.
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
        found = committed_rows(tmp_path / "state" / "results" / name)
        assert found == answer(
            f"SELECT {columns} FROM lefts a {kind.replace('LEFT S', 'S').replace('LEFT A', 'A')}"
            " JOIN rights b ON a.k = b.k AND a.v < b.v + 5 AND a.ts >= b.ts - INTERVAL 1 SECOND"
            f" AND b.ts >= a.ts - INTERVAL 2 SECOND WHERE {final}", lefts=a, rights=b,
        ), kind  # fmt: skip
        assert found, kind
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
    gate = gate_over(spark, tmp_path, texts)
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
        found = committed_rows(tmp_path / "state" / "results" / name)
        assert found == answer(sql, lefts=rows), name
    balanced(gate)


@pytest.mark.parametrize("point", ["results written", "step journalled", "train journalled"])
def test_a_crash_changes_nothing(
    spark: SparkSession, tmp_path: Path, rows: list[Row], point: str
) -> None:
    texts = {name: AGGREGATES[name][0] for name in ("sliding", "best")}
    crash = CrashAt(point, 2)
    first = gate_over(spark, tmp_path, texts, workers=1, reached=crash)
    first.start()
    until(crash.dead.is_set, first)
    first.stop()
    second = gate_over(spark, tmp_path, texts)
    second.start()
    consume(second, len(rows))
    second.stop()
    for name in texts:
        found = committed_rows(tmp_path / "state" / "results" / name)
        assert found == _expected(AGGREGATES[name][1], rows), name
    balanced(second)


@pytest.mark.parametrize("lane", ["driver", "job"])
def test_a_tuple_at_fault_fails_its_own_windows_alone(
    spark: SparkSession, tmp_path: Path, lane: str
) -> None:
    keys = ["1", "2", "bad", "3"]
    rows: list[Row] = [
        (key, 1, BASE + timedelta(seconds=2 * number)) for number, key in enumerate(keys)
    ]
    write(tmp_path / "left", rows, 1)  # all in one train
    sql = "SELECT sum(CAST(k AS INT)) AS s, count(*) AS n FROM lefts [RANGE 2 SECONDS] GROUP BY v"
    gate = gate_over(spark, tmp_path, {"q": sql}, lane=lane)
    gate.start()
    consume(gate, len(rows))
    gate.stop()
    assert gate.query("q").exception() is None  # the window of the bad one is open
    assert committed_rows(tmp_path / "state" / "results" / "q") == Counter({(1, 1): 1})


def test_a_quiet_stream_closes_its_windows(spark: SparkSession, tmp_path: Path) -> None:
    rows: list[Row] = [("a", 1, BASE), ("b", 2, BASE + timedelta(seconds=1))]
    write(tmp_path / "left", rows, 1)
    gate = Headgate(spark, state=tmp_path / "state", rehearsal_s=0)
    gate.add_stream(
        Stream(
            name="lefts", format="parquet", schema=SCHEMA, event_time="ts", quiet_s=0.2,
            options={"path": str(tmp_path / "left")},
        )
    )  # fmt: skip
    sql = "SELECT count(*) AS n FROM lefts [RANGE 2 SECONDS SLIDE 2 SECONDS]"
    gate.add_query(Query(name="q", sql=sql, query_class="default"))
    gate.start()
    until(lambda: gate.totals()["q"][1] == 1, gate)
    gate.stop()
    assert committed_rows(tmp_path / "state" / "results" / "q") == Counter({(2,): 1})
