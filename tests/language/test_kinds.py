"""Which kind claims a query: each text is of one kind, or takes each tuple by itself."""

from typing import Any

import pytest

from headgate.language.analysis import Analysis
from headgate.language.kinds.closing import ClosingWindows
from headgate.language.kinds.joins import Joins
from headgate.language.kinds.registry import KINDS, kind_of
from headgate.language.kinds.sessions import Sessions
from headgate.language.kinds.unions import Unions
from headgate.language.window_clause import marked
from headgate.model.display.plan_summary import Node, Reading, WindowCall
from headgate.model.kind import SINGLE_TUPLES
from headgate.model.query import Query
from headgate.model.window import MARK, Input, Join, Window

A, B = frozenset({"a"}), frozenset({"b"})
JOIN = Node("Join", None, "Inner", (A, B), False)
UNION = Node("Union", None, "", (A, B), False)
SELECT = Node("Project", None, "", (A,), False)


def analysis(sql: str, *nodes: Node, call: str = "") -> Analysis:
    """Return a query as if Spark had read these operators and this call of a window function."""
    query = Query(name="q", sql=sql, query_class="H")
    clauses = marked(query)[1]
    inputs = {number: clause.stream for number, clause in enumerate(clauses)}
    calls = (WindowCall(call, None, ("ts", "5 seconds")),) if call else ()
    relations = tuple(f"{MARK}{number}" for number in inputs) or ("a", "b")
    reading = Reading(nodes, {}, None, relations, ("n",), calls, inputs)
    analyst: Any = None
    return Analysis(query, analyst, reading, clauses, {"a": "ts", "b": "ts"})


CASES = [
    ("SELECT * FROM a", [SELECT], "", None),
    ("SELECT count(*) FROM a GROUP BY window(ts, '5 seconds')", [SELECT], "window", ClosingWindows),
    ("SELECT count(*) FROM a [RANGE 5 SECONDS]", [SELECT], "", ClosingWindows),
    ("SELECT count(*) FROM a [ROWS 5] GROUP BY window(ts, '5 s')", [SELECT], "window",
     ClosingWindows),
    ("SELECT * FROM a [ROWS 5 SLIDE 1], a [ROWS 5 SLIDE 1]", [JOIN], "", ClosingWindows),
    ("SELECT * FROM a [ROWS 5] UNION ALL SELECT * FROM a", [UNION], "", ClosingWindows),
    ("SELECT * FROM a UNION ALL SELECT * FROM b", [UNION], "window", ClosingWindows),
    ("SELECT count(*) FROM a GROUP BY session_window(ts, '5 s')", [SELECT], "session_window",
     Sessions),
    ("SELECT * FROM a [RANGE 5 SECONDS] JOIN b [RANGE 9 SECONDS]", [JOIN], "", Joins),
    ("SELECT * FROM a [ROWS 5] UNION ALL SELECT * FROM b [ROWS 5]", [UNION], "", Joins),
    ("SELECT * FROM a JOIN b", [SELECT, JOIN], "", Joins),
    ("SELECT * FROM a UNION ALL SELECT * FROM b", [SELECT, UNION], "", Unions),
    ("SELECT * FROM a UNION ALL SELECT * FROM a JOIN b", [UNION, JOIN], "", Unions),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "nodes", "call", "kind"), CASES)
def test_a_query_is_of_one_kind(sql: str, nodes: list[Node], call: str, kind: Any) -> None:
    query = analysis(sql, *nodes, call=call)
    assert kind_of(query) is kind
    assert [other for other in KINDS if other.claims(query)] == ([] if kind is None else [kind])


def test_the_table_has_every_kind() -> None:
    assert {kind for *_, kind in CASES} == {None, *KINDS}


def test_a_kind_says_how_long_it_needs_tuples_and_when_there_is_work_without_one() -> None:
    inputs = (Input(stream="a", view="a", window=Window(axis="time", size=9, slide=3)),)
    windows = ClosingWindows(inputs=inputs)
    assert (windows.reach, windows.closes) == (9, inputs[0].window)
    longer = Input(stream="b", view="b", window=Window(axis="time", size=20, slide=3))
    assert ClosingWindows(inputs=(*inputs, longer)).closes == longer.window
    sessions = Sessions(inputs=inputs)
    assert (sessions.reach, sessions.closes) == (None, None)
    still = (Input(stream="a", view="a", window=Window(axis="time", size=0)),)
    assert (Unions(inputs=still).reach, Unions(inputs=still).closes) == (
        0, Window(axis="time", size=1, slide=1),
    )  # fmt: skip
    join = Joins(inputs=inputs, join=Join(reach=20, firsts=(0,), waits=(9,)))
    assert (join.reach, join.closes) == (20, Window(axis="time", size=21, slide=1))


def test_windows_by_number_wait_for_no_clock() -> None:
    inputs = (Input(stream="a", view="a", window=Window(axis="rows", size=9, slide=3)),)
    assert ClosingWindows(inputs=inputs).closes is None
    assert Joins(inputs=inputs, join=Join(reach=9)).closes is None


def test_filtered_tuples_of_a_window_count_as_delivered() -> None:
    assert SINGLE_TUPLES.delivered(rows=3, in_time=10) == 3
    assert SINGLE_TUPLES.delivered(rows=30, in_time=10) == 10
    assert Sessions().delivered(rows=3, in_time=10) == 10
