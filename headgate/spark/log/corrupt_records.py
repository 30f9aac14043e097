"""Malformed records of text sources: Spark reports them instead of parsing them."""

from collections.abc import Iterable, Iterator
from math import inf
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from headgate.extensions import Letter
from headgate.model.stream import Stream
from headgate.spark.json_lines import elements_of

RECORD, FILE = "_headgate_malformed", "_headgate_malformed_in"
"""Columns of a batch: a record that Spark could not parse, and the file that contains it."""

USER_OPTIONS = {"mode", "columnnameofcorruptrecord", "singlevariantcolumn"}
"""Options by which users decide themselves what becomes of such records."""


def reports_malformed(session: SparkSession, stream: Stream, schema: StructType) -> bool:
    """Return True if Spark can report malformed records, and the user does not handle them."""
    default_column = str(session.conf.get("spark.sql.columnNameOfCorruptRecord")).lower()
    in_schema = default_column in {name.lower() for name in schema.names}
    user_options = USER_OPTIONS & {key.lower() for key in stream.options}
    return stream.format in ("json", "csv", "xml") and not in_schema and not user_options


def with_malformed(session: SparkSession, stream: Stream, schema: StructType) -> DataFrame:
    """Open a source with both columns, which are NULL in every row that could be parsed."""
    source = (
        session.readStream.format(stream.format)
        .options(**{**stream.options, "columnNameOfCorruptRecord": RECORD})
        .schema(StructType([*schema.fields, StructField(RECORD, StringType())]))
        .load()
    )
    file = source.metadataColumn("_metadata").getField("file_path")
    source = source.withColumn(FILE, F.when(F.col(RECORD).isNotNull(), file))
    if stream.format == "xml" or (stream.format == "json" and _multi_line(stream)):
        # Every malformed row has the whole file as its record: the name of the file is enough.
        source = source.withColumn(RECORD, F.when(F.col(RECORD).isNotNull(), F.lit("")))
    return source


def _multi_line(stream: Stream) -> bool:
    options = {key.lower(): value.lower() for key, value in stream.options.items()}
    return options.get("multiline") == "true"


def letters_of(tables: Iterable[pa.Table], source_batch: int) -> Iterator[Letter]:
    """Yield each malformed record once, from rows in their order.

    A JSON array is one record: if one of its elements is malformed, Spark returns the whole array
    once per element. A record without a text stands for its whole file.
    """
    last: tuple[Any, Any] | None = None
    left = 0.0
    for table in tables:
        if RECORD not in table.column_names:
            continue
        dead = table.filter(table[RECORD].is_valid())
        record: Any
        for record, file in zip(dead[RECORD].to_pylist(), dead[FILE].to_pylist(), strict=True):
            if left > 0 and last == (record, file):
                left -= 1
                continue
            rows = len(elements_of(record)) if record else inf
            last, left = (record, file), rows - 1
            yield Letter(f"batch {source_batch}, {file}", record, "malformed")


def malformed_in(folder: Path) -> Iterator[pa.Table]:
    """Yield both columns of what Spark has written, some rows at a time: all may be malformed."""
    for path in sorted(folder.glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            for rows in file.iter_batches(columns=[RECORD, FILE]):
                yield pa.Table.from_batches([rows])


def readable(table: pa.Table) -> pa.Table:
    """Return the rows that could be parsed, without both columns."""
    if RECORD not in table.column_names:
        return table
    return table.filter(table[RECORD].is_null()).drop_columns([RECORD, FILE])
