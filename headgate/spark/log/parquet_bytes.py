"""Parquet files of some rows, made and read in memory: most of ours have a few dozen."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import StructType

LARGE_ROWS, LARGE_BYTES = 2000, 1 << 20
"""Below the first, dictionaries, statistics and compression cost more than they save: a file has a
block anyway. Below the second, so do threads."""


SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
"""The key under which Spark keeps the schema of a Parquet file in its footer."""


def parquet_of(table: pa.Table, compression: str | None = None) -> Any:
    """Gives a table as the bytes of a file, compressed by zstd where it is large or as asked."""
    large = table.num_rows > LARGE_ROWS
    # Spark cannot read arrays that hold nothing but NULL out of a dictionary.
    flat: Any = [each.name for each in table.schema if not pa.types.is_nested(each.type)]
    how: Any = compression or ("zstd" if large else "none")
    made = pa.BufferOutputStream()
    pq.write_table(
        table, made, compression=how, use_dictionary=large and flat, write_statistics=large
    )
    return made.getvalue()


def with_spark_schema(table: pa.Table, schema: StructType) -> pa.Table:
    """Return a table whose file has Spark's schema in its footer.

    By it Spark reads types for which Parquet has none: intervals, variants, collations.
    """
    return table.replace_schema_metadata({SPARK_SCHEMA: schema.json()})


def read_parquet(file: Path) -> pa.Table:
    """Gives the rows of a file."""
    data = file.read_bytes()
    with pq.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="us") as found:
        return found.read(use_threads=len(data) > LARGE_BYTES)
