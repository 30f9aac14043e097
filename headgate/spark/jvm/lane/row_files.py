"""Files that pass rows to the JVM and back, in shared memory or, if that fails, on disk."""

import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from headgate.spark.jvm.own_folder import own_folder, sweep

SHARED_MEMORY = Path("/dev/shm")


@contextmanager
def row_files(folder: Path, count: int) -> Iterator[list[str]]:
    """Create empty files that only this user can read, and remove them at the end.

    Args:
        folder: where this process has its own folder.
    """
    names: list[str] = []
    try:
        names += [str(own_folder(folder) / uuid4().hex) for _ in range(count)]
        for name in names:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield names
    finally:
        for name in names:
            with suppress(OSError):  # a read-only file system refuses even if there is no file
                os.unlink(name)


def folders(fallback: Path | None) -> list[Path]:
    """Return the folders that row files may use, the best first, without what a kill has left."""
    last = Path(tempfile.gettempdir()) if fallback is None else fallback
    sweep(last)  # shared memory is swept when this process first uses it
    return [SHARED_MEMORY, last] if os.access(SHARED_MEMORY, os.W_OK) else [last]


def write_rows(name: str, table: pa.Table) -> None:
    """Write rows in Arrow's stream format."""
    with pa.OSFile(name, "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)


def read_rows(name: str, schema: pa.Schema) -> pa.Table:
    """Return the rows that the JVM wrote: Arrow batches, each preceded by its size."""
    with open(name, "rb") as file:
        data = file.read()
    batches: list[pa.RecordBatch] = []
    position = 0
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        message = pa.py_buffer(memoryview(data)[position + 4 : position + 4 + size])
        batches.append(pa.ipc.read_record_batch(message, schema))
        position += 4 + size
    return pa.Table.from_batches(batches, schema=schema)
