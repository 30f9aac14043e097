"""A decorated function is a whole policy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.tables import table_of

from headgate.model.network.unit_table import Unit, UnitTable
from headgate.policies import State, policies, policy_named, priority
from headgate.policies.rate import highest_rate, normalised_rate
from headgate.policies.wait import balanced_slowdown, longest_wait

PLAIN = {
    "hr": highest_rate,
    "hnr": normalised_rate,
    "fcfs": longest_wait,
    "bsd": balanced_slowdown,
}
few_values = st.sampled_from([0.25, 0.5, 1.0, 2.0])


def waiting(rows: list[tuple[float, float, float, float]]) -> UnitTable:
    selectivity, cost_s, ideal_s, head_s = zip(*rows, strict=True)
    return table_of(
        selectivity=selectivity, cost_s=cost_s, ideal_s=ideal_s, head_arrived_at_s=head_s
    )


@pytest.mark.parametrize("name", PLAIN)
@given(
    rows=st.lists(st.tuples(few_values, few_values, few_values, few_values), min_size=1, max_size=8)
)
def test_compiled_and_plain_formula_order_alike_and_ties_go_by_unit_number(
    name: str, rows: list[tuple[float, float, float, float]]
) -> None:
    table, now_s = waiting(rows), 5.0
    steps = policy_named(name).plan(State(table, np.arange(len(rows))), now_s)
    units = table.view(np.recarray)
    by_hand = sorted(range(len(rows)), key=lambda unit: (-PLAIN[name](units[unit], now_s), unit))
    assert [step.unit for step in steps] == by_hand


def test_only_ready_units_are_ranked() -> None:
    table = waiting([(1.0, 1.0, 1.0, 0.0)] * 4)
    steps = policy_named("hr").plan(State(table, np.array([1, 3])), 1.0)
    assert [step.unit for step in steps] == [1, 3]


def test_a_users_own_function_becomes_a_policy_and_stays_a_function() -> None:
    @priority("test-longest-queue", objective="memory", paper="none")
    def longest_queue(unit: Unit, now_s: float) -> float:
        """Pending tuples: N."""
        return float(unit.pending)

    table = waiting([(1.0, 1.0, 1.0, 0.0)] * 3)
    table["pending"] = [2, 9, 4]
    steps = policy_named("test-longest-queue").plan(State(table, np.arange(3)), 0.0)
    assert [step.unit for step in steps] == [1, 2, 0]
    assert longest_queue(table.view(np.recarray)[1], 0.0) == 9.0
    entry = policies()["test-longest-queue"]
    assert (entry.objective, entry.rule, entry.starves) == ("memory", "Pending tuples: N.", True)
