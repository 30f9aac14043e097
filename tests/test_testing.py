"""The public test kit: rows in, rows out."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.errors import StepFailed, UnknownName

pytestmark = [pytest.mark.spark, pytest.mark.slow]

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_queries_over_rows_return_what_they_output(spark: SparkSession) -> None:
    numbers = [{"n": n, "ts": START + timedelta(seconds=n)} for n in range(21)]
    names = [{"n": 3, "name": "three"}, {"n": 4, "name": "four"}]
    results = hg.testing.run(
        rows={"numbers": numbers, "names": names, "nothing": []},
        schemas={
            "numbers": "n INT, ts TIMESTAMP",
            "names": "n INT, name STRING",
            "nothing": "a INT",
        },
        event_times={"numbers": "ts"},
        queries={
            "even": "SELECT n FROM numbers WHERE n % 2 = 0",
            "windows": "SELECT count(*) AS c FROM numbers [RANGE 10 SECONDS SLIDE 10 SECONDS]",
            "empty": "SELECT a FROM nothing",
            "named": "SELECT upper(name) AS name FROM names",
        },
        spark=spark,
    )
    assert results["even"] == [{"n": n} for n in range(0, 21, 2)]
    assert results["windows"] == [{"c": 10}, {"c": 10}]
    assert (results["empty"], results["named"]) == ([], [{"name": "THREE"}, {"name": "FOUR"}])


def test_a_second_run_in_the_same_state_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"n": n} for n in range(5)]
    for end, expected in ((3, [0, 1, 2]), (5, [3, 4])):
        results = hg.testing.run(
            rows={"s": rows[:end]}, schemas={"s": "n INT"}, queries={"q": "SELECT n FROM s"},
            spark=spark, state=tmp_path,
        )  # fmt: skip
        assert results == {"q": [{"n": n} for n in expected]}


def test_what_goes_wrong_is_raised(spark: SparkSession) -> None:
    rows, schemas = {"s": [{"n": 0}]}, {"s": "n INT"}
    with pytest.raises(StepFailed, match="query 'q' failed"):
        hg.testing.run(
            rows=rows, schemas=schemas, queries={"q": "SELECT 1 % n AS x FROM s"}, spark=spark
        )
    with pytest.raises(UnknownName, match="there is no schema of stream 's'"):
        hg.testing.run(rows=rows, queries={"q": "SELECT n FROM s"}, spark=spark)
    options = {"rate_per_s": "1000", "tuples": "3"}
    stream = hg.Stream(name="g", format="headgate", options=options)
    with pytest.raises(TimeoutError, match="not arrived after 2 s: 1 of query 'q'"):
        hg.testing.run(
            streams=[(stream, 4)], queries={"q": "SELECT location FROM g"}, spark=spark,
            timeout_s=2,
        )  # fmt: skip
