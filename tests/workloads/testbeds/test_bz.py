"""BZ's full queues."""

import numpy as np
import pytest

from headgate.workloads.testbeds.bz import latency, memory


def test_two_operators_have_300_tuples_each_at_time_0() -> None:
    testbed = latency()
    assert [path.query.name for path in testbed.network.paths] == ["A", "B"]
    assert all((times_s == np.zeros(300)).all() for times_s in testbed.arrivals.values())
    for path in testbed.network.paths:
        (operator,) = path.operators
        costs_s = testbed.tuple_costs[f"{path.query.name}.0"]
        assert len(costs_s) == 300
        assert operator.selectivity == 0.95
        assert operator.cost_s == pytest.approx(costs_s.mean())


def test_costs_have_the_means_and_deviations_of_the_paper() -> None:
    testbed = latency(outliers=0.0, tuples=20_000)
    for box, mean_ms, deviation_ms in (("A.0", 1.0, 0.2), ("B.0", 5.0, 1.0)):
        costs_ms = testbed.tuple_costs[box] * 1000
        assert costs_ms.mean() == pytest.approx(mean_ms, rel=0.01)
        assert costs_ms.std() == pytest.approx(deviation_ms, rel=0.03)
        assert costs_ms.min() > 0


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (0.06, 18), (0.2, 60)])
def test_so_many_tuples_of_a_are_outliers(share: float, expected: int) -> None:
    costs_ms = latency(outliers=share).tuple_costs["A.0"] * 1000
    assert abs(int((costs_ms > 2.5).sum()) - expected) <= 1
    if expected:
        assert costs_ms[costs_ms > 2.5].mean() == pytest.approx(6.0, abs=0.8)


def test_more_outliers_leave_the_other_tuples_as_they_were() -> None:
    few, many = (latency(outliers=share).tuple_costs for share in (0.02, 0.1))
    assert int((few["A.0"] != many["A.0"]).sum()) == 24
    assert (few["B.0"] == many["B.0"]).all()


def test_outliers_stand_anywhere() -> None:
    costs_ms = memory(outliers=0.2, tuples=3_000).tuple_costs["path.0"] * 1000
    thirds = [int((part > 4).sum()) for part in np.split(costs_ms, 3)]
    assert sum(thirds) == 600
    assert min(thirds) > 150


def test_the_first_operator_of_the_path_halves_a_tuple_and_has_outliers_of_10_ms() -> None:
    testbed = memory(outliers=0.1)
    (path,) = testbed.network.paths
    assert [operator.bytes_out for operator in path.operators] == [0.5, 0.5]
    assert testbed.network.streams[0].tuple_bytes == 1.0
    costs_ms = testbed.tuple_costs["path.0"] * 1000
    assert costs_ms[costs_ms > 4].mean() == pytest.approx(10.0, abs=1.0)
    assert testbed.tuple_costs["path.1"].mean() * 1000 == pytest.approx(5.0, abs=0.3)
