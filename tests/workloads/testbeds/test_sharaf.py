"""The testbeds of Sharaf's thesis."""

from collections import Counter

import numpy as np
import pytest

from headgate.errors import ConfigRefused
from headgate.model.network.graph import Graph
from headgate.workloads.on_off import pareto_on_off
from headgate.workloads.poisson import poisson
from headgate.workloads.testbeds.sharaf import joins, shared_selects, single_stream
from headgate.workloads.testbeds.sharaf_aggregates import aggregates
from headgate.workloads.testbeds.sharaf_drift import drift, share_up_to
from headgate.workloads.testbeds.sharaf_freshness import freshness
from headgate.workloads.testbeds.testbed import Testbed


def selectivities(testbed: Testbed) -> list[float]:
    return [path.operators[0].selectivity or 0.0 for path in testbed.network.paths]


def test_500_queries_of_select_join_and_project_with_equal_figures_inside_a_query() -> None:
    testbed = single_stream()
    assert len(testbed.network.paths) == 500
    assert len(testbed.arrivals["packets"]) == 20_000
    for path in testbed.network.paths:
        select, join, project = path.operators
        assert (select.kind, join.kind, project.kind) == ("select", "select", "project")
        assert (select.attribute, join.attribute, project.attribute) == (1, 2, None)
        assert select.selectivity == join.selectivity
        assert project.selectivity == 1.0
        assert select.cost_s == join.cost_s == project.cost_s


def test_selectivities_are_tenths_and_costs_are_powers_of_two_of_one_k_all_equally_likely() -> None:
    testbed = single_stream()
    tenths = Counter(round(10 * selectivity) for selectivity in selectivities(testbed))
    costs = sorted({path.operators[0].cost_s or 0.0 for path in testbed.network.paths})
    assert set(tenths) == set(range(1, 11))
    assert [cost / costs[0] for cost in costs] == pytest.approx([1, 2, 4, 8, 16])
    assert min(tenths.values()) > 25  # 50 expected, 6.7 a deviation
    classes = Counter(path.operators[0].cost_s for path in testbed.network.paths)
    assert min(classes.values()) > 70  # 100 expected, 8.9 a deviation


def test_k_follows_from_the_mean_time_between_arrivals_and_the_utilisation() -> None:
    testbed = single_stream(utilisation=0.7, seed=2)
    times_s = testbed.arrivals["packets"]
    gap_s = np.diff(times_s).mean()
    expected_s = sum(
        (path.operators[0].cost_s or 0.0) * (1 + s + s**2)
        for path, s in zip(testbed.network.paths, selectivities(testbed), strict=True)
    )
    assert expected_s / gap_s == pytest.approx(0.7)


def test_queries_do_not_change_with_the_utilisation_but_for_k() -> None:
    low, high = single_stream(utilisation=0.1), single_stream(utilisation=0.9)
    assert selectivities(low) == selectivities(high)
    ratios = [
        (b.operators[0].cost_s or 0.0) / (a.operators[0].cost_s or 1.0)
        for a, b in zip(low.network.paths, high.network.paths, strict=True)
    ]
    assert ratios == pytest.approx([9.0] * 500)


def test_arrivals_can_be_given() -> None:
    times_s = poisson(50.0, 500, seed=1)
    testbed = single_stream(arrivals=times_s, utilisation=0.5)
    assert testbed.arrivals["packets"] is times_s
    assert "as given" in testbed.note
    with pytest.raises(ConfigRefused, match="ascending"):
        single_stream(arrivals=times_s[::-1].copy())


def test_selectivities_end_at_the_highest_asked_for() -> None:
    assert max(selectivities(single_stream(highest_selectivity=0.5))) == 0.5
    assert set(selectivities(single_stream(highest_selectivity=0.1))) == {0.1}


def test_queries_can_be_told_apart_by_cost_and_selectivity() -> None:
    testbed = single_stream(by_class=True)
    assert len(testbed.network.classes) == 50
    by_class: dict[str, set[tuple[float | None, float | None]]] = {}
    for path in testbed.network.paths:
        figures = (path.operators[0].cost_s, path.operators[0].selectivity)
        by_class.setdefault(path.query.query_class, set()).add(figures)
    assert all(len(figures) == 1 for figures in by_class.values())


def test_heavy_tailed_arrivals_keep_the_machine_less_busy_than_asked() -> None:
    shares = [
        single_stream(
            queries=5, arrivals=pareto_on_off(400.0, 20_000, seed, sources=2), seed=seed
        ).realised_utilisation
        or 0.0
        for seed in range(10)
    ]
    assert np.mean(shares) < 0.945
    assert min(shares) < 0.92


def test_ten_queries_share_a_select_and_have_joins_of_their_own() -> None:
    testbed = shared_selects()
    graph = Graph(testbed.network)
    selects = [node for node in graph.nodes if node.name.startswith("select")]
    assert len(selects) == 50
    assert all(len(node.readers) == 10 for node in selects)
    assert len(testbed.network.boxes) == 50 + 2 * 500
    assert testbed.shared_priority == "pdt"
    joins_of_first = [graph.nodes[box].operator for box, _ in selects[0].readers]
    assert len({(operator.cost_s, operator.selectivity) for operator in joins_of_first}) > 1
    assert shared_selects(queries=25, shared_priority="max", tuples=100).shared_priority == "max"


def test_the_queries_of_a_set_can_have_one_cost() -> None:
    testbed = shared_selects(same_cost=True, tuples=100)
    costs_s = [box.operator.cost_s for box in testbed.network.boxes]
    assert all(len(set(costs_s[first : first + 21])) == 1 for first in range(0, 1050, 21))
    assert len(set(costs_s)) == 5


