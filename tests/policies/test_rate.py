"""Priorities by output rate: Sharaf's first worked example, to the digit."""

from types import SimpleNamespace

import numpy as np
import pytest

from headgate import simulate
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.policies.rate import highest_rate, normalised_rate

Q1 = SimpleNamespace(selectivity=1.0, cost_s=5.0, ideal_s=5.0)
Q2 = SimpleNamespace(selectivity=1 / 3, cost_s=2.0, ideal_s=2.0)


def example_1() -> Network:
    boxes = {"q1": (0.005, 1.0), "q2": (0.002, 0.33)}
    paths = tuple(
        Path(
            query=Query(name=name, sql="SELECT * FROM s", query_class="only"),
            stream="s",
            operators=(Operator(kind="select", cost_s=cost_s, selectivity=selectivity),),
        )
        for name, (cost_s, selectivity) in boxes.items()
    )
    only = QueryClass(name="only", priority=1)
    return Network((Stream(name="s", format="rate"),), (only,), paths)


@pytest.mark.parametrize(
    ("policy", "response_ms", "slowdown"), [("hr", 12.25, 3.875), ("hnr", 13.0, 2.9)]
)
def test_sharaf_example_1(policy: str, response_ms: float, slowdown: float) -> None:
    report = simulate(
        example_1(),
        {"s": np.zeros(3)},
        policy=policy,
        fates={"q1": (1, 1, 1), "q2": (0, 1, 0)},
    )
    assert report.total.response_s.count == 4
    assert report.total.response_s.mean * 1000 == pytest.approx(response_ms)
    assert report.total.slowdown.mean == pytest.approx(slowdown)


def test_hr_is_selectivity_over_cost() -> None:
    assert highest_rate(Q1, 0.0) == pytest.approx(0.2)
    assert highest_rate(Q2, 0.0) == pytest.approx(0.1667, abs=1e-4)


def test_hnr_is_also_divided_by_the_ideal_time() -> None:
    assert normalised_rate(Q1, 0.0) == pytest.approx(0.04)
    assert normalised_rate(Q2, 0.0) == pytest.approx(0.0833, abs=1e-4)


def test_a_rate_does_not_change_while_a_tuple_waits() -> None:
    assert highest_rate(Q1, 0.0) == highest_rate(Q1, 99.0)
    assert normalised_rate(Q2, 0.0) == normalised_rate(Q2, 99.0)
