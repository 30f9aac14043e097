"""A report is the same after JSON, and shows how the queues developed."""

import json
from dataclasses import fields

import numpy as np

from headgate import Query, Report, Stream, simulate
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import QueryClass
from headgate.scheduler.shedder import Shedder


def _report() -> Report:
    paths = tuple(
        Path(
            query=Query(name=name, sql=name, query_class=name),
            stream="s",
            operators=(Operator(kind="select", cost_s=0.01, selectivity=selectivity),),
        )
        for name, selectivity in (("H", 1.0), ("N", 0.0))
    )
    classes = tuple(QueryClass(name=name, priority=1) for name in "HN")
    network = Network((Stream(name="s", format="rate"),), classes, paths)
    return simulate(network, {"s": np.arange(500) * 0.015}, policy="fcfs")


def test_a_report_is_printed_in_one_line() -> None:
    report = _report()
    count, mean_s = report.total.response_s.count, report.total.response_s.mean
    assert repr(report) == (
        f"Report(policy='fcfs', queries=2, seconds={report.seconds:.4g}, results={count},"
        f" mean_response_s={mean_s:.4g}, errors=0)"
    )


def test_a_report_is_the_same_behind_json() -> None:
    report = _report()
    again = Report.from_dict(json.loads(json.dumps(report.to_dict(), allow_nan=False)))
    assert again.classes[0] == report.classes[0]
    assert again.pending_over_time == report.pending_over_time
    assert again.classes[1].response_s.count == 0
    assert np.isnan(again.classes[1].response_s.mean)


def _rich_report() -> Report:
    """Return a report that has every figure a simulation can have."""
    window = Operator(kind="aggregate", cost_s=0.02, range_s=2.0, slide_s=1.0)
    graph = QoSGraph(((0.0, 1.0), (0.05, 0.0)))
    paths = (
        Path(
            query=Query(name="q", sql="q", query_class="H", qos=graph, allows_shedding=True),
            stream="s",
            operators=(Operator(kind="select", cost_s=0.02, selectivity=0.5),),
        ),
        Path(query=Query(name="w", sql="w", query_class="N"), stream="s", operators=(window,)),
    )
    classes = tuple(QueryClass(name=name, priority=1) for name in "HN")
    network = Network((Stream(name="s", format="rate"),), classes, paths)
    options = {"overhead_s": 0.001, "storage_s": 0.001, "decision_s": 0.001}
    times = {"s": np.arange(500) * 0.02}
    return simulate(network, times, policy="fcfs", shedder=Shedder(), **options)


def test_every_figure_of_a_simulation_is_the_same_behind_json() -> None:
    report = _rich_report()
    again = Report.from_dict(json.loads(json.dumps(report.to_dict(), allow_nan=False)))
    assert again.to_dict() == report.to_dict()
    for field in fields(Report):
        before, after = getattr(report, field.name), getattr(again, field.name)
        assert type(before) is type(after)
    assert all(isinstance(row, tuple) for row in again.over_time)
    assert np.isnan(again.queries[0].tardiness_s)  # no windows: unknown, and not 0


def test_a_simulation_leaves_no_figure_of_the_total_unknown() -> None:
    report = _rich_report()
    for figures in (report, report.total, report.total.response_s, report.total.slowdown):
        for field in fields(figures):
            value = getattr(figures, field.name)
            if field.name == "idle_wait_s":
                continue  # of runs on Spark
            assert not (isinstance(value, float) and np.isnan(value)), field.name
    assert min(report.scheduler_s, report.storage_s, report.overhead_s, report.total.shed) > 0
    assert 0 < report.total.tardiness_s <= report.total.tardiness_max_s


def test_pending_tuples_are_sampled_over_time() -> None:
    samples = _report().pending_over_time
    assert len(samples) > 10
    times_s = [row[0] for row in samples]
    assert times_s == sorted(times_s)
    assert all(len(row) == 3 for row in samples)
    assert max(row[1] for row in samples) > min(row[1] for row in samples)
