"""The monitor measures every metric of a performance specification, interval by interval."""

from dataclasses import replace
from math import isnan

import numpy as np
import pytest
from kit.events import arrival, end
from kit.networks import line, network, select

from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.performance import METRICS
from headgate.scheduler.amos_monitor import AmosMonitor


@pytest.fixture
def monitor() -> AmosMonitor:
    run_network = network(line("a", select(1.0)), line("b", select(1.0)))
    return AmosMonitor(run_network, unit_table(units_of(run_network)))


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


def test_pending_bytes_are_a_mean_over_the_interval(monitor: AmosMonitor) -> None:
    monitor.hear(replace(arrival(0, 0, 2), tuple_bytes=8.0))
    monitor.hear(end(5, (0, 1), 2, [], []))
    assert monitor.measured(10.0).values["pending_bytes"] == pytest.approx(2 * 2 * 8 * 5 / 10)
