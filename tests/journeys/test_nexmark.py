"""Nexmark's queries give what Spark gives in batch, and what is left out is refused."""

from pathlib import Path

import pytest
from checked import pipeline_at, prepare, run
from pyspark.sql import SparkSession

from headgate import Query
from headgate.errors import QueryRefused
from headgate.runtime.live.load import load

pytestmark = [pytest.mark.spark, pytest.mark.long]

# Stateless, joined as they come, ranked and joined in windows, sessions, with a table, by the day.
SOME = ("q1", "q3", "q5", "q8", "q9", "q11", "q13", "q16", "q20", "q21")


def test_queries_of_every_kind_answer_as_spark_does(spark: SparkSession, tmp_path: Path) -> None:
    checked = run(spark, tmp_path, events=700, steps=4, rate_per_s=10, queries=SOME, pause_s=0.05)
    assert checked.errors == ()
    assert [each.query for each in checked.outcomes] == list(SOME)
    assert [each for each in checked.outcomes if not each.equal] == []
    assert all(each.rows for each in checked.outcomes)


def test_the_clock_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    prepare(tmp_path)
    gate = load(pipeline_at(tmp_path, ["q0"]), spark=spark)
    sql = "SELECT bidder, now() AS at FROM bid [RANGE 10 SECONDS]"
    with pytest.raises(QueryRefused, match="Now"):
        gate.add_query(Query(name="refused", sql=sql, query_class="N"))
