"""A Kafka topic as a sink, through Spark's connector."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from headgate.errors import QueryRefused
from headgate.model.query import ROW_KEY, Query, Sink
from headgate.spark.jvm.arrow_frames import frame_of
from headgate.spark.jvm.connectors import find_source
from headgate.spark.jvm.errors import SPARK_ERRORS
from headgate.spark.sinks.files import whole_timestamps
from headgate.spark.sinks.outbox import row_keys

COLUMNS = ("key", "value", "headers", "topic", "partition")
"""Columns that the connector reads."""


class Kafka:
    """A topic that receives a record for every row, through Spark's connector.

    A query whose columns are `value` and, besides it, only `key`, `headers`, `topic` or `partition`
    defines the record itself; otherwise the value is the row as JSON. The deduplication key is the
    record's key, unless the query has its own, and a header in any case.
    """

    def __init__(self, session: SparkSession, sink: Sink, schema: StructType) -> None:
        self._session, self._options = session, sink.options
        self._schema, self._patterns = schema, whole_timestamps(session, {})

    def __call__(self, table: pa.Table, key: str) -> None:
        writer = self.frame(table, key).write.format("kafka")
        writer.options(**self._options).save()

    def frame(self, table: pa.Table, key: str) -> DataFrame:
        """Return the records: key, value and headers."""
        columns = table.column_names
        keyed = table.append_column(ROW_KEY, pa.array(row_keys(table, key)))
        schema = StructType([*self._schema.fields, StructField(ROW_KEY, StringType())])
        rows = frame_of(self._session, keyed, schema).coalesce(1)
        header = F.struct(F.lit(ROW_KEY).alias("key"), F.col(ROW_KEY).cast("binary").alias("value"))
        records = {
            "key": F.col(ROW_KEY),
            "value": F.to_json(F.struct(*(F.col(f"`{name}`") for name in columns)), self._patterns),
            "headers": F.array(header),
        }
        if "value" in columns and set(columns) <= set(COLUMNS):
            records |= {name: F.col(name) for name in columns}
            if "headers" in columns:
                records["headers"] = F.concat(F.col("headers"), F.array(header))
        return rows.select(*(column.alias(name) for name, column in records.items()))


def refuse_without_connector(session: SparkSession, query: Query) -> None:
    """Raise QueryRefused if Spark's Kafka connector is not on the class path."""
    try:
        find_source(session, "kafka")
    except SPARK_ERRORS as error:
        package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{session.version}"
        raise QueryRefused(
            query=query.name, clause="sink format kafka",
            reason="needs Spark's connector, which is not on the class path",
            fix=f"add  spark.jars.packages: {package}  to the settings of Spark"
            " (`spark: {config: ...}` in a pipeline file) and start again",
        ) from error  # fmt: skip
