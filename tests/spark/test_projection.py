"""Spark's code in the driver gives what a job over the same rows gives, errors included."""

import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from headgate.spark import passage
from headgate.spark.jvm.arrow_frames import collected
from headgate.spark.projection import NotPlain, Projection
from headgate.spark.refusals import SPARK_ERRORS, cause_of

pytestmark = pytest.mark.spark

DDL = (
    "i INT, l BIGINT, x DOUBLE, t STRING, b BOOLEAN, d DATE, ts TIMESTAMP, m DECIMAL(12,3),"
    " many ARRAY<INT>, `Odd.Name` INT, inner STRUCT<a: INT, t: STRING>"
)
# Shrinking would run Spark for an hour; the failing case is printed as it was drawn.
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)


def _ints(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "%", "div"]), inner),
        st.builds("CASE WHEN b THEN {} ELSE {} END".format, inner, inner),
        st.builds("coalesce({}, {})".format, inner, inner),
        st.builds("aggregate(many, {}, (acc, y) -> acc + y)".format, inner),
        st.builds("greatest({}, {}, 0)".format, inner, inner),
        st.builds("abs({})".format, inner),
        st.builds("nullif({}, {})".format, inner, inner),
    )


INTS = st.recursive(
    st.sampled_from(
        ["i", "`Odd.Name`", "inner.a", "I", "length(t)", "year(d)", "size(many)", "many[0]",
         "CAST(t AS INT)", "try_cast(t AS INT)", "element_at(many, 1)", "7", "2147483647",
         "CAST(l AS INT)", "CAST(x AS INT)", "CAST(NULL AS INT)", "datediff(d, DATE'2020-02-29')"]
    ),
    _ints, max_leaves=5,
)  # fmt: skip
TRUTHS = st.recursive(
    st.one_of(
        st.sampled_from(
            ["b", "t LIKE '%a_'", "t RLIKE '[0-9]+'", "i IS NULL", "x > 0.5", "t IN ('a', NULL)",
             "exists(many, y -> y > 2)", "d > DATE'2000-01-01'", "t <=> inner.t", "isnan(x)",
             "ts BETWEEN TIMESTAMP'1970-01-01' AND TIMESTAMP'2030-01-01'", "m <> 0", "NULL"]
        ),
        st.builds("({} {} {})".format, INTS, st.sampled_from(["<", "=", "<=>", ">="]), INTS),
    ),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["AND", "OR"]), inner),
        st.builds("(NOT {})".format, inner),
    ),
    max_leaves=4,
)  # fmt: skip
OTHERS = st.one_of(
    st.builds("CASE WHEN {} THEN {} END".format, TRUTHS, INTS),
    st.builds("transform(many, y -> y * {})".format, INTS),
    st.builds("filter(many, y -> y > {})".format, INTS),
    st.builds("named_struct('n', {}, 't', t)".format, INTS),
    st.builds("map(coalesce(t, ''), {})".format, INTS),
    st.builds("date_add(d, {} % 1000)".format, INTS),
    st.builds("x / {}".format, INTS),
    st.builds("CAST({} AS STRING) || t".format, INTS),
    st.builds("m * {}".format, INTS),
    st.sampled_from(
        ["m / 3", "m + CAST(x AS DECIMAL(20,2))", "CAST(t AS DOUBLE)", "upper(t)", "t", "many",
         "substring(t, 2, 2)", "regexp_replace(t, '[a-c]', '{x}')", "to_json(inner)", "inner",
         "date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSS')", "unix_micros(ts)", "hour(ts)", "ts",
         "CAST(ts AS DATE)", "d - INTERVAL 1 MONTH", "CAST(t AS BINARY)", "sqrt(x)", "l * 2",
         "l + 9223372036854775807", "array_sort(many)", "concat_ws('-', t, inner.t)", "'{a}'",
         "try_divide(i, `Odd.Name`)", "CAST(x AS TIMESTAMP_NTZ) IS NULL OR TRUE", "hash(t, i)"]
    ),
)  # fmt: skip
EXPRESSIONS = st.one_of(INTS, TRUTHS, OTHERS)
small = st.integers(-3, 3)
rows = st.fixed_dictionaries(
    {
        "i": st.none() | small | st.sampled_from([2**31 - 1, -(2**31)]),
        "l": st.none() | small | st.sampled_from([2**63 - 1, -(2**63), 2**40]),
        "x": st.none() | st.sampled_from([0.0, -0.0, 0.1, 1e300, float("inf"), float("nan")]),
        "t": st.none() | st.sampled_from(["", "a", "ab1", "17", "ü%_", " 5 ", "1e3", "{a}"]),
        "b": st.none() | st.booleans(),
        "d": st.none() | st.dates(date(1600, 1, 1), date(9000, 1, 1)),
        "ts": st.none() | st.integers(-(10**15), 4 * 10**15).map(
            lambda n: datetime.fromtimestamp(n / 1e6, UTC)
        ),
        "m": st.none() | st.integers(-(10**12) + 1, 10**12 - 1).map(lambda n: Decimal(n) / 1000),
        "many": st.none() | st.lists(st.none() | small, max_size=3),
        "Odd.Name": st.none() | small,
        "inner": st.none() | st.fixed_dictionaries({"a": st.none() | small, "t": st.just("in")}),
    }
)  # fmt: skip


