"""Queries and checks shared by the tests of faults."""

from pathlib import Path

from independent import committed_rows, expected_rows

from headgate import Headgate

HOT = "SELECT location, temperature, ts FROM sensors WHERE temperature > 30"
ALL = "SELECT * FROM sensors"


def same(gate: Headgate, source: Path, **queries: str) -> None:
    for name, sql in queries.items():
        folder = Path(gate.explanation(name).sink.removeprefix("parquet "))
        assert committed_rows(folder) == expected_rows(sql, source), name
