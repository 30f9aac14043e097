"""Histograms of response times, with the bounds that monitoring systems expect."""

from dataclasses import dataclass

import numpy as np

from headgate.metrics.tally import Tally, bins_of
from headgate.model.arrays import Ints

BOUNDS_S = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
)  # fmt: skip

EDGES: Ints = bins_of(np.array(BOUNDS_S))
"""The bin of a tally in which each bound lies. A bin is 2 % wide: so exact are the bounds."""


@dataclass(frozen=True)
class Histogram:
    """How many values are below each of BOUNDS_S, how many there are, and their sum.

    >>> tally = Tally()
    >>> tally.add(np.array([0.02, 0.3, 400.0]))
    >>> histogram = Histogram.of(tally)
    >>> histogram.below.tolist(), histogram.count
    ([0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2], 3)
    """

    below: Ints
    count: int
    total: float

    @classmethod
    def of(cls, tally: Tally) -> "Histogram":
        """Return the histogram of the values that a tally has counted."""
        return cls(tally.below(EDGES), tally.count, tally.total)

    def __add__(self, other: "Histogram") -> "Histogram":
        return Histogram(
            self.below + other.below, self.count + other.count, self.total + other.total
        )
