"""Queries and checks shared by the tests in which queries are added and dropped during a run."""

from pathlib import Path

from faults import ALL, HOT
from independent import committed_rows, expected_rows

from headgate import Headgate

__all__ = ["ALL", "DRY", "HOT", "same"]

DRY = "SELECT location, humidity, ts FROM sensors WHERE humidity < 20"


def same(gate: Headgate, folder: Path, name: str, sql: str) -> None:
    """Check the results of a query against DuckDB's answer, even if the query was dropped."""
    assert committed_rows(gate.state / "results" / name) == expected_rows(sql, folder), name
