"""Plans that return the same rows have the same key, and other plans have other keys."""

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.spark.jvm.query.plans import Parts, Plan, Plans
from headgate.spark.jvm.session import own_session

pytestmark = pytest.mark.spark

DDL = (
    "a INT, b INT, c INT, l BIGINT, m BIGINT, n BIGINT, x DOUBLE, y DOUBLE, z DOUBLE, s STRING,"
    " t STRING, many ARRAY<INT>, ts TIMESTAMP, d DATE, p DECIMAL(9, 2), ok BOOLEAN"
)
PlanOf = Callable[[str], Plan]


@pytest.fixture(scope="module")
def plan(spark: SparkSession) -> PlanOf:
    session = own_session(spark)
    plans = Plans(session)
    for name in ("r", "q"):
        plans.relation(name, StructType.fromDDL(DDL)).createOrReplaceTempView(name)
    live_plans: list[Plan] = []

    def plan(text: str) -> Plan:
        live_plans.append(plans.of(session.sql(text)))  # a key lives as long as its plan
        return live_plans[-1]

    return plan


SAME = [
    ("SELECT a, s FROM r WHERE a > 3", "select  A , `S`\nfrom R where (a)>(3) -- the same"),
    ("SELECT a, s FROM r WHERE a > 3", "SELECT k.a, k.s FROM r AS k WHERE k.a > 3"),
    ("SELECT a FROM r WHERE a > 3", "SELECT a FROM (SELECT * FROM r) WHERE 3 < a"),
    ("SELECT a FROM r WHERE a > 3", "WITH k AS (SELECT * FROM r) SELECT a FROM k WHERE a > 3"),
    ("SELECT a FROM r WHERE a = 1 AND b = 2", "SELECT a FROM r WHERE b = 2 AND a = 1"),
    ("SELECT a FROM r WHERE a = 1 OR s = 'x'", "SELECT a FROM r WHERE 'x' = s OR 1 = a"),
    ("SELECT a FROM r WHERE a IN (1, 2)", "SELECT a FROM r WHERE a IN (2, 1)"),
    ("SELECT a % 3 AS v, upper(s) AS u FROM r", "SELECT a % 3 AS w, upper(s) FROM r"),
    ("SELECT x + y AS v FROM r", "SELECT k.x + k.y AS w FROM r k"),
    ("SELECT a + b AS v FROM r", "SELECT a  +  b FROM r"),
    (
        "SELECT a FROM r WHERE a BETWEEN b AND b + 1",
        "SELECT A FROM r k WHERE A BETWEEN k.b AND b+1",
    ),
    ("SELECT transform(many, e -> e + a) v FROM r", "SELECT transform(many, k -> k + a) v FROM r"),
    (
        "SELECT aggregate(many, 0, (u, e) -> u - e) AS v FROM r",
        "SELECT aggregate(many, 0, (e, u) -> e - u) AS v FROM r",
    ),
    ("SELECT s, count(*) AS n FROM r GROUP BY s", "SELECT k.s, count(1) AS m FROM r k GROUP BY 1"),
    (
        "SELECT a, rank() OVER (PARTITION BY s ORDER BY a) AS n FROM r QUALIFY n = 1",
        "SELECT k.a, rank() OVER (PARTITION BY k.s ORDER BY k.a) m FROM r AS k QUALIFY m = 1",
    ),
    (
        "SELECT sum(a) OVER (ORDER BY b ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS v FROM r",
        "SELECT sum(A) OVER (ORDER BY B ROWS 2 PRECEDING) AS w FROM r",
    ),
    (
        "SELECT r.a FROM r JOIN q ON r.a = q.a",
        "SELECT k.a FROM r AS k INNER JOIN q AS w ON w.a = k.a",
    ),
]


@pytest.mark.parametrize(("one", "two"), SAME)
def test_the_same_query_written_otherwise_has_the_same_key(
    plan: PlanOf, one: str, two: str
) -> None:
    assert plan(one).key == plan(two).key == plan(one).key


