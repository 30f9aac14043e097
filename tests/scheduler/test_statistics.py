"""What the statistics learn from calls: overhead, cost, selectivity."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.events import ConditionSample, StepFinished
from headgate.model.network.unit_table import UNIT, UnitTable
from headgate.model.plan import ALL, LANES, BoxCall, Lane
from headgate.scheduler.statistics import MOST_IN_DRIVER, Statistics


def new_units(count: int) -> UnitTable:
    table = np.zeros(count, dtype=UNIT)
    for key in ("tuple_cost_s", "selectivity", "box_cost_s", "box_selectivity"):
        table[key] = np.nan
    return table


def known_unit(selectivity: float) -> UnitTable:
    table = np.zeros(1, dtype=UNIT)
    table["tuple_cost_s"] = table["box_cost_s"] = 0.001
    table["selectivity"] = table["box_selectivity"] = selectivity
    table["overhead_s"] = 0.01
    return table


def call(units: tuple[int, ...], tuples: int, seconds: float, *outs: int) -> StepFinished:
    outs = outs or (0,) * len(units)
    nothing = tuple(np.zeros(0) for _ in units)
    return StepFinished(0.0, BoxCall(0, units, 0, 0, 1, tuples), seconds, outs, nothing)


def test_one_window_smooths_selectivity_by_alpha_0_175() -> None:
    table = known_unit(0.8)
    Statistics(table).learn(table, call((0,), 100, 0.11, 25))
    # (1 − 0.175) × 0.8 + 0.175 × (25 + 1) / (100 + 2)
    assert table["selectivity"][0] == pytest.approx(0.70460784, abs=1e-8)


def test_of_an_aggregate_windows_count_and_not_their_groups() -> None:
    table = known_unit(0.8)
    Statistics(table).learn(table, replace(call((0,), 100, 0.11, 500), instants=(25,)))
    assert table["selectivity"][0] == pytest.approx(0.70460784, abs=1e-8)


def test_a_call_of_three_windows_counts_as_three() -> None:
    table = known_unit(0.8)
    Statistics(table).learn(table, call((0,), 300, 0.31, 75))
    old_share = 0.825**3
    assert table["selectivity"][0] == pytest.approx(old_share * 0.8 + (1 - old_share) * 76 / 302)


def test_smoothing_and_window_can_be_set() -> None:
    table = known_unit(0.8)
    statistics = Statistics(table, smoothing=0.5, window_tuples=10)
    statistics.learn(table, call((0,), 10, 0.02, 4))
    assert table["selectivity"][0] == pytest.approx(0.5 * 0.8 + 0.5 * 5 / 12)


def test_a_query_that_never_outputs_anything_keeps_a_selectivity_above_zero() -> None:
    table = known_unit(0.5)
    statistics = Statistics(table)
    for _ in range(500):
        statistics.learn(table, call((0,), 100, 0.11, 0))
    assert table["selectivity"][0] == pytest.approx(1 / 102)


def test_a_call_without_tuples_teaches_nothing() -> None:
    table = new_units(1)
    statistics = Statistics(table)
    before = table.tobytes()
    statistics.learn(table, call((0,), 0, 1.0, 0))
    assert table.tobytes() == before
    assert statistics.unmeasured(np.array([0])).tolist() == [0]


def test_a_call_that_failed_teaches_neither_cost_nor_selectivity() -> None:
    table = np.concatenate([known_unit(0.8), known_unit(0.5)])
    statistics = Statistics(table)
    before = table.tobytes()
    statistics.learn(table, replace(call((0, 1), 10_000, 60.0, 0, 5000), failed=(0,)))
    assert table.tobytes() == before
    table = new_units(1)
    statistics = Statistics(table)
    statistics.learn(table, replace(call((0,), 100, 0.01, 0), failed=(0,)))
    assert statistics.unmeasured(np.array([0])).tolist() == [0]


def test_a_query_is_unmeasured_until_it_has_run() -> None:
    table = new_units(3)
    statistics = Statistics(table)
    statistics.learn(table, call((1,), 10, 0.1, 5))
    assert statistics.unmeasured(np.arange(3)).tolist() == [0, 2]


def test_a_query_with_given_figures_needs_no_measuring_and_keeps_them() -> None:
    table = known_unit(0.3)
    statistics = Statistics(table)
    assert statistics.unmeasured(np.array([0])).tolist() == []
    row = table[0]
    assert (row["selectivity"], row["tuple_cost_s"], row["overhead_s"]) == (0.3, 0.001, 0.01)


def test_a_query_without_figures_starts_from_a_prior_that_can_be_ranked() -> None:
    table = new_units(2)
    Statistics(table)
    assert table["selectivity"].tolist() == [0.5, 0.5]
    assert (table["tuple_cost_s"] > 0).all()
    assert table["ideal_s"] == pytest.approx(table["overhead_s"] + table["tuple_cost_s"])


def test_a_unit_that_stays_keeps_its_figures_and_a_new_one_begins_anew() -> None:
    table = np.concatenate([known_unit(0.8), known_unit(0.2)])
    statistics = Statistics(table)
    for _ in range(20):
        statistics.learn(table, call((0, 1), 1000, 9.0, 100, 100))
    others = np.concatenate([new_units(1), table[1:], known_unit(0.4)])
    statistics = statistics.moved(others, np.array([-1, 1, -1]))
    assert statistics.unmeasured(np.arange(3)).tolist() == [0]
    assert others["selectivity"].tolist() == [0.5, table["selectivity"][1], 0.4]
    assert others["tuple_cost_s"].tolist() == [1e-5, table["tuple_cost_s"][1], 0.001]


@pytest.mark.parametrize("overhead_s", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("costs_s", [(2e-5, 5e-5, 1e-4), (1e-6, 3e-5, 3e-4)])
def test_overhead_and_costs_are_recovered_from_calls_alone_and_fused(
    overhead_s: float, costs_s: tuple[float, ...]
) -> None:
    table = new_units(3)
    statistics = Statistics(table)

    def took(units: tuple[int, ...], tuples: int) -> StepFinished:
        seconds = overhead_s + sum(costs_s[unit] for unit in units) * tuples
        return call(units, tuples, seconds)

    for tuples in (100, 20_000):
        for unit in range(3):
            statistics.learn(table, took((unit,), tuples))
    for round_ in range(40):
        units = [(0, 1), (1, 2), (0, 1, 2), (0, 2)][round_ % 4]
        statistics.learn(table, took(units, [500, 4000, 20_000][round_ % 3]))
    assert table["overhead_s"] == pytest.approx([overhead_s] * 3, rel=0.25)
    for unit, cost_s in enumerate(costs_s):
        # A cost that disappears behind the overhead even of a large call need only be small.
        assert table["tuple_cost_s"][unit] == pytest.approx(
            cost_s, rel=0.25, abs=overhead_s / 10_000
        )


@pytest.mark.parametrize("times", [0.5, 0.8, 2.0, 4.0])
def test_members_that_always_run_together_keep_their_proportion(times: float) -> None:
    table = np.concatenate([known_unit(0.5)] * 3)
    table["box_cost_s"] = table["tuple_cost_s"] = costs_s = np.array([3e-6, 7e-6, 2e-5])
    statistics = Statistics(table)
    for tuples in [500, 2000, 6000] * 20:  # the machine is slower now, or shared code is cheaper
        statistics.learn(table, call((0, 1, 2), tuples, 0.01 + times * costs_s.sum() * tuples))
    assert table["tuple_cost_s"] == pytest.approx(times * costs_s, rel=0.25)


def test_costs_follow_a_query_that_becomes_dearer() -> None:
    table = new_units(1)
    statistics = Statistics(table)
    for cost_s in (1e-5, 1e-4):
        for tuples in [1000, 10_000, 30_000] * 40:
            statistics.learn(table, call((0,), tuples, 0.05 + cost_s * tuples))
    assert table["tuple_cost_s"][0] == pytest.approx(1e-4, rel=0.25)


def test_a_query_that_rests_while_others_run_for_long_spoils_no_estimate() -> None:
    table = new_units(2)
    statistics = Statistics(table, drift=0.5)  # 3 000 calls do what 60 000 do by default
    for unit in (0, 1):
        for tuples in (100, 10_000):
            statistics.learn(table, call((unit,), tuples, 0.1 + 1e-5 * tuples))
    for tuples in [100, 10_000] * 1500:
        statistics.learn(table, call((0,), tuples, 0.1 + 1e-5 * tuples))
    statistics.learn(table, call((1,), 10_000, 0.2))
    assert table["overhead_s"][0] == pytest.approx(0.1, rel=0.25)
    assert table["tuple_cost_s"] == pytest.approx([1e-5, 1e-5], rel=0.25)


@given(
    calls=st.lists(
        st.tuples(
            st.sets(st.integers(0, 3), min_size=1),
            st.integers(1, 100_000),
            st.floats(1e-4, 100.0),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_no_estimate_is_negative(
    calls: list[tuple[set[int], int, float]],
) -> None:
    table = new_units(4)
    statistics = Statistics(table)
    for members, tuples, seconds in calls:
        units = tuple(sorted(members))
        statistics.learn(table, call(units, tuples, seconds))
        assert (table["overhead_s"] > 0).all()
        assert (table["tuple_cost_s"] > 0).all()
        assert np.isfinite(table["cost_s"]).all()


def on(lane: Lane, units: tuple[int, ...], tuples: int, seconds: float) -> StepFinished:
    return replace(call(units, tuples, seconds), lane=lane)


def test_a_job_that_never_ran_is_not_thought_to_be_cheaper_for_long_queues() -> None:
    table = new_units(1)
    statistics = Statistics(table)
    for tuples in (500, 2000, 8000) * 10:
        statistics.learn(table, on("driver", (0,), tuples, 0.01 + tuples * 5e-5))
    assert statistics.lane((0,), 50_000) == "driver"
    assert "job" in statistics.lane_text((0,), 50_000)
    assert "guess" in statistics.lane_text((0,), 50_000)
    assert statistics.lane((0,), MOST_IN_DRIVER + 1) == "job"
    assert statistics.lane_text((0,), MOST_IN_DRIVER + 1).split()[0] == "job"
    assert statistics.lane_text((0,), 50_000).split()[0] == "driver"


def test_a_lane_without_a_call_costs_a_unit_what_the_other_one_does() -> None:
    table = new_units(2)
    statistics = Statistics(table)
    for tuples in (500, 2000, 8000) * 10:
        statistics.learn(table, on("driver", (0,), tuples, 0.01 + tuples * 5e-5))
        statistics.learn(table, on("job", (1,), tuples, 0.1 + tuples * 2e-5))
    for unit, cost_s in ((0, 5e-5), (1, 2e-5)):
        more_s = statistics.expected_s((unit,), 10_000) - statistics.expected_s((unit,), 0)
        assert more_s[0] == pytest.approx(more_s[1])
        assert more_s[0] == pytest.approx(10_000 * cost_s, rel=0.25)


def test_a_job_that_was_measured_to_be_cheaper_is_taken() -> None:
    table = new_units(2)
    statistics = Statistics(table)
    for tuples in (500, 2000, 8000) * 10:
        statistics.learn(table, on("driver", (0, 1), tuples, 0.01 + tuples * 5e-5))
        statistics.learn(table, on("job", (0, 1), tuples, 0.1 + tuples * 1e-6))
    assert statistics.lane((0, 1), 500) == "driver"
    assert statistics.lane((0, 1), 50_000) == "job"


def test_figures_are_those_of_the_lane_that_a_unit_took_last() -> None:
    table = new_units(1)
    statistics = Statistics(table)
    for tuples in (500, 2000, 8000) * 10:
        statistics.learn(table, on("driver", (0,), tuples, 0.01 + tuples * 5e-5))
        statistics.learn(table, on("job", (0,), tuples, 0.1 + tuples * 1e-6))
    assert LANES[table["lane"][0]] == "job"
    assert table["overhead_s"][0] == pytest.approx(0.1, rel=0.25)
    statistics.learn(table, on("driver", (0,), 500, 0.035))
    assert LANES[table["lane"][0]] == "driver"
    assert table["tuple_cost_s"][0] == pytest.approx(5e-5, rel=0.25)


def test_figures_of_an_earlier_run_count_for_their_lane_only() -> None:
    table = np.concatenate([known_unit(0.5), known_unit(0.5)])
    table["overhead_s"], table["lane"] = (0.004, 0.2), (0, 1)
    statistics = Statistics(table)
    assert statistics.expected_s((), 0).tolist() == [0.004, 0.2]
    assert "driver 1004.0 ms (measured), job 1200.0 ms (guess)" in statistics.lane_text((0,), 1000)
    assert "driver 1004.0 ms (guess), job 1200.0 ms (measured)" in statistics.lane_text((1,), 1000)


def test_a_call_has_the_tuples_that_fit_into_its_seconds_and_little_overhead() -> None:
    """A tuple costs 1 ms a unit, a call 4 ms on the driver lane and 200 ms as a job."""
    table = np.concatenate([known_unit(0.5), known_unit(0.5)])
    table["overhead_s"], table["lane"] = (0.004, 0.2), (0, 1)
    statistics = Statistics(table)
    assert statistics.train((0,), 0.5, None) == 496
    assert statistics.train((0, 1), 0.5, None) == 248
    assert statistics.train((0,), 0.02, None) == pytest.approx(76, abs=1)  # 4 of 80 ms
    assert statistics.train((0,), 0.5, "job") == pytest.approx(3800, abs=1)  # 0.2 of 4 s
    text = "at most 496 tuples, in 0.5 s, of which 0.8% is overhead"
    assert statistics.train_text((0,), 0.5, None) == text
    assert statistics.train((0,), inf, None) == ALL
    assert statistics.train_text((0,), inf, None) == "all that wait"


def test_samples_of_conditions_are_smoothed_over_windows_of_tuples() -> None:
    table = known_unit(0.5)
    statistics = Statistics(table)
    assert statistics.conditions(0) is None
    for passed, seconds in ((8, 2e-3), (98, 1e-3)):
        sample = ConditionSample(0, (98, 98), (passed, 48), (seconds, 0.0))
        statistics.learn(table, replace(call((0,), 100, 0.11), samples=(sample,)))
    figures, old_share = statistics.conditions(0), 0.825**0.98
    assert figures is not None
    assert figures.selectivity == pytest.approx((old_share * 0.09 + (1 - old_share) * 0.99, 0.49))
    assert figures.cost_s == pytest.approx(((old_share * 2e-3 + (1 - old_share) * 1e-3) / 98, 1e-9))


def test_a_segment_counts_what_follows_behind_it() -> None:
    table = np.zeros(3, dtype=UNIT)
    table["overhead_s"] = 0.01
    table["box_cost_s"], table["box_selectivity"] = (0.001, 0.004, 0.002), (0.25, 0.5, 1.0)
    Statistics(table).connect({0: (1,)}, table)
    assert table["selectivity"].tolist() == [0.125, 0.5, 1.0]
    assert table["tuple_cost_s"] == pytest.approx([0.001 + 0.25 * 0.004, 0.004, 0.002])
    assert table["remaining_s"] == pytest.approx([0.025, 0.014, 0.012])
    assert table["ideal_s"] == pytest.approx([0.025, 0.025, 0.012])  # T is that of the whole way
    assert table["box_cost_s"].tolist() == [0.001, 0.004, 0.002]
