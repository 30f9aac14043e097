"""Plans that run in the driver give what a job gives."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headgate.spark.local_code import Code
from headgate.spark.local_plan import LocalPlan
from headgate.spark.local_rows import TooMuch, joined
from headgate.spark.projection import NotPlain
from headgate.spark.session import own_session

pytestmark = pytest.mark.spark

SECOND = 1_000_000


def _table(seed: int, count: int) -> pa.Table:
    luck = np.random.default_rng(seed)
    times = np.sort(luck.integers(-5 * SECOND, 15 * SECOND, count))
    ends = (times // (5 * SECOND) + 1) * 5 * SECOND
    at = pa.timestamp("us", tz="UTC")
    bounds = [pa.array(ends - 5 * SECOND, at), pa.array(ends, at)]
    return pa.table(
        {
            "k": pa.array(luck.choice(["a", "b", "ü", None], count).tolist(), pa.string()),
            "v": pa.array([int(x) or None for x in luck.integers(0, 20, count)], pa.int32()),
            "d": pa.array(luck.normal(size=count) * 10 ** luck.integers(0, 12, count)),
            "ts": pa.array(times, at),
            "t": pa.array(times),
            "window": pa.StructArray.from_arrays(bounds, ["start", "end"]),
        }
    )


TABLES = {"a": _table(1, 700), "b": _table(2, 90)}
ON = "a.k = b.k AND a.v = b.v AND a.t > b.t"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return own_session(spark)


def _views(session: SparkSession) -> None:
    for name, table in TABLES.items():
        session.createDataFrame(table).coalesce(1).createOrReplaceTempView(name)


def _plan(session: SparkSession, text: str) -> LocalPlan:
    _views(session)
    return LocalPlan(session, text, {name: session.table(name).schema for name in TABLES})


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, count(*) AS n, sum(v) AS s, avg(v) AS m, min(ts) AS f, max(k) AS l, window.end"
        " AS e FROM a WHERE v > 3 GROUP BY k, window HAVING count(*) > 10",
        "SELECT k, sum(d) AS s, avg(d) AS m, count(v) + 1 AS n FROM a GROUP BY k",
        "SELECT v % 3 AS r, sum(v * 2L) AS s FROM a GROUP BY 1",
        "SELECT DISTINCT k, v % 3 AS r FROM a",
        "SELECT count(v) AS n, max(v) AS top, min(k) AS first FROM a",
        "SELECT a.k, a.v, b.v AS w FROM a JOIN b ON a.k = b.k WHERE a.t >= b.t - 100000 AND"
        " b.t >= a.t - 50000 AND a.v > b.v",
        "SELECT a.t, b.t AS u FROM a JOIN b ON a.k <=> b.k AND a.v = b.v + 1",
        f"SELECT a.k, b.v FROM a LEFT JOIN b ON {ON}",
        f"SELECT a.k, b.v FROM b RIGHT JOIN a ON {ON}",
        f"SELECT a.k, b.v FROM a FULL JOIN b ON {ON}",
        f"SELECT a.k, a.v FROM a LEFT SEMI JOIN b ON {ON}",
        f"SELECT a.k, a.v FROM a LEFT ANTI JOIN b ON {ON}",
        "SELECT x.v, y.v AS z FROM a x JOIN a y ON x.k = y.k AND x.v = y.v AND x.t < y.t - 1000000",
        "SELECT k, v FROM a WHERE v > 3 UNION ALL SELECT upper(k), v + 1 FROM b",
        "SELECT a.k, count(*) AS n FROM a JOIN b ON a.v = b.v GROUP BY a.k HAVING max(b.t) > 5",
        "SELECT CASE WHEN v > 3 THEN named_struct('x', k) END AS s FROM b WHERE k LIKE '%a%'",
    ],
)
def test_a_plan_in_the_driver_gives_what_a_job_gives(session: SparkSession, text: str) -> None:
    found = _plan(session, text)(TABLES)
    _views(session)
    expected = session.sql(text).toArrow()
    assert found.column_names == expected.column_names
    assert found.schema.types == expected.schema.types
    assert _rows(found) == _rows(expected)
    assert found.num_rows


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k FROM a ORDER BY k LIMIT 3",
        "SELECT k, stddev(d) AS s FROM a GROUP BY k",
        "SELECT d, count(*) AS n FROM a GROUP BY d",
        "SELECT k, count(DISTINCT v) AS n, sum(v) AS s FROM a GROUP BY k",
        "SELECT a.v FROM a JOIN b ON a.v < b.v",
        "SELECT explode(array(v, 1)) AS x FROM a",
        "SELECT sum(v) OVER () AS s FROM a",
        "SELECT max(d) AS top FROM a",
        "SELECT k FROM a WHERE v = (SELECT max(v) FROM b)",
    ],
)
def test_what_needs_a_job_says_so(session: SparkSession, text: str) -> None:
    with pytest.raises(NotPlain):
        _plan(session, text)


def test_sums_that_are_not_exact_are_left_to_a_job(session: SparkSession) -> None:
    plan = _plan(session, "SELECT k, sum(t * 1000000000) AS s FROM a GROUP BY k")
    with pytest.raises(TooMuch):
        plan(TABLES)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_keys_of_any_type_in_any_number_of_chunks(session: SparkSession, count: int) -> None:
    text = (
        "SELECT a.t, b.t AS u FROM a JOIN b ON a.ts = b.ts"
        " AND CAST(a.ts AS DATE) <=> DATE'1970-01-01'"
    )
    plan, nothing = _plan(session, text), TABLES["a"].slice(0, 0)
    parts = [TABLES["a"].slice(n * 20, 20) for n in range(count)]
    a = pa.concat_tables(parts) if parts else pa.Table.from_batches([], nothing.schema)
    found = plan({"a": a, "b": a})
    times = Counter(a["ts"].to_pylist()) if count else Counter()
    early = {time: n for time, n in times.items() if time.year == 1970}
    assert found.num_rows == sum(n * n for n in early.values())


def test_over_nothing_it_gives_nothing(session: SparkSession) -> None:
    plan = _plan(session, f"SELECT a.k, count(*) AS n FROM a LEFT JOIN b ON {ON} GROUP BY a.k")
    nothing = {name: table.slice(0, 0) for name, table in TABLES.items()}
    assert plan(nothing).num_rows == 0
    assert plan({**TABLES, "b": nothing["b"]}).num_rows == 4


def _rows(table: pa.Table) -> Counter[str]:
    return Counter(repr(row) for row in table.to_pylist())


def test_rows_are_matched_once_by_plans_over_the_same_tables(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: Counter[str] = Counter()
    pairs = joined.pairs

    def counted(*columns: Any) -> Any:
        found["matched"] += 1
        return pairs(*columns)

    monkeypatch.setattr(joined, "pairs", counted)
    some, others = str([*range(12)])[1:-1], str([*range(8, 20)])[1:-1]
    texts = {
        f"SELECT a.t, b.t AS u FROM a JOIN b ON {ON}": 1,
        f"SELECT b.d FROM a JOIN b ON {ON}": 0,
        f"SELECT a.d FROM a JOIN b ON {ON} AND a.d < b.d": 1,  # NULL in d leaves other rows
        f"SELECT a.t FROM a JOIN b ON {ON} WHERE a.v IN ({some})": 1,
        f"SELECT a.t FROM a JOIN b ON {ON} WHERE a.v IN ({others})": 1,
        "SELECT a.t FROM a JOIN b ON a.k = b.k AND a.v = b.v AND b.t > a.t": 0,  # the same keys
        "SELECT b.t FROM b JOIN a ON b.k = a.k AND b.v = a.v AND b.t > a.t": 1,
    }
    known: dict[Any, Any] = {}
    for text, matched in texts.items():
        plan = _plan(session, text)
        alone = plan(TABLES)
        found.clear()
        assert plan(TABLES, known).equals(alone), text
        assert found["matched"] == matched, text


def test_a_condition_is_asked_once_for_plans_that_aggregate_its_rows_differently(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[int] = Counter()
    run = Code.__call__

    def counted(code: Code, rows: pa.Table) -> pa.Table:
        asked[rows.num_rows] += 1
        return run(code, rows)

    monkeypatch.setattr(Code, "__call__", counted)
    _views(session)
    texts = {
        "SELECT window, k, max(v) FROM a WHERE v % 3 = 1 GROUP BY window, k": 1,
        "SELECT window, sum(t) FROM a WHERE v % 3 = 1 GROUP BY window": 0,
        "SELECT window, count(*) FROM a WHERE v % 3 = 2 GROUP BY window": 1,
    }
    known: dict[Any, Any] = {}
    for text, times in texts.items():
        plan = LocalPlan(session, text, {"a": session.table("a").schema})
        assert plan.aggregation is not None
        alone = plan.aggregation.rows(TABLES["a"], {})
        asked.clear()
        # Another table with the same rows: the panes of other queries have other widths.
        same_rows = TABLES["a"].slice(0)
        assert plan.aggregation.rows(same_rows, known).equals(alone), text
        assert asked[TABLES["a"].num_rows] == times, text
