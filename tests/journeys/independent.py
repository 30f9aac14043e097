"""Expected answers: DuckDB runs the same SQL over the same rows."""

import json
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

Rows = Counter[tuple[Any, ...]]


def expected_rows(sql: str, source: Path, stream: str = "sensors") -> Rows:
    """Return DuckDB's answer over every row of the source's Parquet files."""
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        db.execute(f"CREATE VIEW {stream} AS SELECT * FROM read_parquet('{source}/*.parquet')")
        return rows_of(db, sql)


def committed_rows(folder: Path) -> Rows:
    """Return the rows of a query's result files, read as any reader would: no hidden files.

    If there is a manifest, it says which files count.
    """
    names = f"'{folder}/*.parquet'"
    if (manifest := folder / "_manifest").exists():
        names = str([f"{folder}/{line}" for line in manifest.read_text().splitlines()])
    json_files = sorted(folder.glob("*.json"))
    if json_files:
        lines = [json.loads(line) for file in json_files for line in file.read_text().splitlines()]
        return _counted(tuple(line.values()) for line in lines)
    if not list(folder.glob("*.parquet")):
        return Counter()
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        return rows_of(db, f"SELECT * FROM read_parquet({names})")


def rows_of(db: duckdb.DuckDBPyConnection, sql: str) -> Rows:
    """Return DuckDB's answer, ignoring the order of rows."""
    table = db.sql(sql).to_arrow_table()
    return _counted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _counted(rows: Iterable[tuple[Any, ...]]) -> Rows:
    return Counter(tuple(_plain(value) for value in row) for row in rows)


def _plain(value: Any) -> Any:
    return value.timestamp() if isinstance(value, datetime) else value
