"""Makes of a text with windows what can be computed: its SQL over views, and their windows."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from sqlglot.tokenizer_core import TokenType

from headgate.errors import QueryRefused, UnknownName
from headgate.language.carried import carried, without
from headgate.language.clauses import (
    all_columns,
    compares,
    depths_of,
    insert,
    places_of,
    refuse_all_columns,
)
from headgate.language.pairs import inputs_of, over_views, pairs_of
from headgate.language.sessions import sessions_of
from headgate.language.tokens import tokens_of
from headgate.language.windows import (
    Named,
    called_window,
    named_streams,
    refuse_other_time,
    without_windows,
)
from headgate.model.query import Query
from headgate.model.window import (
    END,
    Input,
    Stateful,
    Window,
    time_column,
)

_NOT_AT_ONCE = frozenset({"ORDER BY", "SORT BY", "LIMIT", "OFFSET", "UNION", "INTERSECT", "EXCEPT",
                          "WITH", "ROLLUP", "CUBE", "GROUPING SETS", "OVER", "TABLESAMPLE",
                          "|>"})  # fmt: skip
"""Words of texts that mean something else over several windows than over one."""

_BEFORE_STREAMS = (TokenType.FROM, TokenType.JOIN, TokenType.COMMA)


def stateful_of(
    query: Query,
    times: Mapping[str, str | None],
    streams: Sequence[str] = (),
    joins: Sequence[str] = (),
) -> list[Stateful]:
    """Gives the ways to compute a query with windows, the best first; Spark has to confirm one.

    Args:
        times: the column with the time of a tuple, of all streams by name.
        streams: those that a query with window() reads.
        joins: how several streams are joined, as Spark names it.

    Raises:
        UnknownName: there is no such stream.
        QueryRefused: its windows do not go together, or a stream has no time or no window.
    """
    named, called = named_streams(query), called_window(query)
    known = {name.lower(): name for name in times}
    if not named and called is None:
        return [sessions_of(query, [known[name.lower()] for name in streams], times)]
    if called is not None:
        column, window, text = called
        if named or len(streams) != 1:
            raise QueryRefused(
                query=query.name, clause="window()", reason="is for a query over one stream",
                fix="write a clause behind each stream, as in FROM a [RANGE 10 SECONDS]",
            )  # fmt: skip
        stream = known[streams[0].lower()]
        refuse_other_time(query, column, stream, times)
        return _over_windows(text, stream, window)
    for each in named:
        if each.stream.lower() not in known:
            where = f"query '{query.name}'"
            raise UnknownName(kind="stream", name=each.stream, known=list(times), where=where)
    named = [replace(each, stream=known[each.stream.lower()]) for each in named]
    for each in named:
        _refuse_no_time(query, each, times)
    if len(named) == 1:
        window = named[0].window
        window = window if window.slide else replace(window, slide=window.size)
        return _over_windows(without_windows(query.sql), named[0].stream, window)
    slides = {each.window.slide for each in named}
    _refuse_mixed(query, named, slides)
    if slides == {None}:
        return [pairs_of(query, named, joins)]
    if len(slides) > 1:
        raise QueryRefused(
            query=query.name, clause="SLIDE", reason="differs between the streams",
            fix="give all windows the same SLIDE, or none where tuples are joined as they come",
        )  # fmt: skip
    text, shows = over_views(query.sql, named), _shows_window(query.sql)
    return [Stateful(mode="each", text=text, inputs=inputs_of(named), shows_window=shows)]


def refuse_bare(query: Query, how: Stateful, read: Sequence[str], known: Sequence[str]) -> None:
    """Refuses a query that names a stream without a window.

    Args:
        read: the views that it reads, as Spark found them.
        known: the streams that there are.
    """
    left = [name.lower() for name in read]
    for each in how.inputs:
        if each.view.lower() in left:
            left.remove(each.view.lower())
    for name in known:
        if name.lower() in left:
            raise QueryRefused(
                query=query.name, clause=f"FROM {name}", reason="has no window",
                fix=f"write one behind it, as in FROM {name} [RANGE 10 SECONDS]",
            )  # fmt: skip


def _over_windows(text: str, stream: str, window: Window) -> list[Stateful]:
    inputs, shows = (Input(stream=stream, view=stream, window=window),), _shows_window(text)
    each = Stateful(mode="each", text=text, inputs=inputs, shows_window=shows)
    return [
        *(
            Stateful(
                mode="windows",
                text=at_once,
                inputs=inputs,
                shows_window=True,
                alone=text if always and not shows else None,
            )
            for at_once, always in _at_once(text, shows)
        ),
        each,
    ]


def _shows_window(text: str) -> bool:
    return any(token.text.lower() == "window" for token in tokens_of(text))


def _at_once(text: str, shows: bool) -> Iterator[tuple[str, bool]]:
    """Gives texts that compute every window of a view by itself, of which Spark takes one or none.

    What is grouped is grouped by window, too, and what is distinct is so with the window's end.
    Each comes with whether the text has a result for a window of which WHERE leaves no row, as
    count(*) has: that is not in a group, so HAVING cannot be held against it.
    """
    tokens = [token for token in tokens_of(text) if token.token_type != TokenType.SEMICOLON]
    words = [token.text.upper() for token in tokens]
    if words.count("SELECT") != 1 or words[0] != "SELECT" or _NOT_AT_ONCE.intersection(words):
        return
    places = places_of(tokens)
    from_, grouped = places.get("FROM"), places.get("GROUP BY")
    if from_ is None or all_columns(tokens) or (grouped and words[grouped + 1] == "ALL"):
        return
    shown = {from_: f", window.end AS {END} "}
    end = places.get("HAVING", len(tokens))
    if grouped is not None:
        yield insert(text, tokens, {**shown, end: ", window "}), False
    else:
        yield insert(text, tokens, shown), False
        if shows or "HAVING" not in places:
            yield insert(text, tokens, {**shown, end: " GROUP BY window "}), True


def union_of(query: Query, streams: Sequence[str], times: Mapping[str, str | None]) -> Stateful:
    """Gives a union of streams in the order of time.

    Raises:
        QueryRefused: a stream has no time, or a part is not SELECT ... FROM a stream.
    """
    known = {name.lower(): name for name in times}
    found = list(dict.fromkeys(known[name.lower()] for name in streams))
    for name in found:
        if times[name] is None:
            raise QueryRefused(
                query=query.name, clause="UNION",
                reason=f"is in the order of time, and stream '{name}' has no event_time",
                fix=f"name the column with the time, event_time: ts, in stream '{name}'",
            )  # fmt: skip
    tokens = [token for token in tokens_of(query.sql) if token.token_type != TokenType.SEMICOLON]
    refuse_all_columns(query, tokens)
    depths = depths_of(tokens)
    inserted = {
        place: f", {time_column(0)} AS {END} "
        for place, (token, depth) in enumerate(depths)
        if depth == 0 and token.token_type == TokenType.FROM and not compares(tokens, place)
    }
    parts = 1 + sum(not depth and token.token_type == TokenType.UNION for token, depth in depths)
    if parts != len(inserted):
        raise QueryRefused(
            query=query.name, clause="UNION",
            reason="has a part that is not SELECT ... FROM a stream",
            fix="write SELECT ... FROM a UNION ALL SELECT ... FROM b, without other brackets",
        )  # fmt: skip
    names = {name.lower() for name in found}
    inserted |= carried(
        tokens,
        {
            place: [time_column(0)]
            for place, token in enumerate(tokens)
            if token.text.lower() in names and tokens[place - 1].token_type in _BEFORE_STREAMS
        },
    )
    for star in all_columns(tokens):
        if not depths[star][1]:
            place, text = without(tokens, star, time_column(0))
            inserted[place] = text + inserted.get(place, "")
    inputs = tuple(
        Input(stream=name, view=name, window=Window(axis="time", size=0)) for name in found
    )
    return Stateful(mode="union", text=insert(query.sql, tokens, inserted), inputs=inputs)


def is_union(sql: str) -> bool:
    """Tells whether a text is a union of SELECTs."""
    return any(
        depth == 0 and token.token_type == TokenType.UNION
        for token, depth in depths_of(tokens_of(sql))
    )


def _refuse_mixed(query: Query, named: Sequence[Named], slides: Set[int | None]) -> None:
    """Refuses windows by number beside windows by time, or that would have to end together."""
    axes = {each.window.axis for each in named}
    if len(axes) > 1:
        raise QueryRefused(
            query=query.name, clause="ROWS", reason="stands beside RANGE",
            fix="use ROWS for all streams of the query, or RANGE for all",
        )  # fmt: skip
    if axes == {"rows"} and slides != {None} and len({each.stream for each in named}) > 1:
        raise QueryRefused(
            query=query.name, clause="SLIDE",
            reason="of ROWS is for one stream: the tuples of two have no common numbers",
            fix="leave SLIDE out, and tuples are joined as they come, or use RANGE",
        )  # fmt: skip


def _refuse_no_time(query: Query, each: Named, times: Mapping[str, str | None]) -> None:
    if each.window.axis == "time" and times[each.stream] is None:
        raise QueryRefused(
            query=query.name, clause="RANGE",
            reason=f"needs the time of a tuple, and stream '{each.stream}' has no event_time",
            fix=f"name the column with the time, event_time: ts, in stream '{each.stream}'",
        )  # fmt: skip
