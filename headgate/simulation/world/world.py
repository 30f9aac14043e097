"""The state of a simulation as arrays, which the compiled kernel reads and writes.

There is one record array per kind of object. All of them can be inspected with NumPy.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headgate.model.arrays import Floats, Ints
from headgate.model.network.unit_table import UNIT, UnitTable
from headgate.simulation.world.records import (
    CLOCK,
    CLOSING,
    ENTRY,
    FIGURE,
    QUEUE,
    RESULT,
    SAMPLE,
    SETTINGS,
    STAGE,
    STREAM,
    WINDOW,
    WORKER,
    Records,
)

Counts = NDArray[np.int32]

DONE, UNTIL, GROW, MORE, DECIDE = range(5)
"""Why the loop returned: nothing is left to run; the instant is reached; an array is too small; the
maximum number of decisions was made; a decision is due that Python makes."""

FIELDS = {
    "settings": (SETTINGS, 1),
    "clock": (CLOCK, 1),
    "table": (UNIT, 1),
    "queues": (QUEUE, 1),
    "stages": (STAGE, 1),
    "figures": (FIGURE, 1),
    "pool": (ENTRY, 1),
    "windows": (WINDOW, 1),
    "closings": (CLOSING, 1),
    "streams": (STREAM, 1),
    "results": (RESULT, 1),
    "workers": (WORKER, 1),
    "samples": (SAMPLE, 1),
    "class_pending": (np.int64, 1),
    "class_samples": (np.int64, 2),
    "links": (np.int64, 1),  # readers of streams, fills and queries of stages, courses of units
    "changed": (np.int64, 1),
    "arrivals": (np.float64, 1),
    "order": (np.int32, 1),  # streams in the order of all arrivals
    "order_at_s": (np.float64, 1),
    "holders": (np.int32, 1),  # how many holders a source tuple still has
    "left_s": (np.float64, 1),  # when a source tuple was done in the last call that took it
    "late_s": (np.float64, 2),  # how late each window is by its tuples so far, and would be alone
    "floats": (np.float64, 1),  # costs and fates of single tuples, QoS points
    "drift": (np.float64, 2),
    "shed": (np.float64, 2),
    "response_bins": (np.int32, 2),
    "slowdown_bins": (np.int32, 2),
    "kept": (np.float64, 1),  # (query, arrived, departed) of every output, with `keep`
    "stack": (ENTRY, 1),
}
"""Every array of a world, with its item type and its number of dimensions."""

WORDS = 3
"""Words per array at `World.address`: its address, and its length in one or two dimensions."""


@dataclass
class World:
    """The whole state of a simulation. Compiled functions use the same attribute names.

    The arrays never move. To grow an array, make a new world with `dataclasses.replace`.
    """

    settings: Records
    clock: Records
    table: UnitTable
    queues: Records
    stages: Records
    figures: Records
    pool: Records
    windows: Records
    closings: Records
    streams: Records
    results: Records
    workers: Records
    samples: Records
    class_pending: Ints
    class_samples: Ints
    links: Ints
    changed: Ints
    arrivals: Floats
    order: Counts
    order_at_s: Floats
    holders: Counts
    left_s: Floats
    late_s: Floats
    floats: Floats
    drift: Floats
    shed: Floats
    response_bins: Counts
    slowdown_bins: Counts
    kept: Floats
    stack: Records

    def __post_init__(self) -> None:
        self._words = np.zeros(WORDS * len(FIELDS), dtype=np.int64)
        for number, name in enumerate(FIELDS):
            array = getattr(self, name)
            place = WORDS * number
            self._words[place] = array.ctypes.data
            self._words[place + 1 : place + 1 + array.ndim] = array.shape

    @property
    def address(self) -> int:
        """Return the address of the list of array addresses and lengths, for compiled code."""
        return int(self._words.ctypes.data)
