"""Bounds on the times of joined streams, derived from Spark's plan of a condition."""

import gc
import re
import time
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.errors import QueryRefused
from headgate.language.kinds.joins import Joins
from headgate.model.network.join_tree import Bound, JoinTree
from headgate.model.query import Query
from headgate.model.stream import Stream
from headgate.runtime.members.query_paths import segments_of
from headgate.spark.jvm.query.analysis import Analyst
from headgate.spark.jvm.session import own_session

pytestmark = pytest.mark.spark

SCHEMA = "k STRING, n INT, Ts TIMESTAMP, also TIMESTAMP"
COLUMNS = {name: ["k", "n", "Ts", "also"] for name in ("a", "b", "c", "bare")}
STREAMS = [
    Stream(name=name, format="rate", event_time=time)
    for name, time in [("a", "ts"), ("b", "ts"), ("c", "ts"), ("wall", "ts"), ("bare", None)]
]
S = 1_000_000
HOUR, DAY = 3600 * S, 86_400 * S
BERLIN = 3 * HOUR - (53 * 60 + 28) * S
"""The greatest offset of Berlin from UTC, in 1945, minus the least, before 1893."""


@pytest.fixture(scope="module")
def analyst(spark: SparkSession) -> Analyst:
    session = own_session(spark)
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return _analyst(session)


def _analyst(session: SparkSession) -> Analyst:
    analyst = Analyst(session)
    for stream in STREAMS:
        schema = "k STRING, ts TIMESTAMP_NTZ" if stream.name == "wall" else SCHEMA
        analyst.add_stream(stream.name, StructType.fromDDL(schema), stream.event_time)
    return analyst


def tree_of(analyst: Analyst, sql: str) -> JoinTree:
    reading = analyst.read(Query(name="q", sql=sql, query_class="H"), sql)
    return analyst.join_tree(analyst.numbered(reading))[0]


def at_most(later: int) -> list[Bound]:
    """Return the bound that b's time is at most `later` microseconds after a's."""
    return [Bound(0, 1, later)]


def at_least(later: int) -> list[Bound]:
    """Return the bound that b's time is at least `later` microseconds after a's."""
    return [Bound(1, 0, -later)]


CONDITIONS = {
    "b.ts <= a.ts": at_most(0),
    "b.ts < a.ts": at_most(-1),
    "a.ts > b.ts - INTERVAL 5 SECONDS": at_most(5 * S - 1),
    "NULL OR b.ts < a.ts": [],
    "b.ts <= a.ts OR b.ts >= a.ts": [],
    "b.ts = a.ts": [Bound(0, 1, 0), Bound(1, 0, 0)],
    "b.ts <=> a.ts": [],
    "b.also <= a.ts AND b.ts <= a.also": [],
    "b.ts BETWEEN a.ts - INTERVAL '0.000001' SECOND AND a.ts + INTERVAL '1:30' MINUTE TO SECOND": [
        *at_least(-1), *at_most(90 * S),
    ],
    "b.ts NOT BETWEEN a.ts AND a.ts": [],
    "a.ts + INTERVAL 1 HOUR * 2 >= b.ts + INTERVAL 1 HOUR": at_most(HOUR),
    "a.ts - b.ts < INTERVAL 3 SECONDS": at_least(1 - 3 * S),
    "-(b.ts - a.ts) + INTERVAL 1 SECOND >= INTERVAL 3 SECONDS": at_most(-2 * S),
    "abs(b.ts - a.ts) <= INTERVAL 3 SECONDS": [*at_most(3 * S), Bound(1, 0, 3 * S)],
    "INTERVAL 3 SECONDS > abs(b.ts - a.ts)": [*at_most(3 * S - 1), Bound(1, 0, 3 * S - 1)],
    "abs(b.ts - a.ts) >= INTERVAL 3 SECONDS": [],
    "b.ts <= timestampadd(MINUTE, -2, a.ts)": at_most(-120 * S),
    "b.ts <= dateadd(WEEK, 1, a.ts)": at_most(7 * DAY),
    "b.ts <= timestampadd(QUARTER, 1, a.ts)": at_most(93 * DAY),
    "b.ts >= a.ts - INTERVAL 2 MONTHS": at_least(-62 * DAY),
    "b.ts <= a.ts + make_interval(0, 1, 0, 1, 0, 0, 1)": at_most(32 * DAY + S),
    "b.ts <= a.ts + make_dt_interval(0, 0, 0, a.n)": [],
    "unix_micros(b.ts) <= unix_micros(a.ts) + 7": at_most(7),
    "unix_seconds(b.ts) <= unix_seconds(a.ts) + 7": [],
    "date_trunc('DAY', b.ts) <= a.ts": [],
    "b.ts + INTERVAL 100000000 DAYS <= a.ts - INTERVAL 100000000 DAYS": [],
}  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
def test_bounds_of_a_condition(analyst: Analyst, condition: str) -> None:
    tree = tree_of(analyst, f"SELECT a.k FROM a JOIN b ON a.k = b.k AND ({condition})")
    assert (tree.kind, tree.numbers) == ("Inner", (0, 1))
    assert list(tree.bounds) == CONDITIONS[condition]
    where = tree_of(analyst, f"SELECT a.k FROM a, b WHERE {condition}")
    assert list(where.filters) == CONDITIONS[condition]


def test_times_are_followed_through_subqueries_and_common_tables(analyst: Analyst) -> None:
    tree = tree_of(
        analyst,
        "WITH late AS (SELECT k, Ts + INTERVAL 1 SECOND AS until FROM a) SELECT x.k FROM late x"
        " LEFT JOIN (SELECT ts AS at, k FROM (SELECT * FROM b WHERE n > 1)) y ON y.at < x.until"
        " JOIN late z ON z.until = y.at",
    )
    assert tree.numbers == (0, 1, 2)
    assert tree.sides[0].kind == "LeftOuter"
    assert list(tree.sides[0].bounds) == at_most(S - 1)
    assert set(tree.bounds) == {Bound(1, 2, -S), Bound(2, 1, S)}


