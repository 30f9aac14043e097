"""A query on its way in: analysed by Spark, refused or taken apart."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.errors import HeadgateError, QueryRefused
from headgate.language.cut import calls, cut
from headgate.language.form import conditions_of
from headgate.language.parse import path_of, whole
from headgate.language.refuse import (
    OF_FRAMES,
    SUBQUERIES,
    WHOLE,
    WITH_TABLES,
    refuse_clocks,
    refuse_hidden,
    refuse_in_pairs,
    refuse_in_sessions,
    refuse_luck,
    refuse_stateful,
)
from headgate.language.stateful import is_union, refuse_bare, stateful_of, union_of
from headgate.language.tokens import spaced
from headgate.language.windows import has_windows, named_streams, without_windows
from headgate.model.network import Condition, Path
from headgate.model.operator import Operator
from headgate.model.query import Query
from headgate.model.stream import DERIVED, Stream
from headgate.model.window import HIDDEN, Stateful, timeline_of
from headgate.runtime.placement import refuse_keys

if TYPE_CHECKING:
    from headgate.spark.analysis import Analysis, Analyst


def segments_of(
    query: Query,
    analyst: "Analyst",
    columns: Mapping[str, Sequence[str]],
    streams: Sequence[Stream],
    cuts: Callable[[Query], bool] = lambda query: False,
) -> tuple[tuple[Stream, ...], tuple[Path, ...]]:
    """Return the paths of a query, one or, where it is to be cut, two with a hidden stream between.

    A query with windows reads a timeline, which comes with it. The last path of one that writes to
    a stream says so (`into`); the stream itself is `views.derived_stream`.

    Args:
        streams: all that there are.
        cuts: tells whether a query that does not say so itself is to be cut, if it can be.

    Raises:
        QueryRefused: as `registered`, or it cannot be cut although it says so.
    """
    if has_windows(query.sql) or is_union(query.sql):
        refuse_hidden(query)
        if query.cut:
            raise QueryRefused(
                query=query.name, clause="cut", reason="is for queries without windows or unions",
                fix="leave cut out",
            )  # fmt: skip
        path = (windowed if has_windows(query.sql) else united)(query, analyst, streams)
        of = path.stateful.streams if path.stateful else ()
        timeline = Stream(name=path.stream, format=DERIVED, of=of)
        return (timeline,), (replace(path, into=query.into),)
    path = replace(registered(query, analyst, columns), into=query.into)
    if query.cut is False or (query.cut is None and not cuts(query)):
        return (), (path,)
    try:
        queue, first, rest = cut(path, columns[path.stream])
    except QueryRefused:
        if query.cut:
            raise
        return (), (path,)
    return (queue,), (first, rest)


def registered(query: Query, analyst: "Analyst", columns: Mapping[str, Sequence[str]]) -> Path:
    """Gives the path of a query, taken apart where Spark confirms that it stays the same query.

    Args:
        columns: the columns of every stream.

    Raises:
        QueryRefused: it cannot run continuously; says which clause, why, and what to do.
    """
    analysis = analyst.analyse(query)
    allowed = WITH_TABLES if analysis.joins_tables else frozenset()
    if query.apply is not None:
        allowed |= OF_FRAMES
    if analysis.streams:
        refuse_stateful(query.name, query.sql, analysis.nodes, analysis.expressions, allowed)
    if analysis.random is not None:
        refuse_luck(query.name, analysis.random)
    if len(analysis.streams) != 1:
        raise QueryRefused(
            query=query.name, clause="FROM", reason=f"names {len(analysis.streams)} streams",
            fix="read exactly one stream",
        )  # fmt: skip
    _refuse_twin_columns(query, analysis.columns)
    refuse_keys(query, analysis.columns)
    stream = next(name for name in columns if name.lower() == analysis.streams[0].lower())
    try:
        made = whole(query, stream) if query.apply is not None else path_of(query, columns)
        path = replace(made, columns=analysis.columns)
    except HeadgateError:
        path = whole(query, stream)  # Spark reads what sqlglot does not
    taken_apart = (
        "Generate" not in analysis.nodes  # one row makes several: not a matter of flags
        and len(path.outputs) == len(path.columns)
        and analyst.same(path, analysis.shape)
    )
    if taken_apart:
        return replace(path, conditions=_conditions(path, analyst))
    return replace(whole(query, stream), columns=analysis.columns, words=spaced(query.sql))


def _conditions(path: Path, analyst: "Analyst") -> tuple[Condition, ...]:
    """Gives the conditions of a path, where their order is worth a thought."""
    texts = conditions_of(path.predicate) if path.predicate else []
    if len(texts) < 2 or not any(map(calls, texts)):
        return ()
    known = analyst.never_fail(path.stream, texts)
    return tuple(Condition(text, certain) for text, certain in zip(texts, known, strict=True))


def windowed(query: Query, analyst: "Analyst", streams: Sequence[Stream]) -> Path:
    """Gives the path of a query with windows.

    Raises:
        QueryRefused: it cannot run continuously; says which clause, why, and what to do.
    """
    times = {each.name: each.event_time for each in streams if not each.of}
    read: tuple[Sequence[str], Sequence[str]] = (), ()
    named = named_streams(query)
    if not named or (len(named) > 1 and any(each.window.slide is None for each in named)):
        reading = analyst.analyse(replace(query, sql=without_windows(query.sql), apply=None))
        read = reading.streams, reading.joins
    ways = stateful_of(query, times, *read)
    if query.apply is not None and ways[0].mode == "sessions":
        raise QueryRefused(
            query=query.name, clause="apply", reason="is not possible behind session_window",
            fix="group by session in the function, behind a window as in FROM s [RANGE 1 HOUR]",
        )  # fmt: skip
    if query.apply is not None:
        ways = [each for each in ways if each.mode == "each"]
        if not ways:
            raise QueryRefused(
                query=query.name, clause="apply",
                reason="needs all tuples of a window, which tuples that are joined as they come are"
                " not", fix="give all windows the same SLIDE",
            )  # fmt: skip
    if ways[0].mode == "pairs":
        refuse_in_pairs(
            query.name, (*reading.nodes, *reading.expressions & SUBQUERIES), reading.keeps_stored
        )
    if ways[0].mode == "sessions":
        refuse_in_sessions(query.name, (*reading.nodes, *reading.expressions & SUBQUERIES))
    analysis, how = _confirmed(query, analyst, ways)
    if "Sample" in analysis.nodes:
        refuse_stateful(query.name, query.sql, ["Sample"], ())
    refuse_bare(query, how, analysis.streams, list(times))
    refuse_clocks(query.name, analysis.expressions)
    if analysis.random is not None:
        refuse_luck(query.name, analysis.random)
    return _stateful_path(query, how, analysis)


def united(query: Query, analyst: "Analyst", streams: Sequence[Stream]) -> Path:
    """Gives the path of a union of streams.

    Raises:
        QueryRefused: it cannot run continuously; says which clause, why, and what to do.
    """
    if query.apply is not None:
        raise QueryRefused(
            query=query.name, clause="apply", reason="is not possible behind a union of streams",
            fix="write one query for each stream",
        )  # fmt: skip
    analysis = analyst.analyse(query)
    with_tables = not analysis.joins and not analysis.keeps_stored
    allowed = WITH_TABLES if with_tables else frozenset()
    refuse_stateful(
        query.name, query.sql, analysis.nodes, analysis.expressions, allowed | {"Union"}
    )
    if analysis.random is not None:
        refuse_luck(query.name, analysis.random)
    times = {each.name: each.event_time for each in streams if not each.of}
    how = union_of(query, analysis.streams, times)
    try:
        analysis = analyst.over_windows(query, how)
    except QueryRefused as error:  # Spark has accepted the text as it was written
        raise QueryRefused(
            query=query.name, clause="UNION",
            reason="has a part that is not SELECT ... FROM a stream",
            fix="write SELECT ... FROM a UNION ALL SELECT ... FROM b",
        ) from error  # fmt: skip
    return _stateful_path(query, how, analysis)


def _stateful_path(query: Query, how: Stateful, analysis: "Analysis") -> Path:
    columns = tuple(name for name in analysis.columns if not name.startswith(HIDDEN))
    _refuse_twin_columns(query, columns)
    refuse_keys(query, columns)
    slide = how.inputs[0].window.slide
    if query.deadline_s is None and slide is not None and how.inputs[0].window.axis == "time":
        query = replace(query, deadline_s=slide / 1e6)
    return Path(
        query=query, stream=timeline_of(how.streams), columns=columns, stateful=how,
        words=spaced(query.sql),
        operators=(Operator(kind="whole", expressions=(query.sql,)),),
    )  # fmt: skip


def _confirmed(
    query: Query, analyst: "Analyst", ways: Sequence[Stateful]
) -> tuple["Analysis", Stateful]:
    """Gives the first way that Spark accepts, with its reading."""
    for how in ways[:-1]:
        try:
            analysis = analyst.over_windows(query, how)
        except QueryRefused:
            continue
        # A stored row without a tuple is one for every window, and would be one for all of them.
        if not analysis.keeps_stored:
            return analysis, how
    try:
        return analyst.over_windows(query, ways[-1]), ways[-1]
    except QueryRefused as error:
        if ways[-1].mode != "pairs":
            raise
        # Spark has accepted the text as it was written.
        raise QueryRefused(
            query=query.name, clause="FROM",
            reason="has streams where their tuples cannot be joined as they come", fix=WHOLE,
        ) from error  # fmt: skip


def _refuse_twin_columns(query: Query, columns: Sequence[str]) -> None:
    seen: set[str] = set()
    for column in columns:
        if column.lower() in seen:
            raise QueryRefused(
                query=query.name, clause=f"column `{column}`", reason="comes out twice",
                fix="give one of the two another name with AS",
            )  # fmt: skip
        seen.add(column.lower())
