"""Non-negative least squares, checked against the conditions of a minimum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.runtime.what_if.least_squares import least_squares


def test_what_is_positive_is_found_exactly() -> None:
    matrix = np.random.default_rng(1).uniform(0, 1, (40, 6))
    x = np.array([0.5, 2.0, 0.0, 1e-3, 7.0, 0.25])
    solution = least_squares(matrix.T @ matrix, matrix.T @ (matrix @ x))
    assert solution == pytest.approx(x, abs=1e-6)


def test_columns_of_very_different_size_are_told_apart() -> None:
    tuples = np.array([10.0, 5_000.0, 80_000.0, 400.0])
    matrix = np.column_stack([np.ones(4), tuples])
    solution = least_squares(matrix.T @ matrix, matrix.T @ (0.05 + 3e-6 * tuples))
    assert solution == pytest.approx([0.05, 3e-6], rel=1e-4)


def test_a_column_that_never_occurs_gets_nothing() -> None:
    assert least_squares(np.diag([0.0, 2.0]), np.array([0.0, 4.0])).tolist() == [0.0, 2.0]


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_no_direction_leads_further_down(seed: int, columns: int) -> None:
    generator = np.random.default_rng(seed)
    matrix, y = generator.normal(size=(20, columns)), generator.normal(size=20)
    solution = least_squares(matrix.T @ matrix, matrix.T @ y)
    slope = matrix.T @ (matrix @ solution - y)
    assert np.all(solution >= 0)
    assert np.all(slope >= -1e-6)
    assert np.abs(slope * solution).max() < 1e-6
