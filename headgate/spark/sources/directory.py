"""Files that appear in a directory, read by the driver."""

import fnmatch
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import VariantType

from headgate.extensions import (
    MOST_TUPLES,
    LeftToSpark,
    Letter,
    Polled,
    Source,
    SourceContext,
)
from headgate.spark.jvm.types import part_of
from headgate.spark.log.parquet_bytes import read_parquet
from headgate.spark.sources.text_files import CORRUPT, TextReader

log = logging.getLogger("headgate.spark")

SETTLED_S = 3.0
"""A file that has not changed for this long is considered complete."""

GRAIN_NS, LIST_NS = 2_000_000_000, 1_000_000_000
"""A directory that has not changed for GRAIN_NS is listed again only when its modification time
changes, and after LIST_NS in any case: clocks of other machines may be wrong."""

FILE_OPTIONS = {"path", "maxfilespertrigger", "pathglobfilter"}
UNSUPPORTED = {
    *("multiline", "encoding", "charset", "linesep", "inferschema", "mode", "comment"),
    *("enforceschema", "columnnameofcorruptrecord", "compression", "samplingratio"),
    *("latestfirst", "maxfileage", "recursivefilelookup", "maxbytespertrigger", "basepath"),
    *("modifiedafter", "modifiedbefore", "cleansource", "sourcearchivedir", "filenameonly"),
    *("ignorecorruptfiles", "ignoremissingfiles", "maxcachedfiles", "singlevariantcolumn"),
}
"""Options that cannot be honored line by line or file by file; Structured Streaming reads those."""


def directory_source(context: SourceContext) -> "DirectorySource":
    """Create the source of a directory; raise LeftToSpark if it needs Spark's reader."""
    schema, options = context.spark_schema, _lower(context.options)
    is_parquet = context.format == "parquet"
    if options.keys() & UNSUPPORTED or (is_parquet and options.keys() - FILE_OPTIONS):
        raise LeftToSpark
    path = options.get("path", "").removeprefix("file://").removeprefix("file:")
    pattern = options.get("pathglobfilter", "")
    if "://" in path or set(path) & set("*?[{") or set(pattern) & set("[{\\"):
        raise LeftToSpark
    if CORRUPT in schema.names or any(Path(path).glob("*=*/")):
        raise LeftToSpark  # Spark fills these columns
    if is_parquet and part_of(schema, (VariantType,)):
        raise LeftToSpark  # Spark shreds variants into columns, which pyarrow cannot reassemble
    read: Reader = _parquet
    if not is_parquet:
        line_options = {key: value for key, value in options.items() if key not in FILE_OPTIONS}
        read = TextReader(context.session, context.format, line_options, schema)
    return DirectorySource(context, Path(path), read)


Reader = Callable[[Path, pa.Schema, bool], tuple[pa.Table, tuple[Letter, ...]]]
"""A function that reads a file. The flag says that the file is complete for certain: only then is a
last line without a line end read."""


