"""Spark's physical plans in the driver return what Spark returns in batch, without a job."""

import threading
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.spark.jvm.arrow_frames import collected, frame_of
from headgate.spark.jvm.errors import SPARK_ERRORS, cause_of
from headgate.spark.jvm.lane.plan_runner import DriverLane, NeedsJob, PlanRunner
from headgate.spark.jvm.query.plans import Plans
from headgate.spark.jvm.session import own_session

pytestmark = pytest.mark.spark

ARROW = pa.schema(
    [
        ("g", pa.int32()),
        ("v", pa.int64()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("a", pa.list_(pa.int32())),
        ("st", pa.struct([("x", pa.int32()), ("y", pa.string())])),
    ]
)
SCHEMA = from_arrow_schema(ARROW)
STORED = (
    "CREATE OR REPLACE TEMP VIEW tab AS"
    " SELECT * FROM VALUES (1, 'one'), (2, 'two'), (3, 'three') AS x(id, name)"
)
SIZES = ((120, 90), (0, 10), (40, 0), (0, 0))
"""Row counts of the two relations in successive calls. The first call is repeated at the end."""

TEXTS = """\
SELECT v, s, d*2 AS dd FROM t WHERE g > 10 AND v % 3 = 0
SELECT g, count(*), sum(v), avg(d), min(s), max(ts) FROM t GROUP BY g
SELECT g, count(distinct v), count(distinct s) FROM t GROUP BY g
SELECT window.start, g, sum(v) FROM t GROUP BY window(ts, '10 seconds'), g
SELECT window.start, g, sum(v) FROM t GROUP BY window(ts, '10 seconds','5 seconds'), g
SELECT session_window.start, session_window.end, g, sum(v) FROM t GROUP BY session_window(ts, '2 seconds'), g
SELECT t.v, u.s FROM t JOIN u ON t.g = u.g AND t.v = u.v
SELECT t.v, u.s FROM t LEFT JOIN u ON t.g = u.g AND t.v = u.v
SELECT t.v, u.s FROM t RIGHT JOIN u ON t.g = u.g AND t.v = u.v
SELECT t.v, u.s FROM t FULL JOIN u ON t.g = u.g AND t.v = u.v
SELECT t.v FROM t LEFT SEMI JOIN u ON t.v = u.v
SELECT t.v FROM t LEFT ANTI JOIN u ON t.v = u.v
SELECT t.v, u.v FROM t JOIN u ON t.v < u.v AND t.g = 1 AND u.g = 2
SELECT t.v, u.v FROM t LEFT JOIN u ON t.v < u.v - 45
SELECT a.v, b.s FROM t a JOIN t b ON a.v = b.v
SELECT v FROM t WHERE v > (SELECT avg(v) FROM u)
SELECT v, (SELECT max(v) FROM u) AS m FROM t WHERE v IN (SELECT v FROM u WHERE g = 3)
SELECT v FROM t WHERE v NOT IN (SELECT v FROM u WHERE g = 3)
SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.v = t.v)
SELECT g, (SELECT count(*) FROM u WHERE u.g = t.g) c FROM t
SELECT g, v, row_number() OVER (PARTITION BY g ORDER BY v, s, ts) r FROM t QUALIFY r <= 2
SELECT * FROM t ORDER BY v, ts LIMIT 5
SELECT DISTINCT g, s FROM t
SELECT g FROM t UNION ALL SELECT g FROM u
SELECT g FROM t UNION SELECT v FROM u
SELECT g FROM t INTERSECT SELECT v FROM u
SELECT g FROM t EXCEPT SELECT v FROM u WHERE v < 10
WITH c AS (SELECT g, sum(v) s FROM t GROUP BY g) SELECT a.g, b.s FROM c a JOIN c b ON a.g = b.g + 1
SELECT g, s, sum(v) FROM t GROUP BY ROLLUP(g, s)
SELECT * FROM (SELECT g, v FROM t) PIVOT (sum(v) FOR g IN (1, 2, 3))
SELECT g, percentile(d, 0.5), sort_array(collect_set(s)), listagg(distinct s) WITHIN GROUP (ORDER BY s) FROM t GROUP BY g
SELECT v, explode(a) FROM t
SELECT st.x, st.y, a[0] FROM t
SELECT transform(a, x -> x + 1) FROM t
SELECT t.v, tab.name FROM t JOIN tab ON t.g = tab.id
SELECT t.v, x.c FROM t, LATERAL (SELECT count(*) c FROM u WHERE u.g = t.g) x
SELECT count(*) FROM t WHERE v > 100000
SELECT v FROM t, range(3) r
SELECT s COLLATE UTF8_LCASE k, count(*) FROM t GROUP BY s COLLATE UTF8_LCASE
SELECT t.v FROM t JOIN u ON t.s COLLATE UTF8_LCASE = u.s COLLATE UTF8_LCASE AND t.v = u.v
SELECT g + 1 AS n, CAST(v AS DECIMAL(20, 2)) / 3 AS q, ts - INTERVAL 1 HOUR AS h FROM t
SELECT 1 AS one FROM t
SELECT t.v FROM t, u
SELECT t.v FROM t LEFT JOIN u ON t.v > 30
SELECT t.v FROM u RIGHT JOIN t ON t.v > 30
SELECT t.v FROM t FULL JOIN u ON t.v > 30
SELECT t.v FROM t LEFT ANTI JOIN u ON t.v > 30
SELECT t.v FROM t WHERE EXISTS (SELECT 1 FROM u) OR v > 30
SELECT count(*) FROM t, u, range(5)
SELECT max(v) AS v FROM (SELECT v FROM t UNION ALL SELECT v FROM u)
""".splitlines()  # noqa: E501


def rows_of(seed: int, size: int) -> pa.Table:
    generator = np.random.default_rng(seed)
    numbers = range(size)
    columns = {
        "g": generator.integers(0, 20, size),
        "v": [int(v) or None for v in generator.integers(0, 50, size)],
        "d": generator.integers(0, 1000, size) / 8,  # sums are exact in any order
        "s": [f"{'kK'[n % 2]}{n % 17}" for n in numbers],
        "ts": [n * 1_000_000 // 7 for n in numbers],
        "a": [[1, None, n] if n % 3 else None for n in numbers],
        "st": [{"x": n, "y": None} if n % 2 else None for n in numbers],
    }
    return pa.table([pa.array(columns[field.name], field.type) for field in ARROW], ARROW)


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    session = own_session(spark)
    plans = Plans(session)
    for name in ("t", "u"):
        plans.relation(name, SCHEMA).createOrReplaceTempView(name)
    session.sql(STORED)
    return session


@pytest.fixture(scope="module")
def driver(session: SparkSession) -> DriverLane:
    return DriverLane(session)


@pytest.fixture(scope="module")
def batch(spark: SparkSession) -> SparkSession:
    """Return a session for views that hold the rows of each call, in one partition each."""
    batch = own_session(spark)
    batch.conf.set("spark.sql.shuffle.partitions", "1")
    batch.sql(STORED)
    return batch


def prepared(session: SparkSession, driver: DriverLane, text: str) -> PlanRunner:
    return driver.prepare(Plans(session).of(session.sql(text)))


def jobs_so_far(session: SparkSession) -> int:
    """Return the number of the next job."""
    return int(session.sparkContext._jsc.sc().dagScheduler().nextJobId())


@pytest.fixture(scope="module")
def tables() -> list[dict[str, pa.Table]]:
    seeds = count(1)
    return [{"t": rows_of(next(seeds), t), "u": rows_of(next(seeds), u)} for t, u in SIZES]


@pytest.fixture(scope="module", autouse=True)
def views(batch: SparkSession, tables: list[dict[str, pa.Table]]) -> None:
    for number, call in enumerate(tables):
        for name, table in call.items():
            frame = batch.createDataFrame(table, SCHEMA).coalesce(1)
            frame.createOrReplaceTempView(f"{name}{number}")


@pytest.mark.parametrize("text", TEXTS)
def test_successive_calls_give_what_spark_gives_in_batch_and_start_no_job(
    session: SparkSession,
    driver: DriverLane,
    batch: SparkSession,
    tables: list[dict[str, pa.Table]],
    text: str,
) -> None:
    runner = prepared(session, driver, text)
    before = jobs_so_far(session)
    results = [runner(call) for call in [*tables, tables[0]]]
    assert jobs_so_far(session) == before
    assert sorted_rows(results[-1]) == sorted_rows(results[0])
    # Only one of the calls with an empty relation is compared: Spark in batch is slow.
    for number in (0, len(text) % 3 + 1):
        for name in ("t", "u"):
            batch.table(f"{name}{number}").createOrReplaceTempView(name)
        result, expected = results[number], collected(batch.sql(text))
        assert result.column_names == expected.column_names
        assert result.schema.types == expected.schema.types
        assert sorted_rows(result) == sorted_rows(expected), SIZES[number]


@pytest.mark.parametrize(
    ("text", "operator"),
    [("SELECT twice(g) FROM t", "BatchEvalPython"), ("SELECT v FROM t, parquet.`{}`", "Scan")],
)
def test_what_calls_python_or_reads_files_needs_a_job(
    session: SparkSession, driver: DriverLane, tmp_path: Path, text: str, operator: str
) -> None:
    session.udf.register("twice", lambda value: value * 2, "int")
    session.range(3).write.parquet(str(tmp_path / "stored"))
    with pytest.raises(NeedsJob, match=operator):
        prepared(session, driver, text.format(tmp_path / "stored"))


def test_a_lane_that_is_off_leaves_all_to_jobs(session: SparkSession) -> None:
    driver = DriverLane(session)
    driver.enabled = False
    with pytest.raises(NeedsJob, match="the driver lane is off"):
        prepared(session, driver, "SELECT v FROM t")


def test_a_plan_reads_only_the_columns_that_it_needs(
    session: SparkSession, driver: DriverLane
) -> None:
    runner = prepared(session, driver, "SELECT v FROM t WHERE g > 3")
    assert runner.reads("t")
    assert not runner.reads("u")
    assert [name for name in ARROW.names if runner.reads("t", name)] == ["g", "v"]
    few = rows_of(1, 30).select(["v", "g"])
    expected = [row["v"] for row in few.to_pylist() if row["g"] > 3]
    assert runner({"t": few})["v"].to_pylist() == expected


FAILING = {
    "SELECT 10 / g AS q FROM t": 17,
    "SELECT g FROM t WHERE 10 / g > 0": 17,
    "SELECT explode(array(10 / g, 1)) AS q FROM t": 17,
    "SELECT sum(10 / g) AS q FROM t": None,
    "SELECT t.g FROM t JOIN u ON t.g = 10 / u.g": None,
    "SELECT 10 / g AS q FROM t ORDER BY v": None,
    "SELECT g / (SELECT min(g) + 17 FROM u) AS q FROM t": None,
    "SELECT 10 / g AS q FROM t UNION ALL SELECT g FROM u": None,
    "SELECT 10 / g AS q FROM t LIMIT 30": None,
}


@pytest.mark.parametrize("text", FAILING)
def test_after_an_error_in_the_middle_the_next_call_is_right(
    session: SparkSession, driver: DriverLane, text: str
) -> None:
    runner = prepared(session, driver, text)
    good = rows_of(3, 40).set_column(0, "g", pa.array([n + 1 for n in range(40)], pa.int32()))
    zero = [n - 17 for n in range(40)]
    bad = good.set_column(0, "g", pa.array(zero, pa.int32()))
    expected = sorted_rows(runner({"t": good, "u": good}))
    with pytest.raises(SPARK_ERRORS) as failed:
        runner({"t": bad, "u": bad})
    assert "Division by zero" in cause_of(failed.value)
    row, number = runner.failing_row, FAILING[text]
    assert (None if row is None else row.number) == number
    assert number is None or (row.view, row.values) == ("t", "g = 0")  # type: ignore[union-attr]
    assert sorted_rows(runner({"t": good, "u": good})) == expected


def test_a_call_is_cancelled_by_its_tag_and_the_next_is_right(
    session: SparkSession, driver: DriverLane
) -> None:
    text = "SELECT count(*) AS n FROM t, u WHERE hash(t.v, u.v, t.d, u.d) = 0 AND t.g + u.g > 1000"
    runner, many = prepared(session, driver, text), rows_of(1, 40_000)
    errors: list[BaseException] = []

    def call() -> None:
        try:
            runner({"t": many, "u": many}, "long")
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    while thread.is_alive():
        driver.cancel("another")
        thread.join(0.2)
        driver.cancel("long")
    assert len(errors) == 1
    assert "the call was cancelled" in str(errors[0])
    few = rows_of(1, 20)
    assert runner({"t": few, "u": few})["n"].to_pylist() == [0]


def test_threads_run_two_plans_and_share_one(session: SparkSession, driver: DriverLane) -> None:
    summed = prepared(session, driver, "SELECT g, sum(v) AS n FROM t GROUP BY g ORDER BY g")
    joined = prepared(session, driver, "SELECT count(*) AS n FROM t JOIN u ON t.v = u.v")
    wrong: list[int] = []

    def work(seed: int) -> None:
        table = rows_of(seed, 50 + seed)
        values = [row["v"] for row in table.to_pylist() if row["v"] is not None]
        pairs = sum(values.count(value) for value in values)
        for turn in range(12):
            sums = summed({"t": table})
            total = sum(n or 0 for n in sums["n"].to_pylist())
            if total != sum(values) or joined({"t": table, "u": table})["n"][0].as_py() != pairs:
                wrong.append(turn)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_subquery_sees_the_rows_of_its_own_call(
    session: SparkSession, driver: DriverLane
) -> None:
    runner = prepared(session, driver, "SELECT v, (SELECT max(v) FROM u) AS m FROM t")
    for seed in (4, 5, 6):
        table = rows_of(seed, 10)
        top = max(row["v"] or 0 for row in table.to_pylist())
        assert set(runner({"t": table, "u": table})["m"].to_pylist()) == {top}
    with pytest.raises(SPARK_ERRORS, match="More than one row returned by a subquery"):
        prepared(session, driver, "SELECT (SELECT v FROM u) AS m FROM t")({"t": table, "u": table})


def test_a_frame_has_the_rows_in_their_order(session: SparkSession) -> None:
    table = rows_of(7, 300)
    assert collected(frame_of(session, table, SCHEMA)) == table
    assert frame_of(session, table.slice(0, 0), SCHEMA).count() == 0
