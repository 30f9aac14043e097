"""Priorities that grow while a tuple waits, against numbers worked out by hand."""

from types import SimpleNamespace

import pytest

from headgate.policies.wait import balanced_slowdown, longest_wait

# S = 0.5, C̄ = 2 s, T = 4 s; the oldest tuple came at 3 s.
UNIT = SimpleNamespace(selectivity=0.5, cost_s=2.0, ideal_s=4.0, head_arrived_at_s=3.0)


def test_fcfs_is_the_wait_of_the_oldest_tuple() -> None:
    assert longest_wait(UNIT, 10.0) == pytest.approx(7.0)


def test_bsd_is_selectivity_times_wait_over_cost_and_ideal_time_squared() -> None:
    assert balanced_slowdown(UNIT, 10.0) == pytest.approx(0.109375)  # 0.5 × 7 / (2 × 4²)


def test_bsd_is_the_normalised_rate_times_the_present_slowdown() -> None:
    assert balanced_slowdown(UNIT, 7.0) == pytest.approx((0.5 / (2 * 4)) * (4 / 4))


def test_a_tuple_that_has_just_come_has_no_claim_yet() -> None:
    assert longest_wait(UNIT, 3.0) == 0
    assert balanced_slowdown(UNIT, 3.0) == 0


def test_waiting_twice_as_long_doubles_both() -> None:
    assert longest_wait(UNIT, 13.0) == pytest.approx(2 * longest_wait(UNIT, 8.0))
    assert balanced_slowdown(UNIT, 13.0) == pytest.approx(2 * balanced_slowdown(UNIT, 8.0))
