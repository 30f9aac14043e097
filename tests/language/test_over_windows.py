"""Which windows a query has: calls of window(...), clauses, and what cannot be combined."""

import pytest

from headgate.errors import QueryRefused
from headgate.language.kinds.closing import window_of
from headgate.language.kinds.sessions import session_of
from headgate.language.over_windows import call_of, called_input, clause_inputs
from headgate.language.window_clause import marked
from headgate.model.display.plan_summary import Reading, WindowCall
from headgate.model.query import Query
from headgate.model.window import Input, Window

S = 1_000_000
TIMES = {"s": "ts", "r": "At", "bare": None}


def query(sql: str = "SELECT 1") -> Query:
    return Query(name="q", sql=sql, query_class="H")


def reading(
    *calls: WindowCall, relations: tuple[str, ...] = ("s",), inputs: dict[int, str] | None = None
) -> Reading:
    return Reading((), {}, None, relations, (), calls, inputs or {})


def window(*arguments: str, line: int = 3) -> WindowCall:
    return WindowCall("window", line, arguments)


def session(*arguments: str) -> WindowCall:
    return WindowCall("session_window", 3, arguments)


def called(call: WindowCall, column: str = "ts", relations: tuple[str, ...] = ("s",)) -> Input:
    window_of_call = {"window": window_of, "session_window": session_of}[call.name]
    read = reading(call, relations=relations)
    return called_input(query(), call, read, column, TIMES, window_of_call)


def in_time(size: int, slide: int | None = None, offset: int = 0) -> Window:
    return Window(axis="time", size=size, slide=slide, offset=offset)


def test_a_query_without_calls_has_none() -> None:
    assert call_of(query(), reading()) is None


def test_the_same_call_may_stand_at_several_places() -> None:
    first, again = window("ts", "10 seconds", line=1), window("ts", "10 seconds", line=4)
    assert call_of(query(), reading(first, again)) == first


@pytest.mark.parametrize(
    "second",
    [window("ts", "9 seconds"), window("ts", "10 seconds", "5 seconds"), window("at", "10 seconds"),
     session("ts", "10 seconds")],
)  # fmt: skip
def test_a_second_window_is_refused_with_its_line(second: WindowCall) -> None:
    with pytest.raises(QueryRefused, match="is a second window: a query has one") as refused:
        call_of(query(), reading(window("ts", "10 seconds", line=1), second))
    assert refused.value.line == 3
    assert second.arguments[1] in refused.value.clause


WINDOWS = {
    ("ts", "10 seconds"): in_time(10 * S, 10 * S),
    ("s.ts", "10 seconds", "4 seconds"): in_time(10 * S, 4 * S, 2 * S),
    ("ts", "10 seconds", "5 seconds", "1 second"): in_time(10 * S, 5 * S, S),
    ("ts", "10 seconds", "4 seconds", "1 second"): in_time(10 * S, 4 * S, 3 * S),
    ("ts", "INTERVAL '1' MINUTE"): in_time(60 * S, 60 * S),
}


@pytest.mark.parametrize("arguments", WINDOWS)
def test_windows_of_calls(arguments: tuple[str, ...]) -> None:
    call = window(*arguments)
    window_input = called(call, "TS")
    assert window_input == Input(stream="s", view="s", window=WINDOWS[arguments])


