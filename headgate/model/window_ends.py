"""Which windows a tuple is in, by where they end."""

import numpy as np
from numpy.typing import NDArray

from headgate.model.window import Window

Times = NDArray[np.int64]

NEVER = np.iinfo(np.int64).min
"""The time of a tuple that has none, and of a stream that has had no tuple."""


def windows_of(window: Window, place: Times, after: int, upto: int) -> tuple[Times, Times]:
    """Gives for tuples at some places the windows that end in (after, upto]: tuple and end.

    >>> ten = Window(axis="time", size=10, slide=5)
    >>> [each.tolist() for each in windows_of(ten, np.array([3, 7]), 0, 15)]
    [[0, 0, 1, 1], [5, 10, 10, 15]]
    """
    slide, offset = window.slide or window.size, window.offset
    lowest = np.maximum(place, after) if after != NEVER else place
    first = (lowest - offset) // slide + 1
    last = (np.minimum(place + window.size, upto) - offset) // slide
    counts = np.maximum(0, last - first + 1)
    tuples = np.repeat(np.arange(len(place)), counts)
    begins = np.cumsum(counts) - counts
    ends = np.repeat(first - begins, counts) + np.arange(counts.sum())
    return tuples, ends * slide + offset


def first_end(window: Window, after: int) -> int:
    """Gives the first end of a window behind a place.

    >>> first_end(Window(axis="time", size=10, slide=5), 7)
    10
    """
    slide = window.slide or window.size
    return ((after - window.offset) // slide + 1) * slide + window.offset
