"""A text that is too long or nested too deep is refused before Spark parses it."""

import pytest

from headgate.config import settings_of
from headgate.errors import ConfigRefused, QueryRefused
from headgate.model.query import Query
from headgate.model.settings import Settings
from headgate.spark.jvm.query.text_limits import refuse_text

LIMITED = Settings(most_nesting=4, most_text_bytes=200, most_plan_nodes=20)


def check(sql: str, settings: Settings = LIMITED) -> None:
    refuse_text(Query(name="q", sql=sql, query_class="H"), settings)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ((((1))))",
        "SELECT (((('(((' || \"(((\" || `(((` || r'\\' || '\\'((('))))",
        "SELECT 1 -- ((((((\n, 2 /* ((((( /* ((( */ */, $a$ ((((( $b$ $a$",
        "SELECT " + "CASE WHEN (a[1]) THEN 1 ELSE " * 4 + "0" + " END" * 4,
        "SELECT CASE WHEN array < 3 THEN 1 END, " * 5 + "window.end, a.case",
        "SELECT transform(a, x -> x), reduce(b, x -> x, y -> y, z -> z, x -> x, y -> y)",
        "SELECT CAST(a AS ARRAY<MAP<INT, STRUCT<b: INT>>>), a > b, a >> b",
        "SELECT a.b.c.d.e, f.g.h.i.j",
        "SELECT a) END ] > ) FROM ((((s))))",
    ],
)
def test_what_is_nested_as_deep_as_allowed_passes(sql: str) -> None:
    check(sql, Settings(most_nesting=4))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT\n(((((1)))))",
        "SELECT\n" + "CASE WHEN a THEN 1 ELSE " * 5 + "0" + " END" * 5,
        "SELECT\nf([(a[(1)])])",
        "SELECT '' '\n(' || (((((1)))))",
        "SELECT /*+ (\n((((1)))) */ 1",
        "SELECT\n1 " + "/*" * 5 + "*/" * 5,
        "SELECT\nf(a -> b -> c -> d -> 1)",
        "SELECT\nCAST(a AS ARRAY<ARRAY<ARRAY<ARRAY<INT>>>>)",
        "SELECT\na.b.c.d.e.f",
    ],
)
def test_what_is_nested_deeper_is_refused_with_its_line(sql: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        check(sql, Settings(most_nesting=4))
    assert str(refused.value) == (
        "query 'q', line 2: the text is nested more than 4 levels deep.\n"
        "Fix: make it flatter, or write several queries, or raise most_nesting"
    )


def test_a_text_is_refused_by_its_bytes_and_by_its_words() -> None:
    check("SELECT '" + "é" * 90 + "'")
    with pytest.raises(QueryRefused, match=r"query 'q': the text has 209 bytes, and 200 are allow"):
        check("SELECT '" + "é" * 100 + "'")
    check("SELECT " + "1," * 39 + "1")
    with pytest.raises(QueryRefused, match="has more than 80 words and signs, too many for a plan"):
        check("SELECT " + "1," * 40 + "1")


def test_twenty_thousand_parentheses_and_a_million_values_are_refused_at_once() -> None:
    settings = Settings()
    with pytest.raises(QueryRefused, match="is nested more than 500 levels deep"):
        check("SELECT " + "(" * 20_000 + "1" + ")" * 20_000, settings)
    values = ",".join(map(str, range(1_000_000)))
    with pytest.raises(QueryRefused, match="bytes, and 1,048,576 are allowed"):
        check(f"SELECT a FROM s WHERE a IN ({values})", settings)
    larger = Settings(most_text_bytes=1 << 30)
    with pytest.raises(QueryRefused, match="more than 200,000 words and signs"):
        check(f"SELECT a FROM s WHERE a IN ({values})", larger)


def test_a_limit_is_above_zero() -> None:
    with pytest.raises(ConfigRefused, match="analysis_timeout_s is 0, but must be above 0 seconds"):
        settings_of({"analysis_timeout_s": 0}, ())
