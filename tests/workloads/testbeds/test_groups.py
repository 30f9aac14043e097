"""Evenly spaced tuples and bursts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import ConfigRefused
from headgate.workloads.poisson import poisson
from headgate.workloads.testbeds.groups import burst_together, evenly_spaced, gathered


def test_a_group_comes_at_once_and_then_nothing_until_the_next() -> None:
    assert gathered(2.0, 6, burst=3) == pytest.approx([1.5, 1.5, 1.5, 3.0, 3.0, 3.0])
    assert gathered(2.0, 5, burst=3, phase=0.0) == pytest.approx([0.0, 0.0, 0.0, 1.5, 1.5])


@given(st.floats(0.1, 1000.0), st.integers(1, 500), st.integers(1, 20), st.floats(0.0, 1.0))
def test_gathering_keeps_the_tuples_and_their_rate(
    rate_per_s: float, tuples: int, burst: int, phase: float
) -> None:
    even = evenly_spaced(rate_per_s, tuples, phase=phase)
    groups = gathered(rate_per_s, tuples, burst=burst, phase=phase)
    assert len(groups) == tuples
    assert groups[::burst] == pytest.approx(even[: len(groups[::burst])] * burst)
    assert all(len(set(groups[first : first + burst])) == 1 for first in range(0, tuples, burst))


def test_a_burst_of_one_changes_nothing() -> None:
    times_s = poisson(10.0, 100, seed=1)
    assert (burst_together(times_s, burst=1) == times_s).all()


def test_every_ten_tuples_of_a_poisson_stream_arrive_with_the_first() -> None:
    times_s = poisson(10.0, 1_005, seed=1)
    bursts = burst_together(times_s).tolist()
    assert bursts[:10] == [times_s[0]] * 10
    assert bursts[1000:] == [times_s[1000]] * 5
    assert len(set(bursts)) == 101


@pytest.mark.parametrize(
    ("rate_per_s", "burst", "phase", "key"),
    [(-1.0, 2, 1.0, "rate_per_s"), (1.0, 0, 1.0, "burst"), (1.0, 2, 1.5, "phase")],
)
def test_a_setting_that_cannot_be_is_refused(
    rate_per_s: float, burst: int, phase: float, key: str
) -> None:
    with pytest.raises(ConfigRefused, match=f"{key} is"):
        gathered(rate_per_s, 10, burst=burst, phase=phase)
