"""Arrow columns of windows."""

from typing import Any

import numpy as np
import pyarrow as pa

from headgate.model.window_ends import Times


def numbers_of(column: Any) -> Times:
    """Return instants as microseconds since 1970, and numbers unchanged."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", tz=column.type.tz))
    numbers: Times = column.cast(pa.int64()).to_numpy()
    return numbers


def window_bound(windows: Any, field: str) -> Times:
    """Return the starts or ends of a column of windows."""
    chunks = [chunk.field(field) for chunk in windows.chunks]
    if not chunks:
        return np.zeros(0, np.int64)
    return numbers_of(pa.chunked_array(chunks))


def window_column(ends: Times, size: int, kind: pa.DataType) -> Any:
    """Return a column of windows of one size with these ends, as structs of `start` and `end`.

    Args:
        kind: the type of both fields: that of the stream's times, or of numbers.
    """
    arrays = [pa.array(places.astype(np.int64)).cast(kind) for places in (ends - size, ends)]
    return pa.StructArray.from_arrays(arrays, ["start", "end"])