def test_window_joins_read_two_poisson_streams_and_often_give_out_more_than_they_take() -> None:
    testbed = joins()
    assert set(testbed.arrivals) == {"left", "right"}
    graph = Graph(testbed.network, {0: 1.0, 1: 1.0})
    join_nodes = [node for node in graph.nodes if node.operator.kind == "join"]
    assert len(join_nodes) == 500
    assert {node.operator.window_s for node in join_nodes} == {
        float(number) for number in range(1, 11)
    }
    assert np.mean([graph.selectivity(node.number, 0) > 1.0 for node in join_nodes]) > 0.3
    gaps_s = np.diff(testbed.arrivals["left"])
    assert gaps_s.std() == pytest.approx(gaps_s.mean(), rel=0.1)


def test_the_slide_of_an_aggregate_is_its_deadline() -> None:
    for path in aggregates().network.paths:
        operator = path.operators[-1]
        assert operator.kind == "aggregate"
        assert operator.slide_s is not None
        assert operator.range_s is not None
        assert 1 <= operator.slide_s <= operator.range_s <= 10
        assert path.query.deadline_s == operator.slide_s


@pytest.mark.parametrize("deviation", [5.0, 25.0])
def test_drifting_selectivities_average_to_those_that_uniform_values_have(deviation: float) -> None:
    testbed = drift(deviation=deviation)
    believed = {f"{path.query.name}.{position}": path.operators[position].selectivity
                for path in testbed.network.paths for position in (0, 1)}  # fmt: skip
    assert set(testbed.selectivities) == set(believed)
    for box, values in testbed.selectivities.items():
        assert len(values) == 100
        assert values.mean() == pytest.approx(believed[box])
        assert ((values >= 0) & (values <= 1)).all()
    assert testbed.interval_s == pytest.approx(testbed.arrivals["packets"][-1] / 100)


def test_the_smaller_the_deviation_the_wider_selectivities_swing() -> None:
    tight, loose = (
        drift(deviation=deviation, queries=20).selectivities for deviation in (5.0, 25.0)
    )
    half = next(box for box in tight if 0.3 < tight[box].mean() < 0.7)
    assert np.ptp(tight[half]) > np.ptp(loose[half])
    assert tight[half].max() > 0.99


def test_values_wrap_around_as_drawn_values_do() -> None:
    values = np.random.Generator(np.random.PCG64(1)).normal(95.0, 15.0, 200_000)
    wrapped = 100 - (-values % 100)
    for bound in (10, 30, 90):
        assert share_up_to(bound, 95.0, 15.0) == pytest.approx((wrapped <= bound).mean(), abs=0.005)


def test_values_that_do_not_wrap_around_pass_no_condition_once_the_mean_has_left() -> None:
    draws = np.random.Generator(np.random.PCG64(1)).normal(95.0, 15.0, 200_000)
    for bound in (30, 90, 100):
        share = share_up_to(bound, 95.0, 15.0, wraps=False)
        assert share == pytest.approx((draws <= bound).mean(), abs=0.005)
    testbed = drift(wraps=False, queries=20, tuples=1_000)
    assert max(values[80] for values in testbed.selectivities.values()) < 1e-6


def test_the_load_of_drifting_data_is_as_asked_over_the_run() -> None:
    testbed = drift(utilisation=0.8, arrivals=poisson(400.0, 20_000, seed=1))
    interval = (np.arange(20_000) / 20_000 * 100).astype(int)
    work_s = np.zeros(100)
    for path in testbed.network.paths:
        s = testbed.selectivities[f"{path.query.name}.0"]
        work_s += (path.operators[0].cost_s or 0.0) * (1 + s + s**2)
    assert work_s[interval].mean() * 400.0 == pytest.approx(0.8, rel=0.02)


def test_fresh_results_are_asked_of_ten_streams_half_of_them_bursty() -> None:
    testbed = freshness()
    assert len(testbed.network.paths) == 250
    assert [len(times_s) for times_s in testbed.arrivals.values()] == [10_000] * 10
    instants = [len(set(times_s.tolist())) for times_s in testbed.arrivals.values()]
    assert instants == [1_000] * 5 + [10_000] * 5
    costs = sorted({path.operators[0].cost_s for path in testbed.network.paths})
    assert costs == pytest.approx([0.001, 0.002, 0.004])
    assert len({path.stream for path in testbed.network.paths}) == 10


def test_at_a_utilisation_of_1_tuples_come_as_fast_as_all_queries_run() -> None:
    testbed = freshness(utilisation=1.0, bursty=0)
    all_s = sum(
        (path.operators[0].cost_s or 0.0) * (1 + s + s**2)
        for path, s in zip(testbed.network.paths, selectivities(testbed), strict=True)
    )
    for times_s in testbed.arrivals.values():
        assert np.diff(times_s).mean() == pytest.approx(all_s, rel=0.05)


def test_the_zipf_parameter_skews_selectivities_towards_1() -> None:
    plain, skewed = freshness(queries=2_000), freshness(queries=2_000, zipf=2.0)
    assert np.mean(np.array(selectivities(plain)) == 1.0) == pytest.approx(0.1, abs=0.03)
    # 1 / Σ rank⁻² over ten ranks
    assert np.mean(np.array(selectivities(skewed)) == 1.0) == pytest.approx(0.645, abs=0.04)


def test_recorded_streams_keep_their_times_and_set_the_costs() -> None:
    times_s = {"tcp": poisson(80.0, 1_000, 1), "udp": poisson(20.0, 500, 2)}
    testbed = freshness(arrivals=times_s, utilisation=0.9)
    assert [stream.name for stream in testbed.network.streams] == ["tcp", "udp"]
    assert {path.stream for path in testbed.network.paths} == {"tcp", "udp"}
    assert testbed.arrivals["tcp"] is times_s["tcp"]
