"""The paths of a query that is added: Spark analyzes it, and it is refused or becomes paths."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headgate.errors import ConfigRefused, QueryRefused
from headgate.language.analysis import Analysis, Analyst
from headgate.language.cut import cut
from headgate.language.kinds.interface import StatefulKind
from headgate.language.kinds.registry import kind_of, refuse_unread
from headgate.language.refusals import (
    OF_FRAMES,
    WITH_TABLES,
    keeps_stored,
    refuse_sample,
    refuse_stateful,
    refuse_twin_columns,
    refuse_unfixed,
)
from headgate.language.window_clause import marked
from headgate.model.display.plan_summary import Reading
from headgate.model.kind import Kind
from headgate.model.network.network import Path
from headgate.model.network.operator import Operator
from headgate.model.query import RHYTHM, Query, ViewQuery
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
        refuse_dead_letters(query, kind)
        path = stateful_path(kind, analysis)
        refuse_shedding(path, columns)
        timeline = Stream(name=path.stream, format=DERIVED, of=path.reads)
        return (timeline,), (replace(path, into=query.into),)
    path = replace(stateless_path(query, analyst, reading, columns), into=query.into)
    refuse_shedding(path, columns)
    if query.cut and query.on_error == "dead_letter":
        raise QueryRefused(
            query=query.name, clause="cut", reason="is not possible with on_error: dead_letter",
            fix="leave one of them out",
        )  # fmt: skip
    if query.cut is False or query.on_error == "dead_letter":
        return (), (path,)
    if query.cut is None and not cuts(query):
        return (), (path,)
    try:
        queue, first, rest = cut(path, columns[path.stream])
    except QueryRefused:
        if query.cut:
            raise
        return (), (path,)
    return (queue,), analyst.segments(path, first, rest)


def refuse_dead_letters(query: Query, kind: Kind | type[Kind]) -> None:
    """Refuse `on_error: dead_letter` for a query of a kind that cannot leave tuples out.

    Raises:
        QueryRefused: the query has it.
    """
    if query.on_error == "dead_letter" and not kind.takes_dead_letters:
        raise QueryRefused(
            query=query.name, clause="on_error", reason="is not possible for a query that groups by"
            " session", fix="leave it out, or let a view with on_error: dead_letter compute what"
            " may fail, and read the view",
        )  # fmt: skip


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


def stateful_path(kind: type[StatefulKind], analysis: Analysis) -> Path:
    """Return the path of a query that needs several tuples at a time.

    Raises:
        QueryRefused: it cannot run continuously; names the clause, the reason and the fix.
    """
    query = analysis.query
    query_kind, reading = kind.of(analysis)
    refuse_sample(query, reading)
    refuse_unfixed(query, reading)
    refuse_twin_columns(query, reading.columns)
    query = with_deadline(query, query_kind)
    return Path(
        query=query, stream=timeline_of(query_kind.streams), columns=reading.columns,
        kind=query_kind, schema=reading.schema, key=analysis.analyst.key(reading),
        plan=reading.plan,  # while the path has it, equal queries get the same key
        operators=(Operator(kind="whole", expressions=(query.sql,)),),
    )  # fmt: skip


def refuse_shedding(path: Path, columns: Mapping[str, Sequence[str]]) -> None:
    """Refuse a query that allows shedding although its tuples cannot be dropped.

    A view allows shedding if all its readers do; where it cannot be, it never is.

    Raises:
        QueryRefused: it allows shedding; or it drops by a column that it does not have.
    """
    query, reason = path.query, path.kind.refuses_shedding
    is_view = isinstance(query, ViewQuery)
    if reason and query.allows_shedding and not is_view:
        raise QueryRefused(
            query=query.name, clause="allows_shedding",
            reason=f"is not possible: the query {reason}",
            fix="remove allows_shedding: sources then wait while there is too much work",
        )  # fmt: skip
    refuse_both(query)
    if query.value is None:
        return
    names = [name.lower() for stream in path.reads for name in columns.get(stream, ())]
    if len(path.reads) != 1 or query.value.column.lower() not in names:
        raise QueryRefused(
            query=query.name, clause=f"value column '{query.value.column}'",
            reason="is no column of its stream" if len(path.reads) == 1
            else f"is not possible over {len(path.reads)} streams",
            fix="name a numeric column of the stream" if len(path.reads) == 1
            else "remove `value`: tuples are then dropped at random",
        )  # fmt: skip


def refuse_both(query: Query) -> None:
    """Refuse a query that allows shedding and has dead letters.

    Raises:
        QueryRefused: it has both, and is no view.
    """
    is_view = isinstance(query, ViewQuery)
    if query.allows_shedding and query.on_error == "dead_letter" and not is_view:
        raise QueryRefused(
            query=query.name, clause="allows_shedding",
            reason="is not possible with on_error: dead_letter", fix="leave one of them out",
        )  # fmt: skip


def with_deadline(query: Query, kind: Kind) -> Query:
    """Return a query with the deadline that its windows give it, if it has none: their slide."""
    slide = kind.windows[0].slide if kind.windows else None
    if query.deadline_s is not None or slide is None or not kind.by_time:
        return query
    return replace(query, deadline_s=slide / 1e6)


def with_values(paths: Iterable[Path], name: str, values: Mapping[str, Any]) -> list[Path]:
    """Return paths, after a query got other values.

    Args:
        values: by name of a field of `Query`, or of its sink, its new value.

    Raises:
        ConfigRefused: a value is wrong, or the query fills a view, which has the class of its
            readers; or its tuples cannot become dead letters, because it runs in two segments.
        QueryRefused: its tuples cannot become dead letters, because it groups by session or allows
            shedding.
    """

    def changed(path: Path) -> Path:
        if name not in (path.query.name, path.first_of):
            return path
        if isinstance(path.query, ViewQuery) and "query_class" in values:
            raise ConfigRefused(
                path=f"view '{name}'", key="class", value=values["query_class"],
                expected="left out: a view runs in the highest class of its readers; change that"
                " of a reader",
            )  # fmt: skip
        if values.get("on_error") == "dead_letter":
            with_letters = replace(path.query, on_error="dead_letter")
            refuse_dead_letters(with_letters, path.kind)
            refuse_both(with_letters)
            if path.first_of is not None:
                raise ConfigRefused(
                    path=f"query '{name}'", key="on_error", value="dead_letter",
                    expected="set in the pipeline file, and read by the next start: the query runs"
                    " in two segments",
                )  # fmt: skip
        query = changed_query(path.query, values, sink=path.first_of is None)
        return replace(path, query=with_deadline(query, path.kind))

    return list(map(changed, paths))


def changed_query(query: Query, values: Mapping[str, Any], *, sink: bool = True) -> Query:
    """Return a query with other values of its fields and, unless it is a segment, of its sink."""
    rhythm = {key: values[key] for key in RHYTHM if key in values and sink}
    fields = {key: value for key, value in values.items() if key not in RHYTHM}
    return replace(query, **fields, sink=replace(query.sink, **rhythm))
