"""Sets of small numbers as bits: put in, take out and find the next, without looking at the others.

A column is a set. Its words stand in levels: 64 numbers a word, and above each level one with a bit
for every word below that is not empty, up to a single word. So 262 144 numbers need three levels.
The words of all sets for the same numbers lie side by side, so that a number that goes from one set
to the next stays in its cache line.
"""

from typing import Any

import numpy as np

from headgate.compiled import inlined
from headgate.model.arrays import Ints
from headgate.policies.structures.lowest_bit import lowest_bit

NONE = -1


def bit_sets(sets: int, numbers: int) -> tuple[Any, Ints]:
    """Gives empty sets of numbers below `numbers`: words by column, and where each level begins.

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
def put(words: Any, levels: Ints, which: int, number: int) -> None:
    """Puts a number into a set."""
    for level in range(len(levels) - 1):
        place = levels[level] + (number >> 6)
        before = words[place, which]
        words[place, which] = before | (np.uint64(1) << np.uint64(number & 63))
        if before:
            return
        number >>= 6


@inlined
def take(words: Any, levels: Ints, which: int, number: int) -> None:
    """Takes a number out of a set."""
    for level in range(len(levels) - 1):
        place = levels[level] + (number >> 6)
        words[place, which] &= ~(np.uint64(1) << np.uint64(number & 63))
        if words[place, which]:
            return
        number >>= 6


@inlined
def is_empty(words: Any, levels: Ints, which: int) -> bool:
    """Says whether a set has no number."""
    return bool(words[levels[len(levels) - 2], which] == np.uint64(0))


@inlined
def following(words: Any, levels: Ints, which: int, number: int) -> int:
    """Gives the smallest number of a set that is not below a number, −1 where there is none."""
    for level in range(len(levels) - 1):
        place = levels[level] + (number >> 6)
        if place >= levels[level + 1]:
            return NONE
        left = words[place, which] >> np.uint64(number & 63)
        if left:
            number += lowest_bit(left)
            for below in range(level - 1, -1, -1):
                number = (number << 6) + lowest_bit(words[levels[below] + number, which])
            return number
        number = (number >> 6) + 1
    return NONE
