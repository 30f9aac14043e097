"""Golden pairs: texts with windows, what is computed for them, and what is refused."""

from collections.abc import Sequence

import pytest

from headgate.errors import HeadgateError, QueryRefused, UnknownName
from headgate.language.stateful import is_union, refuse_bare, stateful_of, union_of
from headgate.language.unread import unread_path
from headgate.language.windows import has_windows, microseconds, named_streams, without_windows
from headgate.model.query import Query
from headgate.model.window import Input, Stateful, Window

TIMES = {"s": "ts", "r": "at", "bare": None, "date": "ts"}
S = 1_000_000
END = ", window.end AS __hg_end "
NEAR = (
    "__hg_t0 >= __hg_t1 - 2000000L AND __hg_t1 >= __hg_t0 - 1000000L",
    ", greatest(__hg_a0, __hg_a1) AS __hg_arrived, __hg_t0 AS __hg_h0, __hg_t1 AS __hg_h1 ",
)


def query(sql: str) -> Query:
    return Query(name="q", sql=sql, query_class="H")


def ways(sql: str, streams: Sequence[str] = ("s",), joins: Sequence[str] = ()) -> list[Stateful]:
    return stateful_of(query(sql), TIMES, streams, joins)


def time(size: int, slide: int | None = None, offset: int = 0) -> Window:
    return Window(axis="time", size=size, slide=slide, offset=offset)


