"""Luck without a generator: a hash of (seed, tuple, operator), the same for every policy."""

import numpy as np
from numpy.typing import NDArray

from headgate.compiled import compiled

DRAWS = 2.0**53
"""How many draws there are: a chance is a draw over this."""


@compiled
def chance(seed: int, number: int, operator: int) -> float:
    """Gives a number in [0, 1) that depends on nothing but its arguments."""
    return float(draw(seed, number, operator)) * (1.0 / DRAWS)


@compiled
def draw(seed: int, number: int, operator: int) -> int:
    """Gives an integer from 0 to 2⁵³ − 1, by splitmix64's mixing.

    It lies below ⌈p 2⁵³⌉ where the chance lies below p.
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
    drawn: int = word >> np.uint64(11)  # type: ignore[assignment]  # is one to Numba
    return drawn


@compiled
def mixed(first: int, second: int) -> int:
    """Gives the number of a tuple that two others make, or one that is made twice."""
    word = np.uint64(first) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(second)
    word ^= word >> np.uint64(32)
    word *= np.uint64(0xD6E8FEB86659FD93)
    word ^= word >> np.uint64(32)
    # int() would leave it unsigned; Numba then makes a float of it beside a signed number.
    number: int = np.int64(word >> np.uint64(2))  # type: ignore[assignment]  # is one to Numba
    return number


def scrambled(seed: int, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Gives for every number another of 64 bits, the same for the same seed (splitmix64's)."""
    words = numbers + np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
