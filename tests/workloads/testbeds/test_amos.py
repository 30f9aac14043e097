"""AMoS's query plans."""

import numpy as np
import pytest

from headgate.workloads.testbeds.amos import PLAN_1, line, plan_1, plan_2


def test_plan_1_is_a_line_of_four_operators_whose_lower_envelope_has_two_segments() -> None:
    (path,) = plan_1().network.paths
    assert [operator.selectivity for operator in path.operators] == [0.8, 0.9, 0.2, 0.5]
    unit_s = (path.operators[0].cost_s or 0.0) / 0.5
    assert [(operator.cost_s or 0.0) / unit_s for operator in path.operators] == pytest.approx(
        [0.5, 0.5, 0.5, 2.0]
    )
    sizes = np.cumprod([1.0, *(s for s, _ in PLAN_1)])
    times = np.cumsum([0.0, *(t for _, t in PLAN_1)])
    slopes = (sizes[0] - sizes[1:]) / times[1:]
    assert int(slopes.argmax()) == 2


def test_plan_2_joins_two_filtered_streams_over_200_ms() -> None:
    testbed = plan_2()
    boxes = {box.name: box for box in testbed.network.boxes}
    assert boxes["op3"].operator.window_s == 0.2
    assert boxes["op3"].inputs == ("op1", "op2")
    assert (boxes["op1"].inputs, boxes["op2"].inputs) == (("data1",), ("data2",))
    assert boxes["op4"].operator.selectivity == 0.25
    assert testbed.network.paths[0].output == "op4"


@pytest.mark.parametrize("operators", [2, 90])
def test_a_line_of_any_length_lets_through_what_plan_1_does(operators: int) -> None:
    (path,) = line(operators=operators, tuples=100).network.paths
    assert len(path.operators) == operators
    passing = np.prod([operator.selectivity for operator in path.operators])
    assert passing == pytest.approx(0.8 * 0.9 * 0.2 * 0.5)


@pytest.mark.parametrize("seed", range(3))
def test_the_mean_changes_every_five_seconds_by_up_to_three_quarters(seed: int) -> None:
    counts = np.bincount((plan_1(seed=seed).arrivals["data1"] / 5.0).astype(int))[:-1]
    assert counts.min() / 500 > 0.1
    assert counts.max() / 500 < 1.95
    assert np.ptp(counts) / 500 > 1.0
    assert counts.mean() / 500 == pytest.approx(1.0, rel=0.25)


def test_the_two_streams_of_plan_2_change_apart() -> None:
    one, other = (
        np.bincount((times_s / 5.0).astype(int))[:-1] for times_s in plan_2().arrivals.values()
    )
    both = min(len(one), len(other))
    assert abs(np.corrcoef(one[:both], other[:both])[0, 1]) < 0.6
