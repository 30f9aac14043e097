"""Which neighbors in a plan share one call."""

from collections.abc import Callable

import numpy as np

from headgate.model.network.unit_table import UNIT
from headgate.model.plan import Step
from headgate.scheduler.fusion import fuse


def fused(
    order: list[int],
    cursors: list[int],
    *,
    streams: list[int] | None = None,
    most: int = 16,
    may_fuse: Callable[[int, int], bool] = lambda unit, other: True,
) -> tuple[list[int], int | None]:
    table = np.zeros(len(cursors), dtype=UNIT)
    table["stream"] = streams or 0
    steps = [Step(unit) for unit in order]
    members, stop = fuse(steps, table, np.array(cursors), most=most, may_fuse=may_fuse)
    return [step.unit for step in members], stop


def test_neighbours_at_the_same_train_join_in_the_plans_order() -> None:
    assert fused([2, 0, 1], [5, 5, 5]) == ([2, 0, 1], None)


def test_a_plan_of_one_step_is_a_call_of_one_unit() -> None:
    assert fused([1], [5, 5]) == ([1], None)


def test_the_call_stops_where_a_neighbour_stands_further_on() -> None:
    assert fused([0, 1, 2], [5, 9, 5]) == ([0, 2], 9)


def test_of_several_further_on_the_nearest_sets_the_stop() -> None:
    assert fused([0, 1, 2, 3], [5, 9, 7, 8]) == ([0], 7)


def test_a_neighbour_that_lags_behind_neither_joins_nor_stops_the_call() -> None:
    assert fused([0, 1, 2], [5, 3, 5]) == ([0, 2], None)


def test_never_more_than_the_most() -> None:
    assert fused([0, 1, 2, 3], [5, 5, 5, 5], most=3) == ([0, 1, 2], None)
    assert fused([0, 1, 2, 3], [5, 9, 5, 5], most=1) == ([0], None)


def test_a_reader_of_another_stream_is_passed_over() -> None:
    assert fused([0, 1, 2], [5, 5, 5], streams=[0, 1, 0]) == ([0, 2], None)
    assert fused([0, 1, 2], [5, 9, 5], streams=[0, 1, 0]) == ([0, 2], None)


def test_who_may_not_share_ends_the_group() -> None:
    pairs = []

    def same_parity(unit: int, other: int) -> bool:
        pairs.append((unit, other))
        return unit % 2 == other % 2

    assert fused([0, 2, 1, 4], [5] * 5, may_fuse=same_parity) == ([0, 2], None)
    assert pairs == [(0, 2), (0, 1)]


def test_who_may_not_share_sets_no_stop_either() -> None:
    assert fused([0, 1], [5, 9], may_fuse=lambda unit, other: False) == ([0], None)


def test_who_makes_the_others_wait_for_longer_than_a_call_costs_runs_alone() -> None:
    table = np.zeros(3, dtype=UNIT)
    table["pending"], table["overhead_s"] = 100, 0.05
    table["box_cost_s"] = 1e-5, 1e-3, 4e-4
    steps, cursors = [Step(0), Step(1), Step(2)], np.zeros(3, dtype=np.int64)

    def members(at_any_cost: bool) -> list[int]:
        fused_steps, _ = fuse(
            steps, table, cursors, most=9, may_fuse=lambda unit, other: True,
            at_any_cost=at_any_cost,
        )  # fmt: skip
        return [step.unit for step in fused_steps]

    assert members(at_any_cost=False) == [0, 2]  # 0.1 s and 0.04 s against 0.05 s
    assert members(at_any_cost=True) == [0, 1, 2]


def test_units_of_one_group_join_whatever_they_cost_and_other_groups_whole_or_not_at_all() -> None:
    table = np.zeros(6, dtype=UNIT)
    table["pending"], table["overhead_s"] = 100, 0.05
    table["box_cost_s"] = 1e-5, 1e-3, 3e-4, 3e-4, 1e-4, 1e-4
    groups = np.array([7, 7, 8, 8, 9, 9])
    fused_steps, _ = fuse(
        [Step(unit) for unit in range(6)], table, np.zeros(6, dtype=np.int64), most=9,
        may_fuse=lambda unit, other: True, groups=groups,
    )  # fmt: skip
    # Of the others, 0.03 + 0.03 s are more than a call's 0.05, 0.01 + 0.01 are less.
    assert [step.unit for step in fused_steps] == [0, 1, 4, 5]
