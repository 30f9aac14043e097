"""The rows of a failed call that break an expression: found with and without the failing row."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.spark.jvm.errors import is_of_row
from headgate.spark.jvm.lane.bad_rows import Failure, bad_rows
from headgate.spark.jvm.query.plans import Plans

OF_ROW = PySparkException("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012")
OF_WORLD = PySparkException("[FAILED_READ_FILE] No such file. SQLSTATE: KD001")


def run_over(bad: set[int], *, knows_row: bool) -> Callable[[int, int], Failure | None]:
    def run(first: int, end: int) -> Failure | None:
        failing = sorted(bad & set(range(first, end)))
        if not failing:
            return None
        return Failure(OF_ROW, failing[0] - first if knows_row else None)

    return run


@given(
    bad=st.sets(st.integers(0, 5_000), min_size=1, max_size=30),
    more=st.integers(1, 2_500),
    knows_row=st.booleans(),
)
def test_exactly_the_bad_rows_are_found(bad: set[int], more: int, knows_row: bool) -> None:
    count, run = max(bad) + more, run_over(bad, knows_row=knows_row)
    failure = run(0, count)
    assert failure is not None
    assert bad_rows(count, failure, run).keys() == bad


def test_rows_that_only_fail_together_are_not_bad() -> None:
    def run(first: int, end: int) -> Failure | None:
        return Failure(OF_ROW) if end - first == 8 else None

    assert bad_rows(8, Failure(OF_ROW), run) == {}


def test_an_error_that_no_row_has_caused_is_raised() -> None:
    def run(first: int, end: int) -> Failure | None:
        return Failure(OF_WORLD) if first else None

    with pytest.raises(PySparkException, match="No such file"):
        bad_rows(8, Failure(OF_ROW), run)


@pytest.mark.parametrize(
    ("text", "of_row"),
    [
        ("[CAST_INVALID_INPUT] ... SQLSTATE: 22018", True),
        ("[USER_RAISED_EXCEPTION] too hot SQLSTATE: P0001", True),
        ("An exception was thrown. SQLSTATE: 38000\nTraceback ...\nValueError: no", True),
        ("An exception was thrown. SQLSTATE: 38000\nTraceback ...\nModuleNotFoundError: x", False),
        ("An exception was thrown. SQLSTATE: 38000\nTraceback ...\nMemoryError", False),
        ("[SCALAR_SUBQUERY_TOO_MANY_ROWS] ... SQLSTATE: 21000", False),
        ("Job aborted: executor lost", False),
    ],
)
def test_only_errors_that_values_cause_are_of_a_row(text: str, of_row: bool) -> None:
    assert is_of_row(PySparkException(text)) is of_row
    assert not is_of_row(ValueError(text))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("sql", "computed"),
    [
        ("SELECT sum(CAST(t AS INT)) AS n FROM s GROUP BY i", ["cast(t"]),
        ("SELECT sum(i) AS n FROM s WHERE 1 / i > 2 GROUP BY i DIV d", ["/ cast(i", "div"]),
        ("SELECT max(i) FILTER (WHERE 1 / d > 2) AS n FROM s", ["/ cast(d"]),
        ("SELECT max(n) FROM (SELECT 1 / d AS q, CAST(t AS INT) AS n FROM s)", ["cast(t"]),
        ("SELECT a.i FROM s a JOIN s b ON CAST(a.t AS INT) = b.i", ["cast(t"]),
        ("SELECT count(*) AS n, max(i) AS m, 1 / count(*) AS q FROM s GROUP BY d", []),
        ("SELECT sum(size(__hg_window) DIV d) AS n FROM s", []),
        ("SELECT count(DISTINCT CAST(t AS INT)), count(DISTINCT i) FROM s", ["cast(t"]),
        ("SELECT i FROM s WHERE 1 / i > 2 AND size(__hg_window) > 0", ["/ cast(i"]),
        ("SELECT i FROM s WHERE size(__hg_window) > 0 AND 1 / i > 2", []),
    ],
)  # fmt: skip
def test_a_row_plan_has_what_is_computed_from_single_rows(
    spark: SparkSession, sql: str, computed: list[str]
) -> None:
    plans = Plans(spark)
    schema = spark.range(0).selectExpr(
        "CAST(id AS INT) AS i", "'' AS t", "CAST(id AS INT) AS d", "array(1) AS __hg_window"
    ).schema  # fmt: skip
    plans.relation("s", schema).createOrReplaceTempView("s")
    row_plans = plans.of_rows(plans.of(spark.sql(sql)))
    spark.catalog.dropTempView("s")
    text = "\n".join(str(plan.java.toString()) for plan in row_plans)
    assert bool(row_plans) is bool(computed)
    assert all(part in text for part in computed), text
    assert all(list(plan.relations) == ["s"] for plan in row_plans)
