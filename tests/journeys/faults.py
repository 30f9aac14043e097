"""Queries over sensor readings, and the check of their results."""

from collections.abc import Mapping
from pathlib import Path

from independent import committed_rows, expected_rows

from headgate import Headgate

HOT = "SELECT location, temperature, ts FROM sensors WHERE temperature > 30"
DRY = "SELECT location, humidity, ts FROM sensors WHERE humidity < 20"
ALL = "SELECT * FROM sensors"


def same(
    gate: Headgate, source: Path, folders: Mapping[str, Path] | None = None, **queries: str
) -> None:
    """Check the results of queries against DuckDB's answers, even if a query was dropped.

    Args:
        folders: the result folders of queries whose results are not in the state directory.
    """
    for name, sql in queries.items():
        folder = (folders or {}).get(name, gate.state / "results" / name)
        assert committed_rows(folder) == expected_rows(sql, source), name
