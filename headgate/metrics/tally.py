"""Mean, maximum, ℓ2 norm and quantiles of many values in fixed space."""

from dataclasses import dataclass

import numpy as np

from headgate.model.events import Floats, Ints

SMALLEST, STEP, BINS = 1e-7, 1.02, 2000
"""Bins grow by 2 %, from 10⁻⁷ to 10¹⁰: a quantile is right to 1 %."""


@dataclass(frozen=True)
class Summary:
    """What a tally says; NaN where nothing was counted."""

    count: int
    mean: float
    p95: float
    maximum: float
    norm: float


class Tally:
    """Counts values; what it holds does not grow with their number.

    >>> tally = Tally()
    >>> tally.add(np.array([3.0, 4.0]))
    >>> tally.summary().mean, tally.summary().norm
    (3.5, 5.0)
    """

    def __init__(self) -> None:
        self.count = 0
        self._sum = self._squares = self._maximum = 0.0
        self._bins = np.zeros(BINS, dtype=np.int64)

    @classmethod
    def of(cls, count: int, total: float, squares: float, maximum: float, bins: Ints) -> "Tally":
        """Gives the tally of values that somebody else has counted, by the same bins."""
        tally = cls()
        tally.count, tally._sum, tally._squares = count, total, squares
        tally._maximum, tally._bins = maximum, bins.astype(np.int64)
        return tally

    def add(self, values: Floats) -> None:
        """Counts values of 0 or more; what is no number is left out."""
        values = values[np.isfinite(values)]
        if not len(values):
            return
        self.count += len(values)
        self._sum += float(values.sum())
        self._squares += float(values @ values)
        self._maximum = max(self._maximum, float(values.max()))
        bins = np.log(np.maximum(values, SMALLEST) / SMALLEST) / np.log(STEP)
        self._bins += np.bincount(np.minimum(bins.astype(np.int64), BINS - 1), minlength=BINS)

    def merge(self, other: "Tally") -> None:
        """Takes in what another tally has counted."""
        self.count += other.count
        self._sum += other._sum
        self._squares += other._squares
        self._maximum = max(self._maximum, other._maximum)
        self._bins += other._bins

    def quantile(self, fraction: float) -> float:
        """Gives the value that so large a fraction does not exceed."""
        if not self.count:
            return float("nan")
        rank = int(np.searchsorted(np.cumsum(self._bins), fraction * self.count))
        return float(min(self._maximum, SMALLEST * STEP ** (rank + 0.5)))

    def summary(self) -> Summary:
        mean = self._sum / self.count if self.count else float("nan")
        maximum = self._maximum if self.count else float("nan")
        norm = float(np.sqrt(self._squares))
        return Summary(self.count, mean, self.quantile(0.95), maximum, norm)
