"""Self-similar arrivals."""

import numpy as np
import pytest

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats
from headgate.workloads.on_off import pareto_on_off
from headgate.workloads.poisson import poisson

SCALES = np.array([1, 2, 5, 10, 20, 50, 100])


def variance_time_slope(times_s: Floats, bin_s: float) -> float:
    """Return how fast means over longer times settle: −1 for Poisson, 2H − 2 for self-similar."""
    counts = np.bincount((times_s / bin_s).astype(int))[:-1]
    variances = [
        counts[: len(counts) // scale * scale].reshape(-1, scale).mean(axis=1).var()
        for scale in SCALES
    ]
    return float(np.polyfit(np.log(SCALES), np.log(variances), 1)[0])


@pytest.mark.parametrize("seed", range(5))
def test_bursts_stay_at_every_scale_where_poisson_smooths_out(seed: int) -> None:
    bursty = variance_time_slope(pareto_on_off(400.0, 200_000, seed), 0.1)
    smooth = variance_time_slope(poisson(400.0, 200_000, seed), 0.1)
    assert bursty > -0.8
    assert smooth < -0.85


@pytest.mark.parametrize("seed", range(5))
def test_the_tails_are_heavy(seed: int) -> None:
    times_s = pareto_on_off(400.0, 100_000, seed)
    counts = np.bincount(times_s.astype(int))[:-1]
    assert counts.var() / counts.mean() > 10
    assert counts.max() / counts.mean() > 1.5


def test_dispersion_is_that_of_the_ethernet_trace_it_follows() -> None:
    for bin_s, low, high in ((0.1, 7, 11), (1.0, 30, 50), (10.0, 100, 250)):
        dispersions = []
        for seed in range(4):
            times_s = pareto_on_off(318.2, 300_000, seed)
            counts = np.bincount((times_s / bin_s).astype(int))[:-1]
            dispersions.append(counts.var() / counts.mean())
        assert low < np.mean(dispersions) < high


def test_the_mean_rate_is_as_asked_over_many_seeds_though_not_in_each() -> None:
    rates = [(50_000 - 1) / np.ptp(pareto_on_off(400.0, 50_000, seed)) for seed in range(20)]
    assert np.mean(rates) == pytest.approx(400.0, rel=0.08)
    assert np.max(np.abs(np.array(rates) / 400.0 - 1)) > 0.02


@pytest.mark.parametrize("shape", [1.4, 1.5, 1.6])
def test_times_ascend_and_are_as_many_as_asked(shape: float) -> None:
    times_s = pareto_on_off(100.0, 5_000, seed=2, shape=shape)
    assert len(times_s) == 5_000
    assert (np.diff(times_s) >= 0).all()
    assert times_s[0] >= 0


def test_twice_the_rate_is_the_same_stream_twice_as_fast() -> None:
    slow, fast = pareto_on_off(100.0, 3_000, seed=5), pareto_on_off(200.0, 3_000, seed=5)
    assert fast == pytest.approx(slow / 2)


def test_a_shorter_stream_is_the_beginning_of_a_longer_one() -> None:
    long, short = pareto_on_off(100.0, 30_000, seed=6), pareto_on_off(100.0, 1_000, seed=6)
    assert short == pytest.approx(long[:1_000])


def test_a_seed_gives_one_stream() -> None:
    one, again, other = (pareto_on_off(100.0, 1_000, seed) for seed in (7, 7, 8))
    assert (one == again).all()
    assert (one != other).any()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rate_per_s", 0.0),
        ("tuples", 0),
        ("sources", 0),
        ("shape", 1.0),
        ("shape", 2.0),
        ("on_tuples", -1.0),
        ("off_to_on", 0.0),
    ],
)
def test_a_setting_that_cannot_be_is_refused_with_its_key(key: str, value: float) -> None:
    settings = {"rate_per_s": 1.0, "tuples": 10, "seed": 0, key: value}
    with pytest.raises(ConfigRefused, match=f"pareto_on_off: {key} is {value}, but must be"):
        pareto_on_off(**settings)  # type: ignore[arg-type]  # one wrong value among right ones
