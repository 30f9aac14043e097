"""Self-similar arrivals: the sum of on/off sources with heavy-tailed periods (Sharaf §3.7)."""

import numpy as np
from numpy.random import Generator

from headgate.model.arrays import Floats
from headgate.workloads.random_generators import generator
from headgate.workloads.value_checks import above_zero, demand, whole


def pareto_on_off(
    rate_per_s: float,
    tuples: int,
    seed: int,
    *,
    sources: int = 10,
    shape: float = 1.5,
    on_tuples: float = 50.0,
    off_to_on: float = 3.0,
) -> Floats:
    """Return the arrival times of a stream that is bursty at every scale, as network traffic is.

    Each source alternates between silence and sending. Both periods are Pareto distributed, and
    while a source sends, its tuples are evenly spaced. The sum of many sources is self-similar with
    H = (3 − shape) / 2. It replaces the trace LBL-PKT-4, whose "On/Off traffic" the thesis uses and
    which is not available. All times scale with the rate: the same seed at twice the rate is the
    same stream, twice as fast. With heavy tails, the mean rate of a run may be far from
    `rate_per_s`: measure it, do not assume it.

    The defaults follow a real Ethernet trace, BC-pAug89 of the same archive. At its rate, the
    counts in bins of 0.1, 1 and 10 s have a variance of 10, 41 and 201 times their mean in the
    trace, about 9, 38 and 160 here, and 1 in a Poisson stream.

    Args:
        shape: of the Pareto distribution; 1.4 to 1.6 fit measured traffic.
        on_tuples: mean number of tuples in one sending period.
        off_to_on: mean silence over mean sending; a source sends at 1 + off_to_on times its mean.

    >>> len(pareto_on_off(rate_per_s=400.0, tuples=1000, seed=1))
    1000
    """
    subject = "pareto_on_off"
    above_zero(subject, rate_per_s=rate_per_s, on_tuples=on_tuples, off_to_on=off_to_on)
    whole(subject, tuples=tuples, sources=sources)
    demand(1 < shape < 2, subject, "shape", shape, "above 1 and below 2: a mean, but no variance")
    peak = (1.0 + off_to_on) / sources
    on = on_tuples / peak
    horizon = 1.2 * tuples + 10.0 * on
    while True:
        parts = [
            _source(generator(seed, "source", source), shape, on, on * off_to_on, peak, horizon)
            for source in range(sources)
        ]
        times = np.sort(np.concatenate(parts))
        if len(times) >= tuples:
            return times[:tuples] / rate_per_s
        horizon *= 2.0


def _source(
    rng: Generator, shape: float, on: float, off: float, peak: float, horizon: float
) -> Floats:
    """Return the times of one source up to the horizon, for a whole stream of rate 1.

    Tuples are evenly spaced on a clock that runs only while the source sends. The silences before a
    tuple are then added to its time. So short periods lose nothing to rounding.
    """
    begins_on, phase = rng.random(2)
    least = (shape - 1.0) / shape
    ons, offs = np.zeros(0), np.zeros(0)
    while ons.sum() + offs[1:].sum() < horizon:
        periods = 1.0 + rng.pareto(shape, (256, 2))
        ons = np.concatenate([ons, on * least * periods[:, 0]])
        offs = np.concatenate([offs, off * least * periods[:, 1]])
    if begins_on < on / (on + off):
        offs[0] = 0.0
    sending = np.cumsum(ons)
    clock = (np.arange(int(sending[-1] * peak - phase)) + phase) / peak
    times: Floats = clock + np.cumsum(offs)[np.searchsorted(sending, clock, side="right")]
    return times[times <= horizon]
