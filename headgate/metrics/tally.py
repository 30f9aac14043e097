"""Mean, maximum, ℓ2 norm and quantiles of many values, in constant space."""

from dataclasses import dataclass

import numpy as np

from headgate.model.arrays import Floats, Ints

SMALLEST, STEP, BINS = 1e-7, 1.02, 2000
"""Bins grow by 2 %, from 10⁻⁷ to 10¹⁰, so a quantile is accurate to 1 %."""

MOST_WAITING = 64


def bins_of(values: Floats) -> Ints:
    """Return the bin of each value."""
    bins = np.log(np.maximum(values, SMALLEST) / SMALLEST) / np.log(STEP)
    places: Ints = np.minimum(bins.astype(np.int64), BINS - 1)
    return places


def value_in(place: int) -> float:
    """Return the value in the middle of a bin."""
    return float(SMALLEST * STEP ** (place + 0.5))


@dataclass(frozen=True)
class Summary:
    """The statistics of a tally; NaN if no value was counted."""

    count: int
    mean: float
    p95: float
    maximum: float
    norm: float


class Tally:
    """A summary of values whose size does not grow with their number.

    >>> tally = Tally()
    >>> tally.add(np.array([3.0, 4.0]))
    >>> tally.summary().mean, tally.summary().norm
    (3.5, 5.0)
    """

    def __init__(self) -> None:
        self._count = 0
        self._sum = self._squares = self._maximum = 0.0
        self._bins = np.zeros(BINS, dtype=np.int64)
        self._waiting: list[Floats] = []
        self._values_waiting = 0

    @classmethod
    def of(cls, count: int, total: float, squares: float, maximum: float, bins: Ints) -> "Tally":
        """Return a tally of values that other code has counted, with the same bins."""
        tally = cls()
        tally._count, tally._sum, tally._squares = count, total, squares
        tally._maximum, tally._bins = maximum, bins.astype(np.int64)
        return tally

    @property
    def count(self) -> int:
        self._fold()
        return self._count

    @property
    def total(self) -> float:
        """The sum of the values."""
        self._fold()
        return self._sum

    def below(self, edges: Ints) -> Ints:
        """Return how many values lie in bins before each of these, in ascending order."""
        self._fold()
        parts = np.split(self._bins, edges)[:-1]
        counts: Ints = np.cumsum([part.sum() for part in parts])
        return counts

    def add(self, values: Floats) -> None:
        """Count values of 0 or more; values that are not finite are ignored."""
        if len(values):
            # A few values cost as much as many, so they wait for more, or until a result is read.
            self._waiting.append(values)
            self._values_waiting += len(values)
            if len(self._waiting) >= MOST_WAITING or self._values_waiting >= 64 * MOST_WAITING:
                self._fold()

    def _fold(self) -> None:
        if not self._waiting:
            return
        values = np.concatenate(self._waiting)
        self._waiting, self._values_waiting = [], 0
        values = values[np.isfinite(values)]
        if not len(values):
            return
        self._count += len(values)
        self._sum += float(values.sum())
        self._squares += float(values @ values)
        self._maximum = max(self._maximum, float(values.max()))
        self._bins += np.bincount(bins_of(values), minlength=BINS)

    def merge(self, other: "Tally") -> None:
        """Add the values that another tally has counted."""
        if not other.count:  # which folds
            return
        self._fold()
        self._count += other._count
        self._sum += other._sum
        self._squares += other._squares
        self._maximum = max(self._maximum, other._maximum)
        self._bins += other._bins

    def quantile(self, fraction: float) -> float:
        """Return the value that this fraction of the values does not exceed."""
        if not self.count:  # which folds
            return float("nan")
        rank = int(np.searchsorted(np.cumsum(self._bins), fraction * self.count))
        return float(min(self._maximum, value_in(rank)))

    def summary(self) -> Summary:
        count = self.count  # which folds
        mean = self._sum / count if count else float("nan")
        maximum = self._maximum if count else float("nan")
        norm = float(np.sqrt(self._squares))
        return Summary(count, mean, self.quantile(0.95), maximum, norm)
