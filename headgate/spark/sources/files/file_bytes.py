"""The bytes of a source's file, and whether the system or the file is to blame for an error."""

from pathlib import Path

import pyarrow as pa

CHUNK_BYTES = 1 << 20


class FileUnreadable(Exception):
    """A file that the system cannot read at present, whatever its contents are."""


def contents(
    file: Path,
    most_bytes: int,
    *,
    decompresses: bool = False,
    first_byte: int = 0,
    end_byte: int | None = None,
) -> bytes:
    """Return the bytes of a file.

    Args:
        decompresses: whether to decompress a file whose name says how it is compressed.
        first_byte: the first one that is wanted; 0 in a compressed file.
        end_byte: where to end; None for a compressed file.

    Raises:
        ValueError: it is too large, or it cannot be decompressed.
        FileNotFoundError: it is gone.
        FileUnreadable: the system cannot read it.
    """
    chunks, size_bytes = list[bytes](), 0
    try:
        stream = pa.input_stream(str(file), compression="detect") if decompresses else None
        with stream or pa.OSFile(str(file), "rb") as source:
            if first_byte:
                source.seek(first_byte)
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
    return b"".join(chunks)[: None if end_byte is None else end_byte - first_byte]


def too_large(most_bytes: int) -> ValueError:
    """Return the error for a file that is larger than `most_file_bytes`."""
    return ValueError(f"it has more than {most_bytes:,} bytes (most_file_bytes)")
