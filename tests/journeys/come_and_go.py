"""What journeys with queries that come and go have in common."""

from pathlib import Path

from faults import ALL, HOT
from independent import committed_rows, expected_rows

from headgate import Headgate

__all__ = ["ALL", "DRY", "HOT", "same"]

DRY = "SELECT location, humidity, ts FROM sensors WHERE humidity < 20"


def same(gate: Headgate, folder: Path, name: str, sql: str) -> None:
    """Holds the results of a query, which may be gone, against DuckDB's answer."""
    assert committed_rows(gate.state / "results" / name) == expected_rows(sql, folder), name
