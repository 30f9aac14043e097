"""Selectivities measured in a run: S = (1 − α) S + α N_out/N_in per window (Sharaf §3.3.3)."""

import numpy as np
import pytest
from kit.networks import box, line, network, new_simulation, ran, report, results_of, select

from headgate.model.network.operator import Operator
from headgate.simulation.kernel.learn import follow
from headgate.simulation.loop.run import Simulation

ALPHA = 0.175
NONE, EVERY = (0 + 1) / (100 + 2), (100 + 1) / (100 + 2)
"""Estimates from a window of 100 tuples of which none or all pass: one tuple more of each kind."""


def after(tuples: int, true: float = 0.0, **options: object) -> Simulation:
    """Run tuples through a box of declared selectivity 0.5; `true` is its true selectivity."""
    parameters = {"learns": True, "selectivities": {"q.0": np.array([true])}, **options}
    return ran(network(line("q", select(1.0, 0.5))), {"s": [0.0] * tuples}, "hr", **parameters)


def believed(ended: Simulation) -> float:
    return float(ended.world.table["selectivity"][0])


@pytest.mark.parametrize(
    ("tuples", "expected"),
    [
        (99, 0.5),
        (100, 0.825 * 0.5 + ALPHA * NONE),
        (199, 0.825 * 0.5 + ALPHA * NONE),
        (200, 0.825 * (0.825 * 0.5 + ALPHA * NONE) + ALPHA * NONE),
    ],
)
def test_after_every_window_of_100_tuples_the_estimate_moves_by_alpha(
    tuples: int, expected: float
) -> None:
    assert believed(after(tuples)) == pytest.approx(expected, rel=1e-12)


def test_where_all_pass_the_estimate_rises_to_what_a_window_can_show() -> None:
    assert believed(after(100, true=1.0)) == pytest.approx(0.825 * 0.5 + ALPHA * EVERY)
    assert believed(after(20_000, true=1.0)) == pytest.approx(EVERY)


def test_a_query_that_gives_out_nothing_is_never_believed_to_be_worth_nothing() -> None:
    assert believed(after(20_000)) == pytest.approx(1 / 102)


def test_alpha_and_the_window_are_as_asked() -> None:
    # Windows of 10, half of the new value each: 0.5 -> 0.5 × 0.5 + 0.5 × 1/12.
    estimate = believed(after(10, window_tuples=10, smoothing=0.5))
    assert estimate == pytest.approx(0.25 + 0.5 / 12)
    assert believed(after(1000, smoothing=0.0)) == 0.5
    assert believed(after(100, smoothing=1.0)) == pytest.approx(NONE)


def test_without_learning_the_table_keeps_what_it_was_told() -> None:
    assert believed(after(1000, learns=False)) == 0.5


def test_the_estimate_counts_what_really_passed() -> None:
    fates = [1] * 30 + [0] * 70
    ended = after(100, fates={"q": fates}, selectivities={})
    assert believed(ended) == pytest.approx(0.825 * 0.5 + ALPHA * 31 / 102)


def test_the_expected_cost_of_a_query_follows_the_selectivity_of_its_first_box() -> None:
    # C̄ = 1 + s 4, S = s × 1; the second box never sees a tuple and keeps its own.
    two = network(line("q", select(1.0, 0.5), select(4.0, 1.0)))
    true = {"q.0": np.array([0.0])}
    row = ran(two, {"s": [0.0] * 100}, "hr", learns=True, selectivities=true).world.table[0]
    first = 0.825 * 0.5 + ALPHA * NONE
    assert row["tuple_cost_s"] == pytest.approx(1.0 + first * 4.0)
    assert row["selectivity"] == pytest.approx(first)


