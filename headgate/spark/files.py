"""Files that are there whole or not at all."""

import os
import shutil
from pathlib import Path


def flush(path: Path) -> None:
    """Brings a file, or a directory's list of names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put(temporary: Path, final: Path) -> None:
    """Gives a file or folder its final name in one move, replacing what a crash has left there."""
    if temporary.exists() and final.exists() and (final.is_dir() or temporary.is_dir()):
        remove(final)
    os.replace(temporary, final)


def size_of(path: Path) -> int:
    """Gives the bytes of a file, or of the files in a folder."""
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def remove(path: Path) -> None:
    """Removes a file or folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