WINDOWS = {
    "FROM s [RANGE 10 SECONDS]": time(10 * S, 10 * S),
    "FROM s [range 1 minute 30 seconds slide 10 seconds]": time(90 * S, 10 * S),
    "FROM s [RANGE INTERVAL '2' HOURS SLIDE 1 DAY] x": time(7200 * S, 86400 * S),
    "FROM `s` [RANGE 500 MILLISECONDS SLIDE 7 MICROSECONDS] AS x": time(S // 2, 7),
    "FROM s [ROWS 100 SLIDE 10]": Window(axis="rows", size=100, slide=10),
    "FROM S [ROWS 5] WHERE k = '[RANGE 3'": Window(axis="rows", size=5, slide=5),
    "FROM date [RANGE 1 WEEK]": time(604800 * S, 604800 * S),
    "FROM s GROUP BY window(ts, '10 seconds')": time(10 * S, 10 * S),
    "FROM s GROUP BY window(s.ts, '10 seconds', '4 seconds')": time(10 * S, 4 * S, 2 * S),
    "FROM s GROUP BY k, Window(`ts`, '10 seconds', '5 seconds', '1 second')": time(
        10 * S, 5 * S, S
    ),
    "FROM s GROUP BY window(ts, INTERVAL '1' MINUTE)": time(60 * S, 60 * S),
}


@pytest.mark.parametrize("text", WINDOWS)
def test_windows(text: str) -> None:
    sql = f"SELECT count(*) AS n {text}"
    assert has_windows(sql)
    for how in ways(sql):
        assert [each.window for each in how.inputs] == [WINDOWS[text]]
        assert how.inputs[0].view == how.inputs[0].stream


AT_ONCE = {
    "SELECT k, sum(v) AS t FROM s [ROWS 3] WHERE v > 1 GROUP BY k HAVING sum(v) > 2": [
        f"SELECT k, sum(v) AS t {END}FROM s  WHERE v > 1 GROUP BY k , window HAVING sum(v) > 2"
    ],
    "SELECT 'from' AS `where` FROM s [ROWS 3] WHERE x = 'group by';": [
        f"SELECT 'from' AS `where` {END}FROM s  WHERE x = 'group by'",
        f"SELECT 'from' AS `where` {END}FROM s  WHERE x = 'group by' GROUP BY window ",
    ],
    "SELECT DISTINCT v * 2 AS w FROM s [ROWS 3]": [
        f"SELECT DISTINCT v * 2 AS w {END}FROM s",
        f"SELECT DISTINCT v * 2 AS w {END}FROM s GROUP BY window ",
    ],
    "SELECT a IS DISTINCT FROM b AS d, count(*) AS n FROM s [ROWS 3]": [
        f"SELECT a IS DISTINCT FROM b AS d, count(*) AS n {END}FROM s",
        f"SELECT a IS DISTINCT FROM b AS d, count(*) AS n {END}FROM s GROUP BY window ",
    ],
    "SELECT window.start AS w, k FROM s GROUP BY k, window(ts, '3 seconds')": [
        f"SELECT window.start AS w, k {END}FROM s GROUP BY k, window, window "
    ],
    "SELECT max(v) AS m FROM s [ROWS 3] HAVING count(*) > 2": [
        f"SELECT max(v) AS m {END}FROM s  HAVING count(*) > 2"
    ],
    # What means something else over several windows is computed for each.
    "SELECT * FROM s [ROWS 3]": [],
    "SELECT x.* FROM s [ROWS 3] x": [],
    "SELECT to_json(struct(*)) AS j FROM s [ROWS 3]": [],
    "SELECT to_json(struct(v, *)) AS j FROM s [ROWS 3]": [],
    "SELECT k FROM s [ROWS 3] ORDER BY v LIMIT 1": [],
    "SELECT k, rank() OVER (ORDER BY v) AS r FROM s [ROWS 3]": [],
    "WITH x AS (SELECT k FROM s [ROWS 3]) SELECT k FROM x": [],
    "SELECT k FROM (SELECT k FROM s [ROWS 3])": [],
    "SELECT k, count(*) AS n FROM s [ROWS 3] GROUP BY ALL": [],
    "SELECT k, count(*) AS n FROM s [ROWS 3] GROUP BY ROLLUP (k)": [],
    "SELECT k FROM s [ROWS 3] |> AGGREGATE count(*) AS n": [],
    "SELECT k FROM s [ROWS 3] TABLESAMPLE (5 ROWS)": [],
    "FROM s [ROWS 3] SELECT k": [],
}


@pytest.mark.parametrize("sql", AT_ONCE)
def test_all_windows_at_once(sql: str) -> None:
    *at_once, each = ways(sql)
    assert [how.text.split() for how in at_once] == [text.split() for text in AT_ONCE[sql]]
    assert {how.mode for how in at_once} <= {"windows"}
    assert each.mode == "each"
    if "window(" not in sql:
        assert each.text == without_windows(sql)
    assert each.shows_window == ("window" in sql)


CALL = "session_window(ts, '5 minutes')"
SESSION = f", {CALL}.start AS __hg_start, {CALL}.end AS __hg_end "

SESSIONS = {
    f"SELECT k, count(*) AS n FROM s WHERE v > 1 GROUP BY k, {CALL};": (
        f"SELECT k, count(*) AS n {SESSION}FROM s WHERE v > 1 GROUP BY k, {CALL}",
        None,
    ),
    f"SELECT max(v) AS m, session_window.end AS e FROM s GROUP BY {CALL}, k HAVING m > 2": (
        f"SELECT max(v) AS m, session_window.end AS e {SESSION}FROM s GROUP BY {CALL}, k"
        " HAVING m > 2",
        f"SELECT max(v) AS m, session_window.end AS e {SESSION}FROM s GROUP BY {CALL}, k",
    ),
}


@pytest.mark.parametrize("sql", SESSIONS)
def test_sessions(sql: str) -> None:
    assert has_windows(sql)
    (how,) = ways(sql)
    assert (how.mode, how.inputs[0].window) == ("sessions", time(300 * S))
    text, opened = SESSIONS[sql]
    assert how.text.split() == text.split()
    assert (how.opened or "").split() == (opened or "").split()
    path, _ = unread_path(query(sql), {"s": ("k", "v", "ts")})
    assert path.stream == "s__time"


NO_SESSIONS = {
    "SELECT count(*) AS n FROM s GROUP BY session_window(ts, v)": "has no gap that is the same",
    "SELECT count(*) AS n FROM s GROUP BY session_window(ts)": "has no gap that is the same",
    "SELECT count(*) AS n FROM s GROUP BY session_window(ts, '1 month')": "has no gap that is",
    "SELECT count(*) AS n FROM s GROUP BY session_window(v, '1 hour')": "not the event_time",
    "SELECT count(*) AS n FROM bare GROUP BY session_window(ts, '1 hour')": "not the event_time",
    f"SELECT session_window(ts, '1 hour').end AS e FROM s GROUP BY {CALL}": "a second kind",
    f"SELECT {CALL} AS w FROM s": "does not stand by itself in GROUP BY",
    f"SELECT k FROM s GROUP BY k, {CALL}.start": "does not stand by itself in GROUP BY",
    f"SELECT k FROM s GROUP BY k, date({CALL}.start)": "does not stand by itself in GROUP BY",
    f"SELECT {CALL} AS w, count(*) AS n FROM s GROUP BY ALL": "does not stand by itself",
    f"WITH x AS (SELECT * FROM s) SELECT 1 FROM x GROUP BY {CALL}": "is for one SELECT",
}


@pytest.mark.parametrize("sql", NO_SESSIONS)
def test_sessions_that_are_refused(sql: str) -> None:
    with pytest.raises(QueryRefused, match=NO_SESSIONS[sql]):
        ways(sql, ("bare",) if "bare" in sql else ("s",))


def test_sessions_are_of_one_stream() -> None:
    sql = f"SELECT s.k FROM s JOIN r ON s.k = r.k GROUP BY s.k, {CALL}"
    with pytest.raises(QueryRefused, match="is for a query over one stream"):
        ways(sql, ("s", "r"), ("Inner",))


def test_a_text_has_a_result_of_no_rows_where_it_groups_nothing() -> None:
    found = ways("SELECT count(*) AS n FROM s [ROWS 3] WHERE v > 3")
    assert [how.alone for how in found] == [None, without_windows(found[-1].text), None]
    shown = ways("SELECT window.end AS e, count(*) AS n FROM s [ROWS 3] WHERE v > 3")
    assert [how.alone for how in shown] == [None, None, None]


JOINS = {
    ("SELECT a.k FROM s [RANGE 2 SECONDS] a, r [RANGE 1 SECOND] b", ()): (
        f"SELECT a.k {NEAR[1]}FROM __hg_v0 AS `a`, __hg_v1 AS `b` WHERE {NEAR[0]}"
    ),
    ("SELECT 'on' AS x FROM s [RANGE 2 SECONDS] JOIN r [RANGE 1 SECOND] AS date USING (k)"
     " WHERE v = 1 OR v = 2", ("Inner",)): (
        f"SELECT 'on' AS x {NEAR[1]}FROM __hg_v0 AS `s` JOIN __hg_v1 AS `date` USING (k)"
        f" WHERE (v = 1 OR v = 2) AND {NEAR[0]}"
    ),
    ("SELECT 1 AS x FROM s [RANGE 2 SECONDS] a LEFT JOIN r [RANGE 1 SECOND] b ON a.k = b.k OR b.v"
     " WHERE b.k IS NULL", ("LeftOuter",)): (
        f"SELECT 1 AS x {NEAR[1]}FROM __hg_v0 AS `a` LEFT JOIN __hg_v1 AS `b`"
        f" ON (a.k = b.k OR b.v ) AND {NEAR[0]} WHERE b.k IS NULL"
    ),
    ("SELECT a.k FROM s [RANGE 2 SECONDS] a LEFT ANTI JOIN r [RANGE 1 SECOND] b ON a.k = b.k;",
     ("LeftAnti",)): (
        "SELECT a.k , __hg_a0 AS __hg_arrived, __hg_t0 AS __hg_h0 FROM __hg_v0 AS `a`"
        f" LEFT ANTI JOIN __hg_v1 AS `b` ON (a.k = b.k) AND {NEAR[0]}"
    ),
    ("SELECT a.k FROM s [RANGE 2 SECONDS] a LEFT JOIN r [RANGE 1 SECOND] b ON left(a.k, 2) = 'left'"
     " LEFT JOIN t ON t.k = b.k LATERAL VIEW explode(x) e", ("LeftOuter",)): (
        f"SELECT a.k {NEAR[1]}FROM __hg_v0 AS `a` LEFT JOIN __hg_v1 AS `b`"
        f" ON (left(a.k, 2) = 'left' ) AND {NEAR[0]} LEFT JOIN t ON t.k = b.k"
        " LATERAL VIEW explode(x) e"
    ),
    ("SELECT k, upper(k) u, b.k AS k, 'k' FROM s [RANGE 2 SECONDS] a FULL JOIN"
     " r [RANGE 1 SECOND] b USING (k) WHERE k > 1", ("FullOuter",)): (
        "SELECT coalesce(`a`.`k`, `b`.`k`) AS `k`, upper(coalesce(`a`.`k`, `b`.`k`)) u, b.k AS k,"
        f" 'k' {NEAR[1]}FROM __hg_v0 AS `a` FULL JOIN __hg_v1 AS `b` ON (`a`.`k` = `b`.`k` )"
        f" AND {NEAR[0]} WHERE coalesce(`a`.`k`, `b`.`k`) > 1"
    ),
    ("SELECT * FROM s [RANGE 2 SECONDS] a RIGHT JOIN r [RANGE 1 SECOND] b USING (k, v)",
     ("RightOuter",)): (
        "SELECT `b`.`k` AS `k`, `b`.`v` AS `v`, * EXCEPT (`a`.`k`, `b`.`k`, `a`.`v`, `b`.`v`)"
        f" {NEAR[1]}FROM __hg_v0 AS `a` RIGHT JOIN __hg_v1 AS `b`"
        f" ON (`a`.`k` = `b`.`k` AND `a`.`v` = `b`.`v`) AND {NEAR[0]}"
    ),
    ("SELECT a.w FROM (SELECT w FROM (SELECT extract(DAY FROM ts) AS w FROM s [RANGE 2 SECONDS]))"
     " a, (SELECT * FROM r [RANGE 1 SECOND]) b", ("Inner",)): (
        f"SELECT a.w {NEAR[1]}FROM (SELECT w , __hg_t0, __hg_a0 FROM (SELECT extract(DAY FROM ts)"
        " AS w , __hg_t0, __hg_a0 FROM __hg_v0 AS `s`)) a, (SELECT * FROM __hg_v1 AS `r`) b"
        f" WHERE {NEAR[0]}"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("sql", "joins"), JOINS)
def test_joins_of_tuples_as_they_come(sql: str, joins: tuple[str, ...]) -> None:
    (how,) = ways(sql, ("s", "r"), joins)
    assert how.text.split() == JOINS[sql, joins].split()
    assert (how.mode, how.join) == ("pairs", joins[0] if joins else "Inner")
    assert [each.window.size for each in how.inputs] == [2 * S, S]


def test_by_number_a_tuple_meets_the_last_so_many_of_the_others() -> None:
    (how,) = ways("SELECT a.k FROM s [ROWS 5] a, r [ROWS 3] b", ("s", "r"), ("Inner",))
    assert (how.mode, how.reach) == ("pairs", 5)
    assert how.text.endswith(" WHERE __hg_t0 >= __hg_s1_0 - 5L AND __hg_t1 >= __hg_s0_1 - 3L")


def test_windows_with_a_slide_are_joined_whole() -> None:
    sql = "SELECT a.k FROM s [RANGE 2 SECONDS SLIDE 1 SECOND] a, s [RANGE 3 SECONDS SLIDE 1 SECOND]"
    (how,) = ways(sql)
    assert (how.mode, how.text) == ("each", "SELECT a.k FROM __hg_v0 AS `a`, __hg_v1 AS `s`")
    assert [each.window for each in how.inputs] == [time(2 * S, S), time(3 * S, S)]
    assert how.streams == ("s",)


def test_a_union_has_the_time_of_every_part() -> None:
    one, two = "SELECT *, a IS DISTINCT FROM b AS d ", "SELECT k, v, w "
    assert is_union(f"{one}FROM s UNION ALL {two}FROM R WHERE x = 'from'")
    assert not is_union("SELECT k FROM (SELECT k FROM s UNION ALL SELECT k FROM r)")
    sql = f"{one}FROM s UNION ALL {two}FROM R WHERE x = 'from'"
    how, end = union_of(query(sql), ["s", "R"], TIMES), ", __hg_t0 AS __hg_end "
    one = one.replace("*", "* EXCEPT (__hg_t0) ")
    assert how.text == f"{one}{end}FROM s UNION ALL {two}{end}FROM R WHERE x = 'from'"
    assert how.inputs == (
        Input(stream="s", view="s", window=time(0)), Input(stream="r", view="r", window=time(0)),
    )  # fmt: skip


def test_a_union_carries_the_time_through_subqueries() -> None:
    sql = "WITH c AS (SELECT k FROM s) SELECT * FROM c UNION ALL SELECT k FROM (SELECT k FROM r)"
    how, end = union_of(query(sql), ["s", "r"], TIMES), ", __hg_t0 AS __hg_end "
    assert (
        how.text.split()
        == (
            "WITH c AS (SELECT k , __hg_t0 FROM s)"
            f" SELECT * EXCEPT (__hg_t0) {end} FROM c UNION ALL"
            f" SELECT k {end} FROM (SELECT k , __hg_t0 FROM r)"
        ).split()
    )


@pytest.mark.parametrize(
    ("sql", "unit", "fix"),
    [
        (
            "SELECT k FROM s [RANGE 5 SECNDS SLIDE 1 minuts]",
            "SECNDS",
            "[RANGE 5 SECONDS SLIDE 1 mi",
        ),
        (
            "SELECT k FROM s GROUP BY window(ts, '1 day 3 hors')",
            "hors",
            "window(ts, '1 day 3 hours')",
        ),
        (
            "SELECT 1 FROM s GROUP BY session_window(ts, '5 mintes')",
            "mintes",
            "session_window(ts, '5 mi",
        ),
        ("SELECT k FROM s [RANGE 5 PARSECS]", "PARSECS", "[RANGE 60 SECONDS SLIDE 10 SECONDS], "),
    ],
)
def test_an_unknown_unit_is_answered_with_the_nearest(sql: str, unit: str, fix: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        ways(sql, ("s",))
    assert refused.value.reason == f"cannot be read: there is no unit {unit}"
    assert refused.value.fix.startswith(f"write {fix}")


def test_a_month_is_refused_for_its_length() -> None:
    with pytest.raises(QueryRefused, match=r"\[RANGE 1 MONTH\] cannot be read: MONTH has no fixed"):
        ways("SELECT k FROM s [RANGE 1 MONTH]", ("s",))


TWO = "s [RANGE 1 SECOND] a {} JOIN r [RANGE 1 SECOND] b {}"
REFUSED = {
    "SELECT k FROM s [RANGE 10]": "[RANGE 10] cannot be read",
    "SELECT k FROM s [RANGE 0 SECONDS]": "cannot be read",
    "SELECT k FROM s [RANGE 1 MONTH]": "cannot be read",
    "SELECT k FROM s [RANGE 99999999 WEEKS]": "cannot be read",
    "SELECT k FROM s [ROWS 9999999999999999999]": "cannot be read",
    "SELECT k FROM s [RANGE 1.5.2 SECONDS]": "cannot be read",
    "SELECT k FROM s [RANGE 10 SECONDS SLIDE]": "cannot be read",
    "SELECT k FROM s [ROWS 10 SLIDE 0]": "cannot be read",
    "SELECT k FROM s [ROWS ten]": "cannot be read",
    "SELECT k FROM s [ROWS 3 x": "is not closed",
    "SELECT k FROM s\n [RANGE 3 SECONDS": "line 2: [RANGE 3 SECONDS is not closed",
    "SELECT k FROM [ROWS 3]": "does not stand behind the name of a stream",
    "SELECT k FROM (SELECT k FROM s) [ROWS 3]": "does not stand behind the name of a stream",
    "SELECT k FROM nobody [ROWS 3]": "nobody",
    "SELECT k FROM bare [RANGE 3 SECONDS]": "stream 'bare' has no event_time",
    "SELECT k FROM s GROUP BY window(ts)": "cannot be read",
    "SELECT k FROM s GROUP BY window(ts, '1 month')": "cannot be read",
    "SELECT k FROM s GROUP BY window(ts, '3 seconds', '1 second', 'x')": "cannot be read",
    "SELECT k FROM s GROUP BY window(v, '3 seconds')": "event_time of stream 's', which is ts",
    "SELECT k FROM s WHERE window(ts, '3 seconds') = window(ts, '4 seconds')": "second window",
    "SELECT k FROM s [ROWS 3] GROUP BY window(ts, '3 seconds')": "is for a query over one stream",
    "SELECT k FROM s [ROWS 3] a, r [RANGE 1 SECOND] b": "ROWS stands beside RANGE",
    "SELECT k FROM s [ROWS 3 SLIDE 1] a, r [ROWS 3 SLIDE 1] b": "SLIDE of ROWS is for one stream",
    "SELECT k FROM s [ROWS 3] a LEFT JOIN r [ROWS 3] b ON true": "not possible of ROWS windows",
    "SELECT k FROM s [RANGE 1 SECOND SLIDE 1 SECOND] a, r [RANGE 1 SECOND] b": "SLIDE differs",
    f"SELECT k FROM {TWO.format('NATURAL LEFT', '')}": "JOIN has no ON",
    f"SELECT k FROM {TWO.format('LEFT', 'ON true')}, s [RANGE 1 SECOND] c": "of two streams only",
    f"SELECT struct(a.*) AS x FROM {TWO.format('', '')}": "* cannot be inside a function here",
}  # fmt: skip


@pytest.mark.parametrize("sql", REFUSED)
def test_refusals(sql: str) -> None:
    with pytest.raises((QueryRefused, UnknownName)) as refused:
        ways(sql, ("s",), ("LeftOuter",) if "LEFT" in sql else ())
    assert REFUSED[sql] in str(refused.value)
    assert "__hg" not in str(refused.value)


UNIONS = {
    "SELECT k FROM s UNION ALL SELECT k FROM bare": "stream 'bare' has no event_time",
    "(SELECT k FROM s) UNION ALL (SELECT k FROM r)": "has a part that is not SELECT",
    "SELECT k FROM s UNION ALL SELECT 1": "has a part that is not SELECT",
    "SELECT to_json(struct(*)) FROM s UNION ALL SELECT k FROM r": "* cannot be inside a function",
}


@pytest.mark.parametrize("sql", UNIONS)
def test_refusals_of_unions(sql: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        union_of(query(sql), ["s", "bare" if "bare" in sql else "r"], TIMES)
    assert UNIONS[sql] in str(refused.value)


def test_a_stream_without_a_window_is_refused() -> None:
    (*_, how) = ways("SELECT k FROM s [ROWS 3] a")
    refuse_bare(query("q"), how, ["s"], ["s", "r"])
    for read in (["s", "s"], ["S", "r"]):
        with pytest.raises(QueryRefused, match=f"FROM {read[1]} has no window"):
            refuse_bare(query("q"), how, read, ["s", "r"])


def test_durations_that_cannot_be_read() -> None:
    for text in ("", "10", "seconds", "1 month", "-1 second", "1.5.2 seconds", "1 second 2"):
        assert microseconds(text) is None


def test_words_that_are_no_windows() -> None:
    for sql in ("SELECT arr[0] FROM s", "SELECT window FROM s", "SELECT '[ROWS 3]' FROM s", "'"):
        assert not has_windows(sql)
        assert not named_streams(query(sql))


UNREAD = {
    "SELECT count(*) AS n FROM s [RANGE 9 SECONDS]": ("s__time", ("s",), 9.0),
    "SELECT count(*) AS n FROM S GROUP BY window(ts, '4 seconds', '2 seconds')": (
        "s__time", ("s",), 2.0,
    ),
    "SELECT a.k FROM s [RANGE 1 SECOND] a, r [RANGE 1 SECOND] b": ("r__s__time", ("s", "r"), None),
    "SELECT k FROM r UNION ALL SELECT k FROM s": ("r__s__time", ("r", "s"), None),
    "SELECT s.k FROM s JOIN parquet.`/x` t ON s.k = t.k": ("s", None, None),
    "SELECT k FROM s WHERE k > 1": ("s", None, None),
}  # fmt: skip


@pytest.mark.parametrize("sql", UNREAD)
def test_paths_of_texts_that_spark_has_not_read(sql: str) -> None:
    path, more = unread_path(query(sql), dict.fromkeys(TIMES, ()))
    found = path.stream, more[0].of if more else None, path.query.deadline_s
    assert found == UNREAD[sql]


@pytest.mark.parametrize(
    "sql",
    ["SELECT k FROM nobody [ROWS 3]", "SELECT k FROM x UNION ALL SELECT k FROM y",
     "SELECT s.k FROM s, r"],
)  # fmt: skip
def test_texts_that_cannot_be_read_at_all(sql: str) -> None:
    with pytest.raises(HeadgateError):
        unread_path(query(sql), dict.fromkeys(TIMES, ()))
