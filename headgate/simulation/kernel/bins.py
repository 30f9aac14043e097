"""The bin of a tally that counts a value, compiled. A table: logarithms took 4 % of a run."""

from math import inf, log, nan, nextafter
from typing import Any

import numpy as np

from headgate.compiled import from_zero, inlined
from headgate.metrics.tally import BINS, SMALLEST, STEP
from headgate.model.arrays import Floats, Ints

A_BIN = float(1.0 / np.log(STEP))
SHIFT = 46
"""Values whose bits above this agree share a cell: 64 per power of 2, so narrower than a bin."""


def bin_by_logarithm(value: float) -> int:
    """Compute the bin that counts a value, as a reference for the table of `bin_of`."""
    return 0 if value <= SMALLEST else min(int(log(value / SMALLEST) * A_BIN), BINS - 1)


def _edges() -> Floats:
    """Return the smallest value of every bin, and then NaN, which no value reaches."""
    edges = np.full(BINS + 1, nan)
    edges[0] = 0.0
    for number in range(1, BINS):
        edge = SMALLEST * STEP**number
        while bin_by_logarithm(edge) >= number:
            edge = nextafter(edge, 0.0)
        while bin_by_logarithm(edge) < number:
            edge = nextafter(edge, inf)
        edges[number] = edge
    return edges


def _bins(edges: Floats) -> Ints:
    """Return the bin of every cell's smallest value."""
    first, last = edges[1:-1].view(np.int64)[[0, -1]] >> SHIFT
    smallest = (np.arange(first, last + 1) << SHIFT).view(np.float64)
    return np.searchsorted(edges, smallest, side="right") - 1


EDGES = _edges()
BIN_OF_CELL = _bins(EDGES)
FIRST_CELL = int(EDGES[1:2].view(np.int64)[0] >> SHIFT)


@inlined
def bin_of(value: float) -> int:
    """Return the bin of a tally that counts a value of 0 or more."""
    bits: Any = np.float64(value).view(np.int64)
    place = BIN_OF_CELL[max(0, min((bits >> SHIFT) - FIRST_CELL, len(BIN_OF_CELL) - 1))]
    return from_zero(place) + (value >= EDGES[from_zero(place) + 1])
