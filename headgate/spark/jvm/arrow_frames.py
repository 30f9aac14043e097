"""Conversion between Spark DataFrames and Arrow tables.

PySpark's own `toArrow` and `createDataFrame` cast to a schema in which the fields of a struct, and
both parts of a variant, may be declared NOT NULL. If the struct itself is NULL, its fields are NULL
too, and Arrow refuses that cast. The schemas used here allow NULL in every field.
"""

import os
from pathlib import Path
from tempfile import gettempdir, mkstemp
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.spark.jvm.own_folder import own_folder
from headgate.spark.jvm.types import arrow_schema


def collected(frame: DataFrame) -> pa.Table:
    """Run a DataFrame as a Spark job and return its rows."""
    batches = frame._collect_as_arrow()  # type: ignore[operator]
    schema = arrow_schema(frame.schema)
    return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()


def frame_of(session: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """Return a DataFrame with the rows of a table.

    The JVM has its own copy of the rows when this returns.
    """
    java = _python_sql_utils(session)
    handle, name = mkstemp(dir=own_folder(Path(gettempdir())))  # only its owner can read it
    os.close(handle)
    try:
        rows = table.cast(arrow_schema(schema))
        with pa.OSFile(name, "wb") as file, pa.ipc.new_stream(file, rows.schema) as stream:
            stream.write_table(rows)
        batches = java.readArrowStreamFromFile(name)
    finally:
        os.unlink(name)
    java_frame = java.toDataFrame(batches, schema.json(), session._jsparkSession)
    return DataFrame(java_frame, session)


def _python_sql_utils(session: SparkSession) -> Any:
    """Return Spark's class of helpers for PySpark; the short name takes ten times as long."""
    return getattr(session._jvm, "org.apache.spark.sql.api.python.PythonSQLUtils")
