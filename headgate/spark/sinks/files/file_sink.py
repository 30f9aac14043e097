"""File sinks: one file for each range of trains with results, whole or not at all."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.access import PRIVATE, Access
from headgate.extensions import SinkContext
from headgate.model.query import Sink
from headgate.result_files import MANIFEST
from headgate.spark.jvm.partition_names import partition_name
from headgate.spark.log.files import HIDDEN
from headgate.spark.log.parquet_bytes import footer_of, parquet_of
from headgate.spark.output import quoted
from headgate.spark.sinks.files.manifest import Manifest
from headgate.spark.sinks.files.result_collection import COLLECTED, ResultCollection

PartitionName = Callable[[str, str | None], str]
"""A function of a column and its value as text that returns the name of their directory."""

_PROCESS, _ATTEMPTS = uuid4().hex, count()
"""What makes hidden names unique: this process, and how many names it has given."""

MICROSECONDS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"


class FileSink:
    """A folder of results. They are written under temporary names, and the commit renames them.

    Args:
        header: the line that every text file begins with.
        schema: of the results, for Parquet files.
        partition_name: returns the names of directories, if results are partitioned.
    """

    def __init__(
        self,
        sink: Sink,
        header: str | None = None,
        schema: StructType | None = None,
        partition_name: PartitionName | None = None,
    ) -> None:
        self.format, self.settings = sink.format, sink
        self.folder = Path(sink.path)
        self.header, self.schema = header, schema
        self._footer = None if schema is None else footer_of(schema)
        self.partition_name = partition_name
        self.access = PRIVATE
        self.collected: ResultCollection | None = None
        self.manifest: Manifest | None = None

    def open_to(self, access: Access) -> None:
        """Create the folder; say who may read the results."""
        self.access = access
        for name in (HIDDEN, COLLECTED) if self.settings.collects else (HIDDEN,):
            access.folder(self.folder / name)
            access.take_over(self.folder / name)

    def gather(self, sink: Sink) -> None:
        """Set how results become visible files: when, in which directories, and how many.

        The options of the format stay: `text_files` has added some. A folder that has a manifest
        has one for ever: it says which of its files count.
        """
        self.settings = replace(sink, options=self.settings.options)
        self.collected = ResultCollection(self.folder / COLLECTED, sink)
        if sink.compact or (self.folder / MANIFEST).exists():
            self.manifest = Manifest(self.folder, self.access)

    def names(self, first_train: int, end_train: int) -> tuple[Path, Path]:
        """Return the temporary and the final name of the results of a range of trains.

        Every attempt has its own temporary name, so that none can spoil what another has promised
        in the journal.
        """
        name = f"{first_train:012d}-{end_train - 1:012d}"
        if self.collects:
            return self.temporary(name), self.folder / COLLECTED / f"{name}.{self.format}.part"
        return self.temporary(name), self.folder / f"{name}.{self.format}"

    def temporary(self, name: str) -> Path:
        """Return a new hidden name for a file; it has no ending by which a glob might find it."""
        return self.folder / HIDDEN / f"{_PROCESS}-{next(_ATTEMPTS)}-{name}"

    @property
    def collects(self) -> bool:
        """Whether results are collected before they become visible."""
        return self.collected is not None and self.settings.collects

    def show(self, files: Sequence[Path], replaced: Collection[Path] = ()) -> list[Path]:
        """List files that have their final names; return the files and folders to flush.

        Args:
            replaced: listed files that they replace.
        """
        folders = {file.parent for file in files}
        for folder in folders - {self.folder}:
            folders |= {above for above in folder.parents if above.is_relative_to(self.folder)}
        if self.manifest is None:
            return [*folders]
        hidden = self.folder / COLLECTED
        visible_files = [file for file in files if file.parent != hidden and file.exists()]
        if not (visible_files or replaced):
            return [*folders]
        if replaced:
            self.manifest.replace(replaced, visible_files)
        else:
            self.manifest.add(visible_files)
        return [*folders, self.manifest.path]

    def text(self, outputs: Sequence[str], names: Sequence[str]) -> str | None:
        """Return the SQL with which Spark writes a row as a line of text; None for Parquet."""
        if self.format == "parquet":
            return None
        return line_of(self.format, outputs, names, self.settings.options)

    def write(self, table: pa.Table, file: Path) -> None:
        """Write results; the commit flushes them to disk.

        The folder is created again if somebody has removed it.
        """
        if self.format == "parquet":
            if self._footer is not None:
                table = table.replace_schema_metadata(self._footer)
            data: Any = parquet_of(table, self.settings.options.get("compression"))
        else:
            lines = table.column(0).to_pylist()
            if self.header is not None:
                lines.insert(0, self.header)
            data = "".join(f"{line}\n" for line in lines).encode()
        try:
            self.access.write(file, data)
        except FileNotFoundError:
            self.access.folder(file.parent)
            self.access.write(file, data)

    @property
    def waiting_bytes(self) -> int:
        """Bytes on disk of results that wait for delivery."""
        return 0

    def resume(self) -> None:
        """Continue with what the last run has left."""

    def follow(self, before: "FileSink") -> None:
        """Take the place of another sink of the query, which is closed or about to be."""
        if before.folder == self.folder and before.manifest is not None:
            self.manifest = before.manifest  # its compaction may go on

    def hand_over(self, file: Path) -> None:
        """Deliver a result that has its final name; in a folder, it may be collected."""
        if self.collected is not None and file.parent == self.folder / COLLECTED:
            self.collected.add(file)

    def settle(self) -> None:
        """Wait a little until what was handed over has arrived."""

    def close(self, patience_s: float = 0.0) -> None:
        """Accept no more results; those on their way have `patience_s` to arrive."""

    def join(self) -> None:
        """Wait for the end, not for long; results that have not arrived stay for the next start."""


def parquet_files(context: SinkContext) -> FileSink:
    """Create the sink of a folder of Parquet files."""
    sink = Sink(format=context.format, path=context.folder, options=context.options)
    name = partial(partition_name, context.session)
    return FileSink(sink, schema=context.spark_schema, partition_name=name)


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
        super().__init__(Sink(format="stream", path=context.folder))

    def open_to(self, access: Access) -> None:
        """Leave the folder to the log."""

    def gather(self, sink: Sink) -> None:
        """Leave the rhythm to the log."""

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
