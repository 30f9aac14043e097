"""Derived streams: construction of the stream that a query fills, and the checks before it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from headgate.errors import ConfigRefused, QueryRefused
from headgate.language.streams_in_text import streams_in
from headgate.model.network.derived_streams import producers, readers_of
from headgate.model.network.network import Path
from headgate.model.query import Query
from headgate.model.stream import ARRIVED_AT, DERIVED, Stream

RESERVED = (ARRIVED_AT, "_watermark_us")
"""Column names that the log of a derived stream uses itself."""

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def derived_stream(path: Path, schema: "StructType", streams: Sequence[Stream]) -> Stream:
    """Return the stream that a query fills.

    A query that takes one tuple at a time hands `quiet_s` on: while its input is quiet, the time of
    the new stream advances by the clock, too. A query with windows advances time itself.

    Args:
        schema: Spark's schema of the query's results.

    Raises:
        QueryRefused: a column has a reserved name, or the event time cannot be used.
    """
    assert path.into is not None
    query, options = path.query, path.query.sink.options
    event_time = options.get("event_time")
    for name in schema.names:
        if name.lower() in RESERVED:
            raise QueryRefused(
                query=query.name, clause=f"column `{name}`",
                reason="has a name that the log of a stream uses",
                fix="give the column another name with AS",
            )  # fmt: skip
    if event_time is not None:
        _refuse_no_time(query, event_time, schema)
        path.kind.refuse_event_time(query)
    quiet_s = None
    if path.kind.takes_single_tuples:
        quiet_s = next(stream.quiet_s for stream in streams if stream.name == path.stream)
    return Stream(
        name=path.into, format=DERIVED, event_time=event_time, quiet_s=quiet_s,
        lateness_s=float(options.get("lateness_s", 0.0)),
    )  # fmt: skip


def refuse_unordered(path: Path, others: Iterable[Path]) -> None:
    """Refuse ROWS windows over streams whose tuples have no defined order.

    Args:
        others: the paths of the other queries.

    Raises:
        QueryRefused: names the stream and what to write instead.
    """
    if not path.kind.by_number:
        return
    for name, producer in producers(others).items():
        if name not in path.reads:
            continue
        if len(path.reads) > 1:
            reason = f"counts tuples of '{name}', whose order among other streams depends on when"
            reason += f" query '{producer.query.name}' runs"
        elif producer.runs_whole:
            reason = f"counts tuples of '{name}', whose order query '{producer.query.name}' does"
            reason += " not define"
        else:
            continue
        raise QueryRefused(
            query=path.query.name, clause="ROWS", reason=reason,
            fix=f"use RANGE, with event_time in the sink or view that fills '{name}'",
        )  # fmt: skip


def refuse_read(query: str, stream: str | None, paths: Sequence[Path]) -> None:
    """Refuse to drop a query while others read the stream that it fills.

    Raises:
        ConfigRefused: names the readers.
    """
    readers = [] if stream is None else readers_of(stream, paths)
    if readers:
        raise ConfigRefused(
            path=f"query '{query}'", key=f"queries {_names(readers)}", value=None,
            expected=f"dropped before it: they read stream '{stream}', which it fills",
        )  # fmt: skip


def refuse_filled(stream: str, paths: Iterable[Path]) -> None:
    """Refuse to drop a stream that a query fills.

    Raises:
        ConfigRefused: names the query.
    """
    for path in paths:
        if path.into == stream and path.first_of is None:
            raise ConfigRefused(
                path=f"stream '{stream}'", key="sink", value=path.query.name,
                expected=f"dropped instead: the stream goes with query '{path.query.name}'",
            )  # fmt: skip


def refuse_itself(query: Query) -> None:
    """Refuse a query that reads the stream it fills.

    Raises:
        QueryRefused: the query reads that stream.
    """
    if query.into is None or not streams_in(query, [query.into]):
        return
    if "with" not in map(str.lower, query.sql.split()):  # else it may be a CTE of that name
        raise QueryRefused(
            query=query.name, clause=f"FROM {query.into}", reason="is the stream that it fills",
            fix="read another stream, or give this one another name",
        )  # fmt: skip


def reading_order(queries: Sequence[Query]) -> list[Query]:
    """Return the queries in an order in which each comes after those whose streams it reads.

    Raises:
        ConfigRefused: some queries read each other in a cycle.
    """
    streams = list(producers(queries))
    reads = {query.name: streams_in(query, streams) for query in queries}
    left, done = list(queries), list[Query]()
    while left:
        filled = {stream: query.name for stream, query in producers(left).items()}
        # A query that reads its own stream counts as ready here: `refuse_itself` refuses it.
        ready = [
            query
            for query in left
            if all(filled.get(stream, query.name) == query.name for stream in reads[query.name])
        ]
        if not ready:
            raise ConfigRefused(
                path="queries", key="cycle", value=" -> ".join(_cycle(left, reads, filled)),
                expected="removed: no tuple would ever enter it",
            )  # fmt: skip
        done += ready
        names = {query.name for query in ready}
        left = [query for query in left if query.name not in names]
    return done


def _cycle(
    left: Sequence[Query], reads: Mapping[str, Sequence[str]], filled: Mapping[str, str]
) -> list[str]:
    """Return the queries of a cycle: each reads the stream of the one before; last = first."""
    walk = [left[0].name]
    while walk[-1] not in walk[:-1]:
        others = (filled[stream] for stream in reads[walk[-1]] if stream in filled)
        walk.append(next(name for name in others if name != walk[-1]))
    return walk[walk.index(walk[-1]) :][::-1]


def _refuse_no_time(query: Query, column: str, schema: "StructType") -> None:
    types = {field.name.lower(): field.dataType.simpleString() for field in schema.fields}
    if not types.get(column.lower(), "").startswith("timestamp"):
        raise QueryRefused(
            query=query.name, clause=f"event_time '{column}'",
            reason="is not a TIMESTAMP column of its results, which are "
            + ", ".join(f"{name} {kind}" for name, kind in types.items()),
            fix="name a column with the time of a result, such as  window.end AS until",
        )  # fmt: skip


def _names(paths: Sequence[Path]) -> str:
    return ", ".join(dict.fromkeys(path.first_of or path.query.name for path in paths))
