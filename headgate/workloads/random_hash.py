"""Random numbers without a generator: a hash of (seed, tuple, operator), equal for all policies."""

import numpy as np
from numpy.typing import NDArray

from headgate.compiled import compiled

DRAWS = 2.0**53
"""The number of possible draws: `chance` is `draw` divided by this."""


@compiled
def chance(seed: int, number: int, operator: int) -> float:
    """Return a number in [0, 1) that depends only on the arguments."""
    return float(draw(seed, number, operator)) * (1.0 / DRAWS)


@compiled
def draw(seed: int, number: int, operator: int) -> int:
    """Return an integer from 0 to 2⁵³ − 1, mixed as in splitmix64.

    It is below ⌈p 2⁵³⌉ if and only if `chance` is below p.
    """
    word = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
    word ^= np.uint64(number) + np.uint64(0x632BE59BD9B4E019)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    word ^= (word >> np.uint64(30)) + np.uint64(operator) * np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(27)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    word ^= word >> np.uint64(31)
    word *= np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(29)
    drawn: int = word >> np.uint64(11)  # type: ignore[assignment]  # an int in Numba
    return drawn


@compiled
def mixed(first: int, second: int) -> int:
    """Return the number of a tuple that joins two others, or of a further copy of a tuple."""
    word = np.uint64(first) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(second)
    word ^= word >> np.uint64(32)
    word *= np.uint64(0xD6E8FEB86659FD93)
    word ^= word >> np.uint64(32)
    # int() would leave it unsigned; Numba turns unsigned with signed into a float.
    number: int = np.int64(word >> np.uint64(2))  # type: ignore[assignment]  # an int in Numba
    return number


def scrambled(seed: int, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a 64-bit hash of every number, always the same for a seed (splitmix64)."""
    words = numbers + np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
