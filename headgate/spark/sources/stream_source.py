"""A stream's source: refused or accepted when the stream is added, created when it starts."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.errors import ConfigRefused, HeadgateError, OptionRefused
from headgate.extensions import (
    LeftToSpark,
    Options,
    Source,
    SourceContext,
    source_entry,
    source_names,
)
from headgate.extensions.declared_options import SourceEntry, hint
from headgate.model.stream import ARRIVED_AT, Rows, Stream
from headgate.spark.jvm.errors import SPARK_ERRORS, cause_of, reason_of
from headgate.spark.jvm.time_zone import zone_of
from headgate.spark.jvm.types import arrow_schema, refuse_columns
from headgate.spark.sources.structured_streaming import opened_by_spark, refused_source


def source_of(session: SparkSession, stream: Stream) -> DataFrame:
    """Return a frame with the columns of a stream's source, opened by Spark or empty.

    Raises:
        ConfigRefused: the format, an option, the schema or the directory cannot be used.
    """
    entry = source_entry(stream.format)
    if entry is None:
        return _checked(stream, opened_by_spark(session, stream, _nearest_source(stream)))
    try:
        entry.refuse_options(stream.options)
    except OptionRefused as refused:
        raise ConfigRefused(
            path=_where(stream), key=refused.key, value=refused.value, expected=refused.expected
        ) from refused
    if stream.ingest == "spark":
        if not entry.spark_reads:
            raise _refused_ingest(stream, f"Spark has no source of format {stream.format}")
        return _checked(stream, opened_by_spark(session, stream))
    try:
        columns = entry.columns_of(stream.options)
    except LeftToSpark as left:
        if stream.ingest == "driver" or not entry.spark_reads:
            raise _refused_ingest(stream, str(left)) from left
        return _checked(stream, opened_by_spark(session, stream, f"; {left}"))
    return _checked(stream, _empty_or_opened(session, stream, entry, columns))


def polled_source(
    session: SparkSession,
    stream: Stream,
    schema: StructType,
    rows: Rows | None = None,
    **more: Any,
) -> Source:
    """Create the source that the driver polls.

    Args:
        more: further fields of its `SourceContext`.

    Raises:
        LeftToSpark: the driver cannot poll it, and Structured Streaming can.
        ConfigRefused: nobody can.
    """
    entry = source_entry(stream.format)
    if entry is None:
        raise LeftToSpark
    context = SourceContext(
        stream=stream.name, format=stream.format, options=Options(stream.options),
        schema=arrow_schema(schema), spark_schema=schema, session=session,
        time_zone=zone_of(session), rows=rows, **more,
    )  # fmt: skip
    try:
        source: Source = entry.make(context)
    except LeftToSpark as left:
        if entry.spark_reads:
            raise
        raise _refused_ingest(stream, str(left)) from left
    except OptionRefused as refused:
        raise ConfigRefused(
            path=_where(stream), key=refused.key, value=refused.value, expected=refused.expected
        ) from refused
    except HeadgateError:
        raise
    except Exception as error:  # whatever the code of another package raises
        raise ConfigRefused(
            path=_where(stream), key="source", value=stream.format,
            expected=f"a source that can be created: {cause_of(error)}",
        ) from error  # fmt: skip
    return source


def _empty_or_opened(
    session: SparkSession, stream: Stream, entry: SourceEntry, columns: str
) -> DataFrame:
    """Return an empty frame with the columns of the source; if only Spark knows them, its frame."""
    if columns and stream.schema:
        raise ConfigRefused(
            path=_where(stream), key="schema", value=stream.schema,
            expected=f"left out: a source of format {stream.format} has the columns {columns}",
        )  # fmt: skip
    if not columns and entry.spark_reads:
        return opened_by_spark(session, stream)
    if not columns and not stream.schema:
        raise ConfigRefused(
            path=_where(stream), key="schema", value=None,
            expected=f"given for format '{stream.format}', as in  schema: 'id INT, ts TIMESTAMP'",
        )  # fmt: skip
    try:
        return session.createDataFrame([], columns or stream.schema)
    except SPARK_ERRORS as error:
        raise refused_source(stream, error) from error


def _checked(stream: Stream, source: DataFrame) -> DataFrame:
    """Return the source if the name and type of each column can be used; refuse it if not."""
    where = _where(stream)
    try:
        schema = source.schema
    except SPARK_ERRORS as error:
        raise ConfigRefused(
            path=where, key="schema", value=stream.schema or None,
            expected=f"of types that PySpark knows: {reason_of(error)}",
        ) from error  # fmt: skip
    if ARRIVED_AT in (column.lower() for column in schema.names):
        raise ConfigRefused(
            path=where,
            key="schema",
            value=ARRIVED_AT,
            expected="without this name: the log uses it",
        )
    for key, column in (("event_time", stream.event_time), ("arrival_time", stream.arrival_time)):
        if column is not None:
            _check_time(where, key, column, schema)
    refuse_columns(source.sparkSession, stream, schema)
    return source


def _check_time(where: str, key: str, column: str, schema: StructType) -> None:
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    if not types.get(column, "").startswith("timestamp"):
        raise ConfigRefused(
            path=where,
            key=key,
            value=column,
            expected="a TIMESTAMP column of the stream; it has "
            + ", ".join(f"{name} {kind}" for name, kind in types.items()),
        )


def _refused_ingest(stream: Stream, reason: str) -> ConfigRefused:
    entry = source_entry(stream.format)
    others = "auto or spark" if entry is None or entry.spark_reads else "auto or driver"
    if stream.ingest == "auto":
        return ConfigRefused(
            path=_where(stream), key="source", value=stream.format,
            expected=f"a source that can be read: {reason}",
        )  # fmt: skip
    return ConfigRefused(
        path=_where(stream), key="ingest", value=stream.ingest, expected=f"{others}: {reason}"
    )


def _nearest_source(stream: Stream) -> str:
    return hint(stream.format, source_names())


def _where(stream: Stream) -> str:
    return f"stream '{stream.name}'"
