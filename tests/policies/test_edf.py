"""Deadlines: the two lists of the hybrid, and the policies that it equals at either extreme."""

from dataclasses import dataclass
from math import inf, nan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from kit.tables import table_of

from headgate.model.network.unit_table import UnitTable
from headgate.policies import State
from headgate.policies.edf import EarliestDeadline, EarliestDeadlineOrRate
from headgate.policies.interface import Policy

EDF, HYBRID = EarliestDeadline(), EarliestDeadlineOrRate()


@dataclass(frozen=True)
class Waiting:
    """A query that waits: its deadline D, the tuples due by then, cost and selectivity."""

    deadline_s: float
    due: int = 1
    cost_s: float = 1.0
    selectivity: float = 1.0


def waiting(queries: list[Waiting]) -> UnitTable:
    return table_of(
        deadline_at_s=[query.deadline_s for query in queries],
        due=[query.due for query in queries],
        cost_s=[query.cost_s for query in queries],
        selectivity=[query.selectivity for query in queries],
    )


def order(policy: Policy, queries: list[Waiting], now_s: float = 0.0) -> list[int]:
    state = State(waiting(queries), np.arange(len(queries)))
    return [step.unit for step in policy.plan(state, now_s)]


def by_deadline(queries: list[Waiting]) -> list[int]:
    return sorted(range(len(queries)), key=lambda unit: (queries[unit].deadline_s, unit))


def by_rate(queries: list[Waiting]) -> list[int]:
    def rate(unit: int) -> float:
        return queries[unit].selectivity / queries[unit].cost_s

    return sorted(range(len(queries)), key=lambda unit: (-rate(unit), unit))


def test_edf_serves_the_earliest_deadline_and_those_without_one_last() -> None:
    assert order(EDF, [Waiting(7.0), Waiting(inf), Waiting(3.0), Waiting(7.0)]) == [2, 0, 3, 1]


def test_edf_serves_what_is_late_already_and_the_hybrid_what_can_still_be_in_time() -> None:
    late, in_time = Waiting(1.0, due=9, cost_s=1.0), Waiting(6.0, due=4, cost_s=1.0)
    assert order(EDF, [late, in_time], now_s=2.0) == [0, 1]
    assert order(HYBRID, [late, in_time], now_s=2.0) == [1, 0]


def test_a_late_query_runs_if_it_is_done_before_the_earliest_deadline() -> None:
    in_time = Waiting(10.0, due=2, cost_s=1.0)
    assert order(HYBRID, [in_time, Waiting(1.0, due=4)], now_s=5.0) == [1, 0]  # 5 + 4 < 10
    assert order(HYBRID, [in_time, Waiting(1.0, due=5)], now_s=5.0) == [0, 1]  # 5 + 5 = 10


def test_a_query_that_is_just_in_time_is_in_the_list_of_deadlines() -> None:
    just, other = Waiting(5.0, due=5, cost_s=1.0, selectivity=0.1), Waiting(0.0, due=9)
    assert order(HYBRID, [other, just], now_s=0.0) == [1, 0]  # 0 + 5 ≤ 5, and 0 + 9 > 5
    assert order(HYBRID, [other, just], now_s=0.1) == [0, 1]  # both late: rates 1 and 0.1


def test_late_queries_run_by_output_rate_and_not_by_how_late_they_are() -> None:
    queries = [Waiting(1.0, selectivity=0.2), Waiting(4.0, selectivity=0.9), Waiting(2.0, due=0)]
    assert order(HYBRID, queries, now_s=50.0) == [2, 1, 0]


def test_a_query_without_a_deadline_runs_by_its_rate_while_no_deadline_is_in_danger() -> None:
    none, soon = Waiting(inf, due=3, cost_s=1.0), Waiting(10.0, due=1, cost_s=1.0)
    assert order(HYBRID, [none, soon], now_s=0.0) == [0, 1]
    assert order(HYBRID, [none, soon], now_s=7.0) == [1, 0]


queries = st.lists(
    st.builds(
        Waiting,
        deadline_s=st.floats(0.0, 100.0),
        due=st.integers(0, 20),
        cost_s=st.floats(0.01, 5.0),
        selectivity=st.floats(0.0, 1.0),
    ),
    min_size=1,
    max_size=8,
)


@given(queries=queries)
def test_when_all_deadlines_have_passed_the_hybrid_is_hr(queries: list[Waiting]) -> None:
    assert order(HYBRID, queries, now_s=100.5) == by_rate(queries)


@given(queries=queries, now_s=st.floats(0.0, 50.0))
def test_when_all_deadlines_can_be_met_the_hybrid_is_edf(
    queries: list[Waiting], now_s: float
) -> None:
    in_time = [query for query in queries if now_s + query.due * query.cost_s <= query.deadline_s]
    assume(in_time)
    assert order(HYBRID, in_time, now_s) == by_deadline(in_time) == order(EDF, in_time, now_s)


def test_a_query_that_was_never_measured_runs_after_the_late_ones() -> None:
    queries = [Waiting(9.0, cost_s=nan), Waiting(0.0, selectivity=0.0), Waiting(0.0)]
    assert order(HYBRID, queries, now_s=1.0) == [2, 1, 0]


@pytest.mark.parametrize("policy", [EDF, HYBRID])
def test_nobody_waits_nobody_runs(policy: Policy) -> None:
    empty = State(waiting([Waiting(1.0)]), np.zeros(0, dtype=np.int64))
    assert list(policy.plan(empty, 0.0)) == []
