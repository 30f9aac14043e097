"""The names of the directories of partitioned results, as Spark writes them."""

from pyspark.sql import SparkSession

UTILITIES = "org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils"


def partition_name(session: SparkSession, column: str, value: str | None) -> str:
    """Return the name of the directory of a value, such as `location=l7`."""
    utilities = getattr(session._jvm, UTILITIES)
    return str(utilities.getPartitionPathString(column, value))
