"""Forks whose branches share tuples: partitions for latency (oc) and for memory (mr) (BZ §4)."""

from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks import network_of, priced

from headgate.model.network.network import Network
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import Level, units_of
from headgate.policies import State, policy_named
from headgate.policies.methods.charts import ChartPolicy


def chart(
    policy: str,
    network: Network,
    level: Level = "operator",
    rates_per_s: dict[int, float] | None = None,
) -> list[tuple[str, float]]:
    """Return the partitions, steepest first, each as the names of its boxes and its slope."""
    units = units_of(network, level, rates_per_s=rates_per_s)
    partitions = cast(ChartPolicy, policy_named(policy)).partitions(units, unit_table(units))
    names = [node.name for node in units.graph.nodes]
    return [
        (" ".join(names[units.shapes[unit].box] for unit in part.units), part.slope)
        for part in sorted(partitions, key=lambda part: -part.slope)
    ]


def drained(policy: str, network: Network, queues: dict[str, int]) -> list[tuple[str, float]]:
    """Run all queues, one tuple per step, every tuple passing; return each box with its end."""
    units = units_of(network, "operator")
    rule, table, now_s = policy_named(policy), unit_table(units), 0.0
    rule.prepare(units)
    name_of = [units.graph.nodes[shape.box].name for shape in units.shapes]
    waiting = {
        number: [float(position) for position in range(queues.get(name, 0))]
        for number, name in enumerate(name_of)
    }
    done = []
    while ready := [number for number, queue in waiting.items() if queue]:
        table["head_arrived_at_s"] = [queue[0] if queue else np.inf for queue in waiting.values()]
        unit = rule.plan(State(table, np.array(ready)), now_s)[0].unit
        arrived_at_s = waiting[unit].pop(0)
        now_s += float(table["box_cost_s"][unit])
        for fed in units.shapes[unit].feeds:
            waiting[fed].append(arrived_at_s)
        done.append((name_of[unit], now_s))
    return done


def figure_8() -> Network:
    """Return BZ Figure 6 with costs as the text assumes: A and B join C; O leaves G, H and P."""
    return network_of(
        priced("E", "s", cost_s=4),
        priced("D", "E", cost_s=1),
        priced("C", "E", cost_s=6),
        priced("A", "C", cost_s=1),
        priced("B", "C", cost_s=2),
        priced("G", "E", cost_s=1),
        priced("H", "G", cost_s=1),
        priced("P", "G", cost_s=1),
        priced("O", "G", cost_s=8),
    )


def figure_9(o4_s: float = 0.5) -> Network:
    """Return two paths over one stream of 10 bytes a tuple; O4 frees memory faster than O2."""
    return network_of(
        priced("O1", "s", cost_s=1, size=6),
        priced("O2", "O1", cost_s=10),
        priced("O3", "s", cost_s=1, size=2),
        priced("O4", "O3", cost_s=o4_s),
        tuple_bytes=10,
    )


def test_the_nested_forks_of_figure_8_end_in_three_partitions() -> None:
    assert chart("oc", figure_8()) == [
        ("E D G H P", pytest.approx(3 / 8)),
        ("C A B", pytest.approx(2 / 9)),
        ("O", pytest.approx(1 / 8)),
    ]


def test_the_subtrees_of_figure_8_are_partitioned_as_the_text_says() -> None:
    network = figure_8()
    of_c = network_of(priced("C", "E", cost_s=6), *network.boxes[3:5])
    assert [units for units, _ in chart("oc", of_c)] == ["C A B"]
    of_g = network_of(priced("G", "E", cost_s=1), *network.boxes[6:])
    assert [units for units, _ in chart("oc", of_g)] == ["G H P", "O"]


def test_inside_a_partition_of_figure_8_a_tuple_passes_all_branches_before_the_next() -> None:
    done = [name for name, _ in drained("oc", figure_8(), {"E": 2})]
    assert done == [*"EDGHP", *"EDGHP", *"CAB", *"CAB", *"OO"]


def test_figure_9_ends_in_two_partitions() -> None:
    assert chart("mr", figure_9()) == [
        ("O1 O3 O4", pytest.approx((10 - 6 - 2 + 2) / 2.5)),
        ("O2", pytest.approx(6 / 10)),
    ]


def test_a_segment_that_frees_memory_too_slowly_stays_out_of_the_fork_segment() -> None:
    assert chart("mr", figure_9(o4_s=4)) == [
        ("O1 O3", pytest.approx(1.0)),
        ("O2", pytest.approx(0.6)),
        ("O4", pytest.approx(0.5)),
    ]


