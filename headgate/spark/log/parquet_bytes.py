"""Parquet files: small ones are encoded in memory, as most of ours have a few dozen rows."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import StructType

LARGE_ROWS, LARGE_BYTES = 2000, 1 << 20
"""Below the first, dictionaries, statistics and compression cost more than they save: a file takes
a disk block anyway. Below the second, so do threads."""


HELD_BYTES = 64 << 20
"""How much of a large file is in memory while it is written: a row group."""

SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
"""The key under which Spark stores its schema in the footer of a Parquet file."""


def parquet_of(table: pa.Table, compression: str | None = None) -> Any:
    """Return a table as the bytes of a Parquet file.

    By default, only a large table is compressed, with zstd.
    """
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, **_options(table, compression, table.num_rows > LARGE_ROWS))
    return buffer.getvalue()


def write_parquet(tables: Iterable[pa.Table], file: Any, compression: str | None = None) -> None:
    """Write tables of one schema to an open file, as one table of any size.

    Raises:
        ArrowInvalid: a table has another schema.
    """
    groups = row_groups(tables)
    first = next(groups)
    second = next(groups, None)
    if second is None:
        file.write(parquet_of(first, compression))
        return
    with pq.ParquetWriter(file, first.schema, **_options(first, compression, True)) as writer:
        for group in (first, second, *groups):
            writer.write_table(group.cast(first.schema))


def row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield tables together until they have HELD_BYTES."""
    group: list[pa.Table] = []
    held_bytes = 0
    for table in tables:
        group.append(table.cast(group[0].schema) if group else table)
        held_bytes += table.nbytes
        if held_bytes >= HELD_BYTES:
            yield pa.concat_tables(group)
            group, held_bytes = [], 0
    if group:
        yield pa.concat_tables(group)


def tables_in(file: Path) -> Iterator[pa.Table]:
    """Yield the row groups of a file as tables."""
    with pq.ParquetFile(file) as opened:
        for number in range(opened.num_row_groups):
            yield opened.read_row_group(number, use_threads=False)


def _options(table: pa.Table, compression: str | None, large: bool) -> dict[str, Any]:
    # Spark cannot read arrays that hold nothing but NULL out of a dictionary.
    flat = [field.name for field in table.schema if not pa.types.is_nested(field.type)]
    return {
        "compression": compression or ("zstd" if large else "none"),
        "use_dictionary": large and flat,
        "write_statistics": large,
    }


def footer_of(schema: StructType) -> dict[str, str]:
    """Return what a file's footer says of Spark's schema, as the metadata of an Arrow table.

    Spark needs it to read types that Parquet lacks: intervals, variants, collations.
    """
    return {SPARK_SCHEMA: schema.json()}
