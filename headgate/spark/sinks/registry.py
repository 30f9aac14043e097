"""The sinks: a folder, a stream, the console, memory, a callback, a database, Kafka."""

import json
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path as File

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.model.network import Path
from headgate.model.query import Deliver, Query
from headgate.spark.jvm.types import output_schema
from headgate.spark.sinks.files import FileSink, StreamSink, header_of, whole_timestamps
from headgate.spark.sinks.jdbc import Jdbc, refuse_without_driver
from headgate.spark.sinks.kafka import Kafka, refuse_without_connector
from headgate.spark.sinks.outbox import Outbox

MEMORY_ROWS = 100_000
"""Rows that a memory sink keeps by default."""


class Console:
    """A sink that prints every row as a line of JSON after the query's name.

    If two columns share a name, both are printed.
    """

    def __init__(self, query: str) -> None:
        self._query = query

    def __call__(self, table: pa.Table, key: str) -> None:
        names = [_json(name) for name in table.column_names]
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        lines = [
            ", ".join(f"{name}: {_json(value)}" for name, value in zip(names, row, strict=True))
            for row in rows
        ]
        print("".join(f"{self._query}: {{{line}}}\n" for line in lines), end="", flush=True)


def _json(value: object) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)


class Memory:
    """A sink that keeps the newest rows of this run."""

    def __init__(self, most: int) -> None:
        self.dropped = 0
        self._most, self._rows = most, 0
        self._tables: deque[pa.Table] = deque()
        self._lock = threading.Lock()

    def __call__(self, table: pa.Table, key: str) -> None:
        with self._lock:
            self._tables.append(table)
            self._rows += table.num_rows
            while (over := self._rows - self._most) > 0:
                oldest = self._tables.popleft()
                gone = min(over, oldest.num_rows)
                if gone < oldest.num_rows:
                    self._tables.appendleft(oldest.slice(gone))
                self._rows -= gone
                self.dropped += gone

    def rows(self) -> pa.Table:
        """Return the rows, oldest first; a table without columns before the first result."""
        with self._lock:
            return pa.concat_tables(self._tables) if self._tables else pa.table({})


def refuse_sink(session: SparkSession, query: Query) -> None:
    """Refuse a sink whose driver or connector Spark does not have.

    Raises:
        QueryRefused: says which setting adds it.
    """
    if query.sink.format == "jdbc":
        refuse_without_driver(session, query)
    elif query.sink.format == "kafka":
        refuse_without_connector(session, query)


def sink_of(
    path: Path,
    session: SparkSession,
    state: File,
    deliver: Deliver | None,
    reached: Callable[[str], None],
    may_wait: Callable[[], bool] = lambda: True,
) -> FileSink:
    """Return the sink of a query.

    Args:
        state: the state directory, in which results wait for delivery.
        deliver: the user's function, for format `callback`.
        may_wait: returns True if there is room for more results that wait for delivery.
    """
    name, sink = path.query.name, path.query.sink
    if path.into is not None:
        return StreamSink(state / "log" / path.into)
    if sink.has_files:
        header = header_of(path.columns, sink.options) if sink.format == "csv" else None
        lines = session.sql(f"SELECT {header}").collect()[0] if header else [None]
        if sink.format != "parquet":
            return FileSink(
                replace(sink, options=whole_timestamps(session, sink.options)), lines[0]
            )
        return FileSink(sink, schema=output_schema(path))
    receiver: Deliver
    match sink.format:
        case "console":
            receiver = Console(name)
        case "memory":
            receiver = Memory(int(sink.options.get("rows", MEMORY_ROWS)))
        case "jdbc":
            receiver = Jdbc(session, sink)
        case "kafka":
            receiver = Kafka(session, sink, output_schema(path))
        case _:
            assert deliver is not None
            receiver = deliver
    return Outbox(name, sink.format, state / "outbox" / name, receiver, reached, may_wait)