def test_chain_takes_the_branches_of_figure_9_for_independent_paths() -> None:
    assert chart("chain", figure_9()) == [
        ("O3", pytest.approx(8.0)),
        ("O1", pytest.approx(4.0)),
        ("O4", pytest.approx(4.0)),
        ("O2", pytest.approx(0.6)),
    ]


def test_a_shared_tuple_passes_all_branches_before_the_next_is_touched() -> None:
    done = [name for name, _ in drained("mr", figure_9(), {"O1": 3, "O3": 3})]
    assert done == ["O1", "O3", "O4"] * 3 + ["O2"] * 3


def test_the_branch_that_is_behind_goes_first() -> None:
    done = [name for name, _ in drained("mr", figure_9(), {"O3": 2})]
    assert done == ["O3", "O4", "O3", "O4"]


def fork(o1_s: float, o2_s: float, o3_s: float) -> Network:
    return network_of(
        priced("O1", "s", cost_s=o1_s),
        priced("O2", "O1", cost_s=o2_s),
        priced("O3", "O1", cost_s=o3_s),
    )


def total_latency_s(policy: str, network: Network, tuples: int) -> float:
    return sum(
        end_s for name, end_s in drained(policy, network, {"O1": tuples}) if name in ("O2", "O3")
    )


@pytest.mark.parametrize("tuples", [1, 2, 10, 40])
def test_a_slow_branch_is_broken_off_and_the_area_is_that_of_figure_5b(tuples: int) -> None:
    o1_s, o2_s, o3_s = 1.0, 2.0, 5.0
    network = fork(o1_s, o2_s, o3_s)
    assert [units for units, _ in chart("oc", network)] == ["O1 O2", "O3"]
    area = 1.5 * tuples**2 * (o1_s + o2_s) + 0.5 * tuples**2 * o3_s
    steps = 0.5 * tuples * (o1_s + o2_s + o3_s)  # tuples fall in steps; the chart is a line
    assert total_latency_s("oc", network, tuples) == pytest.approx(area + steps)


@pytest.mark.parametrize("tuples", [1, 2, 10, 40])
def test_a_quick_branch_stays_and_the_area_is_that_of_figure_5a(tuples: int) -> None:
    o1_s, o2_s, o3_s = 3.0, 1.0, 2.0
    network = fork(o1_s, o2_s, o3_s)
    assert [units for units, _ in chart("oc", network)] == ["O1 O2 O3"]
    area = tuples**2 * (o1_s + o2_s + o3_s)
    assert total_latency_s("oc", network, tuples) == pytest.approx(area + tuples * (o1_s + o2_s))


@given(costs_s=st.tuples(*[st.integers(1, 12)] * 3))
def test_a_fork_is_partitioned_where_that_makes_the_area_smaller(
    costs_s: tuple[int, int, int],
) -> None:
    o1_s, quick_s, slow_s = costs_s[0], min(costs_s[1:]), max(costs_s[1:])
    partitioned = 1.5 * (o1_s + quick_s) + 0.5 * slow_s
    whole = o1_s + quick_s + slow_s
    count = len(chart("oc", fork(*costs_s)))
    assert count == (2 if partitioned < whole else 1)


def test_branches_run_in_the_order_of_their_slopes() -> None:
    done = [name for name, _ in drained("oc", fork(3.0, 2.0, 1.0), {"O1": 2})]
    assert done == ["O1", "O3", "O2"] * 2


def test_a_path_is_never_broken_for_latency() -> None:
    network = network_of(
        priced("a", "s", cost_s=1, passes=0.1),
        priced("b", "a", cost_s=9),
        priced("c", "b", cost_s=1),
    )
    assert chart("oc", network) == [("a b c", pytest.approx(0.1 / 2))]


def test_a_shared_operator_may_give_results_of_its_own() -> None:
    network = network_of(priced("a", "s", cost_s=1), priced("b", "a", cost_s=4), outputs=["a"])
    assert chart("oc", network) == [("a", 1.0), ("b", 0.25)]
    assert chart("mr", network) == [("a b", pytest.approx(0.2))]


def test_for_latency_two_graphs_that_read_one_stream_are_independent() -> None:
    assert [units for units, _ in chart("oc", figure_9())] == ["O3 O4", "O1 O2"]


