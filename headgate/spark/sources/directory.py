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
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType, VariantType

from headgate.model.stream import Stream
from headgate.spark.jvm.types import arrow_schema, part_of
from headgate.spark.log.dead_letters import Letter
from headgate.spark.log.parquet_bytes import read_parquet
from headgate.spark.sources.protocol import MOST_TUPLES, Polled, Source
from headgate.spark.sources.text_files import CORRUPT, TextReader

log = logging.getLogger("headgate.spark")

SETTLED_S = 3.0
"""A file that has not changed for so long is taken to be whole."""

GRAIN_NS, LIST_NS = 2_000_000_000, 1_000_000_000
"""A directory that has not changed for the first is not listed again until it says that it has, but
after the second in any case: clocks of other machines may be wrong."""

FILE_OPTIONS = {"path", "maxfilespertrigger", "pathglobfilter"}
ELSEWHERE = {
    *("multiline", "encoding", "charset", "linesep", "inferschema", "mode", "comment"),
    *("enforceschema", "columnnameofcorruptrecord", "compression", "samplingratio"),
    *("latestfirst", "maxfileage", "recursivefilelookup", "maxbytespertrigger", "basepath"),
    *("modifiedafter", "modifiedbefore", "cleansource", "sourcearchivedir", "filenameonly"),
    *("ignorecorruptfiles", "ignoremissingfiles", "maxcachedfiles", "singlevariantcolumn"),
}
"""Options that a line or a file by itself cannot honour; Structured Streaming reads those."""


def directory_source(
    session: SparkSession, stream: Stream, schema: StructType
) -> "DirectorySource | None":
    """Gives the source of a directory; None where its format or options need Spark's own reader."""
    if stream.format not in ("parquet", "json", "csv"):
        return None
    options = _lower(stream.options)
    if options.keys() & ELSEWHERE or (stream.format == "parquet" and options.keys() - FILE_OPTIONS):
        return None
    path = options.get("path", "").removeprefix("file://").removeprefix("file:")
    pattern = options.get("pathglobfilter", "")
    if "://" in path or set(path) & set("*?[{") or set(pattern) & set("[{\\"):
        return None
    if CORRUPT in schema.names or any(Path(path).glob("*=*/")):
        return None  # a column or columns that Spark fills
    if stream.format == "parquet" and part_of(schema, (VariantType,)):
        return None  # shredded, as Spark writes them, variants are columns that pyarrow cannot join
    read: Reader = _parquet
    if stream.format != "parquet":
        of_lines = {key: value for key, value in options.items() if key not in FILE_OPTIONS}
        read = TextReader(session, stream.format, of_lines, schema)
    return DirectorySource(stream, Path(path), arrow_schema(schema), read)


Reader = Callable[[Path, pa.Schema, bool], tuple[pa.Table, tuple[Letter, ...]]]
"""Reads a file; a last line without its end only if the file is whole for sure."""