DIFFERENT = [
    ("SELECT a FROM r WHERE a BETWEEN b AND b + 1", "SELECT a FROM r WHERE b BETWEEN a AND b + 1"),
    (
        "SELECT sum(x) OVER (ORDER BY a ROWS 2 PRECEDING) AS v FROM r",
        "SELECT sum(x) OVER (ORDER BY a ROWS 3 PRECEDING) AS v FROM r",
    ),
    (
        "SELECT rank() OVER (ORDER BY x + y + a) AS v FROM r",
        "SELECT rank() OVER (ORDER BY y + x + a) AS v FROM r",
    ),
    ("SELECT a FROM r", "SELECT a FROM q"),
    ("SELECT a FROM r", "SELECT b FROM r"),
    ("SELECT a, b FROM r", "SELECT b, a FROM r"),
    ("SELECT a FROM r WHERE a > 3", "SELECT a FROM r WHERE a > 4"),
    ("SELECT a FROM r WHERE a > 3", "SELECT a FROM r WHERE a >= 3"),
    ("SELECT a FROM r WHERE a > 3", "SELECT a FROM r WHERE b > 3"),
    ("SELECT a FROM r WHERE s = 'x'", "SELECT a FROM r WHERE s = 'X'"),
    ("SELECT 1 AS v FROM r", "SELECT 1L AS v FROM r"),
    ("SELECT 1 AS v FROM r", "SELECT '1' AS v FROM r"),
    ("SELECT a FROM r", "SELECT DISTINCT a FROM r"),
    (
        "SELECT aggregate(many, 0, (u, e) -> u - e) AS v FROM r",
        "SELECT aggregate(many, 0, (u, e) -> e - u) AS v FROM r",
    ),
    ("SELECT filter(many, e -> e > a) v FROM r", "SELECT filter(many, e -> a > e) v FROM r"),
    ("SELECT transform(many, e -> e + 1) v FROM r", "SELECT transform(many, e -> e + 2) v FROM r"),
    (
        "SELECT transform(many, e -> aggregate(many, e, (u, w) -> u - w)) v FROM r",
        "SELECT transform(many, e -> aggregate(many, e, (u, w) -> w - u)) v FROM r",
    ),
    (
        "SELECT from_csv(s, 'v INT', map('sep', ';')) AS v FROM r",
        "SELECT from_csv(s, 'v INT', map('sep', ',')) AS v FROM r",
    ),
    (
        "SELECT from_json(s, 'v INT') AS v FROM r",
        "SELECT from_json(s, 'v INT', map('mode', 'FAILFAST')) AS v FROM r",
    ),
    ("SELECT from_json(s, 'v INT') v FROM r", "SELECT from_json(s, 'v BIGINT') v FROM r"),
    ("SELECT sort_array(many) AS v FROM r", "SELECT sort_array(many, false) AS v FROM r"),
    ("SELECT url_encode(s) AS v FROM r", "SELECT url_decode(s) AS v FROM r"),
    ("SELECT x + y AS v FROM r", "SELECT y + x AS v FROM r"),
    ("SELECT (x + y) + z AS v FROM r", "SELECT x + (y + z) AS v FROM r"),
    ("SELECT x * y * z AS v FROM r", "SELECT z * y * x AS v FROM r"),
    ("SELECT (l + m) + n AS v FROM r", "SELECT (n + m) + l AS v FROM r"),
    ("SELECT (l + m) + n AS v FROM r", "SELECT l + (m + n) AS v FROM r"),
    ("SELECT a * b * c AS v FROM r", "SELECT c * b * a AS v FROM r"),
    ("SELECT a FROM r WHERE 1 / a > 0 AND b > 1", "SELECT a FROM r WHERE b > 1 AND 1 / a > 0"),
    ("SELECT a FROM r WHERE a + b > 1 OR c > 1", "SELECT a FROM r WHERE c > 1 OR a + b > 1"),
    ("SELECT greatest(x, y) AS v FROM r", "SELECT greatest(y, x) AS v FROM r"),
    ("SELECT sum(x + y) AS v FROM r", "SELECT sum(y + x) AS v FROM r"),
    ("SELECT r.a FROM r JOIN q ON r.a = q.a", "SELECT q.a FROM r JOIN q ON r.a = q.a"),
    ("SELECT r.a FROM r JOIN q ON r.a = q.a", "SELECT r.a FROM r LEFT JOIN q ON r.a = q.a"),
    ("SELECT count(a) AS n FROM r GROUP BY s", "SELECT count(DISTINCT a) AS n FROM r GROUP BY s"),
    (
        "SELECT count(a) FILTER (WHERE b > 1) AS n FROM r GROUP BY s",
        "SELECT count(a) FILTER (WHERE c > 1) AS n FROM r GROUP BY s",
    ),
    (
        "SELECT a FROM r WHERE a > (SELECT max(a) FROM q)",
        "SELECT a FROM r WHERE a > (SELECT max(b) FROM q)",
    ),
    (
        "SELECT row_number() OVER (ORDER BY a) AS n FROM r",
        "SELECT row_number() OVER (ORDER BY a DESC) AS n FROM r",
    ),
    ("SELECT date_format(ts, 'HH') AS v FROM r", "SELECT date_format(ts, 'mm') AS v FROM r"),
    ("SELECT CAST(s AS INT) AS v FROM r", "SELECT TRY_CAST(s AS INT) AS v FROM r"),
    ("SELECT s COLLATE UTF8_LCASE AS v FROM r", "SELECT s AS v FROM r"),
    ("SELECT s LIKE 'a/%' ESCAPE '/' AS v FROM r", "SELECT s LIKE 'a/%' AS v FROM r"),
    ("SELECT lead(a) OVER (ORDER BY b) AS v FROM r", "SELECT lag(a) OVER (ORDER BY b) AS v FROM r"),
    ("SELECT struct(a AS e, b AS f) AS v FROM r", "SELECT struct(a AS f, b AS e) AS v FROM r"),
]


