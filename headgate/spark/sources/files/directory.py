"""Files that appear in a directory, read by the driver."""

import fnmatch
import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa
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
from headgate.spark.sources.files.file_bytes import FileUnreadable
from headgate.spark.sources.files.file_versions import FileVersion, end_of_lines, is_text
from headgate.spark.sources.files.parquet_files import read_parquet
from headgate.spark.sources.files.text_files import CORRUPT, TextReader

log = logging.getLogger("headgate.spark")

SETTLED_S = 3.0
"""A file that has not changed for this long is considered complete."""

PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
"""A file that the system cannot read is read again after the first time, then after twice as long
each time, up to the second."""

GRAIN_NS, LIST_NS = 2_000_000_000, 1_000_000_000
"""A directory that has not changed for GRAIN_NS is listed again only when its modification time
changes, and after LIST_NS in any case: clocks of other machines may be wrong."""

FILE_OPTIONS = {"path", "maxfilespertrigger", "pathglobfilter", "followsymlinks"}
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
    read: Reader = partial(read_parquet, most_bytes=context.most_file_bytes)
    if not is_parquet:
        line_options = {key: value for key, value in options.items() if key not in FILE_OPTIONS}
        read = TextReader(context, line_options)
    return DirectorySource(context, Path(path), read)


Reader = Callable[..., tuple[pa.Table, tuple[Letter, ...]]]
"""A function that reads a file with a schema. A flag says that the file is complete for certain:
only then is a last line without a line end read. A file of lines that is not compressed can be read
from a first to an end byte."""

COMPRESSED = (".gz", ".bz2", ".lz4", ".zst")
"""How names of files end that Arrow decompresses."""

CHANGED = (
    "it was changed after it had been read, and what is new in it is not read: write new data to a"
    " new file"
)
"""Why a file is a dead letter although it was read."""


@dataclass
class _File:
    """A file that was not read yet.

    Args:
        version: its modification time and size.
        since_s: since when it has not changed.
        is_incomplete: whether it could not be read as it is.
        cause: why the system could not read it; "" if that was not tried or was no problem.
    """

    version: tuple[int, int]
    since_s: float
    is_incomplete: bool = False
    cause: str = ""
    failures: int = 0
    due_at_s: float = 0.0

    @property
    def is_settled(self) -> bool:
        return time.monotonic() - self.since_s >= SETTLED_S

    @property
    def rests(self) -> bool:
        """Whether another attempt would be too early."""
        return (self.is_incomplete and not self.is_settled) or time.monotonic() < self.due_at_s

    def fail(self, cause: str) -> None:
        self.cause, pause_s = cause, PAUSE_S * 2 ** min(self.failures, 10)
        self.failures += 1
        self.due_at_s = time.monotonic() + min(pause_s, LONGEST_PAUSE_S)