def test_a_session_ends_its_gap_behind_the_last_tuple() -> None:
    call = session("ts", "5 minutes")
    window_input = called(call)
    assert window_input == Input(stream="s", view="s", window=in_time(300 * S))


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (window("ts"), "window(ts) cannot be read"),
        (window("ts", "1 month"), "window(ts, '1 month') cannot be read"),
        (window("ts", "3 seconds", "1 second", "x"), "cannot be read"),
        (window("ts", "3 seconds", "1 second", "0.5 seconds", "1 second"), "cannot be read"),
        (session("ts"), "has no gap that is the same for all tuples"),
        (session("ts", "s.v"), "has no gap that is the same for all tuples"),
        (session("ts", "1 month"), "has no gap that is the same for all tuples"),
    ],
)
def test_calls_that_cannot_be_read_are_refused(call: WindowCall, reason: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        called(call)
    assert reason in str(refused.value)
    assert refused.value.line == 3


@pytest.mark.parametrize("call", [window("v", "1 hour"), session("v", "1 hour")])
@pytest.mark.parametrize(
    ("stream", "column", "parts"),
    [
        ("s", "v", ["(v, ...) is over a column that is not the event_time of stream 's', which is "
                    "ts", "set event_time: v in stream 's'"]),
        ("s", "", ["(v, ...) is over a column that is not the event_time of stream 's'"]),
        ("bare", "ts", ["(ts, ...) is over a column that is not the event_time of stream 'bare'"]),
    ],
)  # fmt: skip
def test_a_call_is_over_the_event_time(
    call: WindowCall, stream: str, column: str, parts: list[str]
) -> None:
    with pytest.raises(QueryRefused) as refused:
        called(call, column, (stream,))
    for part in parts:
        assert part in str(refused.value)


@pytest.mark.parametrize("call", [window("ts", "1 hour"), session("ts", "1 hour")])
@pytest.mark.parametrize("relations", [("s", "r"), ()])
def test_a_call_is_for_a_query_over_one_stream(
    call: WindowCall, relations: tuple[str, ...]
) -> None:
    with pytest.raises(QueryRefused, match="is for a query over one stream"):
        called(call, relations=relations)


def test_calls_inside_a_window_are_sparks_own() -> None:
    calls = window("ts", "1 hour"), window("ts", "9 seconds"), session("ts", "1 hour")
    read = reading(*calls, relations=("__hg_input0",), inputs={0: "s"})
    assert call_of(query(), read) is None


def of_clauses(sql: str) -> tuple[Input, ...]:
    """Read a text as Spark would: each clause is an input, other names in FROM are relations."""
    text = query(f"SELECT k FROM {sql}")
    clauses = marked(text)[1]
    inputs = {number: clause.stream for number, clause in enumerate(clauses)}
    bare = tuple(name for name in sql.replace(",", " ").split() if name in ("s_bare", "r_bare"))
    names = (*(f"__hg_input{number}" for number in inputs), *(name[0] for name in bare))
    return clause_inputs(text, clauses, reading(relations=names, inputs=inputs), TIMES)


def test_the_only_window_slides_by_its_size_unless_it_says_otherwise() -> None:
    assert of_clauses("s [RANGE 10 SECONDS]")[0].window == in_time(10 * S, 10 * S)
    assert of_clauses("s [RANGE 9 SECONDS SLIDE 3 SECONDS]")[0].window == in_time(9 * S, 3 * S)
    assert of_clauses("bare [ROWS 5]")[0].window == Window(axis="rows", size=5, slide=5)


def test_windows_of_several_streams_move_with_every_tuple_unless_they_say_otherwise() -> None:
    inputs = of_clauses("s [RANGE 2 SECONDS] a, r [RANGE 1 SECOND] b, s [RANGE 3 SECONDS] c")
    assert [(source.stream, source.view) for source in inputs] == [
        ("s", "__hg_input0"), ("r", "__hg_input1"), ("s", "__hg_input2")
    ]  # fmt: skip
    assert [source.window for source in inputs] == [in_time(2 * S), in_time(S), in_time(3 * S)]
    by_number = of_clauses("bare [ROWS 5] a, r [ROWS 3] b")
    assert [source.window.slide for source in by_number] == [None, None]


@pytest.mark.parametrize(
    "sql",
    [
        "s [RANGE 2 SECONDS SLIDE 1 SECOND] a, r [RANGE 3 SECONDS SLIDE 1 SECOND] b",
        "s [ROWS 3 SLIDE 1] a, s [ROWS 4 SLIDE 1] b",
    ],
)
def test_windows_with_the_same_slide_close_together(sql: str) -> None:
    assert len({source.window.slide for source in of_clauses(sql)}) == 1


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("s [ROWS 3] a, s_bare", ["FROM s has no window", "FROM s [RANGE 10 SECONDS]"]),
        ("s [ROWS 3] a, r_bare", ["FROM r has no window"]),
        ("bare [RANGE 3 SECONDS]", ["line 1: RANGE needs the time of a tuple, and stream 'bare' has"
                                    " no event_time", "event_time: ts, in stream 'bare'"]),
        ("s [RANGE 1 SECOND] a,\nbare [RANGE 3 SECONDS] b", ["line 2", "stream 'bare' has no"]),
        ("s [ROWS 3] a, r [RANGE 1 SECOND] b", ["ROWS is mixed with RANGE"]),
        ("s [ROWS 3 SLIDE 1] a, r [ROWS 3 SLIDE 1] b", ["SLIDE of ROWS is for one stream"]),
        ("s [RANGE 1 SECOND SLIDE 1 SECOND] a, r [RANGE 1 SECOND] b", ["SLIDE differs between"]),
        ("s [ROWS 4 SLIDE 2] a, s [ROWS 4 SLIDE 1] b", ["SLIDE differs between"]),
    ],
)  # fmt: skip
def test_windows_that_do_not_go_together_are_refused(sql: str, parts: list[str]) -> None:
    with pytest.raises(QueryRefused) as refused:
        of_clauses(sql)
    for part in parts:
        assert part in str(refused.value)
    assert "__hg" not in str(refused.value)
