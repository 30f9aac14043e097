"""A run's metrics, folded from events written by hand."""

from dataclasses import replace

import numpy as np
import pytest
from kit.events import arrival, end
from kit.networks import line, network, select

from headgate.metrics.run import RunMetrics
from headgate.model.events import StepFinished, UnitFailed
from headgate.model.network.network import Network
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.plan import BoxCall

Queries = dict[str, tuple[str, str, float]]
QUERIES = {"a": ("H", "s", 2.0), "b": ("H", "t", 4.0), "c": ("N", "s", 5.0)}
"""class, stream, ideal time in seconds, by query"""


def metrics(queries: Queries = QUERIES) -> RunMetrics:
    network = network_with(queries)
    return RunMetrics(network, unit_table(units_of(network)))


def network_with(queries: Queries) -> Network:
    paths = (
        line(name, select(ideal_s), stream=stream, query_class=query_class)
        for name, (query_class, stream, ideal_s) in queries.items()
    )
    return network(*paths, streams=("s", "t"), classes={"H": 6, "N": 1})


def test_response_and_slowdown_of_each_query() -> None:
    run = metrics()
    for event in (arrival(0, 0, 2), end(4, (0,), 2, [2.0, 4.0]), end(9, (2,), 2, [9.0])):
        run.hear(event)
    a, b, c = run.by_query()
    assert (a.name, a.tuples_in, a.response_s.count) == ("a", 2, 2)
    assert (a.response_s.mean, a.slowdown.mean) == pytest.approx((3.0, 1.5))
    assert (c.tuples_in, c.response_s.mean, c.slowdown.mean) == pytest.approx((2, 9.0, 1.8))
    assert (b.tuples_in, b.response_s.count) == (0, 0)


def test_a_class_and_the_total_count_every_output_alike() -> None:
    run = metrics()
    run.hear(arrival(0, 0, 3))
    run.hear(arrival(0, 1, 1))
    run.hear(end(4, (0,), 3, [2.0, 2.0, 2.0]))
    run.hear(end(8, (1,), 1, [8.0]))
    high, neutral = run.by_class()
    assert (high.name, high.tuples_in, high.response_s.count) == ("H", 4, 4)
    assert high.response_s.mean == pytest.approx(3.5)
    assert high.slowdown.mean == pytest.approx((1 + 1 + 1 + 2) / 4)
    assert neutral.response_s.count == 0
    assert run.total().response_s.mean == pytest.approx(3.5)


def test_pending_tuples_over_time() -> None:
    run = metrics()
    # s has two readers, a and c: 4 tuples from 0 s, 6 from 2 s; a takes 4 at 5 s; 10 s in all.
    for event in (arrival(0, 0, 3, 1), arrival(2, 0, 2), end(5, (0,), 4, []), end(10, (2,), 6, [])):
        run.hear(event)
    a, b, c = run.by_query()
    assert a.pending_mean == pytest.approx((2 * 4 + 3 * 6 + 5 * 2) / 10)
    assert (a.pending, a.pending_max) == (2, 6)
    assert c.pending_mean == pytest.approx((2 * 4 + 8 * 6) / 10)
    assert (c.pending, c.pending_max) == (0, 6)
    assert (b.pending, b.pending_mean, b.pending_max) == (0, 0, 0)
    assert run.seconds == 10
    assert run.total().pending_mean == pytest.approx(a.pending_mean + c.pending_mean)


def test_the_largest_queue_of_a_class_is_what_waited_at_one_instant() -> None:
    run = metrics()
    # a's 3 tuples are gone before b's 5 come: never more than 5 of class H waited.
    for event in (arrival(0, 0, 3), end(1, (0,), 3, []), arrival(2, 1, 5)):
        run.hear(event)
    assert run.by_class()[0].pending_max == 5


def test_time_counts_from_the_first_event() -> None:
    run = metrics()
    for event in (arrival(1000, 0, 1), end(1004, (0, 2), 1, [4.0], [4.0])):
        run.hear(event)
    assert run.seconds == 4
    assert run.by_query()[0].pending_mean == pytest.approx(1)


def test_the_members_of_a_fused_call_share_its_time_and_it_is_one_call() -> None:
    run = metrics()
    run.hear(arrival(0, 0, 1))
    run.hear(end(3, (0, 2), 1, [3.0], [3.0], seconds=3.0))
    assert [line.busy_s for line in run.by_query()] == pytest.approx([1.5, 0, 1.5])
    assert run.total().busy_s == pytest.approx(3)
    assert run.calls == 1


