"""The pipeline of the kill tests: what it is offered, and what must have come out at the end."""

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import yaml
from independent import Rows, committed_rows, rows_of
from sources import write_readings
from window_cases import SECOND, sessions, windows

from headgate.spark.log.journal import Journal
from headgate.workloads.forest import SCHEMA

ROWS = 200
STREAMS = ("sensors", "alarms", "masts")
"""No window keeps trains of the last: they are dropped while a query that is cut has them."""

LATENESS_S = {"sensors": 0, "alarms": 1, "masts": 0}
LATE_S = {"sensors": 0, "alarms": 3, "masts": 0}


@dataclass(frozen=True)
class Killed:
    """A query and what DuckDB is asked instead: over `all_NAME`, every tuple of a stream, or over
    those that are not late, where @upto is the time of the watermark behind the last tuple.

    `reads` is the view that it reads, `streams` are what that is made of.
    """

    sql: str
    oracle: str
    streams: tuple[str, ...] = ("sensors",)
    reads: str = ""
    query_class: str = "N"
    sink: str = "parquet"
    cut: bool = False


def _stateless(select: str, where: str, of: str = "sensors", **more: Any) -> Killed:
    return Killed(
        f"SELECT {select} FROM {of} WHERE {where}",
        f"SELECT {select} FROM all_{of} WHERE {where}".replace("*", "* EXCLUDE (us, n)"),
        streams=(of,),
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
    "warm_rows": Killed(
        "SELECT upper(location) AS place, t, ts FROM warm",
        f"SELECT upper(location), temperature, ts FROM all_sensors WHERE {WARM}",
        reads="warm",
    ),
    "warm_windows": Killed(
        "SELECT location, max(t) AS top, window.end AS e FROM warm [RANGE 1 SECOND]"
        " GROUP BY location",
        "SELECT location, max(temperature), make_timestamptz(e)"
        f" FROM {windows('sensors', SECOND, SECOND)} WHERE {WARM} GROUP BY location, e",
        reads="warm",
        query_class="H",
    ),
    "hot": _stateless("location, temperature, ts", "temperature > 30", query_class="H"),
    "dry": _stateless("location, humidity, ts", "humidity < 20", query_class="H"),
    "both": _stateless("*", "temperature > 20 AND humidity < 50"),
    "sum": _stateless("temperature + humidity AS total, ts", "true", "masts"),
    "cut": _stateless("upper(location) AS place, ts", "temperature > 25", "masts", cut=True),
    "sliding": Killed(
        "SELECT location, count(*) AS n, sum(temperature) AS total, window.end AS e FROM sensors"
        " [RANGE 2 SECONDS SLIDE 1 SECOND] WHERE humidity < 70 GROUP BY location",
        "SELECT location, count(*), sum(temperature)::BIGINT, make_timestamptz(e)"
        f" FROM {windows('sensors', 2 * SECOND, SECOND)} WHERE humidity < 70 GROUP BY location, e",
        query_class="H",
    ),
    "tumbling": Killed(
        "SELECT count(*) AS n, max(temperature) AS top, min(ts) AS first FROM alarms"
        " [RANGE 500 MILLISECONDS]",
        "SELECT count(*), max(temperature), min(ts)"
        f" FROM {windows('alarms', SECOND // 2, SECOND // 2)} GROUP BY e",
        streams=("alarms",),
    ),
    "sessions": Killed(
        "SELECT location, count(*) AS n, session_window.start AS s FROM alarms"
        " GROUP BY location, session_window(ts, '300 milliseconds')",
        "SELECT location, count(*), min(ts) FROM"
        f" {sessions('alarms', 300_000, 'location')} GROUP BY location, g"
        " HAVING max(us) + 300000 < @upto",
        streams=("alarms",),
    ),
    "near": Killed(
        "SELECT a.location, a.ts, b.ts AS until FROM sensors [RANGE 1 SECOND] a"
        " JOIN alarms [RANGE 1 SECOND] b ON a.location = b.location"
        " WHERE a.temperature > 35 AND b.humidity < 20",
        f"SELECT a.location, a.ts, b.ts FROM sensors a JOIN alarms b ON {NEAR}"
        " WHERE a.temperature > 35 AND b.humidity < 20",
        streams=BOTH,
        sink="callback",
    ),
    "bounded": Killed(
        "SELECT a.location, a.ts, b.ts AS until FROM sensors a LEFT JOIN alarms b"
        " ON a.location = b.location AND a.humidity = b.humidity"
        " AND b.ts BETWEEN a.ts - INTERVAL 200 MILLISECONDS AND a.ts",
        "SELECT a.location, a.ts, b.ts FROM sensors a LEFT JOIN alarms b"
        " ON a.location = b.location AND a.humidity = b.humidity"
        " AND b.us BETWEEN a.us - 200000 AND a.us WHERE b.us IS NOT NULL OR a.us < @upto",
        streams=BOTH,
    ),
    "alone": Killed(
        "SELECT a.location, a.ts FROM sensors [RANGE 1 SECOND] a LEFT ANTI JOIN"
        " alarms [RANGE 1 SECOND] b ON a.location = b.location AND a.humidity = b.humidity",
        f"SELECT a.location, a.ts FROM sensors a ANTI JOIN alarms b ON {NEAR}"
        " AND a.humidity = b.humidity WHERE a.us + 1000000 < @upto",
        streams=BOTH,
        query_class="H",
    ),
}


