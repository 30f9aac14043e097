"""File sinks: one file for each range of trains that had results, whole or not at all."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.model.query import Sink
from headgate.spark.log.files import HIDDEN
from headgate.spark.log.parquet_bytes import parquet_of, with_spark_schema
from headgate.spark.output import quoted

MICROSECONDS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"


class FileSink:
    """Writes results under a temporary name; the commit gives them their final one.

    Args:
        header: the line that every file of text begins with.
        schema: of the results, for files of Parquet.
    """

    def __init__(
        self, sink: Sink, header: str | None = None, schema: StructType | None = None
    ) -> None:
        self.format = sink.format
        self.folder = Path(sink.path)
        self._options, self._header = sink.options, header
        self._schema = schema
        (self.folder / HIDDEN).mkdir(parents=True, exist_ok=True)

    def names(self, first_train: int, end_train: int) -> tuple[Path, Path]:
        """Gives the temporary and the final name of the results of a range of trains.

        Every attempt has a temporary name of its own, so that none can spoil what another has
        promised in the journal.
        """
        name = f"{first_train:012d}-{end_train - 1:012d}.{self.format}"
        return self.folder / HIDDEN / f"{uuid4().hex}-{name}", self.folder / name

    def text(self, outputs: Sequence[str], names: Sequence[str]) -> str | None:
        """Gives the SQL of a line of text, written by Spark; None where columns are wanted."""
        if self.format == "parquet":
            return None
        return line_of(self.format, outputs, names, self._options)

    def write(self, table: pa.Table, file: Path) -> None:
        """Writes results; whoever commits them brings them to the disk.

        Makes the folder again where somebody has removed it.
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
            _create(file, data)
        except FileNotFoundError:
            file.parent.mkdir(parents=True, exist_ok=True)
            _create(file, data)

    @property
    def waiting_bytes(self) -> int:
        """What results that are to be delivered take on disk."""
        return 0

    def resume(self) -> None:
        """Goes on with what the last run has left."""

    def hand_over(self, file: Path) -> None:
        """Takes a result that is certain and visible; in a folder, that is all."""

    def settle(self) -> None:
        """Waits a little for what was handed over to arrive."""

    def close(self, patience_s: float = 0.0) -> None:
        """Takes no more; what is on its way has so long to arrive."""

    def join(self) -> None:
        """Waits for the end, not for long; what has not arrived stays for the next start."""


class StreamSink(FileSink):
    """The log of a derived stream: its trains are written and journalled there (`derived`)."""

    def __init__(self, folder: Path) -> None:
        self.format, self.folder = "stream", folder

    def text(self, outputs: Sequence[str], names: Sequence[str]) -> str | None:
        return None


def line_of(
    format: str, outputs: Sequence[str], names: Sequence[str], options: Mapping[str, str]
) -> str:
    """Return the SQL of a row as a line of JSON or CSV.

    Lines of CSV have no names, and `struct` takes none twice.

    >>> print(line_of("csv", ["a + 1", "b"], ["x", "x"], {"sep": ";"}))
    to_csv(struct(a + 1, b), map('sep', ';'))
    >>> print(line_of("json", ["a + 1", "b"], ["x", "y"], {}))
    to_json(struct(a + 1 AS `x`, b AS `y`))
    """
    pairs = ", ".join(
        output if format == "csv" else f"{output} AS {quoted(name)}"
        for output, name in zip(outputs, names, strict=True)
    )
    told = [
        _literal(text)
        for key, value in options.items()
        if key.lower() != "header"
        for text in (key, value)
    ]
    row = f"struct({pairs})" + (f", map({', '.join(told)})" if told else "")
    if format == "json":
        return f"to_json({row})"
    if len(outputs) == 1 and "nullvalue" not in map(str.lower, options):
        # `to_csv` has no text for a row whose only value is NULL; Spark's file writer puts this.
        return f"CASE WHEN ({outputs[0]}) IS NULL THEN '\"\"' ELSE to_csv({row}) END"
    return f"to_csv({row})"


def whole_timestamps(session: SparkSession, options: Mapping[str, str]) -> dict[str, str]:
    """Return options of JSON or CSV by which timestamps are written whole.

    Spark's own pattern has three digits of a second and no seconds of an offset, such as +00:53:28,
    Berlin's before 1893. A pattern that the user has chosen stays.
    """
    legacy = str(session.conf.get("spark.sql.legacy.timeParserPolicy")).upper() == "LEGACY"
    patterns = {
        # SimpleDateFormat, which the legacy policy uses, knows no seconds of an offset.
        "timestampFormat": MICROSECONDS + ("XXX" if legacy else "XXXXX"),
        "timestampNTZFormat": MICROSECONDS,
    }
    names = {key.lower() for key in options}
    return {**{key: patterns[key] for key in patterns if key.lower() not in names}, **options}


def header_of(names: Sequence[str], options: Mapping[str, str]) -> str | None:
    """Gives the SQL of the header line of CSV; None where none is wanted."""
    wanted = {key.lower(): value for key, value in options.items()}.get("header", "false")
    if wanted.lower() != "true":
        return None
    return line_of("csv", [_literal(name) for name in names], names, options)


def _create(file: Path, data: Any) -> None:
    with open(file, "wb") as out:
        out.write(data)


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