def test_an_event_that_comes_late_takes_no_time_away() -> None:
    run = metrics()
    for event in (arrival(0, 0, 1), arrival(5, 0, 1), arrival(4, 1, 1)):
        run.hear(event)
    assert run.seconds == 5
    assert run.by_query()[0].pending_mean == pytest.approx(1)


def test_errors_are_kept() -> None:
    run, error = metrics(), RuntimeError("no such column")
    run.hear(UnitFailed(1.0, 0, BoxCall(0, (0,), 0, 0, 1, 1), error))
    assert run.errors == [error]


def test_a_unit_that_failed_keeps_its_pending_tuples() -> None:
    run = metrics()
    run.hear(arrival(0, 0, 4))
    call = BoxCall(0, (0, 2), 0, 0, 1, 4)
    run.hear(UnitFailed(1.0, 0, call, RuntimeError("no such column")))
    nothing_and_one = np.zeros(0), np.array([1.0])
    run.hear(StepFinished(1.0, call, 1.0, (0, 1), nothing_and_one, failed=(0,)))
    a, _, c = run.by_query()
    assert (a.pending, a.tuples_in) == (4, 0)
    assert (c.pending, c.tuples_in) == (0, 4)


def test_the_metrics_of_a_dropped_query_stay_with_its_class() -> None:
    run = metrics()
    for event in (arrival(0, 0, 2), end(4, (0,), 2, [2.0, 4.0]), end(5, (2,), 2, [5.0])):
        run.hear(event)
    others = {**{name: QUERIES[name] for name in ("b", "c")}, "d": ("N", "t", 1.0)}
    network = replace(network_with(others), ids=(1, 2, 3))
    table = unit_table(units_of(network))
    table["pending"][2] = 7
    run.change(network, table)
    b, _, d = run.by_query()
    assert (b.name, b.pending) == ("b", 0)
    assert (d.name, d.tuples_in, d.response_s.count, d.pending) == ("d", 0, 0, 7)
    assert d.pending_max == 7
    h, n = run.by_class()
    assert (h.tuples_in, h.response_s.count, h.response_s.mean) == (2, 2, pytest.approx(3.0))
    assert (n.tuples_in, n.response_s.count, n.pending) == (2, 1, 7)
    run.hear(end(9, (3,), 7, [1.0]))
    assert run.by_class()[1].tuples_in == 9
    assert run.total().tuples_in == 11
    assert run.total().response_s.count == 4
    assert run.total().busy_s == pytest.approx(3.0)


def test_a_response_counts_for_the_class_that_its_query_had_at_that_time() -> None:
    run = metrics()
    for event in (arrival(0, 0, 2), end(4, (0,), 1, [2.0]), end(5, (2,), 2, [5.0])):
        run.hear(event)
    for query_class, end_s in (("N", 6.0), ("H", 7.0), ("N", 8.0)):
        network = network_with({**QUERIES, "a": (query_class, "s", 2.0)})
        run.change(network, unit_table(units_of(network)))
        run.hear(end(end_s, (0,), 1, [end_s]))
    a, _, c = run.by_query()
    assert (a.tuples_in, a.response_s.count, a.response_s.maximum) == (4, 4, 8.0)
    assert (c.tuples_in, c.response_s.mean) == (2, pytest.approx(5.0))
    h, n = run.by_class()
    assert (h.tuples_in, h.response_s.mean) == (2, pytest.approx((2 + 7) / 2))
    assert (n.tuples_in, n.response_s.mean) == (4, pytest.approx((5 + 6 + 8) / 3))
    without_a = network_with({name: QUERIES[name] for name in ("b", "c")})
    run.change(replace(without_a, ids=(1, 2)), unit_table(units_of(without_a)))
    assert [line.tuples_in for line in (*run.by_class(), run.total())] == [2, 4, 6]


def test_tuples_that_a_paused_query_has_missed_do_not_wait_any_more() -> None:
    run = metrics()
    run.hear(arrival(0, 0, 9))
    table = unit_table(units_of(run.network))
    table["pending"][[0, 2]] = 4, 9
    run.change(run.network, table, begun=(0,))
    a, _, c = run.by_query()
    assert (a.pending, c.pending) == (4, 9)
