"""The graph's figures by hand: rates, S, C̄ and T along lines, trees, forks and joins."""

from math import isnan

import pytest

from headgate.model.network.graph import Graph
from headgate.model.network.network import Box, Network, Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream


def select(cost_s: float, selectivity: float = 1.0) -> Operator:
    return Operator(kind="select", cost_s=cost_s, selectivity=selectivity)


def join(cost_s: float, selectivity: float, window_s: float) -> Operator:
    return Operator(kind="join", cost_s=cost_s, selectivity=selectivity, window_s=window_s)


def box(name: str, operator: Operator, *inputs: str) -> Box:
    return Box(name=name, operator=operator, inputs=inputs)


def query(name: str) -> Query:
    return Query(name=name, sql="SELECT 1", query_class="only")


def graph(*boxes: Box, outputs: str, streams: str = "lr", **rates_per_s: float) -> Graph:
    """Return the graph of named boxes; each letter of `outputs` is a box with a query."""
    network = Network(
        tuple(Stream(name=name, format="rate") for name in streams),
        (QueryClass(name="only", priority=1.0),),
        tuple(Path(query=query(f"q_{name}"), output=name) for name in outputs),
        boxes,
    )
    rates = {streams.index(name): rate for name, rate in rates_per_s.items()}
    return Graph(network, rates)


def test_a_line_has_the_product_the_weighted_sum_and_the_plain_sum() -> None:
    line = graph(
        box("a", select(1.0, 0.5), "l"), box("b", select(4.0, 0.2), "a"),
        box("c", select(10.0), "b"), outputs="c",
    )  # fmt: skip
    (way,) = line.ways(0)
    assert way.selectivity == pytest.approx(0.5 * 0.2)
    assert way.cost_s == pytest.approx(1 + 0.5 * 4 + 0.1 * 10)
    assert way.remaining_s == way.ideal_s == 15.0
    (half,) = line.ways(1)
    assert half.cost_s == pytest.approx(4 + 0.2 * 10)
    assert (half.remaining_s, half.ideal_s) == (14.0, 15.0)


def test_rates_fall_along_a_line() -> None:
    line = graph(
        box("a", select(1.0, 0.5), "l"), box("b", select(1.0, 0.2), "a"), outputs="b", l=40.0
    )
    assert (line.input_per_s(0), line.output_per_s(0), line.output_per_s(1)) == (40.0, 20.0, 4.0)


# Sharaf §3.4.2: C_L = 2, S_L = 0.5; C_R = 3, S_R = 0.25; C_J = 1, S_J = 0.1, V = 8;
# C_C = 5, S_C = 0.6.
ONE_JOIN = graph(
    box("f", select(2.0, 0.5), "l"), box("g", select(3.0, 0.25), "r"),
    box("j", join(1.0, 0.1, 8.0), "f", "g"), box("c", select(5.0, 0.6), "j"),
    outputs="c", l=10.0, r=20.0,
)  # fmt: skip


def test_a_left_tuple_meets_what_the_right_window_holds() -> None:
    # 1/τ_R = 20 a second, of which 0.25 reach the join: 0.25 × 8 × 20 = 40 in the window.
    (way,) = ONE_JOIN.ways(0)
    assert way.selectivity == pytest.approx(0.5 * 0.1 * (0.25 * 8 * 20) * 0.6)
    assert way.cost_s == pytest.approx(2 + 0.5 * 1 + 0.5 * 0.1 * (0.25 * 8 * 20) * 5)


def test_a_right_tuple_meets_what_the_left_window_holds() -> None:
    # 1/τ_L = 10 a second, half of them: 40 again.
    (way,) = ONE_JOIN.ways(1)
    assert way.selectivity == pytest.approx(0.25 * 0.1 * (0.5 * 8 * 10) * 0.6)
    assert way.cost_s == pytest.approx(3 + 0.25 * 1 + 0.25 * 0.1 * (0.5 * 8 * 10) * 5)


def test_a_composite_tuple_takes_both_sides_and_the_join_twice() -> None:
    # T = C_L + C_R + 2 C_J + C_C
    assert ONE_JOIN.ideal_s(3) == 2 + 3 + 2 * 1 + 5
    assert ONE_JOIN.ideal_s(2) == 2 + 3 + 2 * 1
    assert {way.ideal_s for side in (0, 1) for way in ONE_JOIN.ways(2, side)} == {12.0}


def test_a_join_gives_out_the_pairs_of_both_sides() -> None:
    # Each of 5 left tuples a second meets 40 × 0.1, each of 5 right ones too.
    assert ONE_JOIN.output_per_s(2) == pytest.approx(5 * 4 + 5 * 4)


def test_of_two_joins_the_figures_are_recursive() -> None:
    # (l ⋈ r) ⋈ m: the first puts 2 × 0.1 × 2 × (3 × 4) = 4.8 a second into the left of the second.
    two = graph(
        box("j", join(1.0, 0.1, 2.0), "l", "r"), box("k", join(3.0, 0.5, 5.0), "j", "m"),
        outputs="k", streams="lrm", l=3.0, r=4.0, m=6.0,
    )  # fmt: skip
    assert two.output_per_s(0) == pytest.approx(4.8)
    (way,) = two.ways(0, 0)
    matches = 0.1 * 4 * 2  # of a tuple of l with tuples of r
    assert way.selectivity == pytest.approx(matches * 0.5 * 6 * 5)
    assert way.cost_s == pytest.approx(1 + matches * 3)
    assert two.selectivity(1, 1) == pytest.approx(0.5 * 4.8 * 5)
    assert two.ideal_s(1) == (1 + 1) + 2 * 3


