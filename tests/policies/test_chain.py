"""Chain: priorities by the lower envelope of the memory chart (AMoS §2.1, BZ §3)."""

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
from headgate.policies.chain import Chain


def chart(network: Network, level: Level = "operator") -> list[tuple[str, float]]:
    """Return the partitions, steepest first, each as the names of its boxes and its slope."""
    units = units_of(network, level)
    partitions = cast(Chain, policy_named("chain")).partitions(units, unit_table(units))
    partitions.sort(key=lambda part: -part.slope)
    names = [node.name for node in units.graph.nodes]
    return [
        (" ".join(names[units.shapes[unit].box] for unit in part.units), part.slope)
        for part in partitions
    ]


def preference(network: Network, level: Level = "operator") -> str:
    """Return the boxes in the order of the plan when tuples of the same age wait everywhere."""
    units = units_of(network, level)
    policy, table = policy_named("chain"), unit_table(units)
    policy.prepare(units)
    table["head_arrived_at_s"] = 0.0
    steps = policy.plan(State(table, np.arange(len(units))), 1.0)
    return " ".join(units.graph.nodes[units.shapes[step.unit].box].name for step in steps)


def test_the_running_example_of_amos() -> None:
    # Op1 frees 0.75 tuples in 0.5 s; Op2 0.5 in 1 s; Op3 all of its tuple, in 2 s.
    network = network_of(
        priced("Op1", "s", cost_s=0.5, passes=0.25),
        priced("Op2", "Op1", cost_s=1, passes=0.5),
        priced("Op3", "Op2", cost_s=2, passes=0.8),
    )
    assert chart(network) == [("Op1", 1.5), ("Op2 Op3", 0.5)]
    assert preference(network) == "Op1 Op3 Op2"


def test_the_path_of_bz_6_is_broken_in_two() -> None:
    network = network_of(
        priced("O1", "s", cost_s=0.001, passes=0.95, size=1),
        priced("O2", "O1", cost_s=0.005, passes=0.95),
        tuple_bytes=2,
    )
    assert chart(network) == [
        ("O1", pytest.approx((2 - 0.95) / 0.001)),
        ("O2", pytest.approx(1 / 0.005)),
    ]


def test_an_operator_that_frees_little_runs_with_the_steep_one_behind_it() -> None:
    network = network_of(
        priced("keeps", "s", cost_s=1, passes=0.9), priced("drops", "keeps", cost_s=1, passes=0)
    )
    assert chart(network) == [("keeps drops", pytest.approx(1.0 / 1.9))]


def test_tuples_inside_a_segment_are_brought_through_before_the_next_comes_in() -> None:
    network = network_of(
        priced("a", "s", cost_s=3), priced("b", "a", cost_s=2), priced("c", "b", cost_s=1)
    )
    assert preference(network) == "c b a"


def test_an_operator_that_makes_tuples_larger_takes_memory() -> None:
    network = network_of(
        priced("widens", "s", cost_s=1, size=10), priced("slow", "widens", cost_s=90)
    )
    assert chart(network) == [("widens slow", pytest.approx(1 / 91))]
    network = network_of(
        priced("halves", "s", cost_s=1, size=0.5),
        priced("widens", "halves", cost_s=1, size=10),
        priced("slow", "widens", cost_s=90),
    )
    assert [units for units, _ in chart(network)] == ["halves", "widens slow"]


def test_at_query_level_the_slope_is_the_bytes_of_a_tuple_over_its_mean_cost() -> None:
    network = network_of(
        priced("a", "s", cost_s=1, passes=0.5),
        priced("b", "a", cost_s=4),
        priced("c", "s", cost_s=2),
        tuple_bytes=6,
    )
    assert chart(network, "query") == [("a", 6 / 3), ("c", 6 / 2)][::-1]


@given(
    costs_s=st.lists(st.integers(1, 20), min_size=2, max_size=6),
    passes=st.lists(st.integers(0, 8), min_size=6, max_size=6),
)
def test_at_query_level_the_cheapest_query_goes_first_whatever_it_passes(
    costs_s: list[int], passes: list[int]
) -> None:
    network = network_of(
        *(
            priced(f"b{number}", "s", cost_s=cost_s, passes=passes[number] / 8)
            for number, cost_s in enumerate(costs_s)
        )
    )
    cheapest_first = sorted(range(len(costs_s)), key=lambda number: costs_s[number])
    assert preference(network, "query") == " ".join(f"b{number}" for number in cheapest_first)


def test_each_branch_of_a_fork_has_a_buffer_and_segments_of_its_own() -> None:
    network = network_of(
        priced("shared", "s", cost_s=1, passes=0.25, size=4),  # 4 − 0.25 · (4 + 4) = 2 bytes in 1 s
        priced("fast", "shared", cost_s=1, size=1),  # (4 − 1) in 1 s
        priced("faster", "fast", cost_s=0.25),  # 1 in 0.25 s
        priced("slow", "shared", cost_s=8),  # 4 in 8 s
        tuple_bytes=4,
    )
    joined = (2 + 0.25 * 4) / (1 + 0.25 * 1.25)
    assert chart(network) == [("shared fast faster", pytest.approx(joined)), ("slow", 0.5)]
    assert preference(network) == "faster fast shared slow"


def test_two_paths_that_meet_have_a_chart_each_and_share_the_steepest() -> None:
    network = network_of(
        priced("left", "s", cost_s=1, passes=0.1),
        priced("right", "t", cost_s=9, passes=1),
        priced("union", "left", "right", cost_s=1),
    )
    slopes = dict(chart(network))
    assert slopes == {
        "left union": pytest.approx(1.0 / 1.1),
        "right union": pytest.approx(1.0 / 10),
    }
    assert preference(network) == "union left right"


def test_a_shared_part_of_two_steep_paths_stays_a_segment_of_its_own() -> None:
    network = network_of(
        priced("left", "s", cost_s=1, passes=0.1),
        priced("right", "t", cost_s=2, passes=0.1),
        priced("union", "left", "right", cost_s=9),
    )
    assert chart(network) == [
        ("left", pytest.approx(0.9)),
        ("right", pytest.approx(0.45)),
        ("union", pytest.approx(1 / 9)),
        ("union", pytest.approx(1 / 9)),
    ]
    assert preference(network) == "left right union"


def test_a_shared_operator_is_worth_the_inverse_of_its_cost() -> None:
    assert policy_named("chain").value(0.1, 4.0, 9.0) == 0.25
