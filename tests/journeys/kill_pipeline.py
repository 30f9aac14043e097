"""The pipeline of the kill tests: its input, its queries, and the results it must produce."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import yaml
from independent import Rows, committed_rows, rows_of
from sources import write_readings
from window_cases import SECOND, sessions, windows

from headgate.spark.journal.journal import Journal
from headgate.workloads.testbeds.forest import SCHEMA

ROWS = 200
STREAMS = ("sensors", "alarms", "masts")
"""No window needs the trains of `masts`, so they are dropped while a cut query still has them."""

LATENESS_S = {"sensors": 0, "alarms": 1, "masts": 0}
LATE_S = {"sensors": 0, "alarms": 3, "masts": 0}


@dataclass(frozen=True)
class KilledQuery:
    """A query of the pipeline and the equivalent query for DuckDB.

    The DuckDB query reads `all_NAME`, every tuple of a stream, or `NAME`, its tuples that are not
    late. In its text, @upto stands for the watermark after the last tuple.

    Args:
        streams: the streams that the query reads, directly or through a view.
        reads: the view that the query reads, if it reads one.
    """

    sql: str
    oracle: str
    streams: tuple[str, ...] = ("sensors",)
    reads: str = ""
    query_class: str = "N"
    sink: str = "parquet"
    rhythm: Mapping[str, Any] = field(default_factory=dict)
    cut: bool = False


def _stateless(select: str, where: str, stream: str = "sensors", **more: Any) -> KilledQuery:
    return KilledQuery(
        f"SELECT {select} FROM {stream} WHERE {where}",
        f"SELECT {select} FROM all_{stream} WHERE {where}".replace("*", "* EXCLUDE (us, n)"),
        streams=(stream,),
        **more,
    )


BOTH = ("sensors", "alarms")
NEAR = "abs(a.us - b.us) <= 1000000 AND a.location = b.location"

WARM = "temperature > 25"
VIEWS = {
    "warm": {
        "sql": f"SELECT location, temperature AS t, ts FROM sensors WHERE {WARM}",
        "event_time": "ts",
    }
}

QUERIES = {
    "warm_rows": KilledQuery(
        "SELECT upper(location) AS place, t, ts FROM warm",
        f"SELECT upper(location), temperature, ts FROM all_sensors WHERE {WARM}",
        reads="warm",
    ),
    "warm_windows": KilledQuery(
        "SELECT location, max(t) AS top, window.end AS e FROM warm [RANGE 1 SECOND]"
        " GROUP BY location",
        "SELECT location, max(temperature), make_timestamptz(e)"
        f" FROM {windows('sensors', SECOND, SECOND)} WHERE {WARM} GROUP BY location, e",
        reads="warm",
        query_class="H",
    ),
    "hot": _stateless(
        "location, temperature, ts",
        "temperature > 30",
        query_class="H",
        rhythm={"commit_every_s": 0.1, "compact": True},
    ),
    "dry": _stateless(
        "location, humidity, ts", "humidity < 20", query_class="H", rhythm={"compact": True}
    ),
    "both": _stateless("*", "temperature > 20 AND humidity < 50"),
    "sum": _stateless("temperature + humidity AS total, ts", "true", "masts"),
    "cut": _stateless("upper(location) AS place, ts", "temperature > 25", "masts", cut=True),
    "sliding": KilledQuery(
        "SELECT location, count(*) AS n, sum(temperature) AS total, window.end AS e FROM sensors"
        " [RANGE 2 SECONDS SLIDE 1 SECOND] WHERE humidity < 70 GROUP BY location",
        "SELECT location, count(*), sum(temperature)::BIGINT, make_timestamptz(e)"
        f" FROM {windows('sensors', 2 * SECOND, SECOND)} WHERE humidity < 70 GROUP BY location, e",
        query_class="H",
    ),
    "tumbling": KilledQuery(
        "SELECT count(*) AS n, max(temperature) AS top, min(ts) AS first FROM alarms"
        " [RANGE 500 MILLISECONDS]",
        "SELECT count(*), max(temperature), min(ts)"
        f" FROM {windows('alarms', SECOND // 2, SECOND // 2)} GROUP BY e",
        streams=("alarms",),
    ),
    "sessions": KilledQuery(
        "SELECT location, count(*) AS n, session_window.start AS s FROM alarms"
        " GROUP BY location, session_window(ts, '300 milliseconds')",
        "SELECT location, count(*), min(ts) FROM"
        f" {sessions('alarms', 300_000, 'location')} GROUP BY location, g"
        " HAVING max(us) + 300000 < @upto",
        streams=("alarms",),
    ),
    "near": KilledQuery(
        "SELECT a.location, a.ts, b.ts AS until FROM sensors [RANGE 1 SECOND] a"
        " JOIN alarms [RANGE 1 SECOND] b ON a.location = b.location"
        " WHERE a.temperature > 35 AND b.humidity < 20",
        f"SELECT a.location, a.ts, b.ts FROM sensors a JOIN alarms b ON {NEAR}"
        " WHERE a.temperature > 35 AND b.humidity < 20",
        streams=BOTH,
        sink="callback",
    ),
    "bounded": KilledQuery(
        "SELECT a.location, a.ts, b.ts AS until FROM sensors a LEFT JOIN alarms b"
        " ON a.location = b.location AND a.humidity = b.humidity"
        " AND b.ts BETWEEN a.ts - INTERVAL 200 MILLISECONDS AND a.ts",
        "SELECT a.location, a.ts, b.ts FROM sensors a LEFT JOIN alarms b"
        " ON a.location = b.location AND a.humidity = b.humidity"
        " AND b.us BETWEEN a.us - 200000 AND a.us WHERE b.us IS NOT NULL OR a.us < @upto",
        streams=BOTH,
    ),
    "alone": KilledQuery(
        "SELECT a.location, a.ts FROM sensors [RANGE 1 SECOND] a LEFT ANTI JOIN"
        " alarms [RANGE 1 SECOND] b ON a.location = b.location AND a.humidity = b.humidity",
        f"SELECT a.location, a.ts FROM sensors a ANTI JOIN alarms b ON {NEAR}"
        " AND a.humidity = b.humidity WHERE a.us + 1000000 < @upto",
        streams=BOTH,
        query_class="H",
    ),
}


def write_pipeline(folder: Path, ingest: str) -> Path:
    """Write the pipeline file; its retention drops trains as soon as no query needs them."""
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline_of(folder, ingest, QUERIES)))
    return file


def pipeline_of(folder: Path, ingest: str, names: Iterable[str]) -> dict[str, Any]:
    """Return the contents of a pipeline file with some of the queries."""
    streams = {
        name: {
            "format": "parquet", "schema": SCHEMA, "trigger_s": 0.01, "ingest": ingest,
            "options": {"path": str(folder / name), "maxFilesPerTrigger": 1},
            "event_time": "ts", "lateness_s": LATENESS_S[name], "quiet_s": None,
            "late_path": str(folder / "late"),
        }
        for name in STREAMS
    }  # fmt: skip
    queries = {name: QUERIES[name] for name in names}
    return {
        "state": str(folder / "state"),
        "rehearsal_s": 0,
        "retention_s": 0,
        "train_tuples": ROWS,
        "spark": {"master": "local[2]"},
        "classes": {"H": 6, "N": 1},
        "streams": streams,
        "views": VIEWS,
        "queries": {
            name: {
                "class": query.query_class, "sql": query.sql, "cut": query.cut,
                "sink": {"format": query.sink, **query.rhythm},
            }
            for name, query in queries.items()
        },
    }  # fmt: skip


def offer(folder: Path, first_file: int, files: int) -> dict[str, int]:
    """Write more files for the streams; return how many tuples each query has been offered."""
    for seed, name in enumerate(STREAMS):
        new, source = folder / "new" / name, folder / name
        new.mkdir(parents=True, exist_ok=True)
        source.mkdir(exist_ok=True)
        write_readings(new, files, ROWS, seed, first_file, LATE_S[name])
        for number in range(first_file, first_file + files):
            file = new / f"{number:04d}.parquet"
            # Structured Streaming reads the oldest file first, and its ages are in milliseconds.
            os.utime(file, (number, number))
            file.rename(source / file.name)
    tuples = (first_file + files) * ROWS
    sensors = f"read_parquet('{folder}/sensors/*.parquet')"
    ((warm,),) = duckdb.sql(f"SELECT count(*) FROM {sensors} WHERE {WARM}").fetchall()
    tuples_by_query = {
        name: warm if query.reads else tuples * len(query.streams)
        for name, query in QUERIES.items()
    }
    return {**tuples_by_query, **dict.fromkeys(VIEWS, tuples)}


@contextmanager
def sources_in(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a database with two tables of each stream: all of its tuples, and those in time."""
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for name in STREAMS:
            _read(db, folder, name)
        yield db


