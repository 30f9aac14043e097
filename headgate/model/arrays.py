"""Types of NumPy arrays, by what they hold, and arrays whose rows move to other places."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

Kind = TypeVar("Kind", bound=np.generic)
Value = TypeVar("Value")


def places_before(new: Iterable[int], old: Mapping[int, int]) -> Ints:
    """Return, for each id, the place that it had before; −1 for a new one.

    Args:
        new: the ids, each at its present place.
        old: by id, its place before.

    >>> places_before([7, 9, 8], {6: 0, 7: 1, 8: 2}).tolist()
    [1, -1, 2]
    """
    return np.array([old.get(number, -1) for number in new], dtype=np.int64)


def moved(values: NDArray[Kind], before: Ints) -> NDArray[Kind]:
    """Return an array after its last axis was rearranged.

    Args:
        before: for each place, where its value was before (`places_before`). New places get 0.

    >>> moved(np.array([5, 6, 7]), np.array([1, -1, 2])).tolist()
    [6, 0, 7]
    """
    stays = before >= 0
    rearranged = np.zeros((*values.shape[:-1], len(before)), dtype=values.dtype)
    rearranged[..., stays] = values[..., before[stays]]
    return rearranged


def moved_keys(values: Mapping[int, Value], before: Ints) -> dict[int, Value]:
    """Return a mapping whose keys are places, after these were rearranged.

    >>> moved_keys({1: "b", 0: "a"}, np.array([1, -1]))
    {0: 'b'}
    """
    return {place: values[old] for place, old in enumerate(before.tolist()) if old in values}


def grouped(groups: Ints, count: int) -> list[Ints]:
    """Return the places of each group, in ascending order.

    >>> [places.tolist() for places in grouped(np.array([1, 0, 1, -1]), 3)]
    [[1], [0, 2], []]
    """
    order = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[order], np.arange(count + 1))
    return [order[bounds[group] : bounds[group + 1]] for group in range(count)]
