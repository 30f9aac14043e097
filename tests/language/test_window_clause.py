"""Window clauses are found where Spark would see a relation's brackets, and nowhere else."""

import time
from contextlib import suppress

import pytest

from headgate.errors import QueryRefused
from headgate.language.window_clause import Clause, clauses_in, marked
from headgate.model.query import Query
from headgate.model.window import WRITTEN, Window

S = 1_000_000
ONE = "WITH ('__hg_input' = '0')"


def query(sql: str) -> Query:
    return Query(name="q", sql=sql, query_class="H")


def clauses(sql: str) -> tuple[Clause, ...]:
    return marked(query(sql))[1]


def in_time(size: int, slide: int | None = None) -> Window:
    return Window(axis="time", size=size, slide=slide)


def in_rows(size: int, slide: int | None = None) -> Window:
    return Window(axis="rows", size=size, slide=slide)


WINDOWS = {
    "FROM s [RANGE 10 SECONDS]": in_time(10 * S),
    "FROM s[RANGE 10 SECONDS]": in_time(10 * S),
    "FROM s [ RANGE 10 SECONDS ]": in_time(10 * S),
    "FROM s [range 1 minute 30 seconds slide 10 seconds]": in_time(90 * S, 10 * S),
    "FROM s [RANGE INTERVAL '2' HOURS SLIDE 1 DAY] x": in_time(7200 * S, 86400 * S),
    "FROM s [RANGE '0.5' SECONDS SLIDE INTERVAL '1.5 milliseconds']": in_time(S // 2, 1500),
    "FROM `s` [RANGE 500 MILLISECONDS SLIDE 7 MICROSECONDS] AS x": in_time(S // 2, 7),
    "FROM s [RANGE 1 WEEK]": in_time(604800 * S),
    "FROM s [ROWS 100 SLIDE 10]": in_rows(100, 10),
    "FROM s [ROWS 100 SLIDE 200]": in_rows(100, 200),
    "FROM s [rows 5]": in_rows(5),
    "FROM s\t[ROWS\n5\n] x": in_rows(5),
}


@pytest.mark.parametrize("text", WINDOWS)
def test_a_clause_is_read_and_cut_out(text: str) -> None:
    sql = f"SELECT count(*) AS n {text}"
    (clause,) = clauses(sql)
    assert (clause.stream, clause.window) == ("s", WINDOWS[text])
    before, _, behind = sql.partition(clause.text)
    lines = "\n" * clause.text.count("\n")
    assert marked(query(sql))[0] == f"{before}{ONE}{lines}{behind}"


STREAMS = {
    "FROM S [ROWS 5]": "S",
    "FROM date [ROWS 5]": "date",
    "FROM `odd ``name` [ROWS 5]": "odd `name",
    "FROM `[ROWS 3]` [ROWS 5]": "[ROWS 3]",
    "FROM here.s [ROWS 5]": "s",
    "FROM s /* five, not [ROWS 3] */ [ROWS 5]": "s",
    "FROM s -- five\n [ROWS 5]": "s",
    "FROM größe [ROWS 5]": "größe",
}


@pytest.mark.parametrize("text", STREAMS)
def test_the_stream_is_the_name_before_the_clause(text: str) -> None:
    (clause,) = clauses(f"SELECT k {text}")
    assert (clause.stream, clause.window.size) == (STREAMS[text], 5)


def test_each_clause_has_its_number_and_lines_stay_where_they_are() -> None:
    sql = "SELECT a.k\nFROM s [RANGE 1\n  MINUTE\n] a,\n r [ROWS 3] b,\ns [ROWS 4]\nWHERE a.k = 1"
    text, marks = marked(query(sql))
    assert [(clause.stream, clause.line) for clause in marks] == [("s", 2), ("r", 5), ("s", 6)]
    assert text.splitlines()[4:] == [
        " r WITH ('__hg_input' = '1') b,",
        "s WITH ('__hg_input' = '2')",
        "WHERE a.k = 1",
    ]


NO_CLAUSES = [
    "SELECT arr[0] FROM s",
    "SELECT window FROM s",
    "'",
    "SELECT '[ROWS 3]' FROM s",
    "SELECT a[rows DIV 2], a[range div 2], a[ROWS], a[range ], a[rows + 1] FROM s",
    "SELECT m[rows IS NULL], m[range BETWEEN 1 AND 2], m[rows AND b], m[range IN (1)] FROM s",
    "SELECT 'it''s [ROWS 3]' FROM s",
    r"SELECT 'it\'s [ROWS 3]' FROM s",
    r"SELECT '\\', 's [ROWS 3]' FROM s",
    'SELECT "s [ROWS 3]" FROM s',
    'SELECT "it\'s [ROWS 3]" FROM s',
    r"SELECT r'\', r's [ROWS 3]' FROM s",
    r"SELECT R'\', 's [ROWS 3]' FROM s",
    r'SELECT r"\", "s [ROWS 3]" FROM s',
    "SELECT k -- FROM s [ROWS 3]\nFROM s",
    "SELECT k FROM s -- it's [ROWS 3]",
    "SELECT k /* FROM s [ROWS 3] ' */ FROM s",
    "SELECT k /* one /* two */ FROM s [ROWS 3] */ FROM s",
    "SELECT k -- one \\\n FROM s [ROWS 3]\nFROM s",
    "SELECT `s [ROWS 3]` FROM s",
    "SELECT `a``s [ROWS 3]` FROM s",
    "SELECT k FROM s WHERE a[range] > 1 AND a[ rows ] < 2",
    "SELECT a[range + 1], a[range * 2], a[rows % 3], a[range.x], a[rows(1)] FROM s",
    "SELECT a[rows - 1], a[range -1], a[`rows`] FROM s",
    "SELECT a[ranges], a[rowset], a[rows_3] FROM s",
]


@pytest.mark.parametrize("sql", NO_CLAUSES)
def test_strings_comments_quoted_names_and_subscripts_are_no_clauses(sql: str) -> None:
    assert list(clauses_in(sql)) == []
    assert marked(query(sql)) == (sql, ())


@pytest.mark.parametrize(
    "before",
    [
        r"'\\'", r"r'\'", '"it\'s"', "'--'", "'/*'", "`'`", "/* ' */ 1", "/* /* ' */ ' */ 1",
        "fear'x'", "1 -- '\n",
    ],
)  # fmt: skip
def test_a_clause_behind_any_of_them_is_one(before: str) -> None:
    (clause,) = clauses(f"SELECT {before} AS x FROM s [ROWS 3]")
    assert (clause.stream, clause.window) == ("s", in_rows(3))


REFUSED = {
    "SELECT k FROM s [RANGE 10]": "line 1: [RANGE 10] cannot be read",
    "SELECT k FROM s [RANGE 0 SECONDS]": "[RANGE 0 SECONDS] cannot be read",
    "SELECT k FROM s [RANGE 1 SECOND SLIDE 0 SECONDS]": "cannot be read",
    "SELECT k FROM s [RANGE 99999999 WEEKS]": "cannot be read",
    "SELECT k FROM s [RANGE 1.5.2 SECONDS]": "cannot be read",
    "SELECT k FROM s [RANGE 10 SECONDS SLIDE]": "cannot be read",
    "SELECT k FROM s [RANGE SLIDE 10 SECONDS]": "cannot be read",
    "SELECT k FROM s [RANGE 9 SECONDS SLIDE 3 SECONDS SLIDE 3 SECONDS]": "cannot be read",
    "SELECT k FROM s [ROWS 9999999999999999999]": "cannot be read",
    "SELECT k FROM s [ROWS 10 SLIDE 0]": "cannot be read",
    "SELECT k FROM s [ROWS 0]": "cannot be read",
    "SELECT k FROM s [ROWS 1.5]": "cannot be read",
    "SELECT k FROM s [ROWS ten]": "cannot be read",
    "SELECT k FROM s [ROWS 10 SECONDS]": "cannot be read",
    "SELECT k FROM s [RANGE 1 MONTH]": "MONTH has no fixed length",
    "SELECT k FROM s [RANGE 5 PARSECS]": "there is no unit PARSECS",
    "SELECT k FROM s [RANGE 60 secnods]": "write [RANGE 60 seconds]",
    "SELECT k FROM s [RANGE 5 minuts SLIDE 1 SECOND]": "write [RANGE 5 minutes SLIDE 1 SECOND]",
    "SELECT k FROM s [RANGE 5 SECONDS SLIDE 1 houre]": "there is no unit houre",
    "SELECT k FROM s [ROWS 3 x": "[ROWS 3 x is not closed",
    "SELECT k FROM s\n [RANGE 3 SECONDS": "line 2: [RANGE 3 SECONDS is not closed",
    "SELECT k FROM [ROWS 3]": "does not follow the name of a stream",
    "SELECT k FROM (SELECT k FROM s) [ROWS 3]": "does not follow the name of a stream",
    "SELECT k\nFROM (SELECT k FROM s)\n[ROWS 3]": "line 3: [ROWS 3] does not follow",
    "[ROWS 3]": "does not follow the name of a stream",
    "SELECT 3 [ROWS 3]": "does not follow the name of a stream",
    "SELECT 's' [ROWS 3]": "does not follow the name of a stream",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_a_clause_that_cannot_be_read_is_refused_with_its_line_and_how_to_write_it(
    sql: str,
) -> None:
    with pytest.raises(QueryRefused) as refused:
        marked(query(sql))
    message = str(refused.value)
    assert message.startswith("query 'q', line ")
    assert REFUSED[sql] in message
    fix = refused.value.fix.removeprefix("write ")
    if fix != WRITTEN:
        assert marked(query(sql.replace(refused.value.clause, fix)))[1], "a proposal must work"
    assert "__hg" not in message


@pytest.mark.parametrize("many", ["'a', ", "/**/ ", "/* ", "' ", "a", "[", "[ROWS\t"])
def test_long_texts_are_read_in_no_time(many: str) -> None:
    sql = f"SELECT k FROM s [ROWS 3] WHERE k IN ({many * (300_000 // len(many))}) FROM s [ROWS 4]"
    began_s = time.process_time()
    with suppress(QueryRefused):
        assert marked(query(sql))[1][0].window == in_rows(3)
    assert time.process_time() - began_s < 3
