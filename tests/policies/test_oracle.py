"""Oracles: the thesis's five tuples, and when there is nothing to know beforehand."""

from itertools import pairwise
from math import nan
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks import lines_of

from headgate.model.network.unit_table import UnitTable, unit_table
from headgate.model.network.units import units_of
from headgate.policies import State, policies, policy_named
from headgate.policies.oracle import known_normalised_rate, known_rate

EQUAL_WHEN_ALL_PASS = {name: policy_named(name) for name in ("srpt", "hr", "hnr", "hr-o", "hnr-o")}


def table_by_costs(costs_s: list[list[float]]) -> UnitTable:
    """Return the unit table of queries whose operators let every tuple pass."""
    network = lines_of([[(cost_s, 1.0) for cost_s in path_costs_s] for path_costs_s in costs_s])
    return unit_table(units_of(network))


def test_one_event_among_five_tuples_is_one_output_over_the_time_of_five() -> None:
    unit = SimpleNamespace(pending=5, pending_outputs=1.0, pending_s=5 * 0.4, ideal_s=0.5)
    assert known_rate(unit, 0.0) == pytest.approx(0.5)
    assert known_normalised_rate(unit, 0.0) == pytest.approx(1.0)


def test_the_oracle_prefers_the_query_whose_tuples_will_pass_to_the_one_that_usually_does() -> None:
    table = table_by_costs([[1.0], [1.0]])
    table["selectivity"], table["pending"], table["pending_s"] = [0.9, 0.1], 3, 3.0
    table["pending_outputs"] = [0.0, 2.0]
    state = State(table, np.arange(2))
    assert [step.unit for step in policy_named("hr").plan(state, 0.0)] == [0, 1]
    assert [step.unit for step in policy_named("hr-o").plan(state, 0.0)] == [1, 0]


@pytest.mark.parametrize("name", ["hr-o", "hnr-o"])
def test_without_foresight_a_query_comes_last_even_after_one_that_outputs_nothing(
    name: str,
) -> None:
    table = table_by_costs([[1.0], [1.0], [1.0], [1.0]])
    table["pending_outputs"], table["pending_s"] = [nan, 0.0, nan, 2.0], [nan, 3.0, 3.0, 3.0]
    steps = policy_named(name).plan(State(table, np.arange(4)), 0.0)
    assert [step.unit for step in steps] == [3, 1, 0, 2]


@pytest.mark.parametrize("name", ["hr-o", "hnr-o"])
def test_oracles_are_for_simulations_of_whole_queries(name: str) -> None:
    entry = policies()[name]
    assert (entry.engines, entry.levels) == (("simulation",), ("query",))


@pytest.mark.parametrize("name", EQUAL_WHEN_ALL_PASS)
@given(
    costs_s=st.lists(
        st.lists(st.floats(1e-3, 10.0), min_size=1, max_size=3), min_size=1, max_size=6
    ),
    pending=st.integers(1, 50),
)
def test_when_every_tuple_passes_all_serve_the_shortest_query_first(
    name: str, costs_s: list[list[float]], pending: int
) -> None:
    """S = 1 makes C̄ = T: HR is 1 / T and HNR 1 / T², so both order as SRPT (Sharaf §3.1.5)."""
    table = table_by_costs(costs_s)
    table["pending"], table["pending_outputs"] = pending, pending
    table["pending_s"] = pending * table["ideal_s"]
    steps = EQUAL_WHEN_ALL_PASS[name].plan(State(table, np.arange(len(table))), 0.0)
    lengths_s = [float(table["ideal_s"][step.unit]) for step in steps]
    assert all(length_s <= next_s * (1 + 1e-12) for length_s, next_s in pairwise(lengths_s))
