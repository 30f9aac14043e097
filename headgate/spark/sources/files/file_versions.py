"""Versions of files: whether a file that was read has grown, or has other contents now."""

import os
import zlib
from dataclasses import astuple, dataclass
from pathlib import Path

from headgate.spark.sources.files.file_bytes import FileUnreadable

TAIL_BYTES = 16 << 10
"""How many bytes the checksum covers, at most. The end of a Parquet file says little: files with
other values have the same size and schema."""

LAST_BYTES = 1 << 20
"""How many bytes of an unfinished last line are looked at for its beginning."""


@dataclass(frozen=True)
class FileVersion:
    """How a file was when it was read; the journal has it as text.

    Time, size and inode say when it is worth a look. Whether the file still begins with what was
    read is decided by the checksum of the last of these bytes: a copy or a `touch` changes nothing.

    Args:
        size: how many bytes were read; −1 if the journal of an earlier release does not say.
        checksum: of the last bytes that were read.
    """

    modified_ns: int
    size: int = -1
    inode: int = 0
    checksum: int = 0

    @classmethod
    def of(cls, file: Path, status: os.stat_result, size: int) -> "FileVersion":
        """Return the version of a file of which `size` bytes were read."""
        return cls(status.st_mtime_ns, size, status.st_ino, _checksum(file, size))

    @classmethod
    def parse(cls, text: str) -> "FileVersion":
        return cls(*map(int, text.split()))

    def __str__(self) -> str:
        return " ".join(map(str, astuple(self)))

    def is_current(self, status: os.stat_result) -> bool:
        """Return True if a file has not changed."""
        now = status.st_mtime_ns, status.st_size, status.st_ino
        return (self.modified_ns, self.size, self.inode) == now or (
            self.size < 0 and self.modified_ns == status.st_mtime_ns
        )

    def is_begin_of(self, file: Path, status: os.stat_result) -> bool:
        """Return True if a file still begins with what was read."""
        return 0 <= self.size <= status.st_size and _checksum(file, self.size) == self.checksum


def end_of_lines(file: Path, first_byte: int, size: int) -> int:
    """Return where the last line ends that begins at or after a byte; `first_byte` if none does."""
    begin = max(first_byte, size - LAST_BYTES)
    end = _bytes(file, begin, size).rfind(b"\n") + 1
    return begin + end if end else first_byte


def _checksum(file: Path, size: int) -> int:
    begin = max(0, size - TAIL_BYTES)
    return zlib.crc32(_bytes(file, begin, size))


def _bytes(file: Path, begin: int, end: int) -> bytes:
    try:
        with file.open("rb") as data:
            data.seek(begin)
            return data.read(end - begin)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FileUnreadable(error.strerror or str(error)) from error


def is_text(name: str) -> bool:
    """Return True if a file's name is valid UTF-8, as the journal requires."""
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False