def answer(db: duckdb.DuckDBPyConnection, name: str) -> Rows:
    """Return DuckDB's answer of a query over the source's files."""
    query = QUERIES[name]
    upto = min(_watermark(db, stream) for stream in query.streams)
    return rows_of(db, query.oracle.replace("@upto", str(upto)))


def late_tuples(db: duckdb.DuckDBPyConnection, folder: Path) -> tuple[Rows, Rows]:
    """Return the numbers of the late alarms: those that were put aside, and DuckDB's answer."""
    aside = f"SELECT _number FROM read_parquet('{folder}/late/*.parquet')"
    late = "SELECT n FROM all_alarms WHERE n NOT IN (SELECT n FROM alarms)"
    return rows_of(db, aside), rows_of(db, late)


def check_results(folder: Path, deaths: int) -> None:
    """Check the committed, delivered and late tuples against DuckDB over the source's files.

    Check also that the log holds exactly the trains of the journal, and fewer than were written.
    """
    with sources_in(folder) as db:
        for name, query in QUERIES.items():
            expected = answer(db, name)
            if query.sink == "callback":
                results = _delivered(folder / "state" / "delivered" / name, deaths)
            else:
                results = committed_rows(folder / "state" / "results" / name)
            assert results == expected, (name, results - expected, expected - results)
            assert results, name
        aside, late = late_tuples(db, folder)
        assert aside == late
    journal = Journal(folder / "state")
    for name in STREAMS:
        trains = {f"{train.number:012d}.parquet" for train in journal.trains(name)}
        _check_files(folder, name, trains)
        assert len(trains) < len(list((folder / name).iterdir())), name
    for name in VIEWS:
        trains = {f"{train.number:012d}.parquet" for train in journal.trains(name)}
        _check_files(folder, name, trains)
    journal.close()


