"""The paths of a query that is added: Spark analyzes it, and it is refused or becomes paths."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from headgate.errors import QueryRefused
from headgate.language.analysis import Analysis, Analyst
from headgate.language.cut import cut
from headgate.language.kinds.registry import kind_of, refuse_unread
from headgate.language.kinds.stateful import Stateful
from headgate.language.refuse import (
    OF_FRAMES,
    WITH_TABLES,
    keeps_stored,
    refuse_sample,
    refuse_stateful,
    refuse_twin_columns,
    refuse_unfixed,
)
from headgate.language.window_clause import marked
from headgate.model.network.network import Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query
from headgate.model.reading import Reading
from headgate.model.stream import DERIVED, Stream
from headgate.model.window import timeline_of


def segments_of(
    query: Query,
    analyst: Analyst,
    columns: Mapping[str, Sequence[str]],
    streams: Sequence[Stream],
    cuts: Callable[[Query], bool] = lambda query: False,
) -> tuple[tuple[Stream, ...], tuple[Path, ...]]:
    """Return the new streams and the paths of a query: one path, or two if the query is cut.

    The new stream of a query with windows is the timeline that it reads; that of a cut query is the
    hidden stream between its paths. If the query writes to a stream, `into` of its last path is the
    name of that stream; `views.derived_stream` makes the stream.

    Args:
        streams: all existing streams.
        cuts: decides whether to cut a query that leaves it open, if it can be cut.

    Raises:
        QueryRefused: it cannot run continuously, or cannot be cut although it asks for it.
    """
    text, clauses = marked(query)
    refuse_unread(query, clauses)
    reading = analyst.read(query, text, [clause.window.axis for clause in clauses])
    times = {stream.name: stream.event_time for stream in streams if not stream.of}
    analysis = Analysis(query, analyst, reading, clauses, times)
    kind = kind_of(analysis)
    if kind is not None:
        if query.cut:
            raise QueryRefused(
                query=query.name, clause="cut", reason="is for queries without windows or unions",
                fix="leave cut out",
            )  # fmt: skip
        path = stateful_path(kind, analysis)
        timeline = Stream(name=path.stream, format=DERIVED, of=path.reads)
        return (timeline,), (replace(path, into=query.into),)
    path = replace(stateless_path(query, analyst, reading, columns), into=query.into)
    if query.cut is False or (query.cut is None and not cuts(query)):
        return (), (path,)
    try:
        queue, first, rest = cut(path, columns[path.stream])
    except QueryRefused:
        if query.cut:
            raise
        return (), (path,)
    return (queue,), analyst.segments(path, first, rest)


def stateless_path(
    query: Query, analyst: Analyst, reading: Reading, columns: Mapping[str, Sequence[str]]
) -> Path:
    """Return the path of a query that takes each tuple by itself.

    Args:
        columns: the columns of every stream.

    Raises:
        QueryRefused: it cannot run continuously; names the clause, the reason and the fix.
    """
    allowed = WITH_TABLES if not keeps_stored(reading) else frozenset()
    if query.apply is not None:
        allowed |= OF_FRAMES
    if reading.relations:
        refuse_stateful(query, reading, allowed)
    refuse_unfixed(query, reading)
    if len(reading.relations) != 1:
        raise QueryRefused(
            query=query.name, clause="FROM", reason=f"names {len(reading.relations)} streams",
            fix="read exactly one stream",
        )  # fmt: skip
    refuse_twin_columns(query, reading.columns)
    return analyst.path(query, reading)


def stateful_path(kind: type[Stateful], analysis: Analysis) -> Path:
    """Return the path of a query that needs several tuples at a time.

    Raises:
        QueryRefused: it cannot run continuously; names the clause, the reason and the fix.
    """
    query = analysis.query
    query_kind, reading = kind.of(analysis)
    refuse_sample(query, reading)
    refuse_unfixed(query, reading)
    refuse_twin_columns(query, reading.columns)
    slide = query_kind.windows[0].slide
    if query.deadline_s is None and slide is not None and query_kind.by_time:
        query = replace(query, deadline_s=slide / 1e6)
    return Path(
        query=query, stream=timeline_of(query_kind.streams), columns=reading.columns,
        kind=query_kind, schema=reading.schema, key=analysis.analyst.key(reading),
        plan=reading.plan,  # while the path has it, equal queries get the same key
        operators=(Operator(kind="whole", expressions=(query.sql,)),),
    )  # fmt: skip
