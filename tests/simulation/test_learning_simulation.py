"""Selectivities measured while it runs: S = (1 − α) S + α N_out/N_in a window (Sharaf §3.3.3)."""

import numpy as np
import pytest
from networks import line, network, ran, report, select

from headgate.simulation.run import Simulation

ALPHA = 0.175
NONE, EVERY = (0 + 1) / (100 + 2), (100 + 1) / (100 + 2)
"""What a window of 100 says of a box that let none or all pass: one tuple more in each."""


def after(tuples: int, true: float = 0.0, **options: object) -> Simulation:
    """Runs so many tuples through a box that is said to pass half, and in truth another part."""
    given = {"learns": True, "selectivities": {"q.0": np.array([true])}, **options}
    return ran(network(line("q", select(1.0, 0.5))), {"s": [0.0] * tuples}, "hr", **given)


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
    found = believed(after(10, window_tuples=10, smoothing=0.5))
    assert found == pytest.approx(0.25 + 0.5 / 12)
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
    # As told until 100 s; from then on the queries have changed places. The load is 1.2.
    both = network(line("a", select(0.6, 0.9)), line("b", select(0.6, 0.1)))
    true = {"a.0": np.array([0.9] + [0.1] * 9), "b.0": np.array([0.1] + [0.9] * 9)}
    times = {"s": np.arange(1000.0).tolist()}
    told, learned = (
        report(ran(both, times, "hr", selectivities=true, interval_s=100.0, learns=learns))
        for learns in (False, True)
    )
    assert told.total.response_s.count == learned.total.response_s.count
    assert learned.total.response_s.mean < 0.5 * told.total.response_s.mean
