"""Conditions run in the order that costs least, and no query's answer or failure changes by it."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.model.network import Condition
from headgate.scheduler.filter_order import ConditionFigures, best_order, expected_s
from headgate.spark.jvm.plans import Plans
from headgate.spark.jvm.session import own_session

parts = st.floats(0.0, 1.0)
costs_s = st.floats(1e-9, 1e-3)
three = st.tuples(st.tuples(parts, costs_s), st.tuples(parts, costs_s), st.tuples(parts, costs_s))


def figures_of(found: tuple[tuple[float, float], ...]) -> ConditionFigures:
    return ConditionFigures(tuple(each[0] for each in found), tuple(each[1] for each in found))


@given(three)
def test_no_order_costs_less_where_none_can_fail(found: tuple[tuple[float, float], ...]) -> None:
    figures = figures_of(found)
    best = best_order(figures, [Condition("c", True)] * 3)
    least = min(expected_s(figures, order) for order in permutations(range(3)))
    assert expected_s(figures, best) <= least * (1 + 1e-9)


@given(three, st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_what_may_fail_sees_no_tuple_that_it_did_not_see(
    found: tuple[tuple[float, float], ...], certain: tuple[bool, bool, bool]
) -> None:
    figures, written = figures_of(found), tuple(range(3))
    best = best_order(figures, [Condition("c", each) for each in certain])
    assert sorted(best) == list(written)
    for place, at in enumerate(best):
        if not certain[at]:
            assert set(best[:place]) >= set(range(at))
    assert expected_s(figures, best) <= expected_s(figures, written)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("condition", "certain"),
    [
        ("heat > 30", True),
        ("heat BETWEEN 1 AND 5 OR place IS NULL", True),
        ("lower(place) LIKE '%north%'", True),
        ("place RLIKE '(a|b)+$'", True),
        ("exp(share) * share < 3D", True),
        ("heat > 2.5D", True),
        ("share > 2.5", True),
        ("heat > 10 / 4", True),
        ("heat > 10 / 0", False),
        ("10 / heat > 2", False),
        ("heat + 1 > 30", False),
        ("CAST(place AS INT) > 3", False),
        ("place = 5", False),
        ("place LIKE other", False),
        ("element_at(many, 3) > 1", False),
        ("bigint(share) > 1", False),
    ],
)
def test_what_never_fails(spark: SparkSession, condition: str, certain: bool) -> None:
    session = own_session(spark)
    plans = Plans(session)
    schema = "heat INT, share DOUBLE, place STRING, other STRING, many ARRAY<INT>"
    plans.relation("s", StructType.fromDDL(schema)).createOrReplaceTempView("s")
    parts = plans.of(session.sql(f"SELECT 1 FROM s WHERE ({condition}) AND heat > 1")).parts
    assert parts is not None
    assert [part.never_fails for part in parts.conditions] == [certain, True]