def test_at_operator_level_every_box_before_it_hears_of_it() -> None:
    two = network(line("q", select(1.0, 1.0), select(4.0, 0.5)))
    true = {"q.1": np.array([0.0])}
    ended = ran(two, {"s": [0.0] * 100}, "hr", level="operator", learns=True, selectivities=true)
    second = 0.825 * 0.5 + ALPHA * NONE
    assert ended.world.table["selectivity"].tolist() == pytest.approx([second, second])
    assert ended.world.table["box_selectivity"].tolist() == pytest.approx([1.0, second])


def test_the_true_selectivity_is_that_of_the_interval_a_tuple_arrived_in() -> None:
    # Intervals of 10 s: none pass, then all, and the last one stays.
    ended = ran(
        network(line("q", select(0.5, 0.5))), {"s": np.arange(0.0, 40.0).tolist()},
        selectivities={"q.0": np.array([0.0, 1.0, 0.0])}, interval_s=10.0,
    )  # fmt: skip
    assert report(ended).total.response_s.count == 10


def test_hr_that_learns_beats_hr_that_does_not_where_selectivities_turn_round() -> None:
    # As declared until 100 s; from then on the queries have changed places. The load is 1.2.
    both = network(line("a", select(0.6, 0.9)), line("b", select(0.6, 0.1)))
    true = {"a.0": np.array([0.9] + [0.1] * 9), "b.0": np.array([0.1] + [0.9] * 9)}
    times = {"s": np.arange(1000.0).tolist()}
    declared, learned = (
        report(ran(both, times, "hr", selectivities=true, interval_s=100.0, learns=learns))
        for learns in (False, True)
    )
    assert declared.total.response_s.count == learned.total.response_s.count
    assert learned.total.response_s.mean < 0.5 * declared.total.response_s.mean


LEARNED = ("selectivity", "tuple_cost_s", "cost_s", "ideal_s", "box_selectivity", "box_cost_s")


@pytest.mark.parametrize("shared_priority", ["max", "sum", "pdt"])
@pytest.mark.parametrize("level", ["query", "operator"])
def test_while_nothing_new_was_measured_every_unit_is_as_it_was_told(
    level: str, shared_priority: str
) -> None:
    join = Operator(kind="join", cost_s=0.2, selectivity=0.3, window_s=2.0)
    boxes = [
        box("x", select(1.0, 0.5), "s"), box("a", select(0.7, 0.3), "x"),
        box("b", select(0.1, 0.9), "a"), box("c", select(0.4, 0.8), "x"),
        box("d", select(20.0, 0.1), "x"), box("j", join, "c", "t"),
    ]  # fmt: skip
    paths = [results_of(f"q{name}", name) for name in "abdj"]
    plain_path = line("own", select(0.1, 0.7), select(0.3, 0.6), select(0.7, 0.9))
    several = network(*paths, plain_path, boxes=boxes, streams="st")
    begun = new_simulation(
        several,
        {"s": [0.0], "t": [0.0]},
        level=level,
        shared_priority=shared_priority,
        overhead_s=0.01,
    )
    table = begun.world.table
    declared = {name: table[name].tolist() for name in LEARNED}
    for unit in range(len(table)):
        follow(begun.world, unit)
    for name in LEARNED:
        assert table[name].tolist() == pytest.approx(declared[name], rel=1e-12), name


def test_a_query_of_three_boxes_is_measured_as_one() -> None:
    # Declared: half pass each box. In truth all pass but at the last, which lets none pass.
    three = network(line("q", select(0.1, 0.5), select(0.3, 0.5), select(0.7, 0.5)))
    true = {"q.0": np.array([1.0]), "q.1": np.array([1.0]), "q.2": np.array([0.0])}
    ended = ran(three, {"s": [0.0] * 20_000}, "hr", learns=True, selectivities=true)
    row, truth_s = ended.world.table[0], 0.1 + EVERY * (0.3 + EVERY * 0.7)
    assert row["selectivity"] == row["box_selectivity"] == pytest.approx(EVERY * EVERY * NONE)
    assert row["tuple_cost_s"] == row["box_cost_s"] == pytest.approx(truth_s)


