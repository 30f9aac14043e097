"""A Kafka topic as a sink, through Spark's connector."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from headgate.errors import QueryRefused
from headgate.extensions import ROW_KEY, Receiver, SinkContext, row_keys
from headgate.spark.jvm.arrow_frames import frame_of
from headgate.spark.jvm.connectors import find_source
from headgate.spark.jvm.errors import SPARK_ERRORS
from headgate.spark.sinks.files.file_sink import whole_timestamps

COLUMNS = ("key", "value", "headers", "topic", "partition")
"""Columns that the connector reads."""


class Kafka(Receiver):
    """A topic that receives a record for every row, through Spark's connector.

    A query whose columns are `value` and, besides it, only `key`, `headers`, `topic` or `partition`
    defines the record itself; otherwise the value is the row as JSON. The deduplication key is the
    record's key, unless the query has its own, and a header in any case.
    """

    def __init__(self, context: SinkContext) -> None:
        self._session, self._options = context.session, context.options
        self._schema = context.spark_schema
        try:
            find_source(self._session, "kafka")
        except SPARK_ERRORS as error:
            package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{self._session.version}"
            raise QueryRefused(
                query=context.query, clause="sink format kafka",
                reason="needs Spark's connector, which is not on the class path",
                fix=f"add  spark.jars.packages: {package}  to the settings of Spark"
                " (`spark: {config: ...}` in a pipeline file) and start again",
            ) from error  # fmt: skip

    def deliver(self, rows: pa.Table, key: str) -> None:
        writer = records_of(self._session, rows, self._schema, key).write.format("kafka")
        writer.options(**self._options).save()


def records_of(
    session: SparkSession, table: pa.Table, schema: StructType, result_key: str
) -> DataFrame:
    """Return the records of a result: key, value and headers."""
    columns = table.column_names
    keyed = table.append_column(ROW_KEY, pa.array(row_keys(table, result_key)))
    with_key = StructType([*schema.fields, StructField(ROW_KEY, StringType())])
    rows = frame_of(session, keyed, with_key).coalesce(1)
    header = F.struct(F.lit(ROW_KEY).alias("key"), F.col(ROW_KEY).cast("binary").alias("value"))
    patterns = whole_timestamps(session, {})
    records = {
        "key": F.col(ROW_KEY),
        "value": F.to_json(F.struct(*(F.col(f"`{name}`") for name in columns)), patterns),
        "headers": F.array(header),
    }
    if "value" in columns and set(columns) <= set(COLUMNS):
        records |= {name: F.col(name) for name in columns}
        if "headers" in columns:
            records["headers"] = F.concat(F.col("headers"), F.array(header))
    return rows.select(*(column.alias(name) for name, column in records.items()))