@dataclass
class DirectorySource(Source):
    """Files that appear in a directory, each read once, the oldest first.

    The journal records which files have been read, in which version; memory holds those that are
    still in the directory. What is appended to a file of lines later is read, too. If a file that
    was read changes in any other way, it becomes a dead letter. A file should appear complete, by a
    rename, as Structured Streaming requires too. A file with unreadable contents, or that ends
    within a line, is read once it has not changed for some seconds; if its contents cannot be read
    then, it becomes a dead letter. A file that the system cannot read is tried again and again, and
    the others are read meanwhile. Names that begin with a dot or an underscore are ignored. A
    symbolic link that leads out of the directory is passed over, unless the stream's options allow
    it: whoever can write to the directory could otherwise have any file read.
    """

    context: SourceContext
    folder: Path
    read: Reader
    _journalled: Mapping[str, str] = field(default_factory=dict)
    _seen: dict[str, FileVersion] = field(default_factory=dict)
    _changed: set[str] = field(default_factory=set)
    _check_at_ns: int = 0
    _checked: bool = False
    """Whether the last poll has looked for lines in files that were read before."""
    _files: dict[str, _File] = field(default_factory=dict)
    _last: Polled | None = None
    _nothing_since_ns: int | None = None
    _list_at_ns: int = 0
    _warned: set[str] = field(default_factory=set)

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
        for _, name in files:
            file = self._file(name)
            if file is None or file.rests:
                continue
            settled = file.is_settled
            try:
                new = self._new_in(name, settled)
                if new is None:
                    continue
                table, unread, version = new
            except FileNotFoundError:
                continue  # removed before it was read
            except FileUnreadable as error:
                file.fail(str(error))
                continue
            except (pa.ArrowException, OSError, ValueError) as error:
                if not _is_of_contents(error):
                    raise
                file.is_incomplete = not settled
                if not settled:
                    continue  # perhaps it is still being written
                reason = str(error).splitlines()[0]
                table, unread, version = self._letter(name, reason)
            letters += unread
            position[name] = str(version)
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
        for name, version in polled.position.items():
            self._seen[name] = FileVersion.parse(version)
        for name in polled.position:
            self._files.pop(name, None)
        self._last = None

    def _new_in(
        self, name: str, settled: bool
    ) -> tuple[pa.Table | None, tuple[Letter, ...], FileVersion] | None:
        """Return what is to be read of a file, and its version then; None if there is nothing yet.

        A file may grow meanwhile, so lines are read up to the size that it had before.
        """
        path, schema, before = self.folder / name, self.context.schema, self._seen.get(name)
        status = path.stat()
        if before is None and not self._has_lines(name):
            table, letters = self.read(path, schema, settled)
            is_same = FileVersion(status.st_mtime_ns, status.st_size, status.st_ino).is_current
            if not is_same(path.stat()):
                return None
            return table, letters, FileVersion.of(path, status, status.st_size)
        first_byte, end_byte = 0, status.st_size
        if before is not None:
            grown = before.is_begin_of(path, status)
            if grown and before.size == status.st_size:
                self._seen[name] = FileVersion.of(path, status, status.st_size)
                return None
            if not (grown and self._has_lines(name)):
                return self._letter(name, CHANGED) if settled else None
            first_byte = before.size
            end_byte = end_byte if settled else end_of_lines(path, first_byte, end_byte)
            if end_byte == first_byte:
                return None
        table, letters = self.read(path, schema, settled, first_byte, end_byte)
        return table, letters, FileVersion.of(path, status, end_byte)

    def _letter(self, name: str, reason: str) -> tuple[None, tuple[Letter, ...], FileVersion]:
        path = self.folder / name
        status = path.stat()
        version = FileVersion.of(path, status, status.st_size)
        return None, (Letter(str(path), "", reason),), version

    def _has_lines(self, name: str) -> bool:
        """Return True if a file can be read from any line on."""
        return self.context.format != "parquet" and not name.endswith(COMPRESSED)

    @property
    def trouble(self) -> str:
        causes = [(name, file.cause) for name, file in self._files.items() if file.cause]
        if not causes:
            return ""
        name, cause = min(causes)
        more = f" (and {len(causes) - 1} more files)" if len(causes) > 1 else ""
        return f"{self.folder / name} cannot be read{more}: {cause}"

    @property
    def is_empty(self) -> bool:
        may_have_grown = self._seen and self.context.format != "parquet"
        return not self._files and (self._checked or not may_have_grown)

    def _file(self, name: str) -> _File | None:
        """Return what is known of a file that was not read yet; None if it is gone."""
        try:
            status = (self.folder / name).stat()
        except FileNotFoundError:
            return None
        version, file = (status.st_mtime_ns, status.st_size), self._files.get(name)
        if file is None or file.version != version:
            file = self._files[name] = _File(version, time.monotonic())
        return file

    def _pass_over(self, name: str, what: str, fix: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            log.warning(
                "stream '%s' passes over %s, such as %r; %s", self.context.stream, what, name, fix
            )

    def _leads_out(self, link: os.DirEntry[str]) -> bool:
        options = _lower(self.context.options)
        if not link.is_symlink() or options.get("followsymlinks", "").lower() == "true":
            return False
        return not Path(os.path.realpath(link)).is_relative_to(os.path.realpath(self.folder))

    def _new_files(self) -> list[tuple[int, str]]:
        self._checked = False
        modified_ns, now_ns = self.folder.stat().st_mtime_ns, time.time_ns()
        if modified_ns == self._nothing_since_ns and now_ns < self._list_at_ns:
            return []  # listing thousands of names takes milliseconds
        pattern = _lower(self.context.options).get("pathglobfilter", "*")
        files: list[tuple[int, str]] = []
        seen: dict[str, FileVersion] = {}
        checks, began_ns = now_ns >= self._check_at_ns, time.monotonic_ns()
        with os.scandir(self.folder) as entries:
            for entry in entries:
                name = entry.name
                if name in self._seen and not checks and name not in self._changed:
                    seen[name] = self._seen[name]
                    continue
                if name.startswith((".", "_")) or not fnmatch.fnmatchcase(name, pattern):
                    continue
                if not is_text(name):
                    self._pass_over(name, "files whose names are not UTF-8", "rename them")
                    continue
                if self._leads_out(entry):
                    fix = "the option followSymlinks: true has them read"
                    self._pass_over(name, "links that lead out of its directory", fix)
                    continue
                try:
                    if not entry.is_file():
                        continue
                    status, version = entry.stat(), self._seen.get(name)
                    if version is None and name in self._journalled:
                        version = FileVersion.parse(self._journalled[name])
                        if version.size < 0 and version.is_current(status):
                            with suppress(OSError, FileUnreadable):
                                version = FileVersion.of(Path(entry.path), status, status.st_size)
                    if version is not None:
                        seen[name] = version
                    if version is None or not version.is_current(status):
                        files.append((status.st_mtime_ns, name))
                except FileNotFoundError:
                    continue
        if checks:  # a twentieth of the time at most
            took_ns = time.monotonic_ns() - began_ns
            self._check_at_ns, self._checked = now_ns + max(LIST_NS, 20 * took_ns), True
        self._seen = seen
        names = {name for _, name in files}
        self._changed = names & seen.keys()
        self._files = {name: file for name, file in self._files.items() if name in names}
        # Within the grain of its clock a directory may change again and show the same time.
        rests = not files and now_ns - modified_ns > GRAIN_NS
        self._nothing_since_ns = modified_ns if rests else None
        self._list_at_ns = now_ns + LIST_NS
        return sorted(files)


def _is_of_contents(error: Exception) -> bool:
    """Return True if a file's contents are the cause, not the system, the JVM or a full disk."""
    if isinstance(error, OSError):
        return error.errno is None  # Arrow found corrupt data
    return not isinstance(error, MemoryError)


def _lower(options: Mapping[str, str]) -> dict[str, str]:
    """Return options by name in lower case: Spark ignores the case."""
    return {key.lower(): value for key, value in options.items()}