def _check_files(folder: Path, stream: str, trains: set[str]) -> None:
    assert {file.name for file in (folder / "state" / "log" / stream).iterdir()} == trains


def _read(db: duckdb.DuckDBPyConnection, folder: Path, name: str) -> None:
    """Create two tables of a stream: all of its tuples, and those that are not late."""
    db.execute(
        f"CREATE TABLE all_{name} AS SELECT * EXCLUDE (filename, file_row_number),"
        " epoch_us(ts) AS us, row_number() OVER (ORDER BY filename, file_row_number) - 1 AS n"
        f" FROM read_parquet('{folder}/{name}/*.parquet', filename = true, file_row_number = true)"
    )
    before = "max(us) OVER (ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    db.execute(
        f"CREATE TABLE {name} AS SELECT * EXCLUDE (top) FROM (SELECT *, {before} AS top"
        f" FROM all_{name}) WHERE top IS NULL OR us >= top - {LATENESS_S[name] * SECOND}"
    )


def _watermark(db: duckdb.DuckDBPyConnection, stream: str) -> int:
    ((top,),) = db.sql(f"SELECT max(us) FROM {stream}").fetchall()
    return int(top) - LATENESS_S[stream] * SECOND


def _delivered(folder: Path, deaths: int) -> Rows:
    """Return the rows that a receiver has if it keeps one result per key.

    Check that repeated deliveries of a key are equal, and that each death repeats at most one.
    """
    files = sorted(folder.glob("*.parquet"))
    tables = {file.name.partition("@")[0]: pq.read_table(file) for file in files}
    for file in files:
        assert pq.read_table(file).equals(tables[file.name.partition("@")[0]]), file
    assert len(files) - len(tables) <= deaths
    rows: Rows = Counter()
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for table in tables.values():
            db.register("delivered", table)
            rows += rows_of(db, "FROM delivered")
    return rows
