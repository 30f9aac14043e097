"""Two streams with the hard cases of time: late tuples, tuples without a time, duplicates."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from kit.gates import new_gate, of_two_classes
from kit.streams import file_stream
from pyspark.sql import SparkSession

from headgate import Headgate

SCHEMA = "k STRING, v INT, ts TIMESTAMP"
BASE = datetime(2024, 3, 31, 0, 59, tzinfo=UTC)  # one minute before Europe's clocks go forward
LATENESS_S = 4

Row = tuple[str | None, int, datetime | None]


def rows_of(seed: int, count: int) -> list[Row]:
    """Return readings of three places: mostly in order, some late, some without a time or a place.

    Every ninth reading occurs twice.
    """
    rng = np.random.default_rng(seed)
    now, rows = 0.0, []
    for number in range(count):
        now += rng.exponential(0.4)
        time_s = round(now - rng.choice([0, 0, 0, 1.5, 3, 12]), 1)
        time = None if rng.random() < 0.05 else BASE + timedelta(seconds=time_s)
        place = None if rng.random() < 0.1 else "abc"[rng.integers(3)]
        rows.append((place, int(rng.integers(0, 20)), time))
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
    """Return the rows that are not late, in order, and the watermark after the last row."""
    punctual: list[Row] = []
    top: datetime | None = None
    for row in rows:
        if row[2] is not None:
            if top is None or row[2] >= top - timedelta(seconds=lateness_s):
                punctual.append(row)
            top = row[2] if top is None else max(top, row[2])
    assert top is not None
    return punctual, top - timedelta(seconds=lateness_s)


def gate_over(spark: SparkSession, folder: Path, texts: Mapping[str, str], **more: Any) -> Headgate:
    """Return a Headgate over the files of `folder/left` and `folder/right`, if they exist."""
    streams = [
        file_stream(f"{name}s", folder / name, SCHEMA, lateness_s=LATENESS_S)
        for name in ("left", "right")
        if (folder / name).exists()
    ]
    settings = {"classes": {"H": 6, "N": 1}, **more}
    return new_gate(spark, folder, streams, of_two_classes(texts), **settings)


def answer(sql: str, **relations: list[Row]) -> Counter[tuple[Any, ...]]:
    """Return DuckDB's answer to a query over relations of rows."""
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
        result = db.sql(sql).to_arrow_table()
        rows_ = zip(*(column.to_pylist() for column in result.columns), strict=True)
        return Counter(tuple(plain(value) for value in row) for row in rows_)


def plain(value: Any) -> Any:
    return value.timestamp() if isinstance(value, datetime) else value


def windows(size_s: int, slide_s: int, upto: datetime, relation: str = "lefts") -> str:
    """Return a DuckDB relation that has a row once for each closed window that contains it.

    The column `e` is the end of the window.
    """
    return (
        f"(SELECT r.*, e.e AS e FROM {relation} r JOIN (SELECT unnest(generate_series("
        f"TIMESTAMPTZ '2024-03-31 00:58:00+00', TIMESTAMPTZ '{upto.isoformat()}',"
        f" INTERVAL {slide_s} SECOND)) AS e) e"
        f" ON r.ts < e.e AND r.ts >= e.e - INTERVAL {size_s} SECOND)"
    )
