"""A shared first operator: its worth, what runs with it, and that it runs once (Sharaf §3.6)."""

from typing import Any

import numpy as np
import pytest
from kit.networks import (
    arrivals_out,
    box,
    departures,
    line,
    network,
    new_simulation,
    ran,
    report,
    results,
    results_of,
    select,
)

from headgate.model.network.network import Network
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import Level, SharedPriority, units_of
from headgate.policies import policy_named
from headgate.policies.priority import PriorityPolicy

SHARINGS: tuple[SharedPriority, ...] = ("max", "sum", "pdt")


def shared(first: tuple[float, float], **branches: tuple[float, float]) -> Network:
    """Return one box of (cost, selectivity) on the stream, and a query behind it per branch."""
    boxes = [box("x", select(*first), "s")]
    boxes += [box(f"{name}_box", select(*figures), "x") for name, figures in branches.items()]
    return network(*(results_of(name, f"{name}_box") for name in branches), boxes=boxes)


# x costs 1 and passes half. The segments, x included:
#   a, b: S = 0.5 × 0.8 = 0.4    C̄ = 1 + 0.5 × 2 = 2      T = 1 + 2 = 3
#   c:    S = 0.5 × 0.5 = 0.25   C̄ = 1 + 0.5 × 6 = 4      T = 1 + 6 = 7
#   d:    S = 0.5 × 0.1 = 0.05   C̄ = 1 + 0.5 × 20 = 11    T = 1 + 20 = 21
FOUR = shared((1.0, 0.5), a=(2.0, 0.8), b=(2.0, 0.8), c=(6.0, 0.5), d=(20.0, 0.1))
ALL_COST_S = 2 + 2 + 4 + 11 - 3 * 1  # x counted once


def value_of_first(name: str, shared_priority: SharedPriority) -> float:
    """Return the priority of the shared unit; if it grows with the wait, after a second."""
    policy = policy_named(name)
    assert isinstance(policy, PriorityPolicy)
    units = units_of(FOUR, shared_priority=shared_priority, value=policy.value)
    policy.prepare(units)
    table = unit_table(units)
    table["head_arrived_at_s"] = 0.0
    return float(policy.values(table, np.arange(len(table)), 1.0)[0])


@pytest.mark.parametrize(
    ("policy", "numerator"),
    [
        ("hr", 0.4 + 0.4 + 0.25 + 0.05),
        ("hnr", 0.4 / 3 + 0.4 / 3 + 0.25 / 7 + 0.05 / 21),
        ("bsd", 0.4 / 9 + 0.4 / 9 + 0.25 / 49 + 0.05 / 441),
        ("brt", 0.4 + 0.4 + 0.25 + 0.05),
    ],
)
def test_together_all_segments_are_worth_their_sum_over_one_cost(
    policy: str, numerator: float
) -> None:
    assert value_of_first(policy, "sum") == pytest.approx(numerator / ALL_COST_S)


@pytest.mark.parametrize(
    ("policy", "best"), [("hr", 0.4 / 2), ("hnr", 0.4 / (2 * 3)), ("bsd", 0.4 / (2 * 9))]
)
def test_by_the_maximum_a_shared_box_is_worth_its_best_segment(policy: str, best: float) -> None:
    assert value_of_first(policy, "max") == pytest.approx(best)


@pytest.mark.parametrize(("policy", "numerator"), [("hr", 0.8), ("hnr", 0.8 / 3), ("bsd", 0.8 / 9)])
def test_the_tree_takes_segments_while_the_value_grows(policy: str, numerator: float) -> None:
    # a alone 0.4/2, a and b 0.8/3 is more; with c (0.8 + 0.25)/6 would be less.
    assert value_of_first(policy, "pdt") == pytest.approx(numerator / 3)


def test_segments_left_out_of_the_tree_have_queues_and_values_of_their_own() -> None:
    policy = policy_named("hnr")
    assert isinstance(policy, PriorityPolicy)
    units = units_of(FOUR, shared_priority="pdt", value=policy.value)
    boxes = [units.graph.nodes[shape.box].name for shape in units.shapes]
    assert boxes == ["x", "c_box", "d_box"]
    assert units.shapes[0].feeds == (1, 2)
    inside = [units.graph.nodes[stage.box].name for stage in units.shapes[0].stages]
    assert inside == ["x", "a_box", "b_box"]
    policy.prepare(units)
    values = policy.values(unit_table(units), np.arange(3), 0.0)
    assert values[1] == pytest.approx(0.5 / (6 * 7))  # S and C̄ from here on, T of the whole query
    assert values[2] == pytest.approx(0.1 / (20 * 21))


@pytest.mark.parametrize("shared_priority", ["max", "sum"])
def test_otherwise_the_shared_unit_runs_every_segment(shared_priority: SharedPriority) -> None:
    units = units_of(FOUR, shared_priority=shared_priority)
    assert [len(shape.stages) for shape in units.shapes] == [5]
    assert units.shapes[0].queries == (0, 1, 2, 3)


