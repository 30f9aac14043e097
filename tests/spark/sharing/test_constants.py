"""A table of constants returns the rows of each query's own text, in either lane."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isnan, nan
from pathlib import Path as File
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from rig import Rig

from headgate.model.network.network import Path
from headgate.model.plan import Lane
from headgate.model.query import Query
from headgate.model.stream import ARRIVED_AT, Stream
from headgate.model.window import ROW
from headgate.runtime.members.query_paths import segments_of
from headgate.spark.jvm.errors import cause_of
from headgate.spark.jvm.lane.plan_runner import DriverLane
from headgate.spark.jvm.query.analysis import Analyst
from headgate.spark.jvm.query.plans import Parts, Plan
from headgate.spark.jvm.session import own_session
from headgate.spark.output import Output
from headgate.spark.sharing import sharing_plan
from headgate.spark.sharing.constants_group import MOST, ConstantsGroup, constants_group
from headgate.spark.sharing.mask_group import MaskGroup
from headgate.spark.sharing.sharing_plan import LEAST_ALIKE, Member, Part, parts_of

pytestmark = pytest.mark.spark

DDL = "id INT, small TINYINT, big BIGINT, x DOUBLE, place STRING"
ARROW = pa.schema(
    [("id", pa.int32()), ("small", pa.int8()), ("big", pa.int64()), ("x", pa.float64()),
     ("place", pa.string()), (ARRIVED_AT, pa.float64())]
)  # fmt: skip
STREAMS = [Stream(name="s", format="rate")]
PLACES = ["north", "south", "", "a'b", "ü"]

TUPLES = st.fixed_dictionaries(
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
    "small > {}": st.integers(-200, 200),
    "big <= {}": SMALL,
    "big BETWEEN {} AND 2": SMALL,
    "x >= {}": DECIMAL,
    "x < {}": SMALL,
    "x = {}": DECIMAL | SMALL,
    "{} < x": SMALL,
    "{} = big": SMALL,
}
LAST = "small + 1 > {}"
REST = ["place IS NOT NULL", "(small > 0 OR big > 0)", "place <> 'south'"]


@st.composite
def predicates(draw: st.DrawFn) -> list[str]:
    forms = draw(st.lists(st.sampled_from(sorted(TESTS)), min_size=1, max_size=3, unique=True))
    rest = draw(st.lists(st.sampled_from(REST), max_size=1))
    if draw(st.booleans()):
        forms, rest = [LAST], []  # Spark counts it among those that may fail
    values = TESTS | {LAST: st.integers(-200, 200)}
    return [
        " AND ".join([*rest, *(form.format(draw(values[form])) for form in forms)])
        for _ in range(draw(st.integers(1, 5)))
    ]


@pytest.fixture(scope="module")
def analyst(spark: SparkSession) -> Analyst:
    analyst = Analyst(own_session(spark))
    analyst.add_stream("s", spark.createDataFrame([], DDL).schema)
    return analyst


@pytest.fixture(scope="module")
def driver(spark: SparkSession) -> DriverLane:
    return DriverLane(own_session(spark))


def _paths(analyst: Analyst, conditions: Sequence[str], output: str = "id") -> list[Path]:
    paths: list[Path] = []
    for number, condition in enumerate(conditions):
        sql = f"SELECT {output} FROM s WHERE {condition}"
        query = Query(name=f"q{number}", sql=sql, query_class="H")
        paths += segments_of(query, analyst, {"s": ARROW.names[:-1]}, STREAMS)[1]
    return paths


def _parts(path: Path) -> Parts:
    assert isinstance(path.plan, Plan)
    assert path.plan.parts is not None
    return path.plan.parts


def _group(paths: Sequence[Path]) -> ConstantsGroup:
    parts = [_parts(path) for path in paths]
    assert None not in {part.form_key for part in parts}
    assert len({part.form_key for part in parts}) == 1
    return constants_group(paths, parts)


def _by_driver(driver: DriverLane, group: ConstantsGroup, rows: pa.Table) -> pa.Table:
    assert group.driver is not None
    numbered = rows.append_column(ROW, pa.array(np.arange(rows.num_rows)))
    return driver.prepare(group.driver)({"s": numbered})


def _ids(group: ConstantsGroup, rows: pa.Table, computed: pa.Table) -> list[list[int]]:
    outputs = group.split(rows, computed, list(group.members))
    for output in outputs:
        assert output.arrived_at_s.tolist() == [float(n) for n in output.table["id"].to_pylist()]
    return [sorted(output.table["id"].to_pylist()) for output in outputs]


@settings(max_examples=settings.default.max_examples // 2)
@given(rows=st.lists(TUPLES, max_size=30), conditions=predicates())
def test_every_member_has_the_rows_of_its_text(
    spark: SparkSession,
    analyst: Analyst,
    driver: DriverLane,
    rows: list[dict[str, object]],
    conditions: list[str],
) -> None:
    note(str(conditions))
    lines = [{**row, "id": n, ARRIVED_AT: float(n)} for n, row in enumerate(rows)]
    s = pa.Table.from_pylist(lines, ARROW)
    with duckdb.connect() as database:
        database.register("s", s)
        expected = [
            sorted(row[0] for row in database.sql(f"SELECT id FROM s WHERE {text}").fetchall())
            for text in conditions
        ]
    group = _group(_paths(analyst, conditions))
    assert _ids(group, s, _by_driver(driver, group, s)) == expected
    frame = spark.createDataFrame(s)
    by_job = group.job.frame(spark, {"s": frame}).toArrow()
    assert _ids(group, by_job, by_job) == expected


def test_only_wanted_members_get_rows_and_in_the_order_they_are_wanted(
    analyst: Analyst, driver: DriverLane
) -> None:
    group = _group(_paths(analyst, [f"big > {n}" for n in (0, 1, 2, 3, 4, 1)]))
    lines = [
        {"id": n, "small": 0, "big": n, "x": 0.0, "place": "", ARRIVED_AT: 0.0} for n in range(6)
    ]
    rows = pa.Table.from_pylist(lines, ARROW)
    outputs = group.split(rows, _by_driver(driver, group, rows), ["q4", "q1", "q5"])
    ids = [output.table["id"].to_pylist() for output in outputs]
    assert ids == [[5], [2, 3, 4, 5], [2, 3, 4, 5]]
    assert group.members["q1"] == group.members["q5"]


def test_queries_find_their_like(analyst: Analyst) -> None:
    many = _paths(analyst, [f"big > {n}" for n in range(MOST + 4)])
    few = _paths(analyst, [f"small > {n}" for n in range(LEAST_ALIKE - 1)])
    other = _paths(analyst, [f"small > {n}" for n in range(2)], "id AS other")
    costly = _paths(analyst, [f"md5(place) > '{n}'" for n in range(3)])
    alone = _paths(analyst, ["sha2(place, 256) > 'a'"])
    members = [Member(path, _parts(path)) for path in (*many, *few, *other, *costly, *alone)]
    dear = {id(path) for path in (*costly, *alone)}
    parts = list(parts_of(members, lambda path: id(path) in dear))
    assert [(len(part.members), part.table) for part in parts] == [
        (MOST, True), (4, True), (LEAST_ALIKE + 1, False), (3, False)
    ]  # fmt: skip
    assert parts[-1] == Part(tuple(members[-4:-1]))


START = datetime(2024, 1, 1, tzinfo=UTC)
TYPED_DDL = (
    "id INT, small INT, big BIGINT, x DOUBLE, f FLOAT, place STRING, d DATE, ts TIMESTAMP,"
    " ntz TIMESTAMP_NTZ, p DECIMAL(9, 2), lower STRING COLLATE UTF8_LCASE"
)
NUMBERS = [nan, 0.0, -0.0, 1.5, 2.0, 7.0, float("inf"), -1.0]
TYPED_ROWS: list[dict[str, Any]] = [
    {
        "id": n,
        "small": n % 4,
        "big": n,
        "x": NUMBERS[n % 8],
        "f": NUMBERS[n % 8],
        "place": f"{n % 5} ",
        "d": date(2024, 1, 1) + timedelta(days=n),
        "ts": START + timedelta(seconds=n / 2),
        "ntz": (START + timedelta(seconds=n / 2)).replace(tzinfo=None),
        "p": Decimal(n) / 2,
        "lower": "aAbB"[n % 4],
    }
    if n % 7
    else {"id": n, "small": n % 4, "big": n}
    for n in range(40)
]


def _at_least(value: float | None, least: float) -> bool:
    return value is not None and (isnan(value) or value >= least)


MEMBERS = (0, 3, 4)
"""The constants in which queries of one form differ."""

Holds = Callable[[dict[str, Any], int], bool]
FORMS: dict[str, tuple[str, bool, Holds]] = {
    # condition, whether it can be in a table of constants, and the rows for which it holds
    "dates": ("d = DATE'2024-01-01' + {n}", True,
              lambda row, n: row.get("d") == date(2024, 1, 1) + timedelta(days=n)),
    "instants": ("ts >= TIMESTAMP'2024-01-01 00:00:{n:02}.5'", True,
                 lambda row, n: row.get("ts", START) >= START + timedelta(seconds=n + 0.5)),
    "wall": ("ntz < TIMESTAMP_NTZ'2024-01-01 00:00:{n:02}'", True,
             lambda row, n: "ts" in row and row["ts"] < START + timedelta(seconds=n)),
    "decimals": ("p > {n}.50", False, lambda row, n: row.get("p", 0) > n + Decimal("0.5")),
    "zeros": ("x = {n} - {n}.0", True, lambda row, n: row.get("x") == 0.0),
    "no numbers": ("x >= coalesce(double('NaN'), {n})", True,
                   lambda row, n: _at_least(row.get("x"), nan) and isnan(row["x"])),
    "floats": ("f >= float({n})", True, lambda row, n: _at_least(row.get("f"), n)),
    "floats and doubles": ("f = {n}D", True, lambda row, n: row.get("f") == n),
    "spaces": ("place = '{n} '", True, lambda row, n: row.get("place") == f"{n} "),
    "words": ("place > '{n}'", False, lambda row, n: row.get("place", "") > str(n)),
    "letters": ("lower = chr(65 + {n} % 3)", False,
                lambda row, n: row.get("lower", "").lower() == "abc"[n % 3]),
    "nothing": ("small = NULLIF({n}, {n})", False, lambda row, n: False),
    "flipped": ("{n} <= big AND {n} + 2 > big", True, lambda row, n: n <= row["big"] < n + 2),
    "between": ("big BETWEEN {n} AND {n} + 5", True, lambda row, n: n <= row["big"] <= n + 5),
    "guarded": ("small <> 0 AND 12 DIV small >= {n}", True,
                lambda row, n: row["small"] != 0 and 12 // row["small"] >= n),
    "guarded equal": ("small <> 0 AND 12 DIV small = {n}", True,
                      lambda row, n: row["small"] != 0 and 12 // row["small"] == n),
    "guarded by a constant": ("small > {n} % 3 AND 12 DIV small = 4", False,
                              lambda row, n: row["small"] > n % 3 and 12 // row["small"] == 4),
}  # fmt: skip


@pytest.fixture
def rig(spark: SparkSession, tmp_path: File, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    """Yield a stream on which three alike queries already share a table of constants."""
    monkeypatch.setattr(sharing_plan, "LEAST_ALIKE", len(MEMBERS))
    rig = Rig(spark, tmp_path, "driver", TYPED_DDL, TYPED_ROWS)
    yield rig
    rig.journal.close()


def test_constants_of_every_type_and_conditions_that_may_fail(rig: Rig) -> None:
    texts = {
        f"{name.replace(' ', '_')}_{n}": f"SELECT id AS {name.replace(' ', '_')} FROM readings"
        f" WHERE {condition.format(n=n)}"
        for name, (condition, *_) in FORMS.items()
        for n in MEMBERS
    }
    paths = rig.paths(texts)
    for lane in ("driver", "job"):
        rig.take_lane(lane, paths)
        groups = [rig.executor.arrangement.prepared(path).group for path in paths]
        outputs = rig.evaluate(paths)
        for index, (name, (condition, table, holds)) in enumerate(FORMS.items()):
            for m, n in enumerate(MEMBERS):
                place = index * len(MEMBERS) + m
                output, kind = outputs[place], ConstantsGroup if table else MaskGroup
                assert isinstance(groups[place], kind), name
                assert isinstance(output, Output), (name, output)
                expected = [row["id"] for row in TYPED_ROWS if holds(row, n)]
                assert output.table.column(0).to_pylist() == expected, condition.format(n=n)


def test_a_member_that_fails_fails_alone(rig: Rig) -> None:
    texts = {
        f"q{n}": f"SELECT id FROM readings WHERE big > 9 AND 12 / (big - 10 - {n}) < {n}"
        for n in (1, 2)
    } | {f"r{n}": f"SELECT 1 / (big - 38) AS r FROM readings WHERE big >= {n}" for n in (0, 38, 39)}
    paths = rig.paths(texts)
    for lane in ("driver", "job"):
        rig.take_lane(lane, paths)
        assert isinstance(rig.executor.arrangement.prepared(paths[-1]).group, ConstantsGroup)
        outputs = dict(zip(texts, rig.evaluate(paths), strict=True))
        for name, output in outputs.items():
            if name != "r39":
                assert isinstance(output, Exception)
                assert "Division by zero" in cause_of(output)
            else:
                assert isinstance(output, Output), output
                assert output.table["r"].to_pylist() == [1.0]


FAILING = {
    # which of the numbers {n} and {m} may differ within a table of constants
    "12 / small > {n}": "n",
    "big > {m} AND 12 / small > {n}": "n",
    "12 / small > {m} AND big = {n}": "n",
    "12 / small > {m} AND place IS NULL AND big = {n} AND x > {n}": "n",
    "12 / small > {n} AND big > 38": "",
    "12 DIV small = {n} AND place IS NOT NULL": "",
    "big < {m} AND 12 / small > 1 AND id > {n}": "n",
    "big < {n} AND 12 DIV small = 4 AND place IS NULL": "",
    "x > {n}.5 AND big = {m}": "nm",
}


@pytest.mark.parametrize("condition", FAILING)
def test_constants_stay_where_a_table_could_change_which_rows_fail(
    analyst: Analyst, condition: str
) -> None:
    """A join evaluates conditions in its own order; a query evaluates them as written."""
    texts = [condition.format(n=n, m=m) for n, m in ((3, 3), (4, 3), (3, 4))]
    keys = [_parts(path).form_key for path in _paths(analyst, texts)]
    free = FAILING[condition]
    assert (keys[0] is not None and keys[0] == keys[1]) == ("n" in free)
    if "{m}" in condition:
        assert (keys[0] is not None and keys[0] == keys[2]) == ("m" in free)


@pytest.mark.parametrize("name", ["guarded", "guarded equal"])
def test_a_guard_before_a_table_still_guards(rig: Rig, name: str) -> None:
    """Without the guard, every member would have to run alone at every call."""
    texts = {
        f"q{n}": f"SELECT id FROM readings WHERE {FORMS[name][0].format(n=n)}" for n in MEMBERS
    }
    paths = rig.paths(texts)
    lanes: tuple[Lane, ...] = ("driver", "job")
    for lane in lanes:
        rig.take_lane(lane, paths)
        prepared = rig.executor.arrangement.prepared(paths[0])
        outputs = prepared.run(rig.session, lane, rig.trains, list(texts), "")
        assert [output.table.num_rows for output in outputs] == [
            sum(FORMS[name][2](row, n) for row in TYPED_ROWS) for n in MEMBERS
        ]
