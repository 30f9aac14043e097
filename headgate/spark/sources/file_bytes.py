"""The bytes of a source's file, and whether the system or the file is to blame for an error."""

from pathlib import Path

import pyarrow as pa

CHUNK_BYTES = 1 << 20


class FileUnreadable(Exception):
    """A file that the system cannot read at present, whatever its contents are."""


def contents(file: Path, most_bytes: int, *, decompresses: bool = False) -> bytes:
    """Return the bytes of a file.

    Args:
        decompresses: whether to decompress a file whose name says how it is compressed.

    Raises:
        ValueError: it is too large, or it cannot be decompressed.
        FileNotFoundError: it is gone.
        FileUnreadable: the system cannot read it.
    """
    chunks, size_bytes = list[bytes](), 0
    try:
        stream = pa.input_stream(str(file), compression="detect") if decompresses else None
        with stream or pa.OSFile(str(file), "rb") as source:
            while chunk := source.read(CHUNK_BYTES):
                chunks.append(chunk)
                size_bytes += len(chunk)
                if size_bytes > most_bytes:
                    raise too_large(most_bytes)
    except FileNotFoundError:
        raise
    except OSError as error:
        cause = str(error).splitlines()[0]
        if error.errno is None:  # Arrow's own error, of a codec
            raise ValueError(cause) from error
        raise FileUnreadable(cause) from error
    return b"".join(chunks)


def too_large(most_bytes: int) -> ValueError:
    """Return the error for a file that is larger than `most_file_bytes`."""
    return ValueError(f"it has more than {most_bytes:,} bytes (most_file_bytes)")
