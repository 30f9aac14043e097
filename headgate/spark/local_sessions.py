"""Sessions of rows in the driver, as Spark has them."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.model.window_ends import Times
from headgate.spark.local_rows import TooMuch, grouped


def with_sessions(rows: pa.Table, keys: int, at: int) -> pa.Table:
    """Gives rows with the session they are in for the one that each would have alone.

    Rows are in one session where their other keys are equal and the next begins at the end of those
    before it, or earlier.

    Args:
        keys, at: how many keys come first, and which of them is the session.

    Raises:
        TooMuch: they have several gaps.
    """
    if not rows.num_rows:
        return rows
    column: Any = rows.column(at).combine_chunks()
    starts, ends = (_micros(pc.struct_field(column, [place])) for place in (0, 1))
    if ((ends - starts) != ends[0] - starts[0]).any():
        raise TooMuch("sessions with several gaps")
    others = [rows.column(place) for place in range(keys) if place != at]
    groups = grouped(others, rows.num_rows).of
    order = np.lexsort((starts, groups))
    start, end, group = starts[order], ends[order], groups[order]
    begins = np.concatenate([[True], (group[1:] != group[:-1]) | (start[1:] > end[:-1])])
    number = np.cumsum(begins) - 1
    closes = np.concatenate([begins[1:], [True]])
    starts[order], ends[order] = start[begins][number], end[closes][number]
    kind: Any = column.type
    made = [pa.array(each).cast(kind.field(n).type) for n, each in enumerate((starts, ends))]
    session = pa.StructArray.from_arrays(made, fields=list(kind))
    return rows.set_column(at, rows.field(at), session)


def _micros(column: Any) -> Times:
    found: Times = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return found.copy()
