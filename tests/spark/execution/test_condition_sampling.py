"""Conditions of running queries are sampled; conditions that never fail are recognized."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.model.network.network import Condition, Path
from headgate.model.query import Query
from headgate.spark.execution.condition_sampling import ConditionSampler
from headgate.spark.jvm.lane.plan_runner import DriverLane
from headgate.spark.jvm.query.plans import Plans
from headgate.spark.jvm.session import own_session

pytestmark = pytest.mark.spark


def test_a_query_is_sampled_at_256_tuples_and_at_twice_as_many_at_most_once_a_second(
    spark: SparkSession,
) -> None:
    session = own_session(spark)
    plans = Plans(session)
    plans.relation("s", StructType.fromDDL("x INT")).createOrReplaceTempView("s")
    text = "SELECT x FROM s WHERE x <> 0 AND 100 / x > 2 AND x < 200"
    parts = plans.of(session.sql(text)).parts
    assert parts is not None
    path = Path(
        query=Query(name="q", sql=text, query_class="H"), stream="s", operators=(),
        conditions=tuple(Condition(part.text, part.never_fails) for part in parts.conditions),
    )  # fmt: skip
    now_s = [0.0]
    sampler = ConditionSampler(DriverLane(session), lambda path: parts, lambda: now_s[0])
    rows = pa.table({"x": pa.array(range(400), pa.int32())})

    def sampled(tuples: int, later_s: float) -> bool:
        now_s[0] += later_s
        return sampler.sample(0, path, tuples, lambda: rows) is not None

    assert not sampled(255, 2.0)
    assert sampled(1, 0.0)  # 256
    assert not sampled(255, 2.0)
    assert sampled(1, 0.0)  # 512
    assert not sampled(10_000, 0.9)  # the last sample is less than a second old
    assert sampled(0, 0.2)
    now_s[0] += 2.0
    sample = sampler.sample(7, path, 100_000, lambda: rows)
    assert sample is not None
    # 256 rows: one is 0 and must not be divided by, and 100 / x > 2 holds for 49 of the others.
    assert (sample.unit, sample.tuples, sample.passed) == (7, (256, 255, 256), (255, 49, 200))
    assert all(seconds >= 0 for seconds in sample.seconds)

    def rows_of_a_dropped_query() -> pa.Table:
        # Neither another worker nor the loop waits for this sample.
        assert sampler.sample(0, path, 100_000, lambda: rows) is None
        sampler.forget("q")
        return rows

    now_s[0] += 2.0
    assert sampler.sample(7, path, 100_000, rows_of_a_dropped_query) is not None
    assert not sampled(255, 2.0)  # a new query of this name begins anew
    assert sampled(1, 0.0)


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
        ("is_variant_null(variant_get(parse_json('2024-03-31'), '$.a'))", False),
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
