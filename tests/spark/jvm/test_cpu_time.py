"""The CPU time of calls: in their threads, and in the tasks of their jobs."""

import pytest
from pyspark.sql import SparkSession

from headgate.spark.jvm.cpu_time import CpuTime

pytestmark = pytest.mark.spark


def test_tasks_count_for_the_tag_of_their_job_once(spark: SparkSession) -> None:
    meter, context = CpuTime(spark), spark.sparkContext
    began_s = meter.of_thread_s()
    try:
        context.addJobTag("headgate-test")
        spark.range(100_000).selectExpr("sum(exp(id / 1e5)) AS s").collect()
        context.removeJobTag("headgate-test")
        spark.range(10).selectExpr("sum(id)").collect()
        assert meter.of_jobs_s("headgate-other") == 0.0
        assert meter.of_jobs_s("headgate-test") > 0
        assert meter.of_jobs_s("headgate-test") == 0.0
        assert began_s is not None
        ended_s = meter.of_thread_s()
        assert ended_s is not None
        assert ended_s > began_s
    finally:
        meter.end()
    assert meter.of_thread_s() is None