@pytest.mark.parametrize(("one", "two"), DIFFERENT)
def test_queries_with_other_rows_or_errors_have_other_keys(
    plan: PlanOf, one: str, two: str
) -> None:
    assert plan(one).key != plan(two).key


def test_a_key_is_free_once_nobody_has_its_plan(plan: PlanOf) -> None:
    first = plan("SELECT a + 17 AS v FROM r")
    assert plan("SELECT a + 17 AS w FROM r").key == first.key
    assert plan("SELECT a + 18 AS w FROM r").key != first.key


def parts_of(plan: PlanOf, condition: str, outputs: str = "a") -> Parts:
    parts = plan(f"SELECT {outputs} FROM r WHERE {condition}").parts
    assert parts is not None
    return parts


ALIKE = [
    ("a > 3", "a > 77"),
    ("a > 3", "77 < a"),
    ("a = 3 AND s = 'x'", "a = 4 AND s = 'y'"),
    ("a = 3 AND s = 'x'", "k.a = 4 AND k.s = 'y'"),
    ("a BETWEEN 1 AND 5", "a BETWEEN 2 AND 9"),
    ("a BETWEEN 1 AND 5", "a >= 2 AND a <= 9"),
    ("l BETWEEN 1 AND 5 AND s = 'x'", "l BETWEEN 2 AND 9 AND s = 'y'"),
    ("x >= 1.5D", "x >= 2D"),
    ("l <= 3", "l <= 4"),
    ("a > 3 AND b > 1 AND s LIKE 'x%'", "a > 4 AND b > 2 AND s LIKE 'x%'"),
    ("a = 1 AND b = 2 AND c <> 9", "a = 3 AND b = 4 AND c <> 9"),
    ("a > 1 + 2", "a > 7"),
    ("a + b > 3", "a + b > 4"),
]


@pytest.mark.parametrize(("one", "two"), ALIKE)
def test_queries_that_differ_in_constants_alone_have_one_form(
    plan: PlanOf, one: str, two: str
) -> None:
    first, second = parts_of(plan, one), parts_of(plan, two.replace("k.", "r."))
    assert first.form_key is not None
    assert first.form_key == second.form_key


UNLIKE = [
    ("a > 3", "b > 3"),
    ("a > 3", "a >= 3"),
    ("a > 3", "a < 3"),
    ("a > 3", "a = 3"),
    ("l = 3", "a = 3"),
    ("a = 3 AND b = 4", "a = 3 AND c = 4"),
    ("a > 3 AND c <> 9", "a > 3 AND c <> 8"),
    ("a > 3 AND s LIKE 'x%'", "a > 3 AND s LIKE 'y%'"),
    ("a > 3", "a > 3 AND b > 3"),
    ("a > 3", "a > 3.5"),
    ("a + b > 3", "b + a > 3"),
    ("x + y > 3D", "y + x > 3D"),
    ("aggregate(many, 0, (u, e) -> u - e) > 3", "aggregate(many, 0, (u, e) -> e - u) > 3"),
]


