"""Which tuples a query drops in overload: a function of their numbers and values alone."""

from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats
from headgate.model.qos_graph import QoSGraph

PARTS = 1_000_000
"""A random number of a tuple is one of so many."""

_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5, _MASK = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5, (1 << 64) - 1
"""The constants of XXH64."""

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class ValueGraph:
    """The utility of a tuple by the value of one of its columns (Aurora §2.1).

    The points are (value, utility), in ascending value; the utility may rise and fall. Utilities
    are divided by the largest one. A tuple without a value, or whose value is no number, has none.

    >>> ValueGraph("heat", ((20.0, 0.0), (40.0, 2.0))).utilities([10.0, 30.0, 50.0]).tolist()
    [0.0, 0.5, 1.0]
    """

    column: str
    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        points = tuple((float(value), float(utility)) for value, utility in self.points)
        if not points or not all(isfinite(number) for point in points for number in point):
            self._refuse("at least one point of two finite numbers, value and utility")
        values, utilities = zip(*points, strict=True)
        if any(a >= b for a, b in pairwise(values)):
            self._refuse("in strictly ascending value")
        if min(utilities) < 0 or not max(utilities) > 0:
            self._refuse("utilities of 0 or more, and at least one above 0")
        scaled = tuple((value, utility / max(utilities)) for value, utility in points)
        object.__setattr__(self, "points", scaled)

    def utilities(self, values: Any) -> Floats:
        """Return the utility of each value."""
        numbers = np.asarray(values, dtype=np.float64)
        corners, heights = np.array(self.points).T
        utilities = np.where(np.isnan(numbers), 0.0, np.interp(numbers, corners, heights))
        return utilities

    def _refuse(self, expected: str) -> None:
        raise ConfigRefused(path="value graph", key="points", value=self.points, expected=expected)


def loss_by_value(utilities: Floats, steps: int = 10) -> QoSGraph | None:
    """Return the utility that is left by the share of tuples dropped, if the least useful go first.

    Args:
        utilities: those of some tuples; without any, nothing is known.

    >>> loss_by_value(np.array([1.0, 0.0, 1.0, 0.0]), steps=4).points
    ((0.0, 1.0), (0.25, 1.0), (0.5, 1.0), (0.75, 0.5), (1.0, 0.0))
    """
    if not len(utilities):
        return None
    left = np.concatenate([[0.0], np.cumsum(np.sort(utilities)[::-1])])[::-1]
    if not left[0]:
        return QoSGraph(((0.0, 1.0), (1.0, 1.0)))
    shares = np.linspace(0.0, 1.0, steps + 1)
    rest = np.interp(shares, np.linspace(0.0, 1.0, len(left)), left / left[0])
    return QoSGraph(tuple(zip(shares.tolist(), np.minimum.accumulate(rest).tolist(), strict=True)))


@dataclass(frozen=True)
class Drop:
    """The tuples that a query drops, by their numbers or by their values.

    Args:
        fraction: the fraction of tuples to drop.
        seed: of the random numbers. Under one seed, a larger fraction drops the same tuples and
            others, so queries of one stream drop the same tuples as far as they can.
        value: where tuples are dropped by value, the utility of each; those below `threshold` go.
    """

    fraction: float
    seed: int = 0
    value: ValueGraph | None = None
    threshold: float = 0.0

    @property
    def drops_nothing(self) -> bool:
        return not self.fraction

    def covers(self, numbers: Any, values: Any = None) -> NDArray[np.bool_]:
        """Return which tuples are dropped.

        Args:
            numbers: of the tuples in their stream.
            values: the column of `value`, if there is one.

        >>> Drop(0.5).covers(range(8)).tolist() == Drop(0.5).covers(range(8)).tolist()
        True
        """
        if self.value is not None and self.fraction < 1:
            below: NDArray[np.bool_] = self.value.utilities(values) < self.threshold
            return below
        # A number below PARTS is below fraction × PARTS, so 0 covers none and 1 covers all.
        covered: NDArray[np.bool_] = random_parts(numbers, self.seed) < self.fraction * PARTS
        return covered


def random_parts(numbers: Any, seed: int = 0) -> NDArray[np.int64]:
    """Return a random number from 0 to PARTS − 1 for each tuple.

    It is that of Spark's `pmod(xxhash64(seed, number), 1000000)`, with two BIGINTs: so anybody can
    check in SQL which tuples were dropped.

    >>> random_parts([0, 1, 2]).tolist()
    [443774, 252936, 943240]
    """
    first = int(_xxhash64(np.array([seed], dtype=np.int64), 42)[0])
    hashed = _xxhash64(np.asarray(numbers, dtype=np.int64), first).view(np.int64)
    return hashed % PARTS


def _xxhash64(numbers: NDArray[np.int64], seed: int) -> Words:
    """Return XXH64 of 64-bit numbers, as Spark computes it."""
    words = numbers.view(np.uint64)
    hashed = np.uint64((seed + _P5 + 8) & _MASK) ^ _rotated(words * np.uint64(_P2), 31) * np.uint64(
        _P1
    )
    hashed = _rotated(hashed, 27) * np.uint64(_P1) + np.uint64(_P4)
    hashed = (hashed ^ (hashed >> np.uint64(33))) * np.uint64(_P2)
    hashed = (hashed ^ (hashed >> np.uint64(29))) * np.uint64(_P3)
    return hashed ^ (hashed >> np.uint64(32))


def _rotated(words: Words, bits: int) -> Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))
