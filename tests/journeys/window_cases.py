"""Random queries with windows, each with an equivalent query for DuckDB, and random rows."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

Row = tuple[str | None, int, int | None]
"""Place, reading, and time in microseconds since 1970."""

NEVER = -(2**62)
SECOND = 1_000_000
ARROW = pa.schema([("k", pa.string()), ("v", pa.int32()), ("ts", pa.timestamp("us", tz="UTC"))])
BASES = [
    datetime(2024, 3, 31, 0, 59, 50, tzinfo=UTC),  # Europe's clocks go forward ten seconds later
    datetime(2024, 10, 27, 0, 59, 50, tzinfo=UTC),  # and back
    datetime(1969, 12, 31, 23, 59, 50, tzinfo=UTC),
]


@dataclass(frozen=True)
class WindowQuery:
    """A query: its text, the streams it reads, and the SQL for DuckDB.

    In the SQL for DuckDB, @upto stands for the watermark after the last tuple, and @rows for the
    number of tuples of the stream `rights`.
    """

    sql: str
    streams: tuple[str, ...]
    oracle: str


def windows(relation: str, size: int, slide: int, offset: int = 0) -> str:
    """Return a DuckDB relation that has a row once for each closed window that contains it.

    `e` is the end of the window. The SQL computes it with remainders that are never negative.
    """
    place = f"(us - {offset})"
    first = f"us - ({place} % {slide} + {slide}) % {slide} + {slide}"
    ends = f"unnest(range({first}, us + {size} + 1, {slide}))"
    return f"(SELECT * FROM (SELECT *, {ends} AS e FROM {relation}) WHERE e <= @upto)"


def numbered(relation: str, size: int, slide: int) -> str:
    """Return the same for windows by the number of a row, over all rows, even late ones."""
    ends = f"unnest(range(n - n % {slide} + {slide}, n + {size} + 1, {slide}))"
    return f"(SELECT * FROM (SELECT *, {ends} AS e FROM all_{relation}) WHERE e <= @rows)"


def _seconds(micros: int) -> str:
    return (
        f"{micros // SECOND} SECONDS" if not micros % SECOND else f"{micros // 1000} MILLISECONDS"
    )


def _time(us: str) -> str:
    return f"make_timestamptz({us})"


spans = st.sampled_from([500_000, *(n * SECOND for n in (1, 2, 3, 5, 7, 10, 16))])


@st.composite
def over_windows(draw: st.DrawFn) -> WindowQuery:
    """Draw a query over windows of one stream by time."""
    size, slide, a = draw(spans), draw(spans), draw(st.integers(-1, 12))
    if size > 8 * slide:
        slide = size // 2
    kind = draw(st.integers(0, 8))
    clause = f"[RANGE {_seconds(size)} SLIDE {_seconds(slide)}]"
    rows = windows("lefts", size, slide)
    if kind == 0:
        text = f"SELECT k, count(*) AS n, sum(v) AS t, window.end AS e FROM lefts {clause}" \
            f" WHERE v > {a} GROUP BY k"  # fmt: skip
        oracle = f"SELECT k, count(*), sum(v)::BIGINT, {_time('e')} FROM {rows} WHERE v > {a}" \
            " GROUP BY k, e"  # fmt: skip
    elif kind == 1:
        text = f"SELECT count(*) AS n, min(ts) AS f FROM lefts [RANGE {_seconds(size)}]"
        oracle = f"SELECT count(*), min(ts) FROM {windows('lefts', size, size)} GROUP BY e"
    elif kind == 2:
        slide = min(size, slide)
        start = slide // 4 // 1000 * 1000
        begins = f", '{start // 1000} milliseconds'" if start and a > 4 else ""
        text = "SELECT window.start AS s, k, max(v) AS top FROM lefts GROUP BY k," \
            f" window(ts, '{_seconds(size)}', '{_seconds(slide)}'{begins})"  # fmt: skip
        rows = windows("lefts", size, slide, (size + (start if begins else 0)) % slide)
        oracle = f"SELECT {_time(f'e - {size}')}, k, max(v) FROM {rows} GROUP BY k, e"
    elif kind == 3:
        text = f"SELECT DISTINCT k FROM lefts {clause} WHERE v <> {a}"
        oracle = f"SELECT k FROM (SELECT DISTINCT k, e FROM {rows} WHERE v <> {a})"
    elif kind == 4:
        text = f"SELECT * FROM lefts {clause} ORDER BY v DESC, k NULLS FIRST, ts LIMIT 2"
        oracle = "SELECT k, v, ts FROM (SELECT *, row_number() OVER (PARTITION BY e" \
            f" ORDER BY v DESC, k NULLS FIRST, ts) AS p FROM {rows}) WHERE p <= 2"  # fmt: skip
    elif kind == 5:
        text = f"WITH hot AS (SELECT * FROM lefts {clause} WHERE v > {a})" \
            " SELECT k, count(DISTINCT v) AS n FROM hot GROUP BY k HAVING count(*) > 1"  # fmt: skip
        oracle = f"SELECT k, count(DISTINCT v) FROM {rows} WHERE v > {a} GROUP BY k, e" \
            " HAVING count(*) > 1"  # fmt: skip
    elif kind == 6:
        text = f"SELECT s.v * 2 AS twice, 'from' AS src FROM lefts {clause} s WHERE s.k = 'a'"
        oracle = f"SELECT v * 2, 'from' FROM {rows} WHERE k = 'a'"
    elif kind == 7:
        text = f"SELECT count(*) AS n, max(v) AS top FROM lefts {clause} WHERE v > {a}"
        oracle = f"SELECT count(*) FILTER (v > {a}), max(v) FILTER (v > {a}) FROM {rows} GROUP BY e"
    else:
        text = "SELECT v, k FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v, ts)" \
            f" AS p FROM lefts {clause}) WHERE p = 1"  # fmt: skip
        oracle = "SELECT v, k FROM (SELECT *, row_number() OVER (PARTITION BY e, k" \
            f" ORDER BY v, ts) AS p FROM {rows}) WHERE p = 1"  # fmt: skip
    return WindowQuery(text, ("lefts",), oracle)


def sessions(relation: str, gap: int, keys: str = "") -> str:
    """Return the rows of a relation with the number `g` of their session, for DuckDB.

    As in Spark, two rows exactly the gap apart belong to one session.
    """
    over = f"OVER ({f'PARTITION BY {keys} ' if keys else ''}ORDER BY us, n)"
    fresh = f"CASE WHEN us - lag(us) {over} <= {gap} THEN 0 ELSE 1 END AS fresh"
    return f"(SELECT *, sum(fresh) {over} AS g FROM (SELECT *, {fresh} FROM {relation}))"


@st.composite
def over_sessions(draw: st.DrawFn) -> WindowQuery:
    """Draw a query over the sessions of one stream."""
    gap, a, kind = draw(spans), draw(st.integers(-1, 12)), draw(st.integers(0, 3))
    call, ended = f"session_window(ts, '{_seconds(gap)}')", f"max(us) + {gap} < @upto"
    rows = f"(SELECT * FROM lefts WHERE v > {a})"
    if kind == 0:
        text = "SELECT k, count(*) AS n, sum(v) AS t, session_window.start AS s FROM lefts" \
            f" WHERE v > {a} GROUP BY k, {call}"  # fmt: skip
        oracle = f"SELECT k, count(*), sum(v)::BIGINT, min(ts) FROM {sessions(rows, gap, 'k')}" \
            f" GROUP BY k, g HAVING {ended}"  # fmt: skip
    elif kind == 1:
        text = f"SELECT count(DISTINCT k) AS n, session_window.end AS e FROM lefts GROUP BY {call}"
        oracle = f"SELECT count(DISTINCT k), {_time(f'max(us) + {gap}')}" \
            f" FROM {sessions('lefts', gap)} GROUP BY g HAVING {ended}"  # fmt: skip
    elif kind == 2:
        text = "SELECT v % 3 AS m, k, avg(v) AS n, percentile(v, 0.5) AS p FROM lefts x" \
            f" GROUP BY {call}, k, v % 3 HAVING count(*) > 1"  # fmt: skip
        oracle = "SELECT v % 3, k, avg(v), quantile_cont(v, 0.5)" \
            f" FROM {sessions('lefts', gap, 'k, v % 3')} GROUP BY k, v % 3, g" \
            f" HAVING count(*) > 1 AND {ended}"  # fmt: skip
    else:
        text = f"SELECT k, max(v) AS top FROM lefts WHERE k = 'a' GROUP BY 1, {call}" \
            f" HAVING top > {a};"  # fmt: skip
        oracle = f"SELECT k, max(v) FROM {sessions('lefts', gap, 'k')} WHERE k = 'a'" \
            f" GROUP BY k, g HAVING max(v) > {a} AND {ended}"  # fmt: skip
    return WindowQuery(text, ("lefts",), oracle)


@st.composite
def over_rows(draw: st.DrawFn) -> WindowQuery:
    """Draw a query over windows of one stream by number."""
    size, slide = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    clause = f"[ROWS {size} SLIDE {slide}]" if slide != size else f"[ROWS {size}]"
    rows = numbered("rights", size, slide)
    if draw(st.booleans()):
        text = f"SELECT count(*) AS n, count(ts) AS m, window.end AS e FROM rights {clause}"
        oracle = f"SELECT count(*), count(ts), e FROM {rows} GROUP BY e"
    else:
        text = f"SELECT k, v FROM rights {clause} ORDER BY k NULLS LAST, v LIMIT 1"
        oracle = "SELECT k, v FROM (SELECT *, row_number() OVER (PARTITION BY e" \
            f" ORDER BY k NULLS LAST, v) AS p FROM {rows}) WHERE p = 1"  # fmt: skip
    return WindowQuery(text, ("rights",), oracle)


@st.composite
def joins(draw: st.DrawFn) -> WindowQuery:
    """Draw a join of two streams, of a stream with itself, or of three inputs."""
    one, two, three, a = draw(spans), draw(spans), draw(spans), draw(st.integers(-1, 12))
    other = draw(st.sampled_from(["rights", "rights", "lefts"]))
    streams = tuple(dict.fromkeys(("lefts", other)))
    left, right = f"lefts [RANGE {_seconds(one)}] a", f"{other} [RANGE {_seconds(two)}] AS b"
    near = f"a.us >= b.us - {one} AND b.us >= a.us - {two}"
    kind = draw(st.sampled_from(
        ["inner", "cross", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "three", "each"]
    ))  # fmt: skip
    if kind == "inner":
        text = f"SELECT a.k, a.v AS x, b.v AS y, b.ts FROM {left} JOIN {right} USING (k)" \
            f" WHERE a.v > {a} OR b.v = 3"  # fmt: skip
        oracle = f"SELECT a.k, a.v, b.v, b.ts FROM lefts a JOIN {other} b ON a.k = b.k AND {near}" \
            f" WHERE a.v > {a} OR b.v = 3"  # fmt: skip
    elif kind == "cross":
        text = f"SELECT a.v AS x, b.v AS y FROM {left}, {right}"
        oracle = f"SELECT a.v, b.v FROM lefts a JOIN {other} b ON {near}"
    elif kind == "three":
        text = f"SELECT a.v AS x, b.v AS y, c.v AS z FROM {left}, {right}," \
            f" lefts [RANGE {_seconds(three)}] c WHERE a.k = b.k AND b.k = c.k"  # fmt: skip
        oracle = f"SELECT a.v, b.v, c.v FROM lefts a, {other} b, lefts c WHERE a.k = b.k" \
            f" AND b.k = c.k AND {near} AND a.us >= c.us - {one} AND c.us >= a.us - {three}" \
            f" AND b.us >= c.us - {two} AND c.us >= b.us - {three}"  # fmt: skip
    elif kind == "each":
        slide = max(one, two) if a > 5 else max(one, two) // 2
        text = f"SELECT a.k, count(b.v) AS n FROM lefts [RANGE {_seconds(one)} SLIDE" \
            f" {_seconds(slide)}] a LEFT JOIN {other} [RANGE {_seconds(two)} SLIDE" \
            f" {_seconds(slide)}] b ON a.k = b.k GROUP BY a.k"  # fmt: skip
        a_rows, b_rows = windows("lefts", one, slide), windows(other, two, slide)
        oracle = f"SELECT a.k, count(b.v) FROM {a_rows} a LEFT JOIN {b_rows} b" \
            " ON a.k = b.k AND a.e = b.e GROUP BY a.k, a.e"  # fmt: skip
    else:
        semi = kind in ("LEFT SEMI", "LEFT ANTI")
        columns = ("a.k, a.v", "a.k, a.v AS x") if semi else ("a.v, b.v", "a.v AS x, b.v AS y")
        where = f"a.v > {a} OR a.v IS NULL" if a > 5 else "true"
        done, b_done = f"a.us + {one} < @upto", f"b.us + {two} < @upto"
        final = {
            "LEFT": f"b.us IS NOT NULL OR {done}",
            "RIGHT": f"a.us IS NOT NULL OR {b_done}",
            "FULL": f"CASE WHEN b.us IS NULL THEN {done} WHEN a.us IS NULL THEN {b_done}"
            " ELSE true END",
        }.get(kind, done)
        text = f"SELECT {columns[1]} FROM {left} {kind} JOIN {right} ON a.k = b.k AND a.v < b.v + 5"
        text += f" WHERE {where}" if a > 5 else ""
        join = kind.removeprefix("LEFT ") if semi else kind
        oracle = f"SELECT {columns[0]} FROM lefts a {join} JOIN {other} b ON a.k = b.k" \
            f" AND a.v < b.v + 5 AND {near} WHERE ({final}) AND ({where})"  # fmt: skip
    return WindowQuery(text, streams, oracle)


@st.composite
def bounded_joins(draw: st.DrawFn) -> WindowQuery:
    """Draw a join whose condition bounds times: `b` is between `low` and `high` after `a`."""
    low = draw(st.sampled_from([-3, -1, 0, 1])) * SECOND // 2
    high = low + draw(st.integers(0, 4)) * SECOND // 2
    other = draw(st.sampled_from(["rights", "rights", "lefts"]))
    kind = draw(st.sampled_from(["", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "three"]))
    bounds = f"b.ts >= a.ts + INTERVAL '{low / SECOND}' SECOND" \
        f" AND b.ts <= a.ts + INTERVAL '{high / SECOND}' SECOND"  # fmt: skip
    near = f"a.k = b.k AND b.us BETWEEN a.us + {low} AND a.us + {high}"
    a_done, b_done = f"a.us + {max(high, 0)} < @upto", f"b.us + {max(-low, 0)} < @upto"
    streams = tuple(dict.fromkeys(("lefts", other)))
    if kind == "three":
        text = f"SELECT a.v, b.v AS y, c.v AS z FROM lefts a LEFT JOIN {other} b ON a.k = b.k" \
            f" AND {bounds} LEFT JOIN lefts c ON c.k = b.k AND c.ts = b.ts"  # fmt: skip
        oracle = f"SELECT a.v, b.v, c.v FROM lefts a LEFT JOIN {other} b ON {near} LEFT JOIN" \
            f" lefts c ON c.k = b.k AND c.us = b.us WHERE c.us IS NOT NULL OR {a_done}"  # fmt: skip
        return WindowQuery(text, streams, oracle)
    semi = kind in ("LEFT SEMI", "LEFT ANTI")
    columns = ("a.k, a.v", "a.k, a.v AS x") if semi else ("a.v, b.v", "a.v AS x, b.v AS y")
    final = {
        "": "true",
        "LEFT": f"b.us IS NOT NULL OR {a_done}",
        "RIGHT": f"a.us IS NOT NULL OR {b_done}",
        "FULL": f"CASE WHEN b.us IS NULL THEN {a_done} WHEN a.us IS NULL THEN {b_done}"
        " ELSE true END",
    }.get(kind, a_done)
    text = f"SELECT {columns[1]} FROM lefts a {kind} JOIN {other} b ON a.k = b.k AND {bounds}"
    join = kind.removeprefix("LEFT ") if semi else kind
    oracle = f"SELECT {columns[0]} FROM lefts a {join} JOIN {other} b ON {near} WHERE {final}"
    return WindowQuery(text, streams, oracle)


@st.composite
def others(draw: st.DrawFn) -> WindowQuery:
    """Draw a filter or a union."""
    a = draw(st.integers(-1, 12))
    if draw(st.booleans()):
        text = f"SELECT k, v FROM lefts WHERE v > {a}"
        return WindowQuery(text, ("lefts",), text.replace("lefts", "all_lefts"))
    other = draw(st.sampled_from(["rights", "lefts"]))
    text = f"SELECT ts, k, v FROM lefts WHERE v > {a} UNION ALL SELECT ts, 'r', v + 1 FROM {other}"
    oracle = f"SELECT * FROM ({text}) WHERE epoch_us(ts) < @upto"
    return WindowQuery(text, tuple(dict.fromkeys(("lefts", other))), oracle)


queries = st.one_of(
    over_windows(),
    over_windows(),
    over_sessions(),
    over_rows(),
    joins(),
    joins(),
    bounded_joins(),
    others(),
)


@st.composite
def streams(draw: st.DrawFn) -> list[list[Row]]:
    """Draw files of rows: mostly in order, some late, some twice, some without time or place."""
    now = int(draw(st.sampled_from(BASES)).timestamp()) * SECOND
    files: list[list[Row]] = []
    places = st.sampled_from([None, "a", "a", "b"])
    steps = st.sampled_from([0, 0, 1000, 250_000, 500_000, SECOND, 2 * SECOND])
    if not draw(st.integers(0, 19)):
        return [[("a", 1, None), ("b", 2, None)]]  # no tuple has a time
    delays = st.sampled_from([0] * 6 + [500_000, SECOND, 3 * SECOND, 9 * SECOND])
    for size in draw(st.lists(st.integers(1, 12), min_size=1, max_size=5)):
        file: list[Row] = []
        for _ in range(size):
            chance = draw(st.integers(0, 40))
            now += 365 * 86_400 * SECOND if chance == 40 else draw(steps)
            time = None if chance == 39 else now - draw(delays)
            file.append((draw(places), draw(st.integers(0, 12)), time))
            if chance == 38:
                file.append(file[-1])
        files.append(file)
    return files


def in_time(rows: list[Row], lateness: int) -> tuple[list[Row], int]:
    """Return the rows that are not late, in order, and the watermark after the last row."""
    punctual: list[Row] = []
    mark = NEVER
    for row in rows:
        if row[2] is not None:
            if row[2] >= mark:
                punctual.append(row)
            mark = max(mark, row[2] - lateness)
    return punctual, mark


def table_of(rows: list[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    return pa.table([pa.array(c, t.type) for c, t in zip(columns, ARROW, strict=True)], ARROW)


def answer(
    query: WindowQuery, rows: dict[str, list[Row]], lateness: int
) -> Counter[tuple[Any, ...]]:
    """Return DuckDB's answer over the rows that are not late, for windows that have closed."""
    marks, sql = [], query.oracle
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for name, all_rows in rows.items():
            punctual, mark = in_time(all_rows, lateness)
            if name in query.streams:
                marks.append(mark)
            for relation, content in ((name, punctual), (f"all_{name}", all_rows)):
                db.register(f"raw_{relation}", table_of(content))
                db.execute(f"CREATE TABLE {relation} AS SELECT *, epoch_us(ts) AS us,"
                           f" row_number() OVER () - 1 AS n FROM raw_{relation}")  # fmt: skip
        sql = sql.replace("@upto", str(min(marks))).replace("@rows", str(len(rows["rights"])))
        result = db.sql(sql).to_arrow_table()
        result_rows = zip(*(column.to_pylist() for column in result.columns), strict=True)
        return Counter(tuple(map(_plain, row)) for row in result_rows)


def _plain(value: Any) -> Any:
    return value.timestamp() if isinstance(value, datetime) else value