@dataclass
class DirectorySource(Source):
    """Files that appear in a directory, each read once, the oldest first.

    The journal records which files have been read; memory holds the names of those that are still
    in the directory. A file should appear complete, by a rename, as Structured Streaming requires
    too. A file that cannot be read, or that ends within a line, is read once it has not changed for
    some seconds; if it cannot be read then, it becomes a dead letter. Names that begin with a dot
    or an underscore are ignored.
    """

    context: SourceContext
    folder: Path
    read: Reader
    _journalled: Mapping[str, str] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _unsettled: dict[str, tuple[tuple[int, int], float]] = field(default_factory=dict)
    _last: Polled | None = None
    _nothing_since_ns: int | None = None
    _list_at_ns: int = 0
    _warned: bool = False

    def resume(self, position: Mapping[str, str]) -> None:
        self._journalled = position

    def poll(self) -> Polled | None:
        if self._last is not None:
            return self._last
        files = self._new_files()
        most = int(_lower(self.context.options).get("maxfilespertrigger", len(files) or 1))
        tables: list[pa.Table] = []
        letters: list[Letter] = []
        position: dict[str, str] = {}
        tuples = 0
        for age, name in files:
            settled = self._settled(name)
            if settled is None:
                continue
            try:
                table, unread = self.read(self.folder / name, self.context.schema, settled)
            except FileNotFoundError:
                continue  # removed before it was read
            except (pa.ArrowException, OSError, ValueError) as error:
                if not settled:
                    continue  # perhaps it is still being written
                reason = str(error).splitlines()[0]
                table, unread = None, (Letter(str(self.folder / name), "", reason),)
            letters += unread
            position[name] = str(age)
            if table is not None and table.num_rows:
                tables.append(table)
                tuples += table.num_rows
            if tuples >= MOST_TUPLES or len(position) >= most:
                break
        if not position:
            return None
        table = pa.concat_tables(tables) if tables else self.context.schema.empty_table()
        self._last = Polled(table, position, tuple(letters))
        return self._last

    def taken(self, polled: Polled) -> None:
        self._seen.update(polled.position)
        for name in polled.position:
            self._unsettled.pop(name, None)
        self._last = None

    def _settled(self, name: str) -> bool | None:
        """Return True if a file has not changed for some seconds, None if it is gone."""
        try:
            status = (self.folder / name).stat()
        except FileNotFoundError:
            return None
        version, now_s = (status.st_mtime_ns, status.st_size), time.monotonic()
        before, since_s = self._unsettled.get(name, (None, now_s))
        if before != version:
            self._unsettled[name], since_s = (version, now_s), now_s
        return now_s - since_s >= SETTLED_S

    def _pass_over(self, name: str) -> None:
        if not self._warned:
            self._warned = True
            log.warning(
                "stream '%s' passes over files whose names are not UTF-8, such as %r; rename them",
                self.context.stream, name,
            )  # fmt: skip

    def _new_files(self) -> list[tuple[int, str]]:
        modified_ns, now_ns = self.folder.stat().st_mtime_ns, time.time_ns()
        if modified_ns == self._nothing_since_ns and now_ns < self._list_at_ns:
            return []  # listing thousands of names takes milliseconds
        pattern = _lower(self.context.options).get("pathglobfilter", "*")
        files, seen = [], set()
        with os.scandir(self.folder) as entries:
            for entry in entries:
                name = entry.name
                if name in self._seen:
                    seen.add(name)
                    continue
                if name.startswith((".", "_")) or not fnmatch.fnmatchcase(name, pattern):
                    continue
                if not _is_text(name):
                    self._pass_over(name)
                    continue
                try:
                    if not entry.is_file():
                        continue
                    if name in self._journalled:
                        seen.add(name)
                    else:
                        files.append((entry.stat().st_mtime_ns, name))
                except FileNotFoundError:
                    continue
        self._seen = seen
        names = {name for _, name in files}
        self._unsettled = {name: file for name, file in self._unsettled.items() if name in names}
        # Within the grain of its clock a directory may change again and show the same time.
        rests = not files and now_ns - modified_ns > GRAIN_NS
        self._nothing_since_ns = modified_ns if rests else None
        self._list_at_ns = now_ns + LIST_NS
        return sorted(files)


def _is_text(name: str) -> bool:
    """Return True if a file's name is valid UTF-8, as the journal requires."""
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


def _parquet(file: Path, schema: pa.Schema, whole: bool) -> tuple[pa.Table, tuple[Letter, ...]]:
    """Read a Parquet file as Spark does: columns by name, in any case, missing ones as NULL."""
    table = read_parquet(file)
    names = {name.lower(): name for name in table.column_names}
    columns = [
        _cast(table[names[field.name.lower()]].combine_chunks(), field.type)
        if field.name.lower() in names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema), ()


def _cast(column: Any, kind: pa.DataType) -> Any:
    """Cast a column: fields of structs by name, in any case; finer instants are truncated."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
    if column.type == kind:
        return column
    if pa.types.is_struct(kind) and pa.types.is_struct(column.type):
        children = range(column.type.num_fields)
        indexes = {column.type.field(index).name.lower(): index for index in children}
        arrays = [
            _cast(column.field(indexes[child.name.lower()]), child.type)
            if child.name.lower() in indexes
            else pa.nulls(len(column), child.type)
            for child in kind
        ]
        return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=column.is_null())
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(column.type):
        # Round down, not toward 1970.
        is_finer = column.type.unit == "ns"
        column = pc.floor_temporal(column, unit="microsecond") if is_finer else column
    return pc.call_function("cast", [column], pc.CastOptions(kind, allow_time_truncate=True))


def _lower(options: Mapping[str, str]) -> dict[str, str]:
    """Return options by name in lower case: Spark ignores the case."""
    return {key.lower(): value for key, value in options.items()}
