"""Delivered QoS, staleness, tardiness and bytes of a run, from events written by hand."""

from dataclasses import replace
from math import isnan
from typing import Any

import numpy as np
import pytest
from kit.events import arrival, end
from kit.networks import line, network, select

from headgate.metrics.arrival_times import MOST, ArrivalTimes
from headgate.metrics.line import Line
from headgate.metrics.report import Report
from headgate.metrics.run import RunMetrics
from headgate.model.network.network import Network
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.qos_graph import QoSGraph

GRAPH = QoSGraph(((0.0, 1.0), (2.0, 1.0), (4.0, 0.0)))


def judged(**queries: dict[str, Any]) -> tuple[RunMetrics, Network]:
    """Return the metrics of queries over one stream, each with selectivity 1/2."""
    paths = (line(name, select(1.0, 0.5), **options) for name, options in queries.items())
    run_network = network(*paths)
    return RunMetrics(run_network, unit_table(units_of(run_network))), run_network


def line_of(run: RunMetrics) -> Line:
    (query,) = run.by_query()
    return query


def test_qos_is_the_mean_utility_of_the_results() -> None:
    run, _ = judged(a={"qos": GRAPH})
    for event in (arrival(0, 0, 4), end(3, (0,), 4, [1.0, 3.0])):
        run.hear(event)
    assert line_of(run).qos == (1.0 + 0.5) / 2


def test_a_dropped_tuple_counts_as_results_without_utility() -> None:
    run, _ = judged(a={"qos": GRAPH})
    finished = replace(end(1, (0,), 8, [1.0, 1.0]), shed=(4,))
    for event in (arrival(0, 0, 8), finished):
        run.hear(event)
    line = line_of(run)
    assert line.qos == pytest.approx(2 / (2 + 0.5 * 4))
    assert (line.tuples_in, line.shed, line.pending) == (4, 4, 0)


def test_a_dropped_tuple_counts_by_the_loss_graph() -> None:
    loss = QoSGraph(((0.0, 1.0), (0.5, 0.9), (1.0, 0.0)))
    run, _ = judged(a={"qos": GRAPH, "loss": loss}, b={"loss": loss}, c={})
    finished = end(1, (0, 1, 2), 8, [1.0, 1.0], [3.0, 3.0], [1.0, 1.0])
    for event in (arrival(0, 0, 8), replace(finished, shed=(4, 4, 4))):
        run.hear(event)
    assert [query.qos for query in run.by_query()[:2]] == [pytest.approx(0.9)] * 2
    assert isnan(run.by_query()[2].qos)


def test_waiting_tuples_count_at_their_present_age() -> None:
    run, _ = judged(a={"qos": GRAPH})
    run.hear(arrival(0, 0, 4))
    run.hear(arrival(2, 0, 6))
    run.hear(end(3, (0,), 4, [3.0, 3.0]))  # utility 0.5
    assert line_of(run).qos == pytest.approx((2 * 0.5 + 3 * 1.0) / (2 + 3))
    run.hear(arrival(5, 0, 0))  # the 6 tuples are 3 s old
    assert line_of(run).qos == pytest.approx((2 * 0.5 + 3 * 0.5) / (2 + 3))


def test_a_class_weights_qos_by_the_weights_of_its_queries() -> None:
    run, _ = judged(a={"qos": GRAPH, "weight": 3.0}, b={"qos": GRAPH}, c={})
    run.hear(arrival(0, 0, 2))
    run.hear(end(3, (0, 1, 2), 2, [1.0], [3.0], [1.0]))
    assert [query.qos for query in run.by_query()[:2]] == [1.0, 0.5]
    assert isnan(run.by_query()[2].qos)
    assert run.total().qos == pytest.approx((3 * 1.0 + 1 * 0.5) / 4)
    assert run.by_class()[0].qos == run.total().qos


def test_staleness_is_the_share_of_time_in_which_an_output_waited() -> None:
    run, _ = judged(a={})
    for event in (arrival(0, 0, 2), end(1, (0,), 2, [1.0, 0.5]), arrival(5, 0, 2)):
        run.hear(event)
    run.hear(end(8, (0,), 2, [3.0]))
    run.hear(arrival(10, 0, 0))
    assert line_of(run).staleness == pytest.approx((1 + 3) / 10)
    assert line_of(run).staleness_expected == pytest.approx((1 + 3) / 10)