def test_outcomes_that_are_told_of_a_whole_query_are_all_that_counts() -> None:
    # Two boxes are declared to pass half each; in truth every fifth tuple leaves the query.
    two = network(line("q", select(1.0, 0.5), select(2.0, 0.5)))
    fates = {"q": [int(number % 5 == 0) for number in range(20_000)]}
    row = ran(two, {"s": [0.0] * 20_000}, "hr", learns=True, fates=fates).world.table[0]
    assert row["selectivity"] == pytest.approx(EVERY * 21 / 102)
    assert row["tuple_cost_s"] == pytest.approx(1.0 + EVERY * 2.0)


def test_costs_are_measured_where_tuples_differ() -> None:
    costs = {"q": [1.0] * 100 + [3.0] * 100}
    one = network(line("q", select(1.0, 0.5)))
    for tuples, expected in ((100, 1.0), (200, 1.0 + ALPHA * 2.0)):
        ended = ran(one, {"s": [0.0] * tuples}, "hr", learns=True, tuple_costs=costs)
        assert ended.world.table["tuple_cost_s"][0] == pytest.approx(expected)


@pytest.mark.parametrize("level", ["query", "operator"])
def test_a_box_that_two_queries_share_is_measured_for_both(level: str) -> None:
    # Declared: x passes half. In truth it passes none: S and C̄ of all segments fall with it.
    boxes = [
        box("x", select(1.0, 0.5), "s"),
        box("a", select(2.0), "x"),
        box("b", select(4.0), "x"),
    ]
    forked = network(results_of("qa", "a"), results_of("qb", "b"), boxes=boxes)
    true = {"x": np.array([0.0])}
    options = {"level": level, "shared_priority": "sum", "learns": True, "selectivities": true}
    row = ran(forked, {"s": [0.0] * 100}, "hr", **options).world.table[0]
    first = 0.825 * 0.5 + ALPHA * NONE
    assert row["selectivity"] == pytest.approx(2 * first)
    assert row["tuple_cost_s"] == pytest.approx(1.0 + first * 6.0)


def test_what_two_units_bring_to_one_box_is_measured_apart() -> None:
    # z lets all pass at first, when tuples of x come, and none later, when tuples of y do.
    boxes = [
        box("x", select(1.0), "s"),
        box("y", select(1.0), "t"),
        box("z", select(1.0, 0.5), "x", "y"),
    ]
    merged = network(results_of("q", "z"), boxes=boxes, streams="st")
    true = {"z": np.array([1.0, 0.0])}
    times = {"s": [0.0] * 100, "t": [2000.0] * 100}
    ended = ran(merged, times, learns=True, selectivities=true, interval_s=1000.0)
    first, second = (0.825 * 0.5 + ALPHA * window_estimate for window_estimate in (EVERY, NONE))
    assert ended.world.table["selectivity"].tolist() == pytest.approx([first, second])


def test_a_shared_unit_that_brings_less_than_told_is_served_later() -> None:
    # As declared, x and its two queries are worth 2 s / (1 + 0.2 s) with s = 0.9, more than q's
    # 0.5. In truth x lets nothing pass, and after seven windows s is below 0.26.
    boxes = [
        box("x", select(1.0, 0.9), "s"),
        box("a", select(0.1), "x"),
        box("b", select(0.1), "x"),
    ]
    paths = (results_of("qa", "a"), results_of("qb", "b"), line("q", select(1.0, 0.5)))
    both = network(*paths, boxes=boxes)
    options = {"shared_priority": "sum", "selectivities": {"x": np.array([0.0])}}
    first = {}
    for learns in (False, True):
        begun = new_simulation(both, {"s": [0.0] * 3000}, "hr", learns=learns, **options)
        begun.run_until(1500.0)
        first[learns] = int(begun.world.queues["tuples_in"][0])
    assert first[False] == 1500
    assert first[True] == 700
