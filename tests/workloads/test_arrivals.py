"""When tuples arrive."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import ConfigRefused
from headgate.workloads.arrivals import Bursts

bursts = st.builds(
    lambda rate, factor, every_s, share: Bursts(
        rate_per_s=rate, burst_factor=factor, burst_every_s=every_s, burst_for_s=every_s * share
    ),
    st.floats(0.5, 5000.0),
    st.floats(0.25, 20.0),
    st.floats(1.0, 60.0),
    st.sampled_from([0.0, 0.1, 0.25, 0.9]),
)


def test_a_quiet_stream_is_evenly_spaced() -> None:
    assert Bursts(rate_per_s=4).times_s(0, 4) == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_a_cycle_begins_quiet_and_ends_with_its_burst() -> None:
    arrivals = Bursts(rate_per_s=1, burst_factor=4, burst_every_s=10, burst_for_s=2)
    times_s = arrivals.times_s(0, 18)
    assert times_s[:8] == pytest.approx([1, 2, 3, 4, 5, 6, 7, 8])
    assert times_s[8:16] == pytest.approx([8.25, 8.5, 8.75, 9, 9.25, 9.5, 9.75, 10])
    assert times_s[16:] == pytest.approx([11, 12])


def test_the_count_of_a_cycle_is_quiet_seconds_and_burst_seconds_at_their_rates() -> None:
    arrivals = Bursts(rate_per_s=100, burst_factor=4, burst_every_s=10, burst_for_s=2)
    assert [arrivals.count_by(at_s) for at_s in (0, 8, 9, 10, 20)] == [0, 800, 1200, 1600, 3200]


def test_nothing_has_arrived_before_the_start() -> None:
    assert Bursts(rate_per_s=100).count_by(-5.0) == 0


@given(arrivals=bursts, number=st.integers(0, 200_000))
def test_count_and_time_agree_on_every_tuple(arrivals: Bursts, number: int) -> None:
    before_s, at_s, after_s = arrivals.times_s(number, number + 3)
    assert arrivals.count_by((before_s + at_s) / 2) == number + 1
    assert arrivals.count_by((at_s + after_s) / 2) == number + 2
    assert abs(arrivals.count_by(float(at_s)) - (number + 2)) <= 1


@given(arrivals=bursts, first=st.integers(0, 5000), count=st.integers(0, 500))
def test_a_source_can_resume_anywhere(arrivals: Bursts, first: int, count: int) -> None:
    whole = arrivals.times_s(0, first + count)
    assert arrivals.times_s(first, first + count) == pytest.approx(whole[first:])
    assert (np.diff(whole) > 0).all()


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("rate_per_s", 0.0, "above 0"),
        ("rate_per_s", -3.0, "above 0"),
        ("rate_per_s", float("nan"), "above 0"),
        ("rate_per_s", float("inf"), ""),
        ("burst_factor", 0.0, "above 0"),
        ("burst_every_s", 0.0, "above 0"),
        ("burst_for_s", -1.0, "from 0 to below burst_every_s"),
        ("burst_for_s", 20.0, "from 0 to below burst_every_s"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_key(
    key: str, value: float, expected: str
) -> None:
    with pytest.raises(ConfigRefused, match=f"arrivals: {key} is {value}.*{expected}"):
        Bursts(**{"rate_per_s": 1.0, key: value})
