"""Streams that queries fill, on their way in: made of a query, or refused."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headgate.errors import ConfigRefused, QueryRefused
from headgate.language.streams_in_text import streams_in
from headgate.model.derived import readers_of
from headgate.model.network import Path
from headgate.model.query import Query
from headgate.model.stream import ARRIVED_AT, DERIVED, Stream

RESERVED = (ARRIVED_AT, "_watermark_us")
"""Columns that the log of a derived stream has for itself."""


def derived_stream(path: Path, schema: Any, streams: Sequence[Stream]) -> Stream:
    """Return the stream that a query fills.

    Its time goes on by the clock as that of the source does, where the query reads one tuple at a
    time. With windows, the query itself has time pass.

    Args:
        schema: of the query's results, as Spark has it.

    Raises:
        QueryRefused: a column of the results cannot be in a stream, or the event time is none.
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
        _refuse_unplaced(path)
    quiet_s = None
    if path.stateful is None:
        quiet_s = next(each.quiet_s for each in streams if each.name == path.stream)
    return Stream(
        name=path.into, format=DERIVED, event_time=event_time, quiet_s=quiet_s,
        lateness_s=float(options.get("lateness_s", 0.0)),
    )  # fmt: skip


def refuse_unordered(path: Path, producers: Iterable[Path]) -> None:
    """Refuse windows by number over streams whose tuples have no order of their own.

    Args:
        producers: the queries that fill streams.

    Raises:
        QueryRefused: says which stream, and what to write instead.
    """
    if path.stateful is None or path.stateful.inputs[0].window.axis != "rows":
        return
    filled = {each.into: each for each in producers if each.into in path.reads}
    for name, producer in filled.items():
        if len(path.reads) > 1:
            reason = f"counts tuples of '{name}', which come when query"
            reason += f" '{producer.query.name}' has run"
        elif producer.stateful is not None or producer.runs_whole:
            reason = f"counts tuples of '{name}', whose order query '{producer.query.name}' does"
            reason += " not define"
        else:
            continue
        raise QueryRefused(
            query=path.query.name, clause="ROWS", reason=reason,
            fix=f"use RANGE, with event_time in the sink or view that fills '{name}'",
        )  # fmt: skip


def refuse_read(query: str, stream: str | None, paths: Sequence[Path]) -> None:
    """Refuse to drop a query whose stream others read.

    Raises:
        ConfigRefused: names the readers.
    """
    readers = [] if stream is None else readers_of(stream, paths)
    if readers:
        raise ConfigRefused(
            path=f"query '{query}'", key="readers", value=_names(readers),
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
        QueryRefused: says so.
    """
    if query.into is None or not streams_in(query, [query.into]):
        return
    if "with" not in map(str.lower, query.sql.split()):  # else it may be a CTE of that name
        raise QueryRefused(
            query=query.name, clause=f"FROM {query.into}", reason="is the stream that it fills",
            fix="read another stream, or give this one another name",
        )  # fmt: skip


def reading_order(queries: Sequence[Query]) -> list[Query]:
    """Return queries in an order in which each comes behind those whose streams it reads.

    Raises:
        ConfigRefused: some of them wait for each other.
    """
    streams = [query.into for query in queries if query.into is not None]
    reads = {query.name: streams_in(query, streams) for query in queries}
    left, done = list(queries), list[Query]()
    while left:
        filled = {query.into: query.name for query in left if query.into is not None}
        # One that reads itself is refused by itself.
        ready = [
            query
            for query in left
            if all(filled.get(stream, query.name) == query.name for stream in reads[query.name])
        ]
        if not ready:
            raise ConfigRefused(
                path="queries", key="cycle", value=" -> ".join(_cycle(left, reads, filled)),
                expected="without one: no tuple would ever come into it",
            )  # fmt: skip
        done += ready
        names = {query.name for query in ready}
        left = [query for query in left if query.name not in names]
    return done


def _cycle(
    left: Sequence[Query], reads: Mapping[str, Sequence[str]], filled: Mapping[str, str]
) -> list[str]:
    """Return queries of which each reads the stream of the one before, the last that of itself."""
    walk = [left[0].name]
    while walk[-1] not in walk[:-1]:
        others = (filled[stream] for stream in reads[walk[-1]] if stream in filled)
        walk.append(next(name for name in others if name != walk[-1]))
    return walk[walk.index(walk[-1]) :][::-1]


def _refuse_no_time(query: Query, column: str, schema: Any) -> None:
    types = {field.name.lower(): field.dataType.simpleString() for field in schema.fields}
    if not types.get(column.lower(), "").startswith("timestamp"):
        raise QueryRefused(
            query=query.name, clause=f"event_time '{column}'",
            reason="is no TIMESTAMP column of its results, which are "
            + ", ".join(f"{name} {kind}" for name, kind in types.items()),
            fix="name a column with the time of a result, such as  window.end AS until",
        )  # fmt: skip


def _refuse_unplaced(path: Path) -> None:
    how = path.stateful
    if how is not None and how.mode == "pairs" and how.inputs[0].window.axis == "rows":
        raise QueryRefused(
            query=path.query.name, clause="event_time",
            reason="is not possible for a join by ROWS: what is late would depend on how many"
            " tuples are joined at once", fix="join by RANGE",
        )  # fmt: skip


def _names(paths: Sequence[Path]) -> str:
    return ", ".join(dict.fromkeys(path.first_of or path.query.name for path in paths))
