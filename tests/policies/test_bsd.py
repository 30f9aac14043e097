"""Balance slowdown in clusters: the thesis's ranges, its Figure 4, and how far off a choice is."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks import lines_of
from kit.tables import table_of

from headgate.errors import ConfigRefused
from headgate.model.events import StepStarted
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units, units_of
from headgate.model.plan import BoxCall
from headgate.policies import Policy, State, policy_named
from headgate.policies.bsd import BalancedSlowdown
from headgate.policies.structures.clusters import edges


def units_for(count: int) -> Units:
    return units_of(lines_of([[(1.0, 1.0)]] * count))


def with_phi(phis: list[float], heads_s: list[float]) -> UnitTable:
    """Return units of cost and ideal time 1 s, so that S is Φ."""
    return table_of(
        selectivity=phis, head_arrived_at_s=heads_s, cost_s=1.0, tuple_cost_s=1.0, ideal_s=1.0
    )


def order(policy: Policy, table: UnitTable, now_s: float) -> list[int]:
    return [step.unit for step in policy.plan(State(table, np.flatnonzero(table["ready"])), now_s)]


def clusters_of(table: UnitTable, **parameters: Any) -> list[int]:
    """Return the cluster of each unit, counted from 0 for the lowest."""
    policy = BalancedSlowdown(**parameters)
    selection = policy.selection(units_for(len(table)), table, learns=False)
    assert selection is not None
    (nodes, *_), _ = selection.memory
    return [int(number) - 1 for number in nodes["home"][: len(table)]]


@pytest.mark.parametrize(
    ("uniform", "clusters", "epsilon", "ratios"),
    [(True, 2, np.nan, [50, 2]), (False, 2, np.nan, [10, 10]), (False, 0, 10.0, [10, 10])],
)
def test_the_domain_1_to_100_in_two_clusters(
    uniform: bool, clusters: int, epsilon: float, ratios: list[float]
) -> None:
    limits = np.zeros(10)
    count = edges(100.0, uniform, clusters, epsilon, limits)
    assert count == 2
    assert (limits[1:3] / limits[:2]).tolist() == pytest.approx(ratios)


def test_units_are_put_into_clusters_by_their_ratio_to_the_smallest() -> None:
    table = with_phi([0.02, 0.1, 0.3, 1.0, 2.0], [0.0] * 5)  # 1, 5, 15, 50 and 100 times 0.02
    assert clusters_of(table, search="log", clusters=2) == [0, 0, 1, 1, 1]
    assert clusters_of(table, search="log", epsilon=10.0) == [0, 0, 1, 1, 1]
    assert clusters_of(table, search="uniform", clusters=2) == [0, 0, 0, 1, 1]


@pytest.mark.parametrize(("epsilon", "count"), [(10.0, 3), (100.0, 2), (2000.0, 1), (2.0, 10)])
def test_there_are_log_delta_over_log_epsilon_clusters(epsilon: float, count: int) -> None:
    assert edges(1000.0, False, 0, epsilon, np.zeros(2000)) == count


def test_a_cluster_has_the_lower_end_of_its_range_as_its_priority() -> None:
    table = with_phi([1.0, 9.0, 100.0], [0.0, 2.0, 9.7])
    # Exactly: 10 × 1, 8 × 9, 0.3 × 100. In clusters [1, 10] and [10, 100]: 10 × 1 and 0.3 × 10.
    assert order(BalancedSlowdown(), table, 10.0) == [1, 2, 0]
    assert order(BalancedSlowdown(search="log", clusters=2), table, 10.0) == [0, 1, 2]


@pytest.mark.parametrize("search", ["uniform", "log", "fagin"])
def test_one_cluster_is_served_first_come_first(search: str) -> None:
    table = with_phi([0.1, 1.0, 0.5, 0.7], [3.0, 2.0, 1.0, 1.0])
    policy = policy_named("bsd", search=search, clusters=1)
    assert order(policy, table, 5.0) == [2, 3, 1, 0]


class Figure4:
    """Clusters x (units 0 and 1, Φ 100) and y (units 2 and 3, Φ 1); tuples at 0, 9 and 9.5 s."""

    ARRIVALS_S = (0.0, 9.0, 9.5)

    def __init__(self, search: str) -> None:
        self.policy = policy_named("bsd", search=search, clusters=2, clustered=True)
        self.table = with_phi([100.0, 90.0, 1.0, 1.5], [0.0] * 4)
        self.policy.prepare(units_for(4))
        compiled = self.policy.selection(units_for(4), self.table, learns=False)
        assert compiled is not None
        self.compiled, self.served, self.examined = compiled, [0] * 4, 0
        for unit in range(4):
            compiled.changed(compiled.memory, self.table, unit, 10.0)

    def serve(self, now_s: float) -> tuple[int, int]:
        """Run one step; return its unit and the number of the tuple that it takes."""
        unit = order(self.policy, self.table, now_s)[0]
        picked, _, examined = self.compiled.pick(self.compiled.memory, self.table, now_s)
        assert picked == unit
        self.examined += examined
        self.policy.hear(StepStarted(now_s, BoxCall(0, (unit,), 0, 0, 1, 1)))
        served, self.served[unit] = self.served[unit], self.served[unit] + 1
        left = self.served[unit] < 3
        self.table["ready"][unit] = left
        self.table["head_arrived_at_s"][unit] = self.ARRIVALS_S[served + 1] if left else np.inf
        self.compiled.changed(self.compiled.memory, self.table, unit, now_s)
        return unit, served + 1


@pytest.mark.parametrize("search", ["log", "fagin"])
def test_all_queries_of_a_cluster_process_the_tuple_at_its_head_as_in_figure_4(search: str) -> None:
    figure = Figure4(search)
    assert [figure.serve(10.0) for _ in range(2)] == [(0, 1), (1, 1)]
    # Now t2 waits for x and t1 for y: 10 × (10 − 9) = 10 against 1 × 10, a tie, unit 0 before 2.
    assert [figure.serve(10.0) for _ in range(2)] == [(0, 2), (1, 2)]
    assert [figure.serve(10.0) for _ in range(2)] == [(2, 1), (3, 1)]  # 1 × 10 against 10 × 0.5
    assert [figure.serve(10.0) for _ in range(2)] == [(0, 3), (1, 3)]


def test_priorities_are_computed_once_for_a_set_and_not_for_each_of_its_queries() -> None:
    figure = Figure4("log")
    for _ in range(4):
        figure.serve(10.0)
    assert figure.examined == 4  # two clusters, twice


def test_only_queries_that_run_together_share_a_call() -> None:
    figure = Figure4("log")
    order(figure.policy, figure.table, 10.0)
    assert figure.policy.may_fuse(figure.table, 0, 1)
    assert not figure.policy.may_fuse(figure.table, 1, 2)


phis = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12)


@pytest.mark.slow
@given(phis=phis, waits_s=st.lists(st.floats(0.0, 100.0), min_size=12, max_size=12))
def test_logarithmic_clusters_lose_at_most_a_factor_of_epsilon(
    phis: list[float], waits_s: list[float]
) -> None:
    now_s, epsilon = 100.0, 3.0
    heads_s = [now_s - wait_s for wait_s in waits_s[: len(phis)]]
    table = with_phi(phis, heads_s)
    chosen = order(POLICY_EPSILON_3, table, now_s)[0]
    values = np.array(phis) * (now_s - np.array(heads_s))
    assert values[chosen] * epsilon * (1 + 1e-9) >= values.max()


POLICY_EPSILON_3 = BalancedSlowdown(search="log", epsilon=3.0)


@pytest.mark.parametrize("search", ["exact", "uniform", "log", "fagin", "fagin-units"])
@pytest.mark.parametrize("unknown", [0.0, np.nan])
def test_units_that_output_nothing_or_were_never_measured_come_last(
    search: str, unknown: float
) -> None:
    table = with_phi([unknown, 0.5, unknown, 1e-9], [0.0, 9.0, 1.0, 9.0])
    policy = policy_named("bsd", search=search)
    assert order(policy, table, 10.0)[2:] == [0, 2]
    compiled = policy.selection(units_for(4), table, learns=False)
    assert compiled is not None
    for unit in range(4):
        compiled.changed(compiled.memory, table, unit, 10.0)
    assert compiled.pick(compiled.memory, table, 10.0)[0] == 1


@pytest.mark.parametrize("search", ["uniform", "log", "fagin", "fagin-units"])
@pytest.mark.parametrize("phi", [0.0, 0.3, np.nan])
def test_a_single_unit_is_served_whatever_it_outputs(search: str, phi: float) -> None:
    assert order(policy_named("bsd", search=search), with_phi([phi], [0.0]), 1.0) == [0]


def test_the_ways_to_search_look_at_fewer_priorities_each() -> None:
    """Figure 28's order: all units, all clusters, the clusters that can be best, once a set."""
    units, random = 3000, np.random.default_rng(1)
    shapes, ones = units_for(1), {}
    for search, clustered in [("exact", False), ("log", False), ("fagin", False), ("log", True)]:
        phis = 10.0 ** random.uniform(0.0, 5.0, units)
        table = with_phi(list(phis), list(random.uniform(0.0, 10.0, 30).repeat(100)))
        policy = BalancedSlowdown(search=search, clustered=clustered)  # type: ignore[arg-type]
        compiled = policy.selection(shapes, table, learns=False)
        assert compiled is not None
        for unit in range(units):
            compiled.changed(compiled.memory, table, unit, 10.0)
        examined = 0
        for _ in range(300):
            unit, _, count = compiled.pick(compiled.memory, table, 10.0)
            examined += count
            table["ready"][unit] = False
            compiled.changed(compiled.memory, table, unit, 10.0)
        ones[search, clustered] = examined / 300
    assert ones["exact", False] == 3000
    assert ones["log", False] <= 12
    assert ones["fagin", False] < ones["log", False]
    assert ones["log", True] < 3


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"search": "binary"}, "search: one of exact"),
        ({"search": "log", "clusters": 0}, "clusters from 1 to 1024"),
        ({"search": "log", "clusters": 2.5}, "clusters from 1 to 1024"),
        ({"search": "log", "epsilon": 1.0}, "epsilon above 1"),
        ({"search": "log", "epsilon": float("nan")}, "epsilon above 1"),
        ({"search": "uniform", "epsilon": 2.0}, "epsilon only with logarithmic clusters"),
        ({"clustered": True}, "clustered only with clusters"),
    ],
)
def test_settings_without_a_meaning_are_refused(parameters: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigRefused, match=expected):
        policy_named("bsd", **parameters)
