"""Mean, maximum, norm and quantiles against NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.metrics.tally import Tally

values = st.lists(st.floats(1e-6, 9e4), min_size=1, max_size=60)


def tally_of(*batches: list[float]) -> Tally:
    tally = Tally()
    for batch in batches:
        tally.add(np.array(batch))
    return tally


def test_a_worked_example() -> None:
    summary = tally_of([3.0], [4.0, 12.0]).summary()
    assert (summary.count, summary.maximum) == (3, 12.0)
    assert summary.mean == pytest.approx(19 / 3)
    assert summary.norm == pytest.approx(13)


@given(batches=st.lists(values, min_size=1, max_size=4))
def test_mean_maximum_and_norm_are_exact(batches: list[list[float]]) -> None:
    every, summary = np.concatenate(batches), tally_of(*batches).summary()
    assert summary.count == len(every)
    assert summary.mean == pytest.approx(every.mean())
    assert summary.maximum == every.max()
    assert summary.norm == pytest.approx(np.sqrt((every**2).sum()))


@given(batch=values, fraction=st.sampled_from([0.05, 0.5, 0.9, 0.95, 0.99, 1.0]))
def test_a_quantile_is_right_to_two_percent(batch: list[float], fraction: float) -> None:
    exact = np.quantile(batch, fraction, method="inverted_cdf")
    assert tally_of(batch).quantile(fraction) == pytest.approx(exact, rel=0.02)


@given(one=values, other=values)
def test_merging_two_tallies_counts_as_one_that_saw_all(
    one: list[float], other: list[float]
) -> None:
    merged = tally_of(one)
    merged.merge(tally_of(other))
    assert merged.summary().mean == pytest.approx(tally_of(one, other).summary().mean)
    assert merged.summary().norm == pytest.approx(tally_of(one, other).summary().norm)
    assert merged.summary().p95 == tally_of(one, other).summary().p95
    assert merged.summary().maximum == max(one + other)


def test_merging_leaves_the_other_tally_as_it_was() -> None:
    one, other = tally_of([1.0]), tally_of([2.0])
    one.merge(other)
    one.add(np.array([5.0]))
    assert other.summary().maximum == 2.0
    assert other.summary().count == 1


def test_of_nothing_there_is_no_mean() -> None:
    tally = tally_of([])
    assert tally.count == 0
    assert math.isnan(tally.summary().mean)
    assert math.isnan(tally.summary().p95)
    assert math.isnan(tally.summary().maximum)


@pytest.mark.parametrize("slowdown", [2e5, 3e6])
def test_a_slowdown_of_an_overloaded_cheap_query_has_its_quantile_too(slowdown: float) -> None:
    # A query of 20 µs a tuple that has waited a minute is slowed down three million times.
    tally = tally_of([slowdown] * 99, [10 * slowdown])
    assert tally.summary().p95 == pytest.approx(slowdown, rel=0.02)
