"""A report survives the way through JSON, and says how queues went."""

import json

import numpy as np

from headgate import Query, Report, Stream, simulate
from headgate.model.network import Network, Path
from headgate.model.operator import Operator
from headgate.model.query import QueryClass


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


def test_a_report_is_the_same_behind_json() -> None:
    report = _report()
    again = Report.from_dict(json.loads(json.dumps(report.to_dict(), allow_nan=False)))
    assert again.classes[0] == report.classes[0]
    assert again.pending_over_time == report.pending_over_time
    assert again.classes[1].response_s.count == 0
    assert np.isnan(again.classes[1].response_s.mean)


def test_pending_tuples_are_sampled_over_time() -> None:
    samples = _report().pending_over_time
    assert len(samples) > 10
    times_s = [row[0] for row in samples]
    assert times_s == sorted(times_s)
    assert all(len(row) == 3 for row in samples)
    assert max(row[1] for row in samples) > min(row[1] for row in samples)
