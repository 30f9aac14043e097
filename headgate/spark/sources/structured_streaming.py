"""Ingest by Structured Streaming: one query per stream appends every batch to the log."""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from headgate.access import PRIVATE
from headgate.errors import ConfigRefused
from headgate.model.stream import ARRIVED_AT, Stream
from headgate.spark.journal.journal_rows import Train
from headgate.spark.jvm.errors import SPARK_ERRORS, reason_of
from headgate.spark.jvm.session import activate
from headgate.spark.log.corrupt_records import reports_malformed, with_malformed
from headgate.spark.log.stream_log import StreamLog

log = logging.getLogger("headgate.spark")

STOP_S = 4
"""How long Spark may take to stop one source."""


class IngestEnded(Exception):
    """A batch was waiting for room in the log when ingest ended."""


def opened_by_spark(session: SparkSession, stream: Stream, hint: str = "") -> DataFrame:
    """Open a stream's source as Spark does.

    Args:
        hint: what to add to the refusal.

    Raises:
        ConfigRefused: Spark does not know the format, an option, the schema or the directory.
    """
    try:
        reader = session.readStream.format(stream.format).options(**stream.options)
        if stream.schema:
            reader = reader.schema(stream.schema)
        return reader.load()
    except SPARK_ERRORS as error:
        raise refused_source(stream, error, hint) from error


def refused_source(stream: Stream, error: Exception, hint: str = "") -> ConfigRefused:
    """Return the refusal of a source that Spark cannot open."""
    return ConfigRefused(
        path=f"stream '{stream.name}'",
        key="source",
        value=stream.format,
        expected=f"a source that Spark can open: {reason_of(error)}{hint}",
    )


def start_ingest(
    session: SparkSession,
    stream: Stream,
    log: StreamLog,
    state: Path,
    arrived: Callable[[Train], None],
    pause_s: Callable[[], float],
    ended: threading.Event,
    now_s: Callable[[], float] = time.time,
) -> StreamingQuery:
    """Start to fill the log; `arrived` is called for every new train, from a thread of Spark.

    Args:
        ended: once it is set, a batch that waits for room in the log is given up; it comes again.
    """
    session.conf.set("spark.sql.streaming.stopTimeout", f"{STOP_S}s")
    source = opened_by_spark(session, stream)
    if reports_malformed(session, stream, log.stream_schema):
        source = with_malformed(session, stream, log.stream_schema)
    checkpoint = state / "checkpoints" / stream.name
    if stream.arrival_time is not None:
        arrived_s = F.col(stream.arrival_time).cast("timestamp").cast("double")
        source = source.withColumn(ARRIVED_AT, arrived_s)

    def append(batch: DataFrame, source_batch: int) -> None:
        while (waits_s := pause_s()) > 0:  # the next trigger waits for this one
            if ended.wait(min(waits_s, 0.1) if waits_s >= 1 else waits_s):
                raise IngestEnded
            if waits_s < 1:
                break
        train = log.append(batch, source_batch, now_s())
        is_next = train is not None and train.number == log.next_to_announce
        for new_train in [train] if train and is_next else log.unannounced():
            arrived(new_train)
            log.next_to_announce = new_train.number + 1

    activate(source.sparkSession)
    PRIVATE.folder(checkpoint.parent)  # Spark creates what is in it by its own umask
    try:
        return (
            source.writeStream.queryName(f"headgate-ingest-{stream.name}")
            .option("checkpointLocation", str(checkpoint))
            .trigger(processingTime=f"{round(stream.asked_every_s * 1000)} milliseconds")
            .foreachBatch(append)
            .start()
        )
    except SPARK_ERRORS as error:
        raise ConfigRefused(
            path=f"stream '{stream.name}'", key="source", value=stream.format,
            expected=reason_of(error),
        ) from error  # fmt: skip


def end_ingest(ingest: StreamingQuery) -> None:
    """End ingest. A source that does not stop in time is abandoned; its batch comes again."""
    name = "a source"
    try:
        name = ingest.name
        ingest.stop()
    except (*SPARK_ERRORS, Py4JError, OSError) as error:  # the last two: the JVM is gone
        log.warning("%s does not stop and is abandoned: %s", name, reason_of(error))