@dataclass
class DirectorySource(Source):
    """Files that appear in a directory, each once, in the order of their age.

    Which have been read, the journal knows; in memory are the names of those that are still there.
    A file should appear whole, by a rename, as Structured Streaming asks too; one that cannot be
    read, or ends within a line, is left alone until it has not changed for some seconds, and is a
    dead letter if it cannot be read then. Names that begin with a dot or an underscore are passed
    over.
    """

    stream: Stream
    folder: Path
    schema: pa.Schema
    read: Reader
    _journalled: Mapping[str, str] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _unsettled: dict[str, tuple[tuple[int, int], float]] = field(default_factory=dict)
    _last: Polled | None = None
    _nothing_since_ns: int | None = None
    _list_at_ns: int = 0
    _told: bool = False

    def resume(self, position: Mapping[str, str]) -> None:
        self._journalled = position

    def poll(self) -> Polled | None:
        if self._last is not None:
            return self._last
        found = self._new()
        most = int(_lower(self.stream.options).get("maxfilespertrigger", len(found) or 1))
        tables: list[pa.Table] = []
        letters: list[Letter] = []
        position: dict[str, str] = {}
        tuples = 0
        for age, name in found:
            settled = self._settled(name)
            if settled is None:
                continue
            try:
                table, unread = self.read(self.folder / name, self.schema, settled)
            except FileNotFoundError:
                continue  # gone again before it was read
            except (pa.ArrowException, OSError, ValueError) as error:
                if not settled:
                    continue  # perhaps still being written
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
        table = pa.concat_tables(tables) if tables else self.schema.empty_table()
        self._last = Polled(table, position, tuple(letters))
        return self._last

    def taken(self, polled: Polled) -> None:
        self._seen.update(polled.position)
        for name in polled.position:
            self._unsettled.pop(name, None)
        self._last = None

    def _settled(self, name: str) -> bool | None:
        """Tells whether a file has not changed for some seconds; None when it is gone."""
        try:
            found = (self.folder / name).stat()
        except FileNotFoundError:
            return None
        seen, now_s = (found.st_mtime_ns, found.st_size), time.monotonic()
        before, since_s = self._unsettled.get(name, (None, now_s))
        if before != seen:
            self._unsettled[name], since_s = (seen, now_s), now_s
        return now_s - since_s >= SETTLED_S

    def _pass_over(self, name: str) -> None:
        if not self._told:
            self._told = True
            log.warning(
                "stream '%s' passes over files whose names are not UTF-8, such as %r; rename them",
                self.stream.name, name,
            )  # fmt: skip

    def _new(self) -> list[tuple[int, str]]:
        modified_ns, now_ns = self.folder.stat().st_mtime_ns, time.time_ns()
        if modified_ns == self._nothing_since_ns and now_ns < self._list_at_ns:
            return []  # a list of thousands of names takes milliseconds
        pattern = _lower(self.stream.options).get("pathglobfilter", "*")
        found, seen = [], set()
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
                        found.append((entry.stat().st_mtime_ns, name))
                except FileNotFoundError:
                    continue
        self._seen = seen
        here = {name for _, name in found}
        self._unsettled = {name: at for name, at in self._unsettled.items() if name in here}
        # Within the grain of its clock a directory may have changed once more, and tell the same.
        rests = not found and now_ns - modified_ns > GRAIN_NS
        self._nothing_since_ns = modified_ns if rests else None
        self._list_at_ns = now_ns + LIST_NS
        return sorted(found)


def _is_text(name: str) -> bool:
    """Tells whether a file's name is UTF-8, as the journal needs it."""
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


def _parquet(file: Path, schema: pa.Schema, whole: bool) -> tuple[pa.Table, tuple[Letter, ...]]:
    """Reads a Parquet file as Spark does: columns by name, in any case, missing ones are NULL."""
    table = read_parquet(file)
    names = {name.lower(): name for name in table.column_names}
    columns = [
        _as(table[names[each.name.lower()]].combine_chunks(), each.type)
        if each.name.lower() in names
        else pa.nulls(table.num_rows, each.type)
        for each in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema), ()


def _as(found: Any, kind: pa.DataType) -> Any:
    """Casts a column: fields of structs by name, in any case; finer instants are cut."""
    if isinstance(found, pa.ChunkedArray):
        found = pa.concat_arrays(found.chunks) if found.num_chunks else pa.nulls(0, found.type)
    if found.type == kind:
        return found
    if pa.types.is_struct(kind) and pa.types.is_struct(found.type):
        at = {found.type.field(n).name.lower(): n for n in range(found.type.num_fields)}
        fields = [
            _as(found.field(at[each.name.lower()]), each.type)
            if each.name.lower() in at
            else pa.nulls(len(found), each.type)
            for each in kind
        ]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=found.is_null())
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(found.type):
        # Down, not towards 1970.
        found = pc.floor_temporal(found, unit="microsecond") if found.type.unit == "ns" else found
    return pc.call_function("cast", [found], pc.CastOptions(kind, allow_time_truncate=True))


def _lower(options: Mapping[str, str]) -> dict[str, str]:
    """Gives options by their names in lower case: to Spark the case is all one."""
    return {key.lower(): value for key, value in options.items()}
