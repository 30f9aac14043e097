"""Sets of small numbers as bits: add, remove, and find the next without scanning the others.

A column is a set. Its words form levels: the lowest level has 64 numbers per word, and the level
above another has one bit for each word below that is not empty, up to a single word. So 262 144
numbers need three levels. The words of all sets for the same numbers are adjacent, so that a number
that moves from one set to another stays in its cache line.
"""

from typing import Any

import numpy as np

from headgate.compiled import inlined
from headgate.model.arrays import Ints
from headgate.policies.structures.lowest_bit import lowest_bit

NONE = -1


def bit_sets(sets: int, numbers: int) -> tuple[Any, Ints]:
    """Return empty sets of numbers below `numbers`: words by column, and the start of each level.

    >>> words, levels = bit_sets(2, 100_000)
    >>> for number in (7, 99_999):
    ...     put(words, levels, 1, number)
    >>> take(words, levels, 1, 7)
    >>> following(words, levels, 1, 0), following(words, levels, 0, 0)
    (99999, -1)
    """
    sizes = [max(1, -(-numbers // 64))]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // 64))
    return np.zeros((sum(sizes), sets), dtype=np.uint64), np.cumsum([0, *sizes])


@inlined
def put(words: Any, levels: Ints, column: int, number: int) -> None:
    """Add a number to a set."""
    for level in range(len(levels) - 1):
        place = levels[level] + (number >> 6)
        before = words[place, column]
        words[place, column] = before | (np.uint64(1) << np.uint64(number & 63))
        if before:
            return
        number >>= 6


@inlined
def take(words: Any, levels: Ints, column: int, number: int) -> None:
    """Remove a number from a set."""
    for level in range(len(levels) - 1):
        place = levels[level] + (number >> 6)
        words[place, column] &= ~(np.uint64(1) << np.uint64(number & 63))
        if words[place, column]:
            return
        number >>= 6


@inlined
def is_empty(words: Any, levels: Ints, column: int) -> bool:
    """Return True if a set has no number."""
    return bool(words[levels[len(levels) - 2], column] == np.uint64(0))


@inlined
def following(words: Any, levels: Ints, column: int, number: int) -> int:
    """Return the smallest number of a set that is at least `number`, −1 if there is none."""
    for level in range(len(levels) - 1):
        place = levels[level] + (number >> 6)
        if place >= levels[level + 1]:
            return NONE
        left = words[place, column] >> np.uint64(number & 63)
        if left:
            number += lowest_bit(left)
            for below in range(level - 1, -1, -1):
                number = (number << 6) + lowest_bit(words[levels[below] + number, column])
            return number
        number = (number >> 6) + 1
    return NONE
