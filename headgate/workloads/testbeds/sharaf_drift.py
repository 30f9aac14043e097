"""Sharaf's drifting data: selectivities that change while the queries run (§3.8.5)."""

from math import erf, sqrt

import numpy as np

from headgate.model.arrays import Floats
from headgate.model.network.network import Network
from headgate.workloads.load import busy_share, measured_rate_per_s
from headgate.workloads.testbeds.sharaf import ONE_CLASS, PACKETS, drawn, packets
from headgate.workloads.testbeds.testbed import Testbed
from headgate.workloads.value_checks import above_zero, whole

VALUES = 100
"""Attributes have values up to 100."""


def drift(
    *,
    deviation: float = 5.0,
    first_mean: float = 50.0,
    intervals: int = 100,
    wraps: bool = True,
    queries: int = 500,
    utilisation: float = 0.95,
    tuples: int = 20_000,
    rate_per_s: float = 400.0,
    arrivals: Floats | None = None,
    seed: int = 0,
) -> Testbed:
    """Return the testbed of Figures 32 to 34.

    The run has 100 intervals. In each, values are Gaussian around a mean that begins at 50 and
    grows by one per interval. The operators have the selectivity that uniform values would have,
    which policies that do not adapt assume; the true ones are in `selectivities`. K follows from
    the true expected work, so that `utilisation` holds over the run, though not in each interval.

    Departs from the thesis, whose mean runs from 50 to 149 over values from 1 to 100, so that in
    the second half hardly any tuple would pass. Here values wrap around: 101 is 1 again.

    Args:
        wraps: with false, values above 100 stay as they are, and pass no condition.
    """
    above_zero("sharaf", deviation=deviation, utilisation=utilisation)
    whole("sharaf", intervals=intervals)
    traits = drawn(queries, seed)
    times_s = packets(tuples, rate_per_s, seed) if arrivals is None else arrivals
    rate = measured_rate_per_s(times_s)
    interval_s = float(times_s[-1]) / intervals
    interval = np.minimum((times_s / interval_s).astype(np.int64), intervals - 1)
    means = first_mean + np.arange(intervals)
    passing = {
        percent: np.array([share_up_to(percent, mean, deviation, wraps=wraps) for mean in means])
        for percent in sorted({trait.percent for trait in traits})
    }
    works = np.zeros(intervals)
    for trait in traits:
        works += trait.cost * (1 + passing[trait.percent] + passing[trait.percent] ** 2)
    unit_s = utilisation / (rate * float(works[interval].mean()))
    paths = [trait.path(number, unit_s) for number, trait in enumerate(traits)]
    return Testbed(
        name="sharaf drift",
        network=Network((PACKETS,), ONE_CLASS, tuple(paths)),
        arrivals={"packets": times_s},
        note=f"{queries} queries of select, stored join, project; values Gaussian, mean "
        f"{first_mean:g} and one more in each of {intervals} intervals, deviation {deviation:g}"
        + (", wrapped to 1 to 100" if wraps else ""),
        utilisation=utilisation,
        realised_utilisation=busy_share(
            {"packets": times_s}, {"packets": unit_s * works[interval]}
        ),
        selectivities={
            f"q{number}.{position}": passing[trait.percent]
            for number, trait in enumerate(traits)
            for position in (0, 1)
        },
        interval_s=interval_s,
    )


def share_up_to(bound: float, mean: float, deviation: float, *, wraps: bool = True) -> float:
    """Return the share of Gaussian values, wrapped to (0, 100], that are in (0, bound].

    Unless they wrap around, values of 0 and less count as well.

    >>> round(share_up_to(50, mean=50, deviation=5), 3), round(share_up_to(50, 130, 5), 3)
    (0.5, 1.0)
    """
    if not wraps:
        return _below((bound - mean) / deviation)
    if bound >= VALUES:
        return 1.0
    mean, reach = mean % VALUES, int(np.ceil(9 * deviation / VALUES)) + 1
    turns = VALUES * np.arange(-reach, reach + 1)
    total = sum(
        _below((turn + bound - mean) / deviation) - _below((turn - mean) / deviation)
        for turn in turns.tolist()
    )
    return min(max(total, 0.0), 1.0)


def _below(deviations: float) -> float:
    return 0.5 * (1.0 + erf(deviations / sqrt(2.0)))
