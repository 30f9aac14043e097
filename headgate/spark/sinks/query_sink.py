"""A query's sink: refused or accepted when the query is added, created when it starts."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path as File

from pyspark.sql import SparkSession
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from headgate.access import PRIVATE, Access
from headgate.errors import HeadgateError, OptionRefused, QueryRefused
from headgate.extensions import Options, Receiver, SinkContext, sink_entry
from headgate.extensions.declared_options import SinkEntry, hint
from headgate.model.network.network import Path
from headgate.model.query import Deliver
from headgate.spark.jvm.errors import cause_of
from headgate.spark.jvm.types import arrow_schema, output_schema
from headgate.spark.sinks.files.file_sink import FileSink
from headgate.spark.sinks.outbox import Outbox

IN_DIRECTORIES = (*(BooleanType, ByteType, ShortType, IntegerType, LongType, StringType, DateType),)
"""Types of columns that may become directories: their text is the same for Spark and for Arrow."""


def refuse_sink(session: SparkSession, path: Path, deliver: Deliver | None = None) -> None:
    """Refuse a query whose receiver cannot be created, or whose results cannot be partitioned.

    Raises:
        QueryRefused: names the option, the column, or the setting of Spark that is missing.
    """
    entry = _entry(path)
    if path.query.sink.partition_by:
        _refuse_partitions(path)
    if not entry.has_files and path.into is None:
        _created(entry, _context(path, session, deliver))


def sink_of(
    path: Path,
    session: SparkSession,
    state: File,
    deliver: Deliver | None,
    reached: Callable[[str], None],
    may_wait: Callable[[], bool] = lambda: True,
    access: Access = PRIVATE,
) -> FileSink:
    """Return the sink of a query: files, the log of a stream, or the outbox of a receiver.

    Args:
        state: the state directory, in which results wait for delivery.
        deliver: the user's function, for a sink that takes one.
        may_wait: returns True if there is room for more results that wait for delivery.
        access: who may read files of results.

    Raises:
        QueryRefused: the sink, or its directory, cannot be created.
    """
    name, entry = path.query.name, _entry(path)
    folder = path.query.sink.path if path.into is None else str(state / "log" / path.into)
    sink = _created(entry, _context(path, session, deliver, folder))
    if isinstance(sink, FileSink):
        try:
            sink.open_to(access)
            sink.gather(replace(path.query.sink, path=folder))
        except (OSError, ValueError) as error:
            raise QueryRefused(
                query=name, clause=f"sink path {folder!r}",
                reason=f"cannot be written: {getattr(error, 'strerror', None) or error}",
                fix="make room on its disk or make it writable, or choose another directory",
            ) from error  # fmt: skip
        return sink
    outbox = state / "outbox" / name
    return Outbox(name, entry.name, outbox, sink, reached, may_wait, path.version)


def _refuse_partitions(path: Path) -> None:
    """Refuse columns for directories that do not exist, or whose values have no certain text."""
    fields = {field.name.lower(): field for field in output_schema(path).fields}
    names = path.query.sink.partition_by
    for name in names:
        field = fields.get(name.lower())
        reason, fix = "", f"write CAST({name} AS STRING) AS {name}, or CAST({name} AS DATE)"
        if field is None:
            reason = f"names {name!r}, which the query does not output"
            fix = f"name output columns{hint(name, fields)}"
        elif not isinstance(field.dataType, IN_DIRECTORIES):
            reason = f"names {name!r} of type {field.dataType.simpleString().upper()}"
            reason += ", which directories cannot have"
        elif len(names) == len(fields):
            reason, fix = "leaves no column for the files", "output another column"
        if reason:
            raise QueryRefused(
                query=path.query.name, clause="sink partition_by", reason=reason, fix=fix
            )


def _entry(path: Path) -> SinkEntry:
    entry = sink_entry(path.query.sink.format)
    assert entry is not None  # else the query was refused when it was created
    return entry


def _context(
    path: Path, session: SparkSession, deliver: Deliver | None, folder: str = ""
) -> SinkContext:
    schema = output_schema(path)
    return SinkContext(
        query=path.query.name, format=path.query.sink.format,
        options=Options(path.query.sink.options), schema=arrow_schema(schema),
        spark_schema=schema, session=session, folder=folder, deliver=deliver,
    )  # fmt: skip


def _created(entry: SinkEntry, context: SinkContext) -> FileSink | Receiver:
    try:
        sink: FileSink | Receiver = entry.make(context)
    except OptionRefused as refused:
        reason = "is missing" if refused.value is None else f"is {refused.value!r}"
        raise QueryRefused(
            query=context.query, clause=f"sink {refused.key}", reason=reason,
            fix=f"it must be {refused.expected}",
        ) from refused  # fmt: skip
    except HeadgateError:
        raise
    except Exception as error:  # whatever the code of another package raises
        raise QueryRefused(
            query=context.query, clause=f"sink format {context.format}",
            reason=f"cannot be created: {cause_of(error)}",
            fix="correct the sink or its options, or use another format",
        ) from error  # fmt: skip
    return sink
