"""Merging: the rows of several result files in one, or in one for each partition."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from headgate.spark.log.files import discard
from headgate.spark.log.parquet_bytes import (
    HELD_BYTES,
    footer_of,
    parquet_of,
    tables_in,
    write_parquet,
)
from headgate.spark.sinks.files.file_sink import FileSink

Rename = tuple[Path, Path]
"""A temporary and a final name."""

GoesOn = Callable[[], None]
"""A function that raises if a merge is to end."""

UNLIKE = (pa.ArrowException, ValueError)
"""What merging raises if files have different columns: Arrow itself raises both."""


@contextmanager
def discarded_on_failure() -> Iterator[list[Rename]]:
    """Yield a list for the names of a merge, and remove its hidden files if the merge fails.

    It is tried again, and a disk that is full must not become fuller each time.
    """
    renames: list[Rename] = []
    try:
        yield renames
    except BaseException:
        discard(temporary for temporary, _ in renames)
        raise


def merged(sink: FileSink, inputs: Sequence[Path], folder: Path, goes_on: GoesOn) -> Rename:
    """Write the rows of files to a hidden one; return its name, and its final name in a folder.

    Raises:
        ArrowException, ValueError: the files have different columns.
    """
    name = _range(inputs)
    temporary = sink.temporary(name)
    sink.access.folder(temporary.parent)
    format = _format(inputs[0])
    rename = temporary, folder / f"{name}.{format}"
    with discarded_on_failure() as renames:
        renames.append(rename)
        with open(temporary, "wb", opener=sink.access.opener) as file:
            if format == "parquet":
                compression = sink.settings.options.get("compression")
                write_parquet(_tables(inputs, goes_on), file, compression)
            else:
                _write_lines(inputs, file, sink.header, goes_on)
    return rename


def partitioned(sink: FileSink, inputs: Sequence[Path], goes_on: GoesOn) -> list[Rename]:
    """Write the rows of files to hidden ones, one for each partition; return their names.

    Raises:
        ArrowException, ValueError: the files have different columns.
    """
    with discarded_on_failure() as renames:
        for portion, table in _portions(inputs, goes_on):
            name = _range(portion)
            for folder, rows in _split(sink, table):
                temporary = sink.temporary(name)
                if sink.schema is not None:
                    fields = [field for field in sink.schema if field.name in rows.column_names]
                    rows = rows.replace_schema_metadata(footer_of(StructType(fields)))
                sink.access.folder(temporary.parent)
                renames.append((temporary, folder / f"{name}.{sink.format}"))
                compression = sink.settings.options.get("compression")
                sink.access.write(temporary, parquet_of(rows, compression))
    return renames


def _range(inputs: Sequence[Path]) -> str:
    """Return the name of what files hold together: their first and their last train.

    No other file has it: no two files hold the same train.
    """
    first, last = (file.name.split(".")[0].split("-") for file in (inputs[0], inputs[-1]))
    return f"{first[0]}-{last[1]}"


def _format(file: Path) -> str:
    """Return the format of a result, collected or visible.

    >>> _format(Path("000000000000-000000000003.json.part"))
    'json'
    """
    return file.name.split(".")[1]


def _tables(inputs: Sequence[Path], goes_on: GoesOn) -> Iterator[pa.Table]:
    for file in inputs:
        for table in tables_in(file):
            goes_on()
            yield table


def _portions(inputs: Sequence[Path], goes_on: GoesOn) -> Iterator[tuple[Sequence[Path], pa.Table]]:
    """Yield files with their rows, so many at a time that the rows fit into memory."""
    portion: list[Path] = []
    tables: list[pa.Table] = []
    for file in inputs:
        goes_on()
        portion.append(file)
        for table in tables_in(file):
            tables.append(table.cast(tables[0].schema) if tables else table)
        if sum(table.nbytes for table in tables) >= HELD_BYTES or file == inputs[-1]:
            yield portion, pa.concat_tables(tables)
            portion, tables = [], []


def _split(sink: FileSink, table: pa.Table) -> Iterator[tuple[Path, pa.Table]]:
    """Yield the directories of partitions, each with its rows without the partition's columns."""
    assert sink.partition_name is not None
    columns = columns_of(sink.settings.partition_by, table.column_names)
    codes = np.zeros(table.num_rows, np.int64)
    values: list[list[str | None]] = []
    for column in columns:
        encoded = table[column].combine_chunks().dictionary_encode(null_encoding="encode")
        values.append(pc.cast(encoded.dictionary, pa.string()).to_pylist())
        codes = codes * len(values[-1]) + encoded.indices.to_numpy(zero_copy_only=False)
    rest = table.drop_columns(columns)
    order = np.argsort(codes, kind="stable")
    numbers, starts = np.unique(codes[order], return_index=True)
    for number, rows in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
        folder = sink.folder
        places = np.unravel_index(number, [len(texts) for texts in values])
        for column, texts, place in zip(columns, values, places, strict=True):
            folder /= sink.partition_name(column, texts[place])
        yield folder, rest.take(rows)


def columns_of(names: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return columns by their names, whose case does not matter, as in Spark."""
    by_name = {column.lower(): column for column in columns}
    return [by_name[name.lower()] for name in names]


def _write_lines(inputs: Sequence[Path], target: Any, header: str | None, goes_on: GoesOn) -> None:
    """Copy files of lines into one, which has the header once."""
    first_line = b"" if header is None else f"{header}\n".encode()
    for file in inputs:
        goes_on()
        with file.open("rb") as source:
            has_header = source.read(len(first_line)) == first_line
            source.seek(len(first_line) if has_header and file != inputs[0] else 0)
            shutil.copyfileobj(source, target)
