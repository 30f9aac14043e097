"""Properties of the testbeds of all papers."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from headgate.errors import ConfigRefused, UnknownName
from headgate.model.network.graph import Graph
from headgate.model.network.units import units_of
from headgate.workloads.load import load, measured_rate_per_s
from headgate.workloads.testbeds import (
    amos,
    aurora,
    bz,
    cqc,
    sharaf,
    sharaf_aggregates,
    sharaf_drift,
    sharaf_freshness,
)
from headgate.workloads.testbeds.testbed import Testbed

Make = Callable[..., Testbed]

LOADED: dict[str, Make] = {
    "single stream": sharaf.single_stream,
    "shared selects": sharaf.shared_selects,
    "joins": sharaf.joins,
    "aggregates": sharaf_aggregates.aggregates,
    "freshness": sharaf_freshness.freshness,
    "trees": aurora.trees,
    "tight and loose": aurora.tight_and_loose,
    "cqc A": lambda **settings: cqc.workload("A", **settings),
    "cqc B": lambda **settings: cqc.workload("B", **settings),
    "cqc C_H": lambda **settings: cqc.workload("C", only="H", sources=True, **settings),
    "plan 1": amos.plan_1,
    "plan 2": amos.plan_2,
    "line": amos.line,
}
EVERY: dict[str, Make] = {
    **LOADED,
    "drift": sharaf_drift.drift,
    "latency": bz.latency,
    "memory": bz.memory,
}


@cache
def seeded_testbed(name: str, seed: int) -> Testbed:
    return EVERY[name](seed=seed)


@pytest.mark.parametrize("name", EVERY)
def test_arrivals_ascend_and_every_stream_has_some(name: str) -> None:
    testbed = seeded_testbed(name, 1)
    assert set(testbed.arrivals) == {stream.name for stream in testbed.network.streams}
    for times_s in testbed.arrivals.values():
        assert times_s.dtype == np.float64
        assert len(times_s) > 0
        assert times_s[0] >= 0
        assert (np.diff(times_s) >= 0).all()


@pytest.mark.parametrize("name", EVERY)
def test_a_seed_gives_one_testbed(name: str) -> None:
    one, again = seeded_testbed(name, 1), EVERY[name](seed=1)
    assert one.network == again.network
    for pair in ("arrivals", "selectivities", "tuple_costs"):
        left, right = getattr(one, pair), getattr(again, pair)
        assert list(left) == list(right)
        assert all((left[key] == right[key]).all() for key in left)
    assert one.note == again.note


@pytest.mark.parametrize("name", EVERY)
def test_another_seed_gives_another_testbed(name: str) -> None:
    one, other = seeded_testbed(name, 1), seeded_testbed(name, 0)
    same = one.network == other.network and all(
        np.array_equal(one.arrivals[stream], other.arrivals[stream]) for stream in one.arrivals
    )
    assert not same


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("level", ["query", "operator"])
def test_the_network_can_be_cut_into_units_that_all_have_figures(name: str, level: Any) -> None:
    testbed = seeded_testbed(name, 0)
    rates = {number: 1.0 for number in range(len(testbed.network.streams))}
    units = units_of(
        testbed.network, level, shared_priority=testbed.shared_priority or "pdt", rates_per_s=rates
    )
    assert {query for shape in units.shapes for query in shape.queries} == set(
        range(len(testbed.network.paths))
    )
    assert all(np.isfinite(units.figures(unit)).all() for unit in range(len(units)))


@pytest.mark.parametrize("name", EVERY)
def test_what_a_run_is_told_by_box_names_boxes_of_the_network(name: str) -> None:
    testbed = seeded_testbed(name, 0)
    boxes = {node.name for node in Graph(testbed.network).nodes}
    assert {*testbed.selectivities, *testbed.tuple_costs, *testbed.preloaded} <= boxes


@pytest.mark.parametrize("name", LOADED)
@pytest.mark.parametrize("seed", range(3))
def test_the_expected_load_is_the_utilisation_asked_for(name: str, seed: int) -> None:
    testbed = seeded_testbed(name, seed)
    rates = {stream: measured_rate_per_s(times) for stream, times in testbed.arrivals.items()}
    assert testbed.utilisation is not None
    # Streams drawn at a rate have it to 1 in √10 000; others are measured before costs are set.
    assert load(testbed.network, rates) == pytest.approx(testbed.utilisation, rel=0.02)


@pytest.mark.parametrize("name", [*LOADED, "drift"])
@pytest.mark.parametrize("seed", range(3))
def test_the_realised_utilisation_is_at_most_a_little_above_the_one_asked_for(
    name: str, seed: int
) -> None:
    testbed = seeded_testbed(name, seed)
    assert testbed.utilisation is not None
    assert testbed.realised_utilisation is not None
    assert 0.7 * testbed.utilisation < testbed.realised_utilisation < 1.02 * testbed.utilisation


@pytest.mark.parametrize("utilisation", [0.1, 0.5, 0.99, 1.2])
def test_any_utilisation_can_be_asked_for(utilisation: float) -> None:
    for make in (sharaf.single_stream, sharaf.joins, amos.plan_2, sharaf_freshness.freshness):
        testbed = make(utilisation=utilisation, tuples=2_000)
        rates = {stream: measured_rate_per_s(times) for stream, times in testbed.arrivals.items()}
        assert load(testbed.network, rates) == pytest.approx(utilisation, rel=0.06)


@pytest.mark.parametrize(
    ("make", "settings", "key"),
    [
        (sharaf.single_stream, {"queries": 0}, "queries"),
        (sharaf.single_stream, {"utilisation": 0.0}, "utilisation"),
        (sharaf.single_stream, {"utilisation": -0.5}, "utilisation"),
        (sharaf.single_stream, {"rate_per_s": -1.0}, "rate_per_s"),
        (sharaf.single_stream, {"tuples": 0}, "tuples"),
        (sharaf.single_stream, {"highest_selectivity": 1.1}, "highest_selectivity"),
        (sharaf.single_stream, {"highest_selectivity": 0.0}, "highest_selectivity"),
        (sharaf.single_stream, {"cost_classes": 0}, "cost_classes"),
        (sharaf.single_stream, {"seed": -1}, "seed"),
        (sharaf.shared_selects, {"group": 0}, "group"),
        (sharaf.joins, {"queries": 0}, "queries"),
        (sharaf.joins, {"rate_per_s": 0.0}, "rate_per_s"),
        (sharaf_aggregates.aggregates, {"utilisation": 0.0}, "utilisation"),
        (sharaf_drift.drift, {"deviation": 0.0}, "deviation"),
        (sharaf_drift.drift, {"intervals": 0}, "intervals"),
        (sharaf_freshness.freshness, {"bursty": 11}, "bursty"),
        (sharaf_freshness.freshness, {"burst": 0}, "burst"),
        (sharaf_freshness.freshness, {"zipf": -1.0}, "zipf"),
        (sharaf_freshness.freshness, {"queries": 0}, "queries"),
        (sharaf_freshness.freshness, {"streams": 0}, "streams"),
        (aurora.trees, {"apps": 0}, "apps"),
        (aurora.trees, {"depth": 0}, "depth"),
        (aurora.trees, {"fanout": 0}, "fanout"),
        (aurora.trees, {"capacity": 0.0}, "capacity"),
        (aurora.trees, {"selectivity": 1.5}, "selectivity"),
        (aurora.trees, {"cost_s": (0.0, 1.0)}, "least_cost_s"),
        (aurora.trees, {"burst": 0}, "burst"),
        (cqc.workload, {"name": "D"}, "workload"),
        (cqc.workload, {"only": "X"}, "only"),
        (cqc.workload, {"only": ""}, "only"),
        (cqc.workload, {"load": 0.0}, "load"),
        (cqc.workload, {"rate_per_s": -1500.0}, "rate_per_s"),
        (cqc.workload, {"spacing": "odd"}, "spacing"),
        (amos.plan_1, {"utilisation": 0.0}, "utilisation"),
        (amos.plan_1, {"swing": 1.5}, "swing"),
        (amos.plan_1, {"every_s": 0.0}, "every_s"),
        (amos.plan_2, {"window_s": 0.0}, "window_s"),
        (amos.line, {"operators": 0}, "operators"),
        (bz.latency, {"outliers": 1.1}, "outliers"),
        (bz.memory, {"tuples": 0}, "tuples"),
        (bz.memory, {"selectivity": -0.1}, "selectivity"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_with_its_key(
    make: Make, settings: dict[str, Any], key: str
) -> None:
    with pytest.raises(ConfigRefused, match=rf"{key} is .*, but must be"):
        make(**settings)


def test_an_empty_choice_of_graphs_or_trees_of_reversed_costs_is_refused() -> None:
    with pytest.raises(ConfigRefused, match="graphs"):
        aurora.trees(graphs=())
    with pytest.raises(ConfigRefused, match="the least and the most"):
        aurora.trees(cost_s=(0.2, 0.1))


def test_arrivals_of_an_unknown_stream_or_out_of_order_make_no_testbed() -> None:
    network = bz.memory().network
    with pytest.raises(UnknownName, match="nowhere"):
        Testbed(name="x", network=network, arrivals={"nowhere": np.zeros(1)}, note="")
    with pytest.raises(ConfigRefused, match="ascending"):
        Testbed(name="x", network=network, arrivals={"a": np.array([1.0, 0.0])}, note="")
