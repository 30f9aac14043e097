"""Sessions in which Spark itself gives the expected answers, in batch."""

from pyspark.sql import SparkSession

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Without code generation Spark answers four times as fast over some tens of rows."""


def batch_session(spark: SparkSession, zone: str = "UTC") -> SparkSession:
    """Return a session that answers small queries quickly, on one partition.

    It neither shares views with Headgate nor generates code, so that it is independent of both.
    """
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    for key, setting in INTERPRETED.items():
        session.conf.set(key, setting)
    return session
