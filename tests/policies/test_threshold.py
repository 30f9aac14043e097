"""Path capacity, and Chain once too many tuples wait."""

import numpy as np
import pytest
from kit.networks import lines_of

from headgate.errors import ConfigRefused, UnknownName
from headgate.model.network.unit_table import UnitTable, unit_table
from headgate.model.network.units import Level, Units, units_of
from headgate.policies import Policy, State, policy_named
from headgate.policies.threshold import PathCapacity, Threshold

Figures = list[tuple[float, float]]
"""Cost in seconds and selectivity, operator by operator."""


def units_for(paths: list[Figures], level: Level) -> Units:
    return units_of(lines_of(paths), level)


def waiting(units: Units) -> UnitTable:
    table = unit_table(units)
    table["pending"], table["ready"], table["head_arrived_at_s"] = 1, True, 0.0
    return table


def order(policy: Policy, table: UnitTable) -> list[int]:
    return [step.unit for step in policy.plan(State(table, np.flatnonzero(table["ready"])), 1.0)]


def test_capacity_is_one_over_the_mean_cost_of_the_path() -> None:
    units = units_for([[(2.0, 0.5), (2.0, 1.0)], [(1.0, 1.0), (3.0, 1.0)], [(1.0, 0.1)]], "query")
    policy = PathCapacity()
    policy.prepare(units)
    assert order(policy, waiting(units)) == [2, 0, 1]  # 1 / 1, 1 / (2 + 0.5 × 2), 1 / (1 + 3)
    assert policy.value(0.5, 4.0, 9.0) == pytest.approx(0.25)


def test_at_operator_level_a_tuple_is_brought_through_its_path_before_the_next() -> None:
    units = units_for([[(3.0, 1.0), (1.0, 1.0)], [(1.0, 1.0), (1.0, 1.0), (1.0, 1.0)]], "operator")
    policy = PathCapacity()
    policy.prepare(units)
    # The second path costs 3 s, the first 4 s, although the last operator of each costs 1 s.
    assert order(policy, waiting(units)) == [4, 3, 2, 1, 0]


def test_a_path_that_was_never_measured_comes_last() -> None:
    units = units_for([[(1.0, 1.0)], [(5.0, 1.0)]], "query")
    policy, table = PathCapacity(), waiting(units)
    policy.prepare(units)
    table["tuple_cost_s"][0] = table["cost_s"][0] = np.nan
    assert order(policy, table) == [1, 0]


class Burst:
    """Two paths: the first is shorter, the second drops nearly everything at once."""

    def __init__(self, threshold_tuples: int) -> None:
        paths: list[Figures] = [[(1.0, 1.0), (1.0, 1.0)], [(1.0, 0.01), (200.0, 1.0)]]
        self.units = units_for(paths, "operator")
        self.policy = Threshold(threshold_tuples)
        self.policy.prepare(self.units)
        self.table = waiting(self.units)

    def first(self, policy: Policy | None = None) -> int:
        return order(policy or self.policy, self.table)[0]


def test_up_to_the_threshold_path_capacity_decides_and_above_it_chain() -> None:
    burst = Burst(threshold_tuples=10)
    chain = policy_named("chain")
    chain.prepare(burst.units)
    burst.table["pending"] = [1, 0, 9, 0]
    burst.table["ready"] = burst.table["pending"] > 0
    assert burst.first() == 0
    assert burst.first(chain) == 2
    burst.table["pending"][2] = 10
    assert burst.first() == 2


def test_tuples_of_units_that_run_count_too() -> None:
    burst = Burst(threshold_tuples=10)
    burst.table["pending"] = [1, 50, 1, 0]
    burst.table["ready"] = [True, False, True, False]
    assert burst.first() == 2


def test_the_policy_in_charge_is_told() -> None:
    burst = Burst(threshold_tuples=3)
    burst.first()
    assert burst.policy.in_charge(1.0) is burst.policy.above
    burst.table["pending"] = [1, 0, 1, 0]
    burst.table["ready"] = burst.table["pending"] > 0
    burst.first()
    assert burst.policy.in_charge(1.0) is burst.policy.below


def test_the_two_policies_can_be_others() -> None:
    policy = policy_named("threshold", threshold_tuples=0, below="hr", above="mtiq")
    units = units_for([[(1.0, 1.0)], [(5.0, 1.0)]], "query")
    policy.prepare(units)
    table = waiting(units)
    table["pending"] = table["amount"] = [1, 3]
    assert order(policy, table) == [1, 0]


def test_a_threshold_below_0_is_refused() -> None:
    with pytest.raises(ConfigRefused, match="threshold_tuples of 0 or more"):
        policy_named("threshold", threshold_tuples=-1)


def test_an_inner_policy_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UnknownName, match="chian"):
        policy_named("threshold", above="chian")


def test_an_inner_policy_that_is_no_policy_is_refused() -> None:
    with pytest.raises(ConfigRefused, match="below: the name of a policy"):
        policy_named("threshold", below=5)
