"""Stale time is the union of the periods in which tuples waited that were output."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.metrics import stale_time
from headgate.metrics.stale_time import StaleTime

PERIODS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 30)).map(lambda pair: (pair[0], sum(pair))),
    max_size=40,
).map(lambda periods: sorted(periods, key=lambda period: period[1]))


def seconds_covered(periods: list[tuple[int, int]], since: int, before: int) -> int:
    covered = {second for begin, end in periods for second in range(begin, end)}
    return len([second for second in covered if since <= second < before])


@given(PERIODS, st.integers(0, 30), st.integers(0, 90))
def test_stale_time_is_the_length_of_the_union(
    periods: list[tuple[int, int]], since: int, before: int
) -> None:
    stale = StaleTime(since)
    for period in periods:
        stale.add(*period)
    assert stale.seconds == seconds_covered(periods, since, 1000)
    assert stale.before(before) == seconds_covered(periods, since, before)


def test_old_periods_are_only_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stale_time, "MOST_OPEN", 4)
    stale = StaleTime()
    for second in range(100):
        stale.add(second, second + 0.5)
    assert stale.seconds == 50


def test_staleness_of_updates_is_the_share_of_time_in_which_one_waited() -> None:
    """Sharaf §4.1.2: updates wait t1, t2 and t3 in a period from Tx to Ty."""
    stale = StaleTime()
    for arrived_at_s, visible_at_s in ((1.0, 1.5), (4.0, 6.0), (7.0, 7.25)):
        stale.add(arrived_at_s, visible_at_s)
    assert stale.seconds / (10.0 - 0.0) == (0.5 + 2.0 + 0.25) / 10.0
