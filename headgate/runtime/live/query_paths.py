"""The paths of a query that is added: Spark analyzes it, and it is refused or becomes paths."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.errors import QueryRefused
from headgate.language.cut import cut
from headgate.language.join_times import Unbounded, in_windows, times_of
from headgate.language.over_windows import call_of, called_input, clause_inputs
from headgate.language.refuse import (
    OF_FRAMES,
    WHOLE,
    WITH_TABLES,
    keeps_stored,
    not_bounded,
    not_over_pairs,
    refuse_in_pairs,
    refuse_in_sessions,
    refuse_sample,
    refuse_stateful,
    refuse_timeless,
    refuse_twin_columns,
    refuse_unfixed,
    stream_joins,
)
from headgate.language.window_clause import Clause, marked
from headgate.model.network import Path
from headgate.model.operator import Operator
from headgate.model.query import Query
from headgate.model.reading import NotPossible, Reading
from headgate.model.stream import DERIVED, Stream
from headgate.model.window import MARK, Input, Join, Stateful, Window, timeline_of

if TYPE_CHECKING:
    from headgate.spark.jvm.query.analysis import Analyst


def segments_of(
    query: Query,
    analyst: "Analyst",
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
    if query.apply is not None and len(clauses) > 1 and clauses[0].window.slide is None:
        raise _not_applied_to_pairs(query)
    reading = analyst.read(query, text, [clause.window.axis for clause in clauses])
    if clauses or reading.calls or _is_union(reading) or stream_joins(reading):
        if query.cut:
            raise QueryRefused(
                query=query.name, clause="cut", reason="is for queries without windows or unions",
                fix="leave cut out",
            )  # fmt: skip
        times = {stream.name: stream.event_time for stream in streams if not stream.of}
        path = stateful_path(query, analyst, reading, clauses, times)
        sources = path.stateful.streams if path.stateful else ()
        timeline = Stream(name=path.stream, format=DERIVED, of=sources)
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
    query: Query, analyst: "Analyst", reading: Reading, columns: Mapping[str, Sequence[str]]
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


def stateful_path(
    query: Query,
    analyst: "Analyst",
    reading: Reading,
    clauses: Sequence[Clause],
    times: Mapping[str, str | None],
) -> Path:
    """Return the path of a query with windows, of a union, or of a join whose times are bounded.

    Raises:
        QueryRefused: it cannot run continuously; names the clause, the reason and the fix.
    """
    call = call_of(query, reading)
    join = None
    if call is not None:
        column = analyst.time_column(reading)
        inputs: tuple[Input, ...] = (called_input(query, call, reading, column, times),)
    elif clauses:
        inputs = clause_inputs(query, clauses, reading, times)
    elif not _is_union(reading):
        reading, join, inputs = _bounded(query, analyst, reading, times)
    else:
        inputs = _union_inputs(query, reading, times)
    analyst.refuse_two_clocks(query, inputs)
    if join is not None or (len(inputs) > 1 and clauses and inputs[0].window.slide is None):
        if len(reading.relations) > len(inputs):
            reading, inputs = _repeated(analyst, reading, inputs)
        stateful = _pairs(query, analyst, reading, inputs, join)
    else:
        by_session = call is not None and call.name != "window"
        stateful = _stateful(query, analyst, reading, inputs, by_session)
    refuse_sample(query, reading)
    refuse_unfixed(query, reading)
    refuse_twin_columns(query, reading.columns)
    window = inputs[0].window
    if query.deadline_s is None and window.slide is not None and window.axis == "time":
        query = replace(query, deadline_s=window.slide / 1e6)
    return Path(
        query=query, stream=timeline_of(stateful.streams), columns=reading.columns,
        stateful=stateful, schema=reading.schema, key=analyst.key(reading),
        operators=(Operator(kind="whole", expressions=(query.sql,)),),
    )  # fmt: skip


def _stateful(
    query: Query,
    analyst: "Analyst",
    reading: Reading,
    inputs: tuple[Input, ...],
    by_session: bool,
) -> Stateful:
    if by_session:
        return _sessions(query, analyst, reading, inputs)
    if _is_union(reading) and not inputs[0].window.size:
        return _union(query, analyst, reading, inputs)
    try:
        plans = analyst.over_windows(reading)
    except NotPossible as error:
        raise QueryRefused(
            query=query.name, clause="window()", line=error.line,
            reason="groups something other than the single tuples of a stream",
            fix="write a window after the stream, as in FROM s [RANGE 10 SECONDS]",
        ) from error  # fmt: skip
    at_once = plans.at_once is not None and query.apply is None and not keeps_stored(reading)
    key = analyst.plan_key(plans.at_once if at_once and plans.at_once else plans.one)
    return Stateful(mode="windows" if at_once else "each", inputs=inputs, key=key, plans=plans)


def _sessions(
    query: Query, analyst: "Analyst", reading: Reading, inputs: tuple[Input, ...]
) -> Stateful:
    if query.apply is not None:
        raise QueryRefused(
            query=query.name, clause="apply", reason="is not possible after session_window",
            fix="group by session in the function, over a window as in FROM s [RANGE 1 HOUR]",
        )  # fmt: skip
    refuse_in_sessions(query, reading)
    try:
        plans = analyst.over_sessions(reading)
    except NotPossible as error:
        raise QueryRefused(
            query=query.name, clause="session_window()", line=error.line,
            reason="does not stand by itself in GROUP BY",
            fix="write SELECT ... FROM s GROUP BY k, session_window(ts, '5 minutes')",
        ) from error  # fmt: skip
    key = analyst.plan_key(plans.ended)
    return Stateful(mode="sessions", inputs=inputs, key=key, plans=plans)


def _bounded(
    query: Query, analyst: "Analyst", reading: Reading, times: Mapping[str, str | None]
) -> tuple[Reading, Join, tuple[Input, ...]]:
    """Return the inputs of a join whose conditions limit how far apart times may be."""
    if query.apply is not None:
        raise _not_applied_to_pairs(query)
    refuse_stateful(query, reading, WITH_TABLES)
    refuse_timeless(query, reading, times)
    reading = analyst.numbered(reading)
    try:
        tree, names = analyst.join_tree(reading)
        join, sizes = times_of(tree)
    except NotPossible as error:
        raise not_over_pairs(query, error) from error
    except Unbounded as error:
        streams = reading.inputs
        earlier, later = (
            names.get(number, f"{streams[number]}.{times[streams[number]]}")
            for number in (error.earlier, error.later)
        )
        raise not_bounded(query, earlier, later, error.either, error.line) from error
    inputs = tuple(
        Input(
            stream=stream, view=f"{MARK}{number}",
            window=Window(axis="time", size=sizes[number]),
        )
        for number, stream in reading.inputs.items()
    )  # fmt: skip
    return reading, join, inputs


def _repeated(
    analyst: "Analyst", reading: Reading, inputs: tuple[Input, ...]
) -> tuple[Reading, tuple[Input, ...]]:
    """Return the inputs of a query that uses a common table with a window more than once."""
    uses = [inputs[int(name.removeprefix(MARK))] for name in reading.relations]
    inputs = tuple(
        replace(source, view=f"{MARK}{number}") for number, source in enumerate(uses)
    )  # fmt: skip
    return analyst.numbered(reading, inputs[0].window.axis), inputs


def _pairs(
    query: Query,
    analyst: "Analyst",
    reading: Reading,
    inputs: tuple[Input, ...],
    join: Join | None,
) -> Stateful:
    """Return how tuples are joined as they arrive.

    Args:
        join: when rows are final, if the query's conditions say so instead of windows.
    """
    outer = [node for node in stream_joins(reading) if node.detail not in ("Inner", "Cross")]
    if outer and inputs[0].window.axis == "rows":
        raise QueryRefused(
            query=query.name, clause=f"{outer[0].detail} join", line=outer[0].line,
            reason="is not possible over ROWS windows",
            fix="use RANGE: time tells when no more partners can come",
        )  # fmt: skip
    refuse_in_pairs(query, reading)
    bounded = join is not None
    sizes = [source.window.size for source in inputs]
    try:
        plan = analyst.over_pairs(reading, inputs, bounded=bounded)
        if inputs[0].window.axis == "rows":
            join = Join(reach=max(sizes))
        join = join or times_of(in_windows(analyst.join_tree(reading)[0], sizes))[0]
    except NotPossible as error:
        raise not_over_pairs(query, error) from error
    except Unbounded as error:
        raise QueryRefused(
            query=query.name, clause="RANGE", reason="is longer than timestamps can express",
            fix="write shorter windows",
        ) from error  # fmt: skip
    key = analyst.plan_key(plan)
    return Stateful(mode="pairs", inputs=inputs, key=key, join=join, plans=plan)


def _not_applied_to_pairs(query: Query) -> QueryRefused:
    return QueryRefused(
        query=query.name, clause="apply",
        reason="needs all tuples of a window, but this query joins tuples as they arrive",
        fix=WHOLE,
    )  # fmt: skip


def _union(
    query: Query, analyst: "Analyst", reading: Reading, inputs: tuple[Input, ...]
) -> Stateful:
    if query.apply is not None:
        raise QueryRefused(
            query=query.name, clause="apply", reason="is not possible after a union of streams",
            fix="write one query for each stream",
        )  # fmt: skip
    joined = stream_joins(reading) or keeps_stored(reading)
    refuse_stateful(query, reading, (frozenset() if joined else WITH_TABLES) | {"Union"})
    try:
        plan = analyst.over_union(reading)
    except NotPossible as error:
        raise QueryRefused(
            query=query.name, clause="UNION", line=error.line,
            reason="has a part that is not SELECT ... FROM a stream",
            fix="write SELECT ... FROM a UNION ALL SELECT ... FROM b, without other brackets",
        ) from error  # fmt: skip
    return Stateful(mode="union", inputs=inputs, key=analyst.plan_key(plan), plans=plan)


def _is_union(reading: Reading) -> bool:
    """Return True if a query is a union of SELECTs over streams."""
    top = next((node for node in reading.nodes if node.kind not in ("Project",)), None)
    return top is not None and top.kind == "Union" and bool(top.reads)


def _union_inputs(
    query: Query, reading: Reading, times: Mapping[str, str | None]
) -> tuple[Input, ...]:
    names = tuple(dict.fromkeys(reading.relations))
    for name in names:
        if times[name] is None:
            raise QueryRefused(
                query=query.name, clause="UNION",
                reason=f"is in the order of time, and stream '{name}' has no event_time",
                fix=f"name the column with the time, event_time: ts, in stream '{name}'",
            )  # fmt: skip
    return tuple(
        Input(stream=name, view=name, window=Window(axis="time", size=0)) for name in names
    )
