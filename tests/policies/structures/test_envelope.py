"""The lower envelope of a progress chart (BZ §4, §5)."""

from fractions import Fraction
from itertools import pairwise
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.policies.structures.envelope import lower_envelope, steepest_line

Pieces = list[tuple[int, int]]

pieces = st.lists(st.tuples(st.integers(1, 9), st.integers(-5, 9)), min_size=1, max_size=8)


def cuts(chart: list[tuple[float, float]]) -> list[tuple[int, int]]:
    return [(segment.first, segment.end) for segment in lower_envelope(chart)]


def lines_drawn_one_by_one(chart: Pieces) -> list[tuple[int, int]]:
    """Cut a chart as the paper does: of all lines from the start take the steepest, and repeat."""
    segments, first = [], 0
    while first < len(chart):
        lines = {
            end: Fraction(
                sum(drop for _, drop in chart[first:end]), sum(time for time, _ in chart[first:end])
            )
            for end in range(first + 1, len(chart) + 1)
        }
        end = max(lines, key=lambda line_end: (lines[line_end], line_end))
        segments.append((first, end))
        first = end
    return segments


def test_a_long_first_operator_takes_both_branches_into_its_segment() -> None:
    # BZ Figure 7(b): C gives no output; C + A alone is slower than C + A + B.
    assert cuts([(6, 0), (1, 1), (2, 1)]) == [(0, 3)]


def test_a_short_first_operator_leaves_the_slow_branch_to_a_segment_of_its_own() -> None:
    # BZ Figure 7(a): C + A gives an output every 1.5 s, B every 2 s.
    assert cuts([(0.5, 0), (1, 1), (2, 1)]) == [(0, 2), (2, 3)]


@given(chart=pieces)
def test_segments_are_the_steepest_lines_one_after_the_other(chart: Pieces) -> None:
    assert cuts([(float(time), float(drop)) for time, drop in chart]) == lines_drawn_one_by_one(
        chart
    )


@given(chart=pieces)
def test_the_envelope_is_convex_and_loses_nothing(chart: Pieces) -> None:
    segments = lower_envelope(chart)
    slopes = [segment.slope for segment in segments]
    assert all(before > after for before, after in pairwise(slopes))
    assert sum(segment.time_s for segment in segments) == sum(time for time, _ in chart)
    assert sum(segment.drop for segment in segments) == sum(drop for _, drop in chart)


@given(chart=pieces)
def test_every_end_of_a_segment_is_at_least_as_steep_as_the_segment(chart: Pieces) -> None:
    for segment in lower_envelope(chart):
        for cut in range(segment.first, segment.end):
            rest = chart[cut : segment.end]
            slope = Fraction(sum(drop for _, drop in rest), sum(time for time, _ in rest))
            assert slope >= Fraction(int(segment.drop), int(segment.time_s))


@given(chart=pieces)
def test_the_steepest_line_is_the_first_segment(chart: Pieces) -> None:
    times, drops = np.array(chart, dtype=np.float64).T
    first = lower_envelope(chart)[0]
    assert steepest_line(times, drops) == (first.end, pytest.approx(first.slope))


def test_a_chart_without_pieces_has_no_segments() -> None:
    assert lower_envelope([]) == []


def test_what_takes_no_time_falls_at_once() -> None:
    assert lower_envelope([(0, 1)])[0].slope == inf
    assert lower_envelope([(0, -1)])[0].slope == -inf
    assert cuts([(0, -1), (1, 3)]) == [(0, 2)]
    assert steepest_line(np.array([0.0, 1.0]), np.array([1.0, 5.0])) == (1, inf)


def test_pieces_that_no_tuple_reaches_belong_to_the_segment_before() -> None:
    assert cuts([(1, 5), (0, 0), (0, 0)]) == [(0, 3)]


def test_a_piece_without_figures_is_a_segment_of_its_own() -> None:
    assert cuts([(1, 1), (nan, 1), (1, 9)]) == [(0, 1), (1, 2), (2, 3)]
