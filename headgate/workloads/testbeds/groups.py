"""Evenly spaced tuples, and tuples collected into bursts (Aurora §5.4, Sharaf §4.4.2)."""

import numpy as np

from headgate.model.arrays import Floats
from headgate.workloads.value_checks import above_zero, demand, whole


def evenly_spaced(rate_per_s: float, tuples: int, *, phase: float = 1.0) -> Floats:
    """Return evenly spaced times, the first after `phase` of a gap.

    >>> evenly_spaced(4.0, 4).tolist()
    [0.25, 0.5, 0.75, 1.0]
    """
    above_zero("evenly_spaced", rate_per_s=rate_per_s)
    whole("evenly_spaced", tuples=tuples)
    demand(0 <= phase <= 1, "evenly_spaced", "phase", phase, "between 0 and 1")
    return np.asarray((np.arange(tuples) + phase) / rate_per_s, dtype=np.float64)


def gathered(rate_per_s: float, tuples: int, *, burst: int, phase: float = 1.0) -> Floats:
    """Return the times of evenly spaced tuples that are delivered in groups (Aurora §5.4).

    The n tuples of a group arrive at once, and then nothing for the time of n evenly spaced ones.
    The groups of a stream are evenly spaced, the first after `phase` of the time between two of
    them: so those of streams with random phases are as far from each other as their tuples were.
    The mean rate stays the same.

    >>> gathered(4.0, 6, burst=2).tolist()
    [0.5, 0.5, 1.0, 1.0, 1.5, 1.5]
    """
    whole("gathered", burst=burst, tuples=tuples)
    groups_s = evenly_spaced(rate_per_s / burst, -(-tuples // burst), phase=phase)
    return np.repeat(groups_s, burst)[:tuples]


def burst_together(times_s: Floats, *, burst: int = 10) -> Floats:
    """Return times at which every n consecutive tuples arrive with the first (Sharaf §4.4.2).

    >>> burst_together(np.array([1.0, 2.0, 4.0, 7.0, 9.0]), burst=2).tolist()
    [1.0, 1.0, 4.0, 4.0, 9.0]
    """
    whole("burst_together", burst=burst)
    return times_s[np.arange(len(times_s)) // burst * burst]
