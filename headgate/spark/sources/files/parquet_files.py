"""Parquet files, read in the driver as Spark reads them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.extensions import Letter
from headgate.spark.log.parquet_bytes import LARGE_BYTES
from headgate.spark.sources.files.file_bytes import contents, too_large


def read_parquet(
    file: Path, schema: pa.Schema, whole: bool, *, most_bytes: int
) -> tuple[pa.Table, tuple[Letter, ...]]:
    """Read a Parquet file as Spark does: columns by name, in any case, missing ones as NULL."""
    table = _rows(contents(file, most_bytes), most_bytes)
    names = {name.lower(): name for name in table.column_names}
    columns = [
        _cast(table[names[field.name.lower()]].combine_chunks(), field.type)
        if field.name.lower() in names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema), ()


def _rows(data: bytes, most_bytes: int) -> pa.Table:
    """Return the rows of a file with these bytes; raise ValueError if it is too large."""
    with pq.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="us") as reader:
        groups = range(reader.metadata.num_row_groups)
        sizes = (reader.metadata.row_group(group).total_byte_size for group in groups)
        if sum(sizes) > most_bytes:
            raise too_large(most_bytes)
        return reader.read(use_threads=len(data) > LARGE_BYTES)


def _cast(column: Any, kind: pa.DataType) -> Any:
    """Cast a column: fields of structs by name, in any case; finer instants are truncated."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
    if column.type == kind:
        return column
    if pa.types.is_struct(kind) and pa.types.is_struct(column.type):
        children = range(column.type.num_fields)
        indexes = {column.type.field(index).name.lower(): index for index in children}
        arrays = [
            _cast(column.field(indexes[child.name.lower()]), child.type)
            if child.name.lower() in indexes
            else pa.nulls(len(column), child.type)
            for child in kind
        ]
        return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=column.is_null())
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(column.type):
        # Round down, not toward 1970.
        is_finer = column.type.unit == "ns"
        column = pc.floor_temporal(column, unit="microsecond") if is_finer else column
    return pc.call_function("cast", [column], pc.CastOptions(kind, allow_time_truncate=True))
