"""Batches of Structured Streaming: small ones become tables, large ones files that Spark writes."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate.model.stream import ARRIVED_AT
from headgate.spark.journal.journal_rows import NewLetters
from headgate.spark.jvm.arrow_frames import collected
from headgate.spark.jvm.errors import SPARK_ERRORS
from headgate.spark.jvm.paths import literal_path
from headgate.spark.log.corrupt_records import FILE, RECORD, letters_of, malformed_in
from headgate.spark.log.dead_letters import LetterFile
from headgate.spark.log.files import flush, put, remove


def collected_batch(batch: DataFrame) -> pa.Table | None:
    """Return a batch as a table in the driver; None if it proves too large for that."""
    try:
        return collected(batch)
    except SPARK_ERRORS:
        # Above spark.driver.maxResultSize, say. Any other error recurs when Spark writes it.
        return None


def with_arrival(table: pa.Table, now_s: float) -> pa.Table:
    """Return tuples with missing arrivals set to now: cheaper here than in Spark's plan."""
    if ARRIVED_AT not in table.column_names:
        return table.append_column(ARRIVED_AT, pa.array(np.full(table.num_rows, now_s)))
    arrivals: Any = table[ARRIVED_AT]
    return table.set_column(
        table.column_names.index(ARRIVED_AT), ARRIVED_AT, arrivals.fill_null(now_s)
    )


def write_batch(
    batch: DataFrame,
    source_batch: int,
    now_s: float,
    folder: Path,
    mixed: Path,
    letter_file: LetterFile,
) -> NewLetters | None:
    """Let Spark write a batch to a folder, and the records that it could not parse to their file.

    If there are such records, Spark writes the batch a second time, without them. Return what to
    add to the journal about them.

    Args:
        mixed: the folder of a batch with such records, removed in the end.
    """
    letters = None
    arrived_s = F.col(ARRIVED_AT) if ARRIVED_AT in batch.columns else F.lit(None)
    batch = batch.withColumn(ARRIVED_AT, F.coalesce(arrived_s, F.lit(now_s)))
    batch.write.mode("overwrite").parquet(str(folder))
    if RECORD in batch.columns:
        malformed = letters_of(malformed_in(folder), source_batch)
        letters = letter_file.write(malformed, source_batch)
    if letters is not None:
        # Read what was written, not the source, so that both passes see the same records.
        put(folder, mixed)
        rows = batch.sparkSession.read.schema(batch.schema).parquet(literal_path(str(mixed)))
        rows = rows.where(F.col(RECORD).isNull()).drop(RECORD, FILE)
        rows.write.mode("overwrite").parquet(str(folder))
        remove(mixed)
    for file in folder.iterdir():
        flush(file)
    return letters
