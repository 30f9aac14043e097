"""Aurora's application trees."""

import numpy as np
import pytest

from headgate.model.network.graph import Graph
from headgate.workloads.testbeds.aurora import LOOSE, THREE_POINTS, TIGHT, tight_and_loose, trees


def test_a_tree_of_depth_5_and_fan_out_3_has_121_boxes_and_81_leaves() -> None:
    testbed = trees(apps=2)
    assert len(testbed.network.boxes) == 2 * 121
    assert len(testbed.network.streams) == 2 * 81
    graph = Graph(testbed.network)
    leaves = [node for node in graph.nodes if node.streams[0]]
    assert len(leaves) == 162
    assert all(len(node.streams[0]) == 1 and not node.boxes[0] for node in leaves)
    inner = [node for node in graph.nodes if node.boxes[0]]
    assert all(len(node.boxes[0]) == 3 and not node.streams[0] for node in inner)


def test_every_leaf_is_five_boxes_from_the_output_of_its_application() -> None:
    graph = Graph(trees(apps=2, fanout=2).network)
    for node in graph.nodes:
        if node.streams[0]:
            (way,) = graph.ways(node.number)
            boxes, current = 1, node
            while current.readers:
                current, boxes = graph.nodes[current.readers[0][0]], boxes + 1
            assert boxes == 5
            assert current.queries == [way.query]


def test_costs_are_uniform_in_the_range_of_the_paper_and_selectivities_are_one() -> None:
    operators = [box.operator for box in trees().network.boxes]
    costs_s = np.array([operator.cost_s for operator in operators], dtype=float)
    assert ((costs_s >= 0.0001) & (costs_s <= 0.001)).all()
    assert costs_s.mean() == pytest.approx(0.00055, rel=0.05)
    assert {operator.selectivity for operator in operators} == {1.0}


def test_every_input_has_the_same_rate_and_about_100_000_tuples_come_in_all() -> None:
    testbed = trees()
    assert 100_000 <= sum(len(times_s) for times_s in testbed.arrivals.values()) < 101_000
    gaps_s = [np.diff(times_s) for times_s in testbed.arrivals.values()]
    assert np.ptp(np.concatenate(gaps_s)) == pytest.approx(0.0, abs=1e-9)


def test_a_burst_gathers_tuples_and_keeps_their_number() -> None:
    even, bursty = (trees(apps=1, fanout=2, tuples=3_200, burst=burst) for burst in (1, 4))
    for stream, times_s in even.arrivals.items():
        groups_s = bursty.arrivals[stream].reshape(50, 4)
        assert (groups_s == groups_s[:, :1]).all()
        assert groups_s[:, 0] == pytest.approx(4 * times_s[:50])


def test_bursts_of_the_streams_are_spread_over_the_time_between_two_of_them() -> None:
    arrivals = trees(apps=4, fanout=2, tuples=6_400, burst=4).arrivals.values()
    firsts_s = np.array([times_s[0] for times_s in arrivals])
    (gap_s,) = {round(float(times_s[4] - times_s[0]), 9) for times_s in arrivals}
    assert np.histogram(firsts_s, bins=4, range=(0.0, gap_s))[0].min() >= 8  # 16 expected


def test_a_graph_of_three_points_is_the_rule() -> None:
    assert {path.query.qos for path in trees(apps=3, fanout=1).network.paths} == {THREE_POINTS}
    assert len(THREE_POINTS.points) == 3


def test_tight_and_loose_graphs_are_those_of_the_paper_and_fall_by_lot() -> None:
    assert TIGHT.points == ((0.0, 1.0), (0.001, 1.0), (1.0, 0.0))
    assert LOOSE.points == ((0.0, 1.0), (4.0, 1.0), (5.0, 0.0))
    testbed = tight_and_loose()
    assert len(testbed.network.paths) == 20
    assert len(testbed.network.boxes) == 100
    tight = sum(path.query.qos == TIGHT for path in testbed.network.paths)
    assert 4 <= tight <= 16
    assert len(tight_and_loose(apps=200, tuples=1_000).network.boxes) == 1_000