def test_a_fork_behind_a_shared_path_is_joined_to_it_for_memory() -> None:
    network = network_of(
        priced("first", "s", cost_s=1, passes=0.5, size=8),  # 8 − 0.5 · 8 = 4 bytes in 1 s
        priced("left", "first", cost_s=1),
        priced("right", "first", cost_s=1, size=1),  # together 8 − 0 − 1 = 7 bytes in 2 s
        priced("tail", "right", cost_s=1),
        tuple_bytes=8,
    )
    assert chart("mr", network) == [
        ("first", pytest.approx(4.0)),
        ("left right", pytest.approx(3.5)),
        ("tail", pytest.approx(1.0)),
    ]


def test_nested_forks_are_serialised_from_the_outputs_up() -> None:
    network = network_of(
        priced("a", "s", cost_s=1, size=4),
        priced("b", "s", cost_s=1, size=4),  # with a: 10 − 8 bytes in 2 s
        priced("c", "b", cost_s=1),
        priced("d", "b", cost_s=1, size=1),  # with c: 4 − 0 − 1 in 2 s
        priced("e", "d", cost_s=0.1),  # 1 in 0.1 s: joins c and d, and all three join a and b
        priced("f", "a", cost_s=10),
        tuple_bytes=10,
    )
    assert chart("mr", network) == [
        ("a b c d e", pytest.approx((2 + 3 + 1) / 4.1)),
        ("f", pytest.approx(0.4)),
    ]


def test_at_query_level_oc_orders_as_hr() -> None:
    network = figure_9()
    units = units_of(network)
    table, ready = unit_table(units), np.arange(len(units))
    for seed in range(20):
        drawn = np.random.default_rng(seed)
        table["selectivity"] = drawn.uniform(0, 1, len(units))
        table["tuple_cost_s"] = table["cost_s"] = drawn.uniform(0.1, 9, len(units))
        plans = []
        for name in ("oc", "hr"):
            policy = policy_named(name)
            policy.prepare(units)
            plans.append([step.unit for step in policy.plan(State(table, ready), 1.0)])
        assert plans[0] == plans[1]


def test_at_query_level_the_readers_of_a_stream_are_one_fork_segment() -> None:
    network = network_of(
        priced("a", "s", cost_s=1),
        priced("b", "s", cost_s=3),
        priced("c", "t", cost_s=2),
        tuple_bytes=8,
    )
    assert chart("mr", network, "query") == [("c", 4.0), ("a b", 2.0)]


def test_a_component_with_a_union_has_its_average_output_rate() -> None:
    network = network_of(
        priced("left", "s", cost_s=1, passes=0.5),
        priced("right", "t", cost_s=2),
        priced("union", "left", "right", cost_s=1, kind="union"),
        priced("quick", "union", cost_s=1),
        priced("slow", "union", cost_s=50),
    )
    # 3 tuples a second from the left and 1 from the right: 2.5 reach the union and both branches.
    partitions = chart("oc", network, rates_per_s={0: 3.0, 1: 1.0})
    results, work_s = 2 * 2.5, 3 * 1 + 1 * 2 + 2.5 * (1 + 1 + 50)
    assert [slope for _, slope in partitions] == [pytest.approx(results / work_s)]
    assert set(partitions[0][0].split()) == {"left", "right", "union", "quick", "slow"}


@pytest.mark.parametrize("level", ["operator", "query"])
def test_both_sides_of_a_join_are_one_partition_for_latency(level: Level) -> None:
    network = network_of(
        priced("left", "s", cost_s=1),
        priced("join", "left", "t", cost_s=2, passes=0.25, kind="join", window_s=1.0),
        priced("other", "s", cost_s=0.5),
    )
    partitions = chart("oc", network, level, rates_per_s={0: 2.0, 1: 4.0})
    # A left tuple meets 4 right ones, a right tuple 2 left ones.
    results, work_s = 2 * 4 * 0.25 + 4 * 2 * 0.25, 2 * (1 + 2) + 4 * 2
    assert partitions[0] == ("other", pytest.approx(2.0))
    assert [slope for _, slope in partitions[1:]] == [pytest.approx(results / work_s)]


def test_a_tuple_is_brought_through_a_union_before_the_next_comes_in() -> None:
    network = network_of(
        priced("left", "s", cost_s=1),
        priced("right", "t", cost_s=1),
        priced("union", "left", "right", cost_s=1, kind="union"),
    )
    done = [name for name, _ in drained("oc", network, {"left": 2, "right": 2})]
    assert done == ["left", "union", "right", "union"] * 2


def test_a_shared_buffer_is_worth_the_inverse_of_the_cost() -> None:
    assert policy_named("mr").value(0.1, 4.0, 9.0) == 0.25
    assert policy_named("oc").value(0.5, 4.0, 9.0) == 0.125
