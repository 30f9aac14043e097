"""The watermarks that tuples of a derived stream carry, computed from what its query has read."""

import numpy as np

from headgate.model.window_ends import NEVER, Times


def inherited(times: Times, lateness: int, top: int) -> tuple[Times, int]:
    """Return the watermark before each tuple of a stream, and that after the last.

    Args:
        times: of the tuples, in the order of the log.
        top: the watermark before the first tuple.

    >>> inherited(np.array([7, 9, 8]), 1, NEVER)[1]
    8
    >>> inherited(np.array([7, 9, 8]), 1, 3)[0].tolist()
    [3, 6, 8]
    """
    below = np.where(times == NEVER, NEVER, times - lateness)
    marks = np.maximum.accumulate(np.concatenate([[top], below]))
    return marks[:-1], int(marks[-1])


def from_own_times(times: Times, places: Times, top: int) -> tuple[Times, int]:
    """Return the greatest time before each row, and that after the last.

    Rows with the same place, such as those computed from one tuple, have no order among themselves.

    Args:
        places: of the rows, ascending.
        top: the greatest time before the first row.

    >>> from_own_times(np.array([5, 9, 6, 7]), np.array([0, 1, 1, 4]), 4)[0].tolist()
    [4, 5, 5, 9]
    """
    if not len(times):
        return times, top
    firsts = np.flatnonzero(np.concatenate([[True], places[1:] != places[:-1]]))
    tops = np.maximum.accumulate(np.concatenate([[top], np.maximum.reduceat(times, firsts)]))
    counts = np.diff(np.append(firsts, len(times)))
    return np.repeat(tops[:-1], counts), int(tops[-1])