# x costs 1, a 1, b 8, all pass. By rate: a 1/2, b 1/9, both 2/10: the tree is a alone.
TWO = shared((1.0, 1.0), a=(1.0, 1.0), b=(8.0, 1.0))


@pytest.mark.parametrize("shared_priority", ["max", "sum"])
def test_a_tuple_runs_through_all_segments_in_one_call(shared_priority: SharedPriority) -> None:
    ended = ran(TWO, {"s": [0.0, 0.0]}, "hr", shared_priority=shared_priority)
    assert departures(ended, "a") == [2.0, 12.0]
    assert departures(ended, "b") == [10.0, 20.0]
    assert report(ended).calls == 2


def test_a_segment_left_out_waits_until_its_own_turn() -> None:
    # x and a on both tuples first (1/2), then b (1/8).
    ended = ran(TWO, {"s": [0.0, 0.0]}, "hr", shared_priority="pdt")
    assert departures(ended, "a") == [2.0, 4.0]
    assert departures(ended, "b") == [12.0, 20.0]
    assert report(ended).calls == 4


@pytest.mark.parametrize("shared_priority", SHARINGS)
def test_a_shared_box_runs_once_a_tuple_however_many_queries_read_it(
    shared_priority: SharedPriority,
) -> None:
    ended = ran(TWO, {"s": [0.0] * 5}, "hr", shared_priority=shared_priority)
    assert report(ended).box_calls == 5 * 3  # x, a and b, each once
    assert report(ended).seconds == 5 * (1 + 1 + 8)


def test_without_sharing_the_same_work_costs_more() -> None:
    apart = network(line("a", select(1.0), select(1.0)), line("b", select(1.0), select(8.0)))
    assert report(ran(apart, {"s": [0.0] * 5}, "hr")).seconds == 5 * (2 + 9)


def test_every_query_has_the_same_results_however_its_first_box_is_shared() -> None:
    times = {"s": (np.arange(300) * 3.0).tolist()}
    runs = [
        ran(FOUR, times, "hr", shared_priority=shared_priority, seed=5)
        for shared_priority in SHARINGS
    ]
    runs.append(ran(FOUR, times, "hr", level="operator", seed=5))
    for name in "abcd":
        arrivals = [sorted(arrivals_out(ended, name)) for ended in runs]
        assert arrivals[0]
        assert arrivals[1:] == arrivals[:-1]
    # Both read what x lets pass and draw for themselves: 0.5 × 0.8 × 300 = 120 each, not the same.
    assert arrivals_out(runs[0], "a") != arrivals_out(runs[0], "b")
    assert 90 < len(arrivals_out(runs[0], "a")) < 150


def test_identical_queries_are_answered_once_and_delivered_to_both() -> None:
    twins = network(
        results_of("first", "x"), results_of("second", "x"), boxes=[box("x", select(1.0), "s")]
    )
    ended = ran(twins, {"s": [0.0, 0.0]})
    assert results(ended) == [
        ("first", 0.0, 1.0), ("second", 0.0, 1.0), ("first", 0.0, 2.0), ("second", 0.0, 2.0),
    ]  # fmt: skip
    assert report(ended).box_calls == 2


def test_a_box_that_nobody_reads_takes_no_part() -> None:
    idle = network(
        results_of("a", "a_box"),
        boxes=[
            box("x", select(1.0), "s"), box("a_box", select(1.0), "x"),
            box("idle", select(9.0), "x"),
        ],
    )  # fmt: skip
    for shared_priority in SHARINGS:
        ended = ran(idle, {"s": [0.0]}, "hr", shared_priority=shared_priority)
        assert departures(ended, "a") == [2.0]
        assert float(ended.world.table["tuple_cost_s"][0]) == 2.0


def test_a_shared_unit_counts_for_the_most_important_class() -> None:
    boxes = [box("x", select(1.0), "s"), box("y", select(1.0), "x"), box("z", select(1.0), "x")]
    classes = {"N": 1.0, "H": 6.0}
    paths = (results_of("n", "y", query_class="N"), results_of("h", "z", query_class="H"))
    simulation = new_simulation(
        network(*paths, boxes=boxes, classes=classes), {"s": [0.0]}, "hr", shared_priority="sum"
    )
    assert simulation.units.shapes[0].query_class == 1


@pytest.mark.parametrize("shared_priority", SHARINGS)
def test_overhead_lowers_the_rank_of_a_shared_unit_as_of_any_other(
    shared_priority: SharedPriority,
) -> None:
    # With 10 s of overhead the shared unit has 2/(10 + 3) at the most, the other 1/(10 + 1).
    boxes = [box("x", select(1.0), "s"), box("y", select(1.0), "x"), box("z", select(1.0), "x")]
    paths = (results_of("a", "y"), results_of("b", "z"), line("c", select(1.0)))
    mixed = network(*paths, boxes=boxes)
    ended = ran(mixed, {"s": [0.0]}, "hr", shared_priority=shared_priority, overhead_s=10.0)
    first = {"max": "c", "sum": "a", "pdt": "a"}  # 1/12 against 1/11; 2/13 against 1/11
    assert results(ended)[0][0] == first[shared_priority]


