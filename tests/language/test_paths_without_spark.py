"""Paths of queries that Spark has not read, for simulating and for explaining a file."""

import pytest

from headgate.errors import HeadgateError
from headgate.language.paths_without_spark import path_without_spark
from headgate.model.query import Query

STREAMS: dict[str, tuple[str, ...]] = dict.fromkeys(("s", "r", "bare", "date"), ())


def query(sql: str) -> Query:
    return Query(name="q", sql=sql, query_class="H")


PATHS = {
    "SELECT count(*) AS n FROM s [RANGE 9 SECONDS]": ("s__time", ("s",), 9.0),
    "SELECT count(*) AS n FROM s [RANGE 9 SECONDS SLIDE 3 SECONDS]": ("s__time", ("s",), 3.0),
    "SELECT count(*) AS n FROM s [ROWS 9]": ("s__time", ("s",), None),
    "SELECT count(*) AS n FROM S GROUP BY window(ts, '4 seconds', '2 seconds')": (
        "s__time", ("s",), 2.0,
    ),
    "SELECT count(*) AS n FROM s GROUP BY Window(`ts`, INTERVAL '1' MINUTE)": (
        "s__time", ("s",), 60.0,
    ),
    "SELECT k, count(*) AS n FROM s GROUP BY k, session_window(ts, '5 minutes')": (
        "s__time", ("s",), None,
    ),
    "SELECT a.k FROM s [RANGE 1 SECOND] a, r [RANGE 1 SECOND] b": ("r__s__time", ("s", "r"), None),
    "SELECT k FROM r UNION ALL SELECT k FROM s": ("r__s__time", ("r", "s"), None),
    "SELECT k FROM date [RANGE 1 WEEK]": ("date__time", ("date",), 604800.0),
    "SELECT s.k FROM s JOIN parquet.`/x` t ON s.k = t.k": ("s", None, None),
    "SELECT s.k FROM s JOIN r ON s.ts = r.ts": ("r__s__time", ("s", "r"), None),
    "SELECT s.k, s.v FROM s, r WHERE s.ts = r.ts": ("r__s__time", ("s", "r"), None),
    "SELECT a.k FROM s a LEFT JOIN s b ON a.ts = b.ts": ("s__time", ("s",), None),
    "SELECT k FROM s WHERE k > 1": ("s", None, None),
    "SELECT '[ROWS 3]' AS k, window FROM s": ("s", None, None),
    "SELECT k FROM (SELECT k FROM s UNION ALL SELECT 1)": ("s", None, None),
}  # fmt: skip


@pytest.mark.parametrize("sql", PATHS)
def test_paths_of_texts_that_spark_has_not_read(sql: str) -> None:
    path, more = path_without_spark(query(sql), STREAMS)
    facts = path.stream, more[0].of if more else None, path.query.deadline_s
    assert facts == PATHS[sql]


@pytest.mark.parametrize(
    "sql",
    ["SELECT k FROM nobody [ROWS 3]", "SELECT k FROM x UNION ALL SELECT k FROM y",
     "SELECT n.k FROM nobody n, other o", "SELECT n.k FROM nobody n JOIN other o ON n.k = o.k",
     "SELECT k FROM s [ROWS 3", "SELECT k FROM s [RANGE 1 MONTH]"],
)  # fmt: skip
def test_texts_that_cannot_be_read_at_all(sql: str) -> None:
    with pytest.raises(HeadgateError):
        path_without_spark(query(sql), STREAMS)
