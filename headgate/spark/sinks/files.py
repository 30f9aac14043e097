"""File sinks: one file for each range of trains with results, whole or not at all."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.access import PRIVATE, Access
from headgate.extensions import SinkContext
from headgate.model.query import Sink
from headgate.spark.log.files import HIDDEN
from headgate.spark.log.parquet_bytes import parquet_of, with_spark_schema
from headgate.spark.output import quoted

MICROSECONDS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"


class FileSink:
    """A folder of results. They are written under temporary names, and the commit renames them.

    Args:
        header: the line that every text file begins with.
        schema: of the results, for Parquet files.
    """

    def __init__(
        self, sink: Sink, header: str | None = None, schema: StructType | None = None
    ) -> None:
        self.format = sink.format
        self.folder = Path(sink.path)
        self._options, self._header = sink.options, header
        self._schema = schema
        self._access = PRIVATE

    def open_to(self, access: Access) -> None:
        """Create the folder; say who may read the results."""
        self._access = access
        access.folder(self.folder / HIDDEN)
        access.take_over(self.folder / HIDDEN)

    def names(self, first_train: int, end_train: int) -> tuple[Path, Path]:
        """Return the temporary and the final name of the results of a range of trains.

        Every attempt has its own temporary name, so that none can spoil what another has promised
        in the journal.
        """
        name = f"{first_train:012d}-{end_train - 1:012d}.{self.format}"
        return self.folder / HIDDEN / f"{uuid4().hex}-{name}", self.folder / name

    def text(self, outputs: Sequence[str], names: Sequence[str]) -> str | None:
        """Return the SQL with which Spark writes a row as a line of text; None for Parquet."""
        if self.format == "parquet":
            return None
        return line_of(self.format, outputs, names, self._options)

    def write(self, table: pa.Table, file: Path) -> None:
        """Write results; the commit flushes them to disk.

        The folder is created again if somebody has removed it.
        """
        if self.format == "parquet":
            if self._schema is not None:
                table = with_spark_schema(table, self._schema)
            data: Any = parquet_of(table, self._options.get("compression"))
        else:
            lines = table.column(0).to_pylist()
            if self._header is not None:
                lines.insert(0, self._header)
            data = "".join(f"{line}\n" for line in lines).encode()
        try:
            self._access.write(file, data)
        except FileNotFoundError:
            self._access.folder(file.parent)
            self._access.write(file, data)

    @property
    def waiting_bytes(self) -> int:
        """Bytes on disk of results that wait for delivery."""
        return 0

    def resume(self) -> None:
        """Continue with what the last run has left."""

    def hand_over(self, file: Path) -> None:
        """Deliver a result that is committed and visible; a folder has nothing left to do."""

    def settle(self) -> None:
        """Wait a little until what was handed over has arrived."""

    def close(self, patience_s: float = 0.0) -> None:
        """Accept no more results; those on their way have `patience_s` to arrive."""

    def join(self) -> None:
        """Wait for the end, not for long; results that have not arrived stay for the next start."""


def parquet_files(context: SinkContext) -> FileSink:
    """Create the sink of a folder of Parquet files."""
    sink = Sink(format=context.format, path=context.folder, options=context.options)
    return FileSink(sink, schema=context.spark_schema)


def text_files(context: SinkContext) -> FileSink:
    """Create the sink of a folder of JSON or CSV files."""
    session, header = context.session, None
    if context.format == "csv" and (line := header_of(context.schema.names, context.options)):
        header = session.sql(f"SELECT {line}").collect()[0][0]
    options = whole_timestamps(session, context.options)
    return FileSink(Sink(format=context.format, path=context.folder, options=options), header)


class StreamSink(FileSink):
    """The log of a derived stream; `derived_streams` writes and journals its trains."""

    def __init__(self, context: SinkContext) -> None:
        self.format, self.folder = "stream", Path(context.folder)

    def open_to(self, access: Access) -> None:
        """Leave the folder to the log."""

    def text(self, outputs: Sequence[str], names: Sequence[str]) -> str | None:
        return None


def line_of(
    format: str, outputs: Sequence[str], names: Sequence[str], options: Mapping[str, str]
) -> str:
    """Return the SQL of a row as a line of JSON or CSV.

    CSV lines have no names: `struct` accepts no name twice, and columns may share one.

    >>> print(line_of("csv", ["a + 1", "b"], ["x", "x"], {"sep": ";"}))
    to_csv(struct(a + 1, b), map('sep', ';'))
    >>> print(line_of("json", ["a + 1", "b"], ["x", "y"], {}))
    to_json(struct(a + 1 AS `x`, b AS `y`))
    """
    pairs = ", ".join(
        output if format == "csv" else f"{output} AS {quoted(name)}"
        for output, name in zip(outputs, names, strict=True)
    )
    arguments = [
        _literal(text)
        for key, value in options.items()
        if key.lower() != "header"
        for text in (key, value)
    ]
    row = f"struct({pairs})" + (f", map({', '.join(arguments)})" if arguments else "")
    if format == "json":
        return f"to_json({row})"
    if len(outputs) == 1 and "nullvalue" not in map(str.lower, options):
        # `to_csv` has no text for a row whose only value is NULL; Spark's file writer writes this.
        return f"CASE WHEN ({outputs[0]}) IS NULL THEN '\"\"' ELSE to_csv({row}) END"
    return f"to_csv({row})"


def whole_timestamps(session: SparkSession, options: Mapping[str, str]) -> dict[str, str]:
    """Return options of JSON or CSV that write timestamps without loss.

    Spark's default pattern has three digits of a second and no seconds of an offset, such as
    +00:53:28, Berlin's before 1893. A pattern that the user has chosen stays.
    """
    legacy = str(session.conf.get("spark.sql.legacy.timeParserPolicy")).upper() == "LEGACY"
    patterns = {
        # SimpleDateFormat, which the legacy policy uses, has no seconds of an offset.
        "timestampFormat": MICROSECONDS + ("XXX" if legacy else "XXXXX"),
        "timestampNTZFormat": MICROSECONDS,
    }
    names = {key.lower() for key in options}
    return {**{key: patterns[key] for key in patterns if key.lower() not in names}, **options}


def header_of(names: Sequence[str], options: Mapping[str, str]) -> str | None:
    """Return the SQL of the header line of CSV; None if the options ask for none."""
    wanted = {key.lower(): value for key, value in options.items()}.get("header", "false")
    if wanted.lower() != "true":
        return None
    return line_of("csv", [_literal(name) for name in names], names, options)


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
