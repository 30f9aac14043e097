"""Files that appear whole or not at all."""

import ctypes
import errno
import os
import shutil
import zlib
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from headgate.errors import TrainUnreadable

HIDDEN = "_unfinished"
"""The folder of uncommitted files; the underscore makes readers of a results folder skip it."""

FEW = 4
"""Up to this many files are flushed one by one; above, their whole file system at once."""

_IN_THE_WAY = (errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST)
"""Errors of a rename that replaces a folder, or replaces a file by a folder."""

_SYNCFS = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)  # only on Linux


def flush(path: Path) -> None:
    """Flush a file, or a directory's list of names, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_all(paths: Collection[Path], missing_ok: bool = False) -> None:
    """Flush files and directories to disk; hundreds cost hardly more than one.

    Args:
        missing_ok: whether files that are gone are skipped.
    """
    for error in unflushed(paths).values():
        if not (missing_ok and isinstance(error, FileNotFoundError)):
            raise error


def unflushed(paths: Collection[Path]) -> dict[Path, OSError]:
    """Flush files and directories to disk; return why some could not be flushed.

    The system reports an error of a disk once: what is not flushed here must be written again.
    """
    errors: dict[Path, OSError] = {}
    if len(paths) <= FEW or _SYNCFS is None:
        for path in paths:
            try:
                flush(path)
            except OSError as error:
                errors[path] = error
        return errors
    on_device: dict[int, list[Path]] = {}
    for path in paths:
        try:
            on_device.setdefault(path.stat().st_dev, []).append(path)
        except OSError as error:
            errors[path] = error
    for same_disk in on_device.values():
        for path in same_disk:
            try:
                _flush_device(path)
            except FileNotFoundError as error:  # removed now; any other shows the disk
                errors[path] = error
                continue
            except OSError as error:
                errors |= dict.fromkeys(same_disk, error)
            break
    return errors


def _flush_device(path: Path) -> None:
    """Flush the file system of a file or directory."""
    assert _SYNCFS is not None
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if _SYNCFS(descriptor):
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), str(path))
    finally:
        os.close(descriptor)


def put(temporary: Path, final: Path) -> None:
    """Rename a file or folder to its final name, replacing what a crash has left there."""
    try:
        os.replace(temporary, final)
    except OSError as error:
        if error.errno not in _IN_THE_WAY:
            raise
        remove(final)
        os.replace(temporary, final)


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of the files in a folder."""
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def checksum_of(path: Path) -> int:
    """Return the CRC-32 of a file, or of the files in a folder in the order of their names."""
    checksum = 0
    for part in sorted(path.iterdir()) if path.is_dir() else [path]:
        with part.open("rb") as file:
            while piece := file.read(1 << 20):
                checksum = zlib.crc32(piece, checksum)
    return checksum


def verify_train(path: Path, stream: str, train: int, checksum: int) -> None:
    """Raise TrainUnreadable unless the files of a train are those that were written."""
    try:
        actual = checksum_of(path)
    except OSError as error:
        cause = error.strerror or str(error)
        raise TrainUnreadable(stream=stream, train=train, file=str(path), cause=cause) from error
    if actual != checksum:
        cause = f"its checksum is {actual:08x}, the journal has {checksum:08x}"
        raise TrainUnreadable(stream=stream, train=train, file=str(path), cause=cause)


def remove(path: Path) -> None:
    """Remove a file or folder if it exists."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def discard(files: Iterable[Path]) -> None:
    """Remove files that are of no use, as far as that is possible."""
    for file in files:
        with suppress(OSError):
            file.unlink()
