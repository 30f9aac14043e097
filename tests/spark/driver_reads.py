"""What the driver reads from a directory, compared with `spark.read`."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate import Stream
from headgate.extensions import LeftToSpark, Options, Polled, Source, SourceContext
from headgate.model.stream import Rows
from headgate.spark.jvm.arrow_frames import collected
from headgate.spark.jvm.types import arrow_schema
from headgate.spark.sources.generator import GeneratorSource
from headgate.spark.sources.python_rows import RowSource
from headgate.spark.sources.stream_source import polled_source


def schema_of(session: SparkSession, ddl: str) -> StructType:
    return session.createDataFrame([], ddl).schema


def source_over(
    session: SparkSession,
    kind: str,
    folder: Path,
    ddl: str,
    options: Mapping[str, str],
    **more: Any,
) -> Source | None:
    stream = Stream(
        name="s", format=kind, options={"path": str(folder), **options}, schema=ddl
    )  # fmt: skip
    try:
        return polled_source(session, stream, schema_of(session, ddl), **more)
    except LeftToSpark:
        return None


def generated(
    options: Mapping[str, str], generator: type[GeneratorSource] = GeneratorSource
) -> GeneratorSource:
    """Return the generator with these options."""
    schema = pa.schema([])
    return generator(
        SourceContext(stream="s", format="headgate", options=Options(options), schema=schema)
    )


def source_of_rows(session: SparkSession, ddl: str, rows: Rows, **options: str) -> RowSource:
    """Return the source of Python rows."""
    schema = arrow_schema(schema_of(session, ddl))
    return RowSource(
        SourceContext(
            stream="s", format="python", options=Options(options), schema=schema, rows=rows
        )
    )


def polled_of(source: Source | None, deadline_s: float = 10.0) -> Polled:
    """Poll a source until it returns something, as the poller does."""
    assert source is not None
    ends_at_s = time.monotonic() + deadline_s
    while (polled := source.poll()) is None:
        assert time.monotonic() < ends_at_s, "nothing came"
    return polled


def read_as_spark(
    session: SparkSession, kind: str, folder: Path, ddl: str, options: Mapping[str, str] = {}
) -> Polled:
    """Poll a directory, assert that `spark.read` reads the same, and return what was polled."""
    polled = polled_of(source_over(session, kind, folder, ddl, options))
    read = collected(session.read.format(kind).schema(ddl).options(**options).load(str(folder)))
    assert polled.table.schema.names == read.schema.names
    assert polled.table.schema.types == read.schema.types
    assert sorted_rows(polled.table) == sorted_rows(read)
    return polled


def sorted_rows(table: pa.Table) -> list[str]:
    columns = [column.to_pylist() for column in table.columns]
    return sorted(repr(row) for row in zip(*columns, strict=True))
