"""Which tuples are dropped: a function of their numbers and values alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import ConfigRefused
from headgate.model.drop import PARTS, Drop, ValueGraph, random_parts

NUMBERS = st.lists(st.integers(0, 2**40), min_size=1, max_size=50)


@given(NUMBERS, st.floats(0, 1), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_a_larger_fraction_drops_the_same_tuples_and_others(
    numbers: list[int], one: float, other: float, seed: int
) -> None:
    few, many = (Drop(fraction, seed).covers(numbers) for fraction in sorted((one, other)))
    assert not (few & ~many).any()


@given(NUMBERS, st.floats(0, 1), st.integers(0, 49))
def test_a_tuple_is_dropped_or_not_whatever_else_the_call_takes(
    numbers: list[int], fraction: float, cut: int
) -> None:
    drop = Drop(fraction, 7)
    apart = np.concatenate([drop.covers(numbers[:cut]), drop.covers(numbers[cut:])])
    assert apart.tolist() == drop.covers(numbers).tolist()


@pytest.mark.parametrize("fraction", [0.0, 0.05, 0.3, 1.0])
def test_a_fraction_of_many_tuples_is_dropped(fraction: float) -> None:
    shares = [Drop(fraction, seed).covers(np.arange(100_000)).mean() for seed in (0, 1)]
    assert shares == pytest.approx([fraction] * 2, abs=0.005)


def test_two_streams_drop_independently() -> None:
    one, other = (Drop(0.5, seed).covers(np.arange(100_000)) for seed in (1, 2))
    assert (one & other).mean() == pytest.approx(0.25, abs=0.01)


def test_random_numbers_have_a_fixed_range() -> None:
    parts = random_parts(np.arange(10_000))
    assert (parts.min(), parts.max()) >= (0, 0)
    assert parts.max() < PARTS


HEAT = ValueGraph("heat", ((20.0, 0.0), (40.0, 2.0)))


def test_by_value_the_least_useful_are_dropped() -> None:
    drop = Drop(0.5, value=HEAT, threshold=0.5)
    covered = drop.covers(range(5), [10.0, 29.0, 30.0, 50.0, float("nan")])
    assert covered.tolist() == [True, True, False, False, True]


def test_a_value_graph_may_rise_and_fall() -> None:
    middle = ValueGraph("heat", ((0.0, 0.0), (10.0, 4.0), (20.0, 0.0)))
    assert middle.utilities([0.0, 5.0, 10.0, 15.0, 30.0]).tolist() == [0.0, 0.5, 1.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ((), "at least one point"),
        (((1.0, 0.0), (1.0, 1.0)), "in strictly ascending value"),
        (((1.0, 0.0), (2.0, 0.0)), "at least one above 0"),
        (((1.0, -1.0), (2.0, 1.0)), "utilities of 0 or more"),
    ],
)
def test_a_value_graph_that_makes_no_sense_is_refused(
    points: tuple[tuple[float, float], ...], expected: str
) -> None:
    with pytest.raises(ConfigRefused, match=expected):
        ValueGraph("heat", points)
