"""The monitor measures every metric of a performance specification, interval by interval."""

from dataclasses import replace
from math import isnan

import numpy as np
import pytest
from kit.events import arrival, end
from kit.networks import line, network, select

from headgate.model.events import (
    Measured,
    PolicyChanged,
    QueryStopped,
    StepFinished,
    StepStarted,
)
from headgate.model.network.unit_table import UnitTable, unit_table
from headgate.model.network.units import units_of
from headgate.model.performance import METRICS
from headgate.policies import policy_named
from headgate.policies.amos import Amos
from headgate.scheduler.amos_monitor import AmosMonitor
from headgate.scheduler.scheduler import Scheduler

RUN_NETWORK = network(line("a", select(1.0)), line("b", select(1.0)))


@pytest.fixture
def table() -> UnitTable:
    return unit_table(units_of(RUN_NETWORK))


@pytest.fixture
def monitor(table: UnitTable) -> AmosMonitor:
    return AmosMonitor(RUN_NETWORK, table)


def test_every_metric_of_a_specification_is_measured(monitor: AmosMonitor) -> None:
    monitor.hear(arrival(0, 0, 1))
    assert set(monitor.measured(1.0).values) == set(METRICS)


def test_staleness_is_that_of_the_interval(monitor: AmosMonitor) -> None:
    monitor.hear(arrival(0, 0, 2))
    monitor.hear(end(4, (0,), 2, [4.0]))
    assert monitor.measured(10.0).values["staleness"] == pytest.approx(4 / (10 * 2))
    monitor.hear(end(12, (1,), 2, [1.0]))
    assert monitor.measured(20.0).values["staleness"] == pytest.approx(1 / (10 * 2))


def test_tardiness_is_unknown_where_no_window_closed(monitor: AmosMonitor) -> None:
    monitor.hear(arrival(0, 0, 2))
    closed = replace(end(4, (0,), 2, [4.0]), tardiness_s=(np.array([0.25, 0.75]),))
    monitor.hear(closed)
    assert monitor.measured(5.0).values["tardiness_s"] == 0.5
    assert isnan(monitor.measured(10.0).values["tardiness_s"])


def test_pending_bytes_are_a_mean_over_the_interval(monitor: AmosMonitor, table: UnitTable) -> None:
    monitor.hear(replace(arrival(0, 0, 2), tuple_bytes=8.0))
    table["pending"] = 2
    monitor.hear(end(5, (0, 1), 2, [], []))
    table["pending"] = 0
    assert monitor.measured(10.0).values["pending_bytes"] == pytest.approx(2 * 2 * 8 * 5 / 10)


class Watched(Amos):
    """A policy that keeps the measurements that it hears of."""

    def __init__(self) -> None:
        super().__init__(policies=("fcfs",), dwell_s=1.0)
        self.measured: list[Measured] = []

    def hear(self, event: StepStarted | StepFinished | Measured) -> None:
        super().hear(event)
        if isinstance(event, Measured):
            self.measured.append(event)


def test_the_queues_are_measured_whatever_waited_before_has_failed_or_is_paused() -> None:
    policy, table = Watched(), unit_table(units_of(RUN_NETWORK))
    scheduler = Scheduler(RUN_NETWORK, table, policy_named("fcfs"))
    scheduler.hear(arrival(0, 0, 10))
    scheduler.hear(PolicyChanged(0.0, policy))
    (call,) = scheduler.plan(0.0)
    scheduler.hear(replace(end(0, call.units, call.tuples, []), call=call, failed=call.units))
    scheduler.hear(QueryStopped(0.0, call.units[0]))
    scheduler.plan(2.0)
    assert [event.waiting for event in policy.measured] == [10]
    assert policy.measured[0].values["pending"] == 10


def test_what_results_of_unions_wait_for_other_streams_is_no_response(monitor: AmosMonitor) -> None:
    """A recording does not have it either, and a replay must choose as the run did."""
    monitor.hear(arrival(0, 0, 2))
    monitor.hear(replace(end(4, (0,), 2, [4.0, 3.0]), idle_s=(np.array([3.0, 2.0]),)))
    assert monitor.measured(5.0).values["mean_response_s"] == 1.0
