"""Poisson arrivals: at a constant rate, or one that changes every few seconds (AMoS §4.1)."""

from collections.abc import Sequence
from math import inf

import numpy as np

from headgate.model.arrays import Floats
from headgate.workloads.random_generators import generator
from headgate.workloads.value_checks import above_zero, between, demand, whole


def poisson(rate_per_s: float, tuples: int, seed: int) -> Floats:
    """Return the arrival times of a Poisson stream, in seconds from the start.

    >>> times_s = poisson(rate_per_s=100.0, tuples=50_000, seed=1)
    >>> bool(abs(times_s[-1] - 500.0) < 10.0)
    True
    """
    above_zero("poisson", rate_per_s=rate_per_s)
    whole("poisson", tuples=tuples)
    return np.cumsum(generator(seed, "gaps").exponential(1.0 / rate_per_s, tuples))


def changing_poisson(
    rates_per_s: Sequence[float] | Floats, tuples: int, seed: int, *, every_s: float = 5.0
) -> Floats:
    """Return the times of a Poisson stream whose mean rate changes every few seconds (AMoS §4.1).

    Each rate lasts `every_s` seconds; after the last one, the first follows again. The times of a
    stream of rate 1 are mapped through the expected number of tuples Λ(t), which is exact:
    t = Λ⁻¹(unit time).
    """
    rates = np.asarray(rates_per_s, dtype=np.float64)
    usable = len(rates) > 0 and bool(((rates >= 0) & (rates < inf)).all()) and rates.sum() > 0
    expected = "rates of 0 or more tuples a second, one at least above 0"
    demand(usable, "changing_poisson", "rates_per_s", list(rates_per_s), expected)
    above_zero("changing_poisson", every_s=every_s)
    whole("changing_poisson", tuples=tuples)
    expected_by = np.concatenate([[0.0], np.cumsum(rates * every_s)])
    unit_times = np.cumsum(generator(seed, "gaps").exponential(1.0, tuples))
    rounds, rest = np.divmod(unit_times, expected_by[-1])
    starts_s = np.arange(len(rates) + 1) * every_s
    times_s: Floats = rounds * starts_s[-1] + np.interp(rest, expected_by, starts_s)
    return np.maximum.accumulate(times_s)


def changing_rates(rate_per_s: float, intervals: int, seed: int, *, swing: float = 0.75) -> Floats:
    """Return a rate for each interval, uniform from (1 − swing) to (1 + swing) times the mean."""
    above_zero("changing_rates", rate_per_s=rate_per_s)
    whole("changing_rates", intervals=intervals)
    between("changing_rates", 0.0, 1.0, swing=swing)
    return generator(seed, "rates").uniform(1.0 - swing, 1.0 + swing, intervals) * rate_per_s
