"""A test kit: run queries over some tuples until all are processed, and return what comes out."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from headgate.errors import UnknownName
from headgate.model.query import Query, Sink
from headgate.model.stream import Stream
from headgate.runtime import Headgate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = Mapping[str, Any]

CLASS = "test"
"""The class of all queries."""


def run(
    *,
    queries: Mapping[str, str],
    rows: Mapping[str, Sequence[Row]] | None = None,
    schemas: Mapping[str, str] | None = None,
    event_times: Mapping[str, str] | None = None,
    streams: Sequence[tuple[Stream, int]] = (),
    sinks: Mapping[str, Sink] | None = None,
    spark: "SparkSession | None" = None,
    state: str | Path | None = None,
    timeout_s: float = 60.0,
) -> dict[str, list[dict[str, Any]]]:
    """Run queries until all tuples are processed, and return their rows by query.

    A window is in the result if it has closed: a tuple after its end has arrived.

    Args:
        queries: the SQL of each query, by name.
        rows: the tuples of streams, by name, as mappings from column to value.
        schemas: the columns of these streams as Spark DDL.
        event_times: their columns with the event time, for windows.
        streams: other streams, such as those of a source under test, each with the number of tuples
            to wait for.
        sinks: sinks of queries, such as one under test. The rows of these queries are not returned.
        spark: your session; without one, a local session is started and stopped.
        state: the state directory, if a second run is to go on where the first one ended; without
            one, a temporary directory.
        timeout_s: how long to wait for the tuples, and again for the results.

    Raises:
        HeadgateError: a stream or a query is refused, or a query has failed.
        TimeoutError: not all tuples were processed in time.
    """
    with ExitStack() as stack:
        folder = state or stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True))
        gate = Headgate(spark, state=folder, classes={CLASS: 1.0}, rehearsal_s=0)
        stack.callback(gate.stop)
        tuples = _add_streams(gate, rows or {}, schemas or {}, event_times or {})
        for stream, count in streams:
            gate.add_stream(stream)
            tuples[stream.name] = count
        targets = sinks or {}
        handles = {}
        memory = Sink(format="memory", options={"rows": str(2**40)})
        for name, sql in queries.items():
            sink = targets.get(name, memory)
            query = Query(name=name, sql=sql, query_class=CLASS, sink=sink, cut=False)
            handles[name] = gate.add_query(query)
        gate.start()
        _wait_for_tuples(gate, tuples, timeout_s)
        if not gate.drain(timeout_s):
            raise TimeoutError(f"not all is processed after {timeout_s:g} s: {gate.accounts()}")
        _raise_failures(gate)
    return {
        name: handle.rows().to_pylist() for name, handle in handles.items() if name not in targets
    }


def _add_streams(
    gate: Headgate,
    rows: Mapping[str, Sequence[Row]],
    schemas: Mapping[str, str],
    event_times: Mapping[str, str],
) -> dict[str, int]:
    """Add the streams of rows; return how many tuples each has."""
    for name, tuples in rows.items():
        if name not in schemas:
            raise UnknownName(kind="schema of stream", name=name, known=schemas)
        stream = Stream(
            name=name, format="python", schema=schemas[name], event_time=event_times.get(name),
            quiet_s=None,
        )  # fmt: skip
        gate.add_stream(stream, rows=partial(_rows_from, tuples))
    return {name: len(tuples) for name, tuples in rows.items()}


def _rows_from(rows: Sequence[Row], first: int) -> Any:
    return islice(rows, first, None)


def _wait_for_tuples(gate: Headgate, tuples: Mapping[str, int], timeout_s: float) -> None:
    """Wait until the tuples of all streams are in the log, as the queries' accounts show."""
    ends_at_s = time.monotonic() + timeout_s
    expected = {
        handle.name: sum(tuples.get(stream, 0) for stream in gate.explanation(handle.name).reads)
        for handle in gate.queries
    }
    while True:
        _raise_failures(gate)
        accounts = gate.accounts()
        missing = {
            name: count - accounts[name].arrived
            for name, count in expected.items()
            if count > accounts[name].arrived
        }
        if not missing:
            return
        if time.monotonic() > ends_at_s:
            counts = ", ".join(f"{count} of query '{name}'" for name, count in missing.items())
            raise TimeoutError(f"tuples that have not arrived after {timeout_s:g} s: {counts}")
        gate.wait(0.02)


def _raise_failures(gate: Headgate) -> None:
    for handle in gate.queries:
        if (failure := handle.exception()) is not None:
            raise failure
