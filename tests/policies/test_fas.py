"""Freshness-aware scheduling: the thesis's three cases, its formula, and output rate as a limit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.tables import table_of

from headgate.errors import ConfigRefused
from headgate.model.network.unit_table import UnitTable
from headgate.model.plan import ALL
from headgate.policies import State, policy_named
from headgate.policies.fas import fill_freshness, priority_class

Row = tuple[float, int, float, float]
"""S, N, C̄ and the weight."""


def waiting(rows: list[Row]) -> UnitTable:
    selectivity, pending, cost_s, weight = zip(*rows, strict=True)
    return table_of(
        selectivity=selectivity, pending=pending, cost_s=cost_s, ideal_s=cost_s, weight=weight
    )


def values(rows: list[Row], beta: float = 1.0) -> list[float]:
    priorities = np.empty(len(rows))
    fill_freshness(waiting(rows), np.arange(len(rows)), beta, priorities)
    return [float(value) for value in priorities]


def order(rows: list[Row], name: str = "fas", **parameters: float) -> list[int]:
    table = waiting(rows)
    state = State(table, np.flatnonzero(table["pending"]))
    return [step.unit for step in policy_named(name, **parameters).plan(state, 0.0)]


def test_the_chance_of_being_stale_over_the_time_to_refresh() -> None:
    assert values([(0.5, 2, 0.1, 1.0)]) == pytest.approx([3.75])  # (1 − 0.5²) / (2 × 0.1)
    assert values([(0.5, 4, 0.1, 1.0)], beta=0.5) == pytest.approx([3.75])  # 4^0.5 = 2
    assert values([(0.5, 4, 0.1, 0.2)], beta=0.5) == pytest.approx([0.75])  # weight 0.2
    assert values([(1.0, 7, 0.1, 1.0)]) == pytest.approx([1 / 0.7])


def test_of_queries_alike_but_for_cost_the_cheapest_goes_first() -> None:
    assert order([(0.5, 3, 3.0, 1.0), (0.5, 3, 1.0, 1.0), (0.5, 3, 2.0, 1.0)]) == [1, 2, 0]


def test_of_queries_alike_but_for_their_queues_the_shortest_goes_first() -> None:
    assert order([(0.5, 9, 1.0, 1.0), (0.5, 2, 1.0, 1.0), (0.5, 4, 1.0, 1.0)]) == [1, 2, 0]


def test_of_queries_alike_but_for_selectivity_the_likeliest_stale_goes_first() -> None:
    assert order([(0.2, 3, 1.0, 1.0), (0.9, 3, 1.0, 1.0), (0.5, 3, 1.0, 1.0)]) == [1, 2, 0]


def test_without_selectivity_the_least_work_goes_first() -> None:
    assert order([(1.0, 4, 1.0, 1.0), (1.0, 1, 3.0, 1.0), (1.0, 1, 5.0, 1.0)]) == [1, 0, 2]


def test_a_step_takes_the_whole_queue() -> None:
    assert policy_named("fas").tuples_a_step == ALL


shares = st.floats(0.0, 1.0)
rows = st.lists(
    st.tuples(shares, st.integers(1, 10**6), st.floats(1e-6, 10.0), st.just(1.0)),
    min_size=1,
    max_size=8,
)


@given(rows=rows)
def test_with_beta_0_it_orders_as_output_rate(rows: list[Row]) -> None:
    assert order(rows, beta=0.0) == HR(rows)


def HR(rows: list[Row]) -> list[int]:  # the paper's name
    return sorted(range(len(rows)), key=lambda unit: (-rows[unit][0] / rows[unit][2], unit))


def test_output_rate_is_that_of_the_policy_hr() -> None:
    rows: list[Row] = [(0.3, 5, 2.0, 1.0), (0.9, 1, 0.5, 1.0), (0.9, 8, 7.0, 1.0)]
    assert order(rows, name="hr") == HR(rows) == order(rows, beta=0.0)


@given(share=shares, pending=st.integers(1, 10**9), beta=shares, cost_s=st.floats(1e-6, 10.0))
def test_more_tuples_never_raise_a_priority(
    share: float, pending: int, beta: float, cost_s: float
) -> None:
    fewer, more = values([(share, pending, cost_s, 1.0), (share, 2 * pending, cost_s, 1.0)], beta)
    assert more <= fewer * (1 + 1e-9)


def test_a_small_selectivity_is_not_lost_beside_one() -> None:
    assert values([(1e-20, 10, 1.0, 1.0)]) == pytest.approx([1e-20])


def test_a_join_that_outputs_more_than_it_takes_in_counts_as_certain() -> None:
    assert values([(7.5, 3, 1.0, 1.0)]) == values([(1.0, 3, 1.0, 1.0)])


def test_queries_that_were_never_measured_come_last() -> None:
    nan = float("nan")
    rows: list[Row] = [(nan, 1, 1.0, 1.0), (0.0, 1, 1.0, 1.0), (0.5, 1, nan, 1.0), (0.1, 1, 1.0, 1)]
    assert order(rows) == [3, 1, 0, 2]


@given(value=st.floats(0.0, 1e30), factor=st.floats(1.0, 1e3))
def test_a_larger_priority_is_never_in_a_later_bucket(value: float, factor: float) -> None:
    assert priority_class(value * factor) <= priority_class(value)


def test_buckets_are_a_64th_of_a_factor_of_two() -> None:
    assert priority_class(1.0) - priority_class(2.0) == 64
    assert priority_class(1.0) - priority_class(1.0 + 1 / 64) == 1
    assert priority_class(1.0) == priority_class(1.0 + 0.9 / 64)


@pytest.mark.parametrize("beta", [-0.1, 1.1, float("nan")])
def test_a_beta_outside_0_to_1_is_refused(beta: float) -> None:
    with pytest.raises(ConfigRefused, match="beta between 0 and 1"):
        policy_named("fas", beta=beta)