def write_pipeline(folder: Path, ingest: str) -> Path:
    """Writes the pipeline file; trains are dropped as soon as nobody needs them."""
    streams = {
        name: {
            "format": "parquet", "schema": SCHEMA, "trigger_s": 0, "ingest": ingest,
            "options": {"path": str(folder / name), "maxFilesPerTrigger": 1},
            "event_time": "ts", "lateness_s": LATENESS_S[name], "quiet_s": None,
            "late_path": str(folder / "late"),
        }
        for name in STREAMS
    }  # fmt: skip
    pipeline = {
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
                "class": each.query_class, "sql": each.sql, "cut": each.cut,
                "sink": {"format": each.sink},
            }
            for name, each in QUERIES.items()
        },
    }  # fmt: skip
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline))
    return file


def offer(folder: Path, first_file: int, files: int) -> dict[str, int]:
    """Puts more files before the streams; gives what each query has been offered in all."""
    for seed, name in enumerate(STREAMS):
        write_readings(folder / name, files, ROWS, seed, first_file, LATE_S[name])
        for number in range(first_file, first_file + files):
            # Structured Streaming takes the oldest first, and knows milliseconds only.
            os.utime(folder / name / f"{number:04d}.parquet", (number, number))
    tuples = (first_file + files) * ROWS
    files_of = f"read_parquet('{folder}/sensors/*.parquet')"
    ((warm,),) = duckdb.sql(f"SELECT count(*) FROM {files_of} WHERE {WARM}").fetchall()
    of_queries = {
        name: warm if each.reads else tuples * len(each.streams) for name, each in QUERIES.items()
    }
    return {**of_queries, **dict.fromkeys(VIEWS, tuples)}


def check_results(folder: Path, deaths: int) -> None:
    """Holds what was committed, delivered and put aside against DuckDB and the source's files."""
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for name in STREAMS:
            _read(db, folder, name)
        for name, each in QUERIES.items():
            upto = min(_watermark(db, stream) for stream in each.streams)
            expected = rows_of(db, each.oracle.replace("@upto", str(upto)))
            if each.sink == "callback":
                found = _delivered(folder / "state" / "delivered" / name, deaths)
            else:
                found = committed_rows(folder / "state" / "results" / name)
            assert found == expected, (name, found - expected, expected - found)
            assert found, name
        late = "SELECT n FROM all_alarms WHERE n NOT IN (SELECT n FROM alarms)"
        aside = f"SELECT _number FROM read_parquet('{folder}/late/*.parquet')"
        assert rows_of(db, aside) == rows_of(db, late)
    journal = Journal(folder / "state")
    for name in STREAMS:
        kept = {f"{train.number:012d}.parquet" for train in journal.trains(name)}
        _check_files(folder, name, kept)
        assert len(kept) < len(list((folder / name).iterdir())), name
    for name in VIEWS:
        kept = {f"{train.number:012d}.parquet" for train in journal.trains(name)}
        _check_files(folder, name, kept)
    journal.close()


def _check_files(folder: Path, stream: str, kept: set[str]) -> None:
    assert {file.name for file in (folder / "state" / "log" / stream).iterdir()} == kept


def _read(db: duckdb.DuckDBPyConnection, folder: Path, name: str) -> None:
    """Makes two tables of a stream: all of its tuples, and those that are not late."""
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
    """What a receiver has that knows a result by its key: each death brings one again at most."""
    files = sorted(folder.glob("*.parquet"))
    found = {file.name.partition("@")[0]: pq.read_table(file) for file in files}
    for file in files:
        assert pq.read_table(file).equals(found[file.name.partition("@")[0]]), file
    assert len(files) - len(found) <= deaths
    rows: Rows = Counter()
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for table in found.values():
            db.register("delivered", table)
            rows += rows_of(db, "FROM delivered")
    return rows