@pytest.mark.parametrize(("one", "two"), UNLIKE)
def test_queries_that_differ_in_more_have_other_forms(plan: PlanOf, one: str, two: str) -> None:
    first, second = parts_of(plan, one), parts_of(plan, two)
    assert first.form_key is not None
    assert first.form_key != second.form_key


def test_outputs_belong_to_the_form(plan: PlanOf) -> None:
    forms = [parts_of(plan, "a > 3", outputs).form_key for outputs in ("a", "b", "a, b", "a + 1")]
    assert len(set(forms)) == 4
    assert parts_of(plan, "a > 4", "a + 1 AS other").form_key == forms[3]


NO_CONSTANTS = [
    "a > b", "a IS NULL", "a IN (1, 2)", "s LIKE 'x%'", "s > 'x'", "p > 1.50", "p = 2", "ok = true",
    "a > 3 OR b > 3", "NOT a > 3", "a <> 3", "a > NULL", "1 > 2", "a > 1 / 0",
]  # fmt: skip


@pytest.mark.parametrize("condition", NO_CONSTANTS)
def test_where_no_constant_can_be_a_column_there_is_no_form(plan: PlanOf, condition: str) -> None:
    assert parts_of(plan, condition).form is None


def test_the_longest_call_is_found_whatever_stands_around_it(plan: PlanOf) -> None:
    call = "sha2(concat(s, t), 256)"
    calls = [
        parts_of(plan, f"{call} > 'a' AND a > 1").longest_call,
        parts_of(plan, "a > 2", f"upper(s) AS u, {call} AS h").longest_call,
        parts_of(plan, "sha2(concat(t, s), 256) > 'a'").longest_call,
        parts_of(plan, "a + 1 > 2 AND CAST(x AS INT) = 1").longest_call,
    ]
    assert calls[0] == calls[1] != 0
    assert calls[2] not in (0, calls[0])
    assert calls[3] == 0


@pytest.mark.parametrize(
    ("text", "conditions", "outputs"),
    [
        ("SELECT A AS v, upper(s) u FROM r WHERE a > 3 AND lower(s) = 'x'",
         [(True, False), (True, True)], [("v", "a", False), ("u", None, True)]),
        ("SELECT * FROM (SELECT a + 1 AS v, b FROM r WHERE b > 1) WHERE v > 2",
         [(True, False), (False, False)], [("v", None, False), ("b", "b", False)]),
    ],
)  # fmt: skip
def test_a_query_is_taken_apart_by_spark(
    plan: PlanOf,
    text: str,
    conditions: list[tuple[bool, bool]],
    outputs: list[tuple[str, str | None, bool]],
) -> None:
    parts = plan(text).parts
    assert parts is not None
    assert [(part.never_fails, part.calls) for part in parts.conditions] == conditions
    assert [(part.name, part.column, part.calls) for part in parts.outputs] == outputs


@pytest.mark.parametrize(
    "text",
    ["SELECT explode(many) AS v FROM r", "SELECT max(a) AS v FROM r", "SELECT r.a FROM r, q",
     "SELECT a FROM r WHERE a > (SELECT max(n) FROM VALUES (1) AS k(n))", "SELECT 1 AS v"],
)  # fmt: skip
def test_what_does_more_than_filter_and_project_stays_whole(plan: PlanOf, text: str) -> None:
    assert plan(text).parts is None


def test_keys_of_forms_and_calls_outlive_a_collection_of_garbage(
    spark: SparkSession, plan: PlanOf
) -> None:
    texts = [
        f"SELECT a FROM r WHERE sha2(s, 256) > 'k' AND b > {n} AND b < {n + 5}" for n in (1, 2)
    ]
    keys = []
    for text in texts:
        parts = plan(text).parts
        assert parts is not None
        keys.append((parts.form_key, parts.longest_call))
        assert spark._jvm is not None
        spark._jvm.java.lang.System.gc()
    assert keys[0] == keys[1]