# Sharaf §3.6 under HNR: x before a (S = 0.9, C̄ = T = 2) and b (S = 0.01, C̄ = T = 51).
PDT = shared((1.0, 1.0), a=(1.0, 0.9), b=(50.0, 0.01))


@pytest.mark.parametrize("level", ["query", "operator"])
@pytest.mark.parametrize(
    ("shared_priority", "value"),
    [("pdt", 0.9 / (2 * 2)), ("max", 0.9 / (2 * 2)), ("sum", (0.9 / 2 + 0.01 / 51) / 52)],
)
def test_sharaf_3_6_a_shared_box_has_the_value_of_its_tree(
    level: Level, shared_priority: SharedPriority, value: float
) -> None:
    policy = policy_named("hnr")
    assert isinstance(policy, PriorityPolicy)
    units = units_of(PDT, level, shared_priority=shared_priority, value=policy.value)
    policy.prepare(units)
    values = policy.values(unit_table(units), np.arange(len(units)), 0.0)
    assert values[0] == pytest.approx(value)
    assert value == pytest.approx(
        {"pdt": 0.225, "max": 0.225, "sum": 0.00866}[shared_priority], rel=1e-3
    )


def test_the_tree_follows_what_is_measured() -> None:
    # b turns out to pass everything at no more cost than a: then it belongs to the tree.
    policy = policy_named("hnr")
    assert isinstance(policy, PriorityPolicy)
    units = units_of(PDT, "operator", shared_priority="pdt", value=policy.value)
    policy.prepare(units)
    table, numbers = unit_table(units), np.arange(3)
    assert policy.values(table, numbers, 0.0)[0] == pytest.approx(0.225)
    table["box_selectivity"][2], table["box_cost_s"][2] = 1.0, 0.5
    alone, both = 0.9 / (2 * 2), (0.9 / 2 + 1.0 / 51) / 2.5
    assert policy.values(table, numbers, 0.0)[0] == pytest.approx(max(alone, both))
    table["box_selectivity"][2], table["box_cost_s"][2] = 1.0, 0.01
    assert policy.values(table, numbers, 0.0)[0] == pytest.approx((0.9 / 2 + 1.0 / 51) / 2.01)


def test_in_a_tree_a_branch_that_forks_again_counts_by_its_own_tree() -> None:
    # x → y → (a, b): b costs 100, so the tree of y is a, and that of x is y and a.
    boxes = [
        box("x", select(1.0), "s"), box("y", select(1.0), "x"),
        box("a_box", select(1.0), "y"), box("b_box", select(100.0), "y"),
    ]  # fmt: skip
    nested = network(results_of("a", "a_box"), results_of("b", "b_box"), boxes=boxes)
    policy = policy_named("hr")
    assert isinstance(policy, PriorityPolicy)
    units = units_of(nested, "operator", shared_priority="pdt", value=policy.value)
    policy.prepare(units)
    values = policy.values(unit_table(units), np.arange(4), 0.0)
    assert values.tolist() == pytest.approx([1 / 3, 1 / 2, 1.0, 1 / 100])


def test_at_query_level_the_tree_is_built_again_when_its_figures_have_changed() -> None:
    # Declared, b is dear and passes nothing, so the tree is a alone. In fact b is cheap and passes
    # all. Once that is known, a tuple of x runs through b and a before the next one.
    facts: dict[str, Any] = {
        "tuple_costs": {"b_box": np.full(60, 0.5)},
        "selectivities": {"a_box": [1.0], "b_box": [1.0]},
    }
    times = {"s": [0.0] * 30 + [1000.0] * 30}
    declared, learned = (
        ran(PDT, times, "hr", shared_priority="pdt", learns=learns, window_tuples=5, smoothing=1.0,
            **facts)
        for learns in (False, True)
    )  # fmt: skip
    orders = ["".join(name for name, _, _ in results(ended)) for ended in (declared, learned)]
    assert orders[0] == ("a" * 30 + "b" * 30) * 2
    assert orders[1] == "a" * 30 + "b" * 30 + "ba" * 30  # b alone has 1 / 1.5, a has 1 / 2


def test_a_tree_that_is_built_again_runs_as_one_and_gives_the_same_results() -> None:
    times = {"s": (np.arange(200) * 6.0).tolist()}
    once, again = (
        ran(FOUR, times, "hr", shared_priority="pdt", learns=learns, seed=5)
        for learns in (False, True)
    )
    for name in "abcd":
        assert sorted(arrivals_out(once, name)) == sorted(arrivals_out(again, name))
    assert again.units.rebuilds_trees
    assert [len(shape.stages) for shape in again.units.shapes] == [1] * 5