def _by_driver(own: SparkSession, items: dict[str, str], table: pa.Table) -> Any:
    schema = own.createDataFrame([], DDL).schema
    try:
        return _values(Projection(own, items, schema)(table))
    except SPARK_ERRORS as error:
        return cause_of(error)


def _by_job(own: SparkSession, items: dict[str, str], file: Path) -> Any:
    frame = own.read.schema(DDL).parquet(str(file))
    try:
        return _values(
            collected(frame.selectExpr(*(f"{sql} AS {name}" for name, sql in items.items())))
        )
    except SPARK_ERRORS as error:
        return cause_of(error)


def _values(table: pa.Table) -> list[tuple[str, str, str]]:
    """Gives names, types and values; as text, so that NaN is NaN."""
    return [
        (name, str(column.type), repr(column.to_pylist()))
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]


def _check(own: SparkSession, expressions: list[str], data: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(
        data, to_arrow_schema(own.createDataFrame([], DDL).schema, timezone="UTC")
    )
    with TemporaryDirectory() as name:
        file = Path(name) / "rows.parquet"
        pq.write_table(table, file, use_dictionary=False)  # as the log is
        items = {f"c{number}": sql for number, sql in enumerate(expressions)}
        driver, job = _by_driver(own, items, table), _by_job(own, items, file)
        if isinstance(driver, list) and isinstance(job, list):
            assert driver == job
            return
        # Which of several errors comes first is nobody's business; each by itself must agree.
        assert isinstance(driver, str), job
        assert isinstance(job, str), driver
        for key, sql in items.items():
            note(sql)
            assert _by_driver(own, {key: sql}, table) == _by_job(own, {key: sql}, file), sql


@settings(max_examples=4, phases=UNSHRUNK, suppress_health_check=list(HealthCheck))
@given(
    expressions=st.lists(EXPRESSIONS, min_size=4, max_size=8),
    data=st.lists(rows, min_size=1, max_size=6),
)
def test_values_and_errors_are_those_of_a_job(
    own: SparkSession, expressions: list[str], data: list[dict[str, Any]]
) -> None:
    _check(own, expressions, data)


@pytest.mark.long
@settings(max_examples=150, phases=UNSHRUNK, suppress_health_check=list(HealthCheck))
@given(
    expressions=st.lists(EXPRESSIONS, min_size=1, max_size=12),
    data=st.lists(rows, min_size=1, max_size=20),
)
def test_values_and_errors_are_those_of_a_job_in_the_long_form(
    own: SparkSession, expressions: list[str], data: list[dict[str, Any]]
) -> None:
    _check(own, expressions, data)


def test_what_needs_a_python_worker_is_not_plain(own: SparkSession) -> None:
    own.udf.register("plus_one", lambda value: value + 1, "int")
    schema = own.createDataFrame([], "i INT").schema
    with pytest.raises(NotPlain):
        Projection(own, {"c": "plus_one(i)"}, schema)


def test_no_rows_and_no_columns_that_are_named(own: SparkSession) -> None:
    schema = own.createDataFrame([], "`a``b` INT, `C d` STRING").schema
    code = Projection(own, {"one": "1", "text": "'{x}'"}, schema)
    table = pa.table({"a`b": pa.array([1, None], "int32"), "C d": ["x", None]})
    assert code(table).to_pylist() == [{"one": 1, "text": "{x}"}] * 2
    assert code(table.slice(0, 0)).num_rows == 0
    odd = Projection(own, {"n": "`a``b` + 1", "t": "upper(`c D`)"}, schema)
    assert odd(table).to_pylist() == [{"n": 2, "t": "X"}, {"n": None, "t": None}]


def test_two_threads_use_one_projection(own: SparkSession) -> None:
    schema = own.createDataFrame([], "i INT, t STRING").schema
    code = Projection(own, {"n": "i * 2", "u": "t || i", "s": "array(i, i)"}, schema)
    wrong: list[int] = []

    def work(seed: int) -> None:
        for turn in range(15):
            numbers = [seed * 1000 + turn * 10 + n for n in range(50 + turn)]
            table = pa.table({"i": pa.array(numbers, "int32"), "t": [f"t{n}." for n in numbers]})
            expected = [{"n": n * 2, "u": f"t{n}.{n}", "s": [n, n]} for n in numbers]
            if code(table).to_pylist() != expected:
                wrong.append(turn)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_is_compiled_twice_works_side_by_side(own: SparkSession) -> None:
    schema = own.createDataFrame([], "i INT").schema
    rows = pa.table({"i": pa.array([1, 2], pa.int32())})
    found = []
    for number in range(3):
        passage._compiled.cache_clear()  # as if another worker came before it was there
        found.append(Projection(own, {"n": f"i + {number}"}, schema))
    for _ in range(2):
        made = [each(rows)["n"].to_pylist() for each in found]
        assert made == [[1, 2], [2, 3], [3, 4]]
