"""Poisson arrivals."""

import numpy as np
import pytest

from headgate.errors import ConfigRefused
from headgate.workloads.poisson import changing_poisson, changing_rates, poisson


@pytest.mark.parametrize("seed", range(5))
def test_the_gaps_of_a_poisson_stream_have_the_mean_and_the_spread_of_their_rate(seed: int) -> None:
    gaps_s = np.diff(poisson(250.0, 40_000, seed), prepend=0.0)
    # The mean of 40 000 gaps is off by 0.5 % of the true one (1 deviation), their spread by 0.7 %.
    assert gaps_s.mean() == pytest.approx(1 / 250, rel=0.025)
    assert gaps_s.std() == pytest.approx(1 / 250, rel=0.035)


def test_counts_of_a_poisson_stream_vary_as_much_as_their_mean() -> None:
    counts = np.bincount(poisson(100.0, 100_000, seed=3).astype(int))[:-1]
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("seed", range(3))
def test_each_interval_of_a_changing_stream_has_its_own_rate(seed: int) -> None:
    rates_per_s = [20.0, 200.0, 80.0]
    times_s = changing_poisson(rates_per_s, 30_000, seed, every_s=5.0)
    counts = np.bincount((times_s / 5.0).astype(int))[:-1]
    whole_rounds = counts[: len(counts) // 3 * 3].reshape(-1, 3)
    assert len(whole_rounds) >= 19
    assert whole_rounds.mean(axis=0) / 5.0 == pytest.approx(rates_per_s, rel=0.06)
    # Inside an interval it is Poisson: counts of one and the same rate vary as their mean.
    assert (whole_rounds.var(axis=0) / whole_rounds.mean(axis=0) < 3).all()


def test_nothing_arrives_in_an_interval_of_rate_0() -> None:
    times_s = changing_poisson([0.0, 100.0], 2_000, seed=1, every_s=2.0)
    assert (times_s % 4.0 >= 2.0).all()
    assert (np.diff(times_s) >= 0).all()


def test_one_rate_all_the_time_is_a_poisson_stream() -> None:
    steady = changing_poisson([50.0], 1_000, seed=9)
    assert steady == pytest.approx(poisson(50.0, 1_000, seed=9))


def test_rates_swing_around_their_mean() -> None:
    rates_per_s = changing_rates(100.0, 2_000, seed=4, swing=0.75)
    assert rates_per_s.mean() == pytest.approx(100.0, rel=0.04)
    assert (rates_per_s.min(), rates_per_s.max()) == pytest.approx((25.0, 175.0), abs=2.0)


@pytest.mark.parametrize("rate_per_s", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_that_cannot_be_is_refused(rate_per_s: float) -> None:
    with pytest.raises(ConfigRefused, match=r"rate_per_s is .* above 0 and finite"):
        poisson(rate_per_s, 10, 0)


@pytest.mark.parametrize("rates_per_s", [[], [0.0], [1.0, -2.0], [float("inf")], [float("nan")]])
def test_rates_that_cannot_be_are_refused(rates_per_s: list[float]) -> None:
    with pytest.raises(ConfigRefused, match=r"rates_per_s is .* one at least above 0"):
        changing_poisson(rates_per_s, 10, 0)


@pytest.mark.parametrize("tuples", [0, -5, 1.5])
def test_a_number_of_tuples_that_cannot_be_is_refused(tuples: int) -> None:
    with pytest.raises(ConfigRefused, match=r"tuples is .* a whole number, 1 or more"):
        poisson(1.0, tuples, 0)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ConfigRefused, match="seed is -1"):
        poisson(1.0, 10, -1)