def test_expected_staleness_counts_tuples_that_wait() -> None:
    run, run_network = judged(a={})
    for event in (arrival(0, 0, 2), end(1, (0,), 2, [1.0]), arrival(6, 0, 3), arrival(10, 0, 0)):
        run.hear(event)
    table = unit_table(units_of(run_network))
    table["head_arrived_at_s"], table["pending"] = 6.0, 3
    run.change(run_network, table)
    assert line_of(run).staleness == pytest.approx(1 / 10)
    assert line_of(run).staleness_expected == pytest.approx((1 + 4 * (1 - 0.5**3)) / 10)


def test_staleness_is_a_mean_over_queries_and_one_by_weight() -> None:
    run, _ = judged(a={"weight": 3.0}, b={})
    run.hear(arrival(0, 0, 2))
    run.hear(end(4, (0,), 2, [4.0]))
    run.hear(end(8, (1,), 2, [8.0]))
    assert run.total().staleness == pytest.approx((0.5 + 1.0) / 2)
    assert run.total().weighted_staleness == pytest.approx((3 * 0.5 + 1.0) / 4)


def test_a_query_that_came_later_is_not_stale_before() -> None:
    run, run_network = judged(a={})
    run.hear(arrival(0, 0, 2))
    run.hear(arrival(6, 0, 0))
    later = network(*run_network.paths, line("b", select(1.0, 0.5)))
    run.change(replace(later, ids=(0, 1)), unit_table(units_of(later)))
    run.hear(end(8, (1,), 2, [8.0]))
    run.hear(arrival(10, 0, 0))
    assert run.by_query()[1].staleness == pytest.approx((8 - 6) / (10 - 6))


def test_tardiness_is_that_of_the_results_of_windows() -> None:
    run, _ = judged(a={}, b={})
    run.hear(arrival(0, 0, 2))
    both = end(3, (0, 1), 2, [1.0, 2.0], [3.0])
    run.hear(replace(both, tardiness_s=(np.array([0.5, 0.0]), np.zeros(0))))
    a, b = run.by_query()
    assert (a.tardiness_s, a.tardiness_max_s) == (0.25, 0.5)
    assert isnan(b.tardiness_s)
    assert run.total().tardiness_max_s == 0.5


def test_the_size_of_queues_counts_a_tuple_once_for_each_query() -> None:
    run, _ = judged(a={}, b={})
    run.hear(replace(arrival(0, 0, 2), tuple_bytes=10.0))
    run.hear(end(5, (0,), 2, []))
    run.hear(end(10, (1,), 2, []))
    report = Report.of("rr", run, workers=2)
    assert (report.bytes_mean, report.bytes_max) == ((40 + 20) / 2, 40)
    assert report.utilisation == pytest.approx(2 / (2 * 10))
    assert report.over_time[0][2] == 40


def test_figures_that_do_not_apply_are_left_out_of_the_json() -> None:
    run, _ = judged(a={"qos": GRAPH}, b={})
    run.hear(arrival(0, 0, 2))
    run.hear(end(1, (0,), 2, [1.0]))
    report = Report.of("rr", run)
    a, b = report.to_dict()["queries"]
    assert (a["qos"], a["staleness"]) == (1.0, 1.0)
    assert {"qos", "staleness", "tardiness_s"}.isdisjoint(b)
    assert repr(Report.from_dict(report.to_dict()).queries) == repr(report.queries)


def test_arrival_times_take_no_more_room_however_long_a_query_waits() -> None:
    times = ArrivalTimes()
    for first in range(0, 3 * MOST, 100):
        arrived_at_s = np.arange(first, first + 100, dtype=np.float64)
        times.add(np.full(100, 2), arrived_at_s, longest=2 * (first + 100))
    count = first + 100
    tuples, arrived_at_s = times.newest(2 * count)
    assert len(tuples) <= MOST
    assert tuples.sum() == 2 * count
    assert tuples @ arrived_at_s == pytest.approx(2 * sum(range(count)))
    assert (np.diff(arrived_at_s) > 0).all()
