"""Nexmark's queries answer as Spark does in batch, and a query that reads the clock is refused."""

from pathlib import Path

import pytest
from checked import pipeline_at, prepare, run
from pyspark.sql import SparkSession

from headgate import Query
from headgate.errors import QueryRefused
from headgate.runtime.live.load import load

pytestmark = [pytest.mark.spark, pytest.mark.long]

# Stateless, joins of tuples, windows that rank or join, sessions, joins with a table, days.
SOME = ("q1", "q3", "q5", "q8", "q9", "q11", "q13", "q16", "q20", "q21")


def test_queries_of_every_kind_answer_as_spark_does(spark: SparkSession, tmp_path: Path) -> None:
    checked = run(spark, tmp_path, events=700, steps=4, rate_per_s=10, queries=SOME, pause_s=0.05)
    assert checked.errors == ()
    assert [outcome.query for outcome in checked.outcomes] == list(SOME)
    assert [outcome for outcome in checked.outcomes if not outcome.equal] == []
    assert all(outcome.rows for outcome in checked.outcomes)


def test_the_clock_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    prepare(tmp_path)
    gate = load(pipeline_at(tmp_path, ["q0"]), spark=spark)
    sql = "SELECT bidder, now() AS at FROM bid [RANGE 10 SECONDS]"
    with pytest.raises(QueryRefused, match="Now"):
        gate.add_query(Query(name="refused", sql=sql, query_class="N"))
