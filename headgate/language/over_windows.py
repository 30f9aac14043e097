"""The windows of a query, from its window calls or its window clauses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from headgate.errors import QueryRefused
from headgate.language.window_clause import Clause
from headgate.model.display.plan_summary import Reading, WindowCall
from headgate.model.query import Query
from headgate.model.window import MARK, Input, Window

WindowOf = Callable[[Query, WindowCall], Window]
"""A function that returns the window of a call, or refuses the query."""


def call_of(query: Query, reading: Reading) -> WindowCall | None:
    """Return the call of window(...) or session_window(...) in a query; None if it has none.

    Raises:
        QueryRefused: the query has two that differ.
    """
    calls = () if reading.inputs else reading.calls  # inside a window they are Spark's own
    for call in calls:
        if (call.name, call.arguments) != (calls[0].name, calls[0].arguments):
            raise QueryRefused(
                query=query.name, clause=text_of(call), line=call.line,
                reason="is a second window: a query has one",
                fix=f"write the same {call.name}(...) everywhere",
            )  # fmt: skip
    return calls[0] if calls else None


def called_input(
    query: Query,
    call: WindowCall,
    reading: Reading,
    column: str,
    times: Mapping[str, str | None],
    window_of: WindowOf,
) -> Input:
    """Return the stream and the window of a query with window(...) or session_window(...).

    Args:
        column: the stream's column that the call is over; empty if it is computed.
        times: by stream, its event_time.
        window_of: returns the window of such a call.

    Raises:
        QueryRefused: it reads more than one stream, or the window is not over its event time.
    """
    streams = reading.relations
    if len(streams) != 1:
        raise QueryRefused(
            query=query.name, clause=f"{call.name}()", reason="is for a query over one stream",
            fix="write a window after each stream, as in FROM a [RANGE 10 SECONDS]",
            line=call.line,
        )  # fmt: skip
    window = window_of(query, call)
    time = times[streams[0]]
    if time is None or column.lower() != time.lower():
        name = column or call.arguments[0].strip("`")
        raise QueryRefused(
            query=query.name, clause=f"{call.name}({name}, ...)", line=call.line,
            reason=f"is over a column that is not the event_time of stream '{streams[0]}'"
            + ("" if time is None else f", which is {time}"),
            fix=f"set event_time: {name} in stream '{streams[0]}', or use its event_time",
        )  # fmt: skip
    return Input(stream=streams[0], view=streams[0], window=window)


def clause_inputs(
    query: Query, clauses: Sequence[Clause], reading: Reading, times: Mapping[str, str | None]
) -> tuple[Input, ...]:
    """Return the streams and windows of a query with window clauses.

    Raises:
        QueryRefused: a stream has no window or no event time, or the windows cannot be combined.
    """
    for name in reading.relations:
        if not name.startswith(MARK):
            raise QueryRefused(
                query=query.name, clause=f"FROM {name}", reason="has no window",
                fix=f"write one after it, as in FROM {name} [RANGE 10 SECONDS]",
            )  # fmt: skip
    inputs = tuple(
        Input(stream=reading.inputs[number], view=f"{MARK}{number}", window=clause.window)
        for number, clause in enumerate(clauses)
    )
    for clause, view in zip(clauses, inputs, strict=True):
        if view.window.by_time and times[view.stream] is None:
            raise QueryRefused(
                query=query.name, clause="RANGE", line=clause.line,
                reason=f"needs the time of a tuple, and stream '{view.stream}' has no event_time",
                fix=f"name the column with the time, event_time: ts, in stream '{view.stream}'",
            )  # fmt: skip
    if len(inputs) == 1:
        window = inputs[0].window
        window = window if window.slide else replace(window, slide=window.size)
        return (replace(inputs[0], window=window),)
    _refuse_mixed(query, inputs)
    return inputs


def _refuse_mixed(query: Query, inputs: Sequence[Input]) -> None:
    """Raise QueryRefused for windows by number beside windows by time, or of different slides."""
    slides = {view.window.slide for view in inputs}
    by_time = {view.window.by_time for view in inputs}
    if len(by_time) > 1:
        raise QueryRefused(
            query=query.name, clause="ROWS", reason="is mixed with RANGE",
            fix="use ROWS for all streams of the query, or RANGE for all",
        )  # fmt: skip
    if by_time == {False} and slides != {None} and len({view.stream for view in inputs}) > 1:
        raise QueryRefused(
            query=query.name, clause="SLIDE",
            reason="of ROWS is for one stream: the tuples of two have no common numbers",
            fix="leave SLIDE out, to join tuples as they arrive, or use RANGE",
        )  # fmt: skip
    if len(slides) > 1:
        raise QueryRefused(
            query=query.name, clause="SLIDE", reason="differs between the streams",
            fix="give all windows the same SLIDE, or none, to join tuples as they arrive",
        )  # fmt: skip


def text_of(call: WindowCall) -> str:
    """Return a call as it is written, with its durations quoted."""
    durations = [f"'{argument}'" for argument in call.arguments[1:]]
    return f"{call.name}({', '.join([*call.arguments[:1], *durations])})"
