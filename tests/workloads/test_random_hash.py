"""Random numbers without a generator."""

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headgate.workloads.random_hash import chance

whole_numbers = st.integers(0, 2**40)


@numba.njit
def chances(seed: int, count: int, operator: int) -> np.ndarray:
    return np.array([chance(seed, number, operator) for number in range(count)])


@given(seed=whole_numbers, number=whole_numbers, operator=st.integers(0, 100_000))
def test_a_chance_lies_from_0_to_below_1_and_depends_on_nothing_else(
    seed: int, number: int, operator: int
) -> None:
    value = chance(seed, number, operator)
    assert 0 <= value < 1
    assert chance(seed, number, operator) == value


def test_chances_are_uniform_for_every_seed_and_operator() -> None:
    for seed in (0, 1, 2, 1_000_003):
        for operator in (0, 1, 63, 64, 31_999):
            counts, _ = np.histogram(chances(seed, 20_000, operator), bins=20, range=(0, 1))
            # 19 degrees of freedom: 60 is exceeded once in 300 000 times.
            assert ((counts - 1000.0) ** 2 / 1000.0).sum() < 60


def test_chances_of_neighbouring_tuples_seeds_and_operators_are_not_related() -> None:
    one = chances(5, 20_000, 64)
    for other in (chances(6, 20_000, 64), chances(5, 20_000, 65), chances(5, 20_000, 128)):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.03
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 0.03
