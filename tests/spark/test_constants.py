"""A table of constants gives each query the rows that its own text would, by either lane."""

from collections.abc import Sequence
from dataclasses import replace
from math import nan

import duckdb
import pyarrow as pa
import pytest
from headgate.spark.constants import ConstantsGroup, alike, constants_group_of, fits
from headgate.spark.projection import Projection
from hypothesis import given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from headgate.language.parse import path_of
from headgate.model.network import Path
from headgate.model.query import Query
from headgate.model.stream import ARRIVED_AT
from headgate.spark.sharing.sharing_plan import LEAST_ALIKE, Part, parts_of

pytestmark = pytest.mark.spark

DDL = f"id INT, small TINYINT, big BIGINT, x DOUBLE, place STRING, {ARRIVED_AT} DOUBLE"
COLUMNS = ["id", "small", "big", "x", "place"]
PLACES = ["north", "south", "", "a'b", "ü"]

ROW = st.fixed_dictionaries(
    {
        "small": st.none() | st.integers(-128, 127),
        "big": st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
        "x": st.none()
        | st.sampled_from([nan, 0.0, -0.0, 1.5, 2.0, float("inf")])
        | st.floats(-3, 3),
        "place": st.none() | st.sampled_from(PLACES),
    }
)
SMALL, DECIMAL = st.integers(-3, 3), st.sampled_from(["0.0", "1.5", "-2.25", "2.0"])
TESTS = {
    "place = '{}'": st.sampled_from(["north", "south", "", "ü", "none"]),
    "small = {}": SMALL,
    "small + 1 > {}": st.integers(-200, 200),
    "big <= {}": SMALL,
    "big BETWEEN {} AND 2": SMALL,
    "x >= {}": DECIMAL,
    "x < {}": SMALL,
    "x = {}": DECIMAL | SMALL,
    "{} < x": SMALL,
}
REST = ["place IS NOT NULL", "(small > 0 OR big > 0)", "place <> 'south'"]


@st.composite
def predicates(draw: st.DrawFn) -> list[str]:
    forms = draw(st.lists(st.sampled_from(sorted(TESTS)), min_size=1, max_size=3, unique=True))
    rest = draw(st.lists(st.sampled_from(REST), max_size=1))
    decimal = {form: draw(st.booleans()) for form in forms}
    members = []
    for _ in range(draw(st.integers(1, 6))):
        texts = []
        for form in forms:
            values = TESTS[form]
            if form == "x = {}":  # what a constant is written as belongs to the form
                values = DECIMAL if decimal[form] else SMALL
            texts.append(form.format(draw(values)))
        members.append(" AND ".join([*texts, *rest]))
    return members


def _paths(conditions: Sequence[str], output: str = "id") -> list[Path]:
    paths = []
    for number, condition in enumerate(conditions):
        sql = f"SELECT {output} FROM s WHERE {condition}"
        query = Query(name=f"q{number}", sql=sql, query_class="H")
        paths.append(path_of(query, {"s": COLUMNS}))
    return paths


def _group(paths: Sequence[Path]) -> ConstantsGroup:
    named = [replace(path, columns=("id",)) for path in paths]
    assert len({alike(path, None) for path in named}) == 1
    return constants_group_of(named, COLUMNS, {})


def _found(group: ConstantsGroup, rows: pa.Table, made: pa.Table) -> list[list[int]]:
    outputs = group.split(rows, made, list(group.members))
    for output in outputs:
        assert output.arrived_at_s.tolist() == [float(n) for n in output.table["id"].to_pylist()]
    return [sorted(output.table["id"].to_pylist()) for output in outputs]


@settings(max_examples=settings.default.max_examples // 2)
@given(rows=st.lists(ROW, max_size=30), conditions=predicates())
def test_every_member_has_the_rows_of_its_text(
    spark: SparkSession, rows: list[dict[str, object]], conditions: list[str]
) -> None:
    note(str(conditions))
    schema = spark.createDataFrame([], DDL).schema
    lines = [{**row, "id": n, ARRIVED_AT: float(n)} for n, row in enumerate(rows)]
    arrow = pa.schema(
        [("id", pa.int32()), ("small", pa.int8()), ("big", pa.int64()), ("x", pa.float64()),
         ("place", pa.string()), (ARRIVED_AT, pa.float64())]
    )  # fmt: skip
    s = pa.Table.from_pylist(lines, arrow)
    group = _group(_paths(conditions))
    assert fits(spark, group.form, schema)
    with duckdb.connect() as database:
        database.register("s", s)
        expected = [
            sorted(row[0] for row in database.sql(f"SELECT id FROM s WHERE {each}").fetchall())
            for each in conditions
        ]
    made = Projection(spark, group.items, schema)(s)
    assert _found(group, s, made) == expected
    by_job = group.job(spark, spark.createDataFrame(s))
    assert _found(group, by_job, by_job) == expected


def test_only_wanted_members_get_rows_and_in_the_order_they_are_wanted() -> None:
    group = _group(_paths([f"big > {n}" for n in range(5)]))
    lines = [
        {"id": n, "small": 0, "big": n, "x": 0.0, "place": "", ARRIVED_AT: 0.0} for n in range(6)
    ]
    rows = pa.Table.from_pylist(lines)
    made = rows.append_column("__hg_k0", rows["big"])
    outputs = group.split(rows, made, ["q4", "q1"])
    assert [each.table["id"].to_pylist() for each in outputs] == [[5], [2, 3, 4, 5]]


@pytest.mark.parametrize(
    "condition", ["place > 'a'", "small > 1.5", "big < 0.5", "CAST(x AS FLOAT) > 1", "place = 3"]
)
def test_comparisons_that_spark_reads_in_another_way_stay_with_spark(
    spark: SparkSession, condition: str
) -> None:
    form = _paths([condition])[0].form
    assert form is not None
    assert not fits(spark, form, spark.createDataFrame([], DDL).schema)


def test_queries_find_their_like() -> None:
    many = _paths([f"big > {n}" for n in range(300)])
    few = _paths([f"small > {n}" for n in range(LEAST_ALIKE - 1)])
    costly = [
        path_of(
            Query(name=f"c{n}", sql=f"SELECT id FROM s WHERE md5(place) > '{n}'", query_class="H"),
            {"s": COLUMNS},
        )
        for n in range(3)
    ]  # fmt: skip
    parts = list(
        parts_of(
            [*many, *few, *costly], {}, lambda path: path.query.name.startswith("c"),
            lambda stream, form, count: count >= LEAST_ALIKE,
        )
    )  # fmt: skip
    assert [(len(part.paths), part.table) for part in parts] == [
        (256, True), (44, True), (LEAST_ALIKE - 1, False), (3, False)
    ]  # fmt: skip
    assert parts[-1] == Part(tuple(costly))
