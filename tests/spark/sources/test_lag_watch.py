"""Which streams lag: old tuples, sources that are not polled, and when they have caught up."""

import pytest

from headgate.model.lag import Lag
from headgate.model.stream import Stream
from headgate.spark.journal.journal_rows import Train
from headgate.spark.sources.lag_watch import QUIET_S, LagWatch


def watched(trigger_s: float = 0.1) -> LagWatch:
    watch = LagWatch()
    watch.add(0, Stream(name="orders", format="json", trigger_s=trigger_s))
    return watch


def train(head_arrived_at_s: float) -> Train:
    return Train(0, 5, 0, head_arrived_at_s, head_arrived_at_s + 0.5)


def test_a_stream_lags_from_the_first_train_that_is_too_old_to_the_first_that_is_not() -> None:
    watch = watched()
    watch.arrived(0, train(99.0), 100.0)
    assert watch.lags({}, 100.0) == []
    watch.arrived(0, train(99.0), 110.0)
    watch.arrived(0, train(100.0), 120.0)
    assert watch.lags({}, 125.0) == [Lag("orders", 20.0, 110.0)]
    watch.arrived(0, train(129.0), 130.0)
    assert watch.lags({}, 130.0) == []


def test_the_time_between_two_polls_is_no_lag() -> None:
    watch = watched(trigger_s=60.0)
    watch.arrived(0, train(40.0), 100.0)
    assert watch.lags({"orders": 1.0}, 100.0) == []


def test_a_source_that_is_not_polled_lags_since_it_should_have_been() -> None:
    watch = watched()
    assert watch.lags({"orders": 8.0}, 100.0) == [Lag("orders", 8.0, 92.0)]
    watch.arrived(0, train(60.0), 100.0)
    assert watch.lags({"orders": 8.0}, 110.0) == [Lag("orders", 40.0, 100.0)]
    watch.forget("orders")
    assert watch.lags({"orders": 8.0}, 110.0) == []


@pytest.mark.parametrize("is_certain", [True, False])
def test_a_source_that_has_nothing_has_caught_up_at_once_if_it_can_tell(is_certain: bool) -> None:
    watch = watched()
    watch.arrived(0, train(40.0), 100.0)
    watch.emptied("orders", 100.1, is_certain=is_certain)
    assert bool(watch.lags({}, 100.1)) is not is_certain
    watch.emptied("orders", 100.0 + QUIET_S, is_certain=False)
    assert watch.lags({}, 100.0 + QUIET_S) == []
