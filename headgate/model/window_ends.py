"""The windows that contain a tuple, by their ends."""

import numpy as np
from numpy.typing import NDArray

from headgate.model.window import Window

Times = NDArray[np.int64]

NEVER = np.iinfo(np.int64).min
"""The time of a tuple without a time, and of a stream without a tuple so far."""


def windows_of(window: Window, place: Times, after: int, upto: int) -> tuple[Times, Times]:
    """Return, for tuples at the given places, their windows that end in (after, upto].

    The first array has the index of the tuple, the second the end of the window.

    >>> ten = Window(axis="time", size=10, slide=5)
    >>> [array.tolist() for array in windows_of(ten, np.array([3, 7]), 0, 15)]
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
    """Return the first end of a window after a place.

    >>> first_end(Window(axis="time", size=10, slide=5), 7)
    10
    """
    slide = window.slide or window.size
    return ((after - window.offset) // slide + 1) * slide + window.offset