def test_a_fork_has_a_way_to_each_query_and_one_cost() -> None:
    fork = graph(
        box("x", select(1.0, 0.5), "l"), box("a", select(2.0, 0.8), "x"),
        box("b", select(6.0, 0.5), "x"), outputs="ab",
    )  # fmt: skip
    first, second = fork.ways(0)
    assert (first.query, first.selectivity, first.cost_s, first.ideal_s) == (0, 0.4, 2.0, 3.0)
    assert (second.query, second.selectivity, second.cost_s, second.ideal_s) == (1, 0.25, 4.0, 7.0)
    assert fork.mean_cost_s(0) == 1 + 0.5 * (2 + 6)  # 2 + 4 − 1


def test_a_box_with_a_query_of_its_own_and_readers_has_a_way_to_both() -> None:
    tree = graph(box("x", select(1.0, 0.5), "l"), box("a", select(2.0, 0.8), "x"), outputs="xa")
    assert [(way.query, way.cost_s, way.ideal_s) for way in tree.ways(0)] == [
        (0, 1.0, 1.0),
        (1, 2.0, 3.0),
    ]
    assert tree.mean_cost_s(0) == 2.0


def test_what_nobody_reads_costs_nothing() -> None:
    idle = graph(box("a", select(1.0), "l"), box("z", select(9.0), "a"), outputs="a")
    assert idle.mean_cost_s(0) == 1.0
    assert idle.ways(1) == ()


def test_a_tree_of_unions_has_a_side_for_each_input_and_the_longest_time() -> None:
    union = Operator(kind="union", cost_s=1.0, selectivity=1.0)
    tree = graph(
        box("a", select(4.0, 0.5), "l"), box("u", union, "a", "r"), outputs="u", l=10.0, r=3.0
    )
    assert tree.nodes[1].sides == 2
    assert tree.output_per_s(1) == 10 * 0.5 + 3
    assert tree.ideal_s(1) == 5.0
    (left,), (right,) = tree.ways(0), tree.ways(1, 1)
    assert (left.selectivity, left.cost_s, left.remaining_s) == (0.5, 4.5, 5.0)
    assert (right.selectivity, right.cost_s, right.remaining_s, right.ideal_s) == (
        1.0,
        1.0,
        1.0,
        5.0,
    )


def test_other_boxes_read_several_inputs_as_one_queue() -> None:
    tree = graph(box("a", select(1.0), "l", "r"), outputs="a", l=2.0, r=3.0)
    assert tree.nodes[0].sides == 1
    assert tree.input_per_s(0) == 5.0


def test_an_aggregate_gives_out_its_instants_per_input_tuple() -> None:
    # 40 a second, half of them, a slide of 2 s: one result for 40 tuples.
    window = Operator(kind="aggregate", cost_s=3.0, range_s=10.0, slide_s=2.0)
    tree = graph(box("a", select(1.0, 0.5), "l"), box("w", window, "a"), outputs="w", l=40.0)
    assert tree.selectivity(1) == 1 / 40
    (way,) = tree.ways(0)
    assert way.selectivity == pytest.approx(0.5 / 40)
    assert way.cost_s == pytest.approx(1 + 0.5 * 3)
    assert way.ideal_s == 4.0
    assert tree.output_per_s(1) == pytest.approx(0.5)


def test_an_aggregate_that_closes_oftener_than_tuples_come_is_worth_one_a_tuple() -> None:
    window = Operator(kind="aggregate", cost_s=3.0, range_s=10.0, slide_s=0.1)
    assert graph(box("w", window, "l"), outputs="w", l=1.0).selectivity(0) == 1.0


def test_a_stream_without_a_rate_counts_as_one_a_second() -> None:
    assert graph(box("a", select(1.0), "l"), outputs="a").input_per_s(0) == 1.0


def test_what_is_not_known_is_no_number() -> None:
    plain = Operator(kind="select")
    (way,) = graph(box("a", plain, "l"), outputs="a").ways(0)
    assert isnan(way.selectivity)
    assert isnan(way.cost_s)


def test_boxes_of_paths_come_behind_named_ones_and_bear_their_querys_name() -> None:
    network = Network(
        (Stream(name="s", format="rate"),),
        (QueryClass(name="only", priority=1.0),),
        (
            Path(query=query("q"), stream="s", operators=(select(1.0), select(2.0))),
            Path(query=query("p"), output="x"),
        ),
        (box("x", select(3.0), "s"),),
    )
    nodes = Graph(network).nodes
    assert [(node.name, node.queries) for node in nodes] == [("x", [1]), ("q.0", []), ("q.1", [0])]
    assert nodes[1].readers == [(2, 0)]


def test_boxes_of_one_attribute_have_one_luck_and_all_others_their_own() -> None:
    tested = [
        Operator(kind="select", cost_s=1.0, selectivity=0.5, attribute=number)
        for number in (7, 7, 8)
    ]
    boxes = [box(name, operator, "l") for name, operator in zip("abc", tested, strict=True)]
    nodes = graph(
        *boxes, box("d", select(1.0), "l"), box("e", select(1.0), "l"), outputs="abcde"
    ).nodes
    random_keys = [node.random_key for node in nodes]
    assert random_keys[0] == random_keys[1]
    assert len(set(random_keys)) == 4
