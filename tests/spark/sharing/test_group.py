"""Queries that share code return the rows that each would return alone, in either lane."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from rig import Rig

from headgate.spark.execution.warm_up import invent
from headgate.spark.journal.journal import Journal
from headgate.spark.jvm.errors import cause_of
from headgate.spark.jvm.session import own_session
from headgate.spark.log.byte_cache import ByteCache
from headgate.spark.log.stream_log import StreamLog
from headgate.spark.output import Output
from headgate.spark.sharing.constants_group import ConstantsGroup
from headgate.spark.sharing.mask_group import MOST, MaskGroup
from headgate.spark.sharing.sharing_plan import LEAST_ALIKE

pytestmark = pytest.mark.spark

DDL = "Temp INT, `a.b` STRING, `odd ``name` DOUBLE, s STRUCT<b: INT>, a STRUCT<b: STRING>"
ROWS: list[dict[str, Any]] = [
    {"Temp": n - 5, "a.b": f"v{n % 3}" if n % 4 else None, "odd `name": n / 2,
     "s": {"b": n}, "a": {"b": "field"}}
    for n in range(40)
]  # fmt: skip


@pytest.fixture(params=["driver", "job"])
def rig(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Rig]:
    rig = Rig(spark, tmp_path, request.param, DDL, ROWS)
    yield rig
    rig.journal.close()


def _rows(table: pa.Table) -> Counter[str]:
    return Counter(repr(row) for row in table.to_pylist())


def _same(rig: Rig, texts: Mapping[str, str]) -> None:
    paths = rig.paths(texts)
    assert not [path.query.name for path in paths if path.runs_whole]
    for path, output in zip(paths, rig.evaluate(paths), strict=True):
        assert isinstance(output, Output), output
        expected = rig.alone(path.query.sql)
        assert output.table.column_names == expected.column_names
        assert _rows(output.table) == _rows(expected), path.query.sql
        assert len(output.arrived_at_s) == output.table.num_rows


def test_names_of_any_letters_and_outputs_that_several_share(rig: Rig) -> None:
    _same(
        rig,
        {
            "every": "SELECT * FROM readings",
            "dotted": "SELECT `a.b`, `odd ``name` FROM readings WHERE `a.b` LIKE 'v_'",
            "field": "SELECT a.b, s.b AS other FROM readings WHERE TEMP > 3",
            "upper": "SELECT TEMP AS t, temp * 2 AS twice FROM readings WHERE s.b % 2 = 0",
            "again": "SELECT temp * 2 AS doubled FROM readings WHERE `odd ``name` < 3",
            "none": "SELECT temp * 2 AS twice FROM readings WHERE temp > 1000",
            "null": "SELECT temp FROM readings WHERE CAST(NULL AS BOOLEAN)",
            "braces": "SELECT '{x}' AS x, `a.b` || '{' AS y FROM readings",
        },
    )


def test_a_query_is_not_blamed_for_the_code_of_another_one(rig: Rig) -> None:
    texts = {
        "bad": "SELECT CAST(`a.b` AS INT) AS n FROM readings",
        "good": "SELECT Temp FROM readings WHERE Temp > 3",
        "more": "SELECT Temp + 1 AS t FROM readings WHERE Temp > 5",
        "other": "SELECT Temp FROM readings",
    }
    paths = rig.paths(texts)
    arrangement = rig.executor.arrangement
    arrangement.arrange(paths, lambda path: path.query.name == "other")
    # Of the group, the call runs only a query that is not the cause.
    outputs, _ = rig.executor.evaluate(rig.session, [paths[1], paths[3]], rig.trains, rig.lane)
    for path, output in zip((paths[1], paths[3]), outputs, strict=True):
        assert isinstance(output, Output), output
        assert _rows(output.table) == _rows(rig.alone(path.query.sql))
    arrangement.leave_out(paths[0])
    arrangement.reorder({})
    bad, *outputs = rig.executor.evaluate(rig.session, paths[:3], rig.trains, rig.lane)[0]
    assert isinstance(bad, Exception)
    part = arrangement.prepared(paths[1]).part
    assert part is not None
    assert part.names == ("good", "more")
    assert rig.evaluate(paths[1:])
    # The same name with another text has another plan, alone and together.
    (again,) = rig.paths({"bad": texts["bad"].replace("CAST", "TRY_CAST")})
    assert isinstance(rig.evaluate([again])[0], Output)
    assert not any(isinstance(output, Exception) for output in rig.evaluate([again, *paths[1:]]))


def test_more_members_than_a_number_has_bits(rig: Rig) -> None:
    texts = {
        f"q{n}": f"SELECT Temp, Temp + {n % 7} AS more FROM readings WHERE Temp >= {n - 30}"
        for n in range(MOST + 5)
    }
    paths = rig.paths(texts)
    for n, output in enumerate(rig.evaluate(paths)):
        assert isinstance(output, Output), output
        expected = [
            {"Temp": row["Temp"], "more": row["Temp"] + n % 7}
            for row in ROWS
            if row["Temp"] >= n - 30
        ]
        assert output.table.to_pylist() == expected, n
        assert output.arrived_at_s.tolist() == [row["Temp"] + 5 for row in expected]


def test_queries_that_differ_in_constants_alone_are_a_table_of_them(rig: Rig) -> None:
    texts = {
        f"q{n}": f"SELECT Temp, `a.b` AS v FROM readings WHERE `a.b` = 'v{n % 4}'"
        f" AND Temp >= {n % 6} AND `odd ``name` < {n % 5 + 11.5} AND s.b <> 9"
        for n in range(LEAST_ALIKE + 6)
    }
    paths = rig.paths(texts)
    assert isinstance(rig.executor.arrangement.prepared(paths[0]).group, ConstantsGroup)
    assert len({id(rig.executor.arrangement.prepared(path)) for path in paths}) == 1
    for n, output in enumerate(rig.evaluate(paths)):
        assert isinstance(output, Output), output
        expected = [
            {"Temp": row["Temp"], "v": row["a.b"]}
            for row in ROWS
            if row["a.b"] == f"v{n % 4}" and row["Temp"] >= n % 6
            and row["odd `name"] < n % 5 + 11.5 and row["s"]["b"] != 9
        ]  # fmt: skip
        assert output.table.to_pylist() == expected


@pytest.mark.parametrize("count", [LEAST_ALIKE - 1, LEAST_ALIKE])
def test_few_queries_alike_are_bits_and_many_are_a_table(rig: Rig, count: int) -> None:
    texts = {f"q{n}": f"SELECT Temp FROM readings WHERE Temp >= {n}" for n in range(count)}
    paths = rig.paths(texts)
    kind = MaskGroup if count < LEAST_ALIKE else ConstantsGroup
    assert {type(rig.executor.arrangement.prepared(path).group) for path in paths} == {kind}
    for n, output in enumerate(rig.evaluate(paths)):
        assert isinstance(output, Output), output
        expected = [row["Temp"] for row in ROWS if row["Temp"] >= n]
        assert output.table["Temp"].to_pylist() == expected


def test_an_error_of_one_member_does_not_touch_the_others(rig: Rig) -> None:
    texts = {
        "zero": "SELECT 1 / Temp AS q FROM readings",
        "guarded": "SELECT 1 / Temp AS q FROM readings WHERE Temp <> 0",
        "cast": "SELECT Temp FROM readings WHERE CAST(`a.b` AS INT) > 1",
        "over": "SELECT CAST(Temp AS TINYINT) * 100Y AS x FROM readings",
        "fine": "SELECT Temp FROM readings WHERE Temp > 0",
    }
    paths = rig.paths(texts)
    outputs = dict(zip(texts, rig.evaluate(paths), strict=True))
    for name in ("guarded", "fine"):
        output = outputs[name]
        assert isinstance(output, Output), output
        assert _rows(output.table) == _rows(rig.alone(texts[name]))
    for name, cause in (("zero", "Division by zero"), ("cast", "'v1'"), ("over", "overflow")):
        error = outputs[name]
        assert isinstance(error, Exception)
        assert cause.lower() in cause_of(error).lower(), cause_of(error)


def test_a_condition_after_one_that_is_null_is_not_computed(rig: Rig) -> None:
    sql = "SELECT Temp FROM readings WHERE try_divide(1, Temp) < 9 AND 10 / Temp > 1"
    (path,) = rig.paths({"guarded": sql})
    (output,) = rig.evaluate([path])
    assert isinstance(output, Output), output
    assert _rows(output.table) == _rows(rig.alone(sql))


def test_lines_of_text_are_those_that_spark_writes(rig: Rig) -> None:
    texts = {
        "wide": "SELECT Temp, `a.b`, s, `odd ``name` * 2 AS d FROM readings WHERE Temp > 0",
        "narrow": "SELECT `a.b` AS t FROM readings",
    }
    for name, output in zip(texts, rig.evaluate(rig.paths(texts, sink="json")), strict=True):
        assert isinstance(output, Output), output
        rig.alone(texts[name])
        expected = rig.session.sql(f"SELECT to_json(struct(*)) AS value FROM ({texts[name]})")
        assert output.table.column(0).to_pylist() == expected.toArrow()["value"].to_pylist()


def test_a_python_function_goes_by_job_and_gives_the_same_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.udf.register("half_of", lambda value: value // 2, "int")
    rig = Rig(spark, tmp_path, "driver", DDL, ROWS)
    texts = {
        "half": "SELECT half_of(Temp) AS h FROM readings WHERE Temp > 3",
        "plain": "SELECT Temp FROM readings",
    }
    paths = rig.paths(texts)
    assert rig.executor.evaluate(rig.session, paths[:1], rig.trains, "driver")[1] == "job"
    assert rig.executor.evaluate(rig.session, paths[1:], rig.trains, "driver")[1] == "driver"
    half, plain = rig.executor.evaluate(rig.session, paths, rig.trains, "driver")[0]
    assert isinstance(half, Output), half
    assert isinstance(plain, Output)
    assert half.table["h"].to_pylist() == [row["Temp"] // 2 for row in ROWS if row["Temp"] > 3]
    assert plain.table.num_rows == len(ROWS)
    rig.journal.close()


def test_a_large_train_of_arrays_of_nothing_can_be_read_by_either_lane(
    spark: SparkSession, tmp_path: Path
) -> None:
    session, journal = own_session(spark), Journal(tmp_path)
    schema = session.createDataFrame([], "i INT, many ARRAY<INT>").schema
    log = StreamLog(tmp_path, "readings", journal, schema, ByteCache(lambda: 1 << 20))
    count = 2500
    rows = {"i": range(count), "many": [[None, None]] * count, "_arrived_at_s": [0.0] * count}
    new = log.stage(pa.table(rows, schema=log.arrow_schema), 0)
    journal.add_trains([new])
    log.added(new)
    trains = log.trains(0, 1, count)
    result = trains.frame(session).selectExpr("filter(many, y -> y > i) AS few").toArrow()
    assert result["few"].to_pylist() == [[]] * count
    assert trains.table().num_rows == count
    journal.close()


def test_tuples_are_invented_for_names_of_any_letters(rig: Rig) -> None:
    trains = invent(rig.session, rig.log.schema, 7, rig.folder / "invented")
    assert trains.frame(rig.session).columns == [*rig.columns["readings"], "_arrived_at_s"]
    assert trains.table().num_rows == 7
