"""A run of one query text with several sinks, and a receiver of what is delivered."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from independent import Rows
from pyspark.sql import SparkSession
from sources import consume, gate_over

from headgate import Headgate, Query, Sink

HOT = "SELECT location, temperature FROM sensors WHERE temperature > 35"


class Receiver:
    """A record of what was delivered, as somebody outside the process has it."""

    def __init__(self) -> None:
        self.deliveries: list[tuple[str, Rows]] = []

    def __call__(self, table: pa.Table, key: str) -> None:
        self.deliveries.append((key, rows_of(table)))

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.deliveries]

    def all(self) -> Rows:
        return sum((rows for _, rows in self.deliveries), Counter())

    def once(self) -> Rows:
        """Return the rows of each key once, and assert that a key always brings the same rows."""
        rows_by_key: dict[str, Rows] = {}
        for key, rows in self.deliveries:
            assert rows_by_key.setdefault(key, rows) == rows
        return sum(rows_by_key.values(), Counter())


def rows_of(table: pa.Table) -> Rows:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def gate_with(
    spark: SparkSession,
    folder: Path,
    sinks: Mapping[str, Sink],
    *,
    sql: str = HOT,
    deliver: Callable[[Any, str], object] | None = None,
    **options: Any,
) -> Headgate:
    """Return a Headgate that runs the same text once for each sink."""
    gate = gate_over(spark, folder, {}, **options)
    for name, sink in sinks.items():
        query = Query(name=name, sql=sql, query_class="H", sink=sink)
        gate.add_query(query, deliver=deliver if sink.format == "callback" else None)
    return gate


def run(gate: Headgate, offered: int) -> None:
    gate.start()
    consume(gate, offered)
    gate.stop()
