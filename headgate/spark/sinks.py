"""File sinks: one file for each range of trains that had results, whole or not at all."""

from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.model.query import Sink
from headgate.spark.files import flush
from headgate.spark.group import quoted

SUFFIX = {"parquet": "parquet", "json": "json"}
HIDDEN = "_unfinished"
"""Readers of a results folder pass over names that begin with an underscore."""


class FileSink:
    """Writes results under a temporary name; the commit gives them their final one."""

    def __init__(self, sink: Sink) -> None:
        self.format = sink.format
        self.folder = Path(sink.path)
        (self.folder / HIDDEN).mkdir(parents=True, exist_ok=True)

    def names(self, first_train: int, end_train: int) -> tuple[Path, Path]:
        """Gives the temporary and the final name of the results of a range of trains.

        Every attempt has a temporary name of its own, so that none can spoil what another has
        promised in the journal.
        """
        name = f"{first_train:012d}-{end_train - 1:012d}.{SUFFIX[self.format]}"
        return self.folder / HIDDEN / f"{uuid4().hex}-{name}", self.folder / name

    def text(self, outputs: Sequence[str], names: Sequence[str]) -> str | None:
        """Gives the SQL of a line of text, written by Spark; None where columns are wanted."""
        if self.format != "json":
            return None
        pairs = ", ".join(
            output if output == name else f"{output} AS {quoted(name)}"
            for output, name in zip(outputs, names, strict=True)
        )
        return f"to_json(struct({pairs}))"

    def write(self, table: pa.Table, file: Path) -> None:
        """Writes results to disk, for good; makes the folder again where somebody removed it."""
        file.parent.mkdir(parents=True, exist_ok=True)
        if self.format == "parquet":
            # Dictionaries and statistics cost more than they save below some thousand rows.
            large = table.num_rows > 2000
            pq.write_table(
                table, file, compression="zstd", use_dictionary=large, write_statistics=large
            )
        else:
            lines = table.column(0).to_pylist()
            file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        flush(file)
