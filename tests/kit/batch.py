"""Sessions in which Spark itself gives the expected answers, in batch."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from headgate.spark.jvm.session import activate

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Without code generation Spark answers four times as fast over some tens of rows."""


@contextmanager
def batch_session(spark: SparkSession, zone: str = "UTC") -> Iterator[SparkSession]:
    """Yield a session that answers small queries quickly, on one partition.

    It has views of its own. Afterwards the thread's active session is the other one again: without
    code generation, some calls of Spark's catalog fail.
    """
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    for key, setting in INTERPRETED.items():
        session.conf.set(key, setting)
    try:
        yield session
    finally:
        activate(spark)