def test_days_are_as_long_as_the_session_s_zone_has_them(spark: SparkSession) -> None:
    session = own_session(spark)
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    analyst = _analyst(session)

    def bounds(sql: str) -> list[Bound]:
        return list(tree_of(analyst, sql).bounds)

    assert bounds("SELECT a.k FROM a JOIN b ON b.ts <= a.ts + INTERVAL 23 HOURS") == at_most(
        23 * HOUR
    )
    assert bounds("SELECT a.k FROM a JOIN b ON b.ts <= a.ts + INTERVAL 1 DAY") == at_most(
        DAY + BERLIN
    )
    assert bounds("SELECT a.k FROM a JOIN b ON b.ts - a.ts <= INTERVAL 1 HOUR") == at_most(
        HOUR + BERLIN
    )
    on = "x.ts <= y.ts + INTERVAL 1 DAY"
    assert bounds(f"SELECT x.k FROM wall x JOIN wall y ON {on}") == [Bound(1, 0, DAY)]


REFUSED = {
    "SELECT x.k FROM a x\nJOIN b y ON x.k = y.k AND y.ts >= x.ts": (
        "query 'q', line 2: JOIN bounds the times of its streams on one side only:"
        " nothing limits how far y.ts may be after x.ts"
    ),
    "SELECT x.k FROM a x FULL JOIN (SELECT ts AS at, k FROM b) y ON x.ts > y.at": (
        "query 'q', line 1: JOIN bounds the times of its streams on one side only:"
        " nothing limits how far x.ts may be after y.at"
    ),
    "SELECT x.k FROM a x LEFT ANTI JOIN b y ON x.k = y.k AND x.ts > y.ts + INTERVAL 1 SECOND": (
        "query 'q', line 1: JOIN bounds the times of its streams on one side only:"
        " nothing limits how far x.ts may be after y.ts"
    ),
    "SELECT x.k FROM a x JOIN b y ON x.ts = y.ts\nLEFT JOIN c z ON z.k = x.k": (
        "query 'q', line 2: JOIN cannot run continuously without a window"
    ),
}


@pytest.mark.parametrize("sql", REFUSED)
def test_a_missing_bound_is_named_and_the_fix_works(analyst: Analyst, sql: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        segments_of(Query(name="q", sql=sql, query_class="H"), analyst, COLUMNS, STREAMS)
    assert str(refused.value).startswith(REFUSED[sql])
    fix = re.split(r", for example,  |, as in  ", refused.value.fix)[-1]
    fixed = Query(name="q", sql=f"{sql} AND {fix}", query_class="H")
    _, (path,) = segments_of(fixed, analyst, COLUMNS, STREAMS)
    assert isinstance(path.kind, Joins)


@pytest.mark.parametrize(
    ("sql", "message", "fix"),
    [
        (
            "SELECT count(*) AS n FROM a JOIN b ON a.ts = b.ts",
            "GROUP BY or an aggregate cannot run continuously without a window",
            "write a window after the stream",
        ),
        (
            "SELECT a.k FROM a JOIN bare ON a.ts = bare.ts",
            "JOIN cannot run continuously without a window",
            "as in FROM bare [ROWS 100], or name the column with the time",
        ),
        (
            "SELECT a.k FROM a JOIN b ON a.ts = b.ts WHERE EXISTS (SELECT 1 FROM c)",
            "a subquery over a stream",
            "",
        ),
        ("SELECT a.k FROM a [RANGE 1 DAY] JOIN b ON a.ts = b.ts", "FROM b has no window", ""),
    ],
)
def test_other_refusals_of_joins_without_windows(
    analyst: Analyst, sql: str, message: str, fix: str
) -> None:
    with pytest.raises(QueryRefused, match=re.escape(message)) as refused:
        segments_of(Query(name="q", sql=sql, query_class="H"), analyst, COLUMNS, STREAMS)
    assert fix in refused.value.fix


def collect_garbage(spark: SparkSession) -> None:
    """Wait until the JVM has collected what Python has released, such as the object made here."""
    jvm: Any = spark._jvm
    last = jvm.java.util.ArrayList()
    reference = jvm.java.lang.ref.WeakReference(last)
    del last
    gc.collect()
    ends_at_s = time.monotonic() + 60
    while not reference.refersTo(None):
        assert time.monotonic() < ends_at_s, "py4j releases nothing"
        jvm.java.lang.System.gc()


def test_equal_queries_have_one_key_though_garbage_is_collected_between_them(
    spark: SparkSession, analyst: Analyst
) -> None:
    texts = [
        "SELECT x.k FROM a x JOIN b y ON x.k = y.k AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 1 DAY",
        "SELECT k, count(*) AS n FROM a GROUP BY k, window(ts, '10 seconds')",
        "SELECT k, count(*) AS n FROM a GROUP BY k, session_window(ts, '10 seconds')",
    ]
    keys = []
    for round_name in ("first", "second"):
        queries = [
            Query(name=f"{round_name}{number}", sql=sql, query_class="H")
            for number, sql in enumerate(texts)
        ]
        paths = [segments_of(query, analyst, COLUMNS, STREAMS)[1] for query in queries]
        keys.append([(path.key, path.kind.key) for segments in paths for path in segments])
        collect_garbage(spark)
    assert keys[0] == keys[1]
    assert len(set(keys[0])) == len(texts)
