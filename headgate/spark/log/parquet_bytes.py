"""Small Parquet files, encoded in memory: most of ours have a few dozen rows."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import StructType

LARGE_ROWS, LARGE_BYTES = 2000, 1 << 20
"""Below the first, dictionaries, statistics and compression cost more than they save: a file takes
a disk block anyway. Below the second, so do threads."""


SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
"""The key under which Spark stores its schema in the footer of a Parquet file."""


def parquet_of(table: pa.Table, compression: str | None = None) -> Any:
    """Return a table as the bytes of a Parquet file.

    By default, only a large table is compressed, with zstd.
    """
    large = table.num_rows > LARGE_ROWS
    # Spark cannot read arrays that hold nothing but NULL out of a dictionary.
    flat: Any = [field.name for field in table.schema if not pa.types.is_nested(field.type)]
    codec: Any = compression or ("zstd" if large else "none")
    buffer = pa.BufferOutputStream()
    pq.write_table(
        table, buffer, compression=codec, use_dictionary=large and flat, write_statistics=large
    )
    return buffer.getvalue()


def with_spark_schema(table: pa.Table, schema: StructType) -> pa.Table:
    """Return a table whose file has Spark's schema in its footer.

    Spark needs it to read types that Parquet lacks: intervals, variants, collations.
    """
    return table.replace_schema_metadata({SPARK_SCHEMA: schema.json()})
