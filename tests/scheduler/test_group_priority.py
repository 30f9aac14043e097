"""The value of units that share a call: by the tree of Sharaf §3.6.2, by all, or by the best."""

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.tables import table_of

from headgate.model.arrays import Floats
from headgate.model.events import TrainArrived
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.unit_table import UnitTable, unit_table
from headgate.model.network.units import SharedPriority, units_of
from headgate.model.query import Query, QueryClass, QueryStatistics
from headgate.model.stream import Stream
from headgate.policies import policy_named
from headgate.scheduler.group_priority import GroupPriority
from headgate.scheduler.scheduler import Scheduler


def timed(selectivity: list[float], own_s: list[float], call_s: float, t_s: Any) -> UnitTable:
    return table_of(
        selectivity=selectivity, tuple_cost_s=own_s, ideal_s=t_s, cost_s=call_s + np.array(own_s),
        head_arrived_at_s=-1.0, mean_arrived_at_s=-1.0, weight=1,
    )  # fmt: skip


def seen(
    table: UnitTable,
    shared_priority: SharedPriority,
    policy: str = "hr",
    groups: Any = 0,
    cursors: Any = 0,
    most: int = 99,
) -> Floats:
    """Return the value that the policy computes for each unit."""
    units = np.arange(len(table))
    chosen: Any = policy_named(policy)
    whole = [
        np.broadcast_to(np.array(numbers, dtype=np.int64), len(table))
        for numbers in (groups, cursors)
    ]
    joint_table = GroupPriority(shared_priority, most).seen(chosen, table, units, *whole, 0.0)
    values: Floats = chosen.values(joint_table, units, 0.0)
    return values


# The fork of tests/model/test_units.py: x costs 1 and passes a half, so that S is half of what its
# readers pass and c̄ half of what they cost.
FORK = timed([0.4, 0.4, 0.25, 0.05], [1.0, 1.0, 3.0, 10.0], call_s=1.0, t_s=[3.0, 3.0, 7.0, 21.0])


def test_the_tree_takes_units_while_the_value_grows_and_leaves_the_others_on_their_own() -> None:
    assert seen(FORK, "pdt") == pytest.approx([0.8 / 3, 0.8 / 3, 0.25 / 4, 0.05 / 11])


def test_all_units_together_have_one_value_and_the_cost_of_the_call_is_paid_once() -> None:
    assert seen(FORK, "sum") == pytest.approx([1.1 / 16] * 4)


def test_under_max_every_unit_keeps_its_own() -> None:
    assert seen(FORK, "max") == pytest.approx([0.4 / 2, 0.4 / 2, 0.25 / 4, 0.05 / 11])


@pytest.mark.parametrize(("policy", "power"), [("hr", 0), ("hnr", 1), ("bsd", 2)])
def test_the_numerators_are_those_of_the_policy(policy: str, power: int) -> None:
    pairs = zip(FORK["selectivity"], FORK["ideal_s"], strict=True)
    expected = sum(s / t**power for s, t in pairs) / 16
    assert seen(FORK, "sum", policy) == pytest.approx([expected] * 4)


def test_no_more_units_count_than_a_call_may_have() -> None:
    assert seen(FORK, "sum", most=3) == pytest.approx([1.05 / 6, 1.05 / 6, 1.05 / 6, 0.05 / 11])
    assert seen(FORK, "sum", most=1) == pytest.approx(seen(FORK, "max"))


def test_units_of_other_groups_or_at_other_trains_are_nobodys_company() -> None:
    alone = seen(FORK, "max")
    assert seen(FORK, "sum", groups=[0, 1, 2, 3]) == pytest.approx(alone)
    assert seen(FORK, "sum", cursors=[0, 1, 2, 3]) == pytest.approx(alone)
    pairs = seen(FORK, "sum", groups=[0, 0, 5, 5])
    assert pairs == pytest.approx([0.8 / 3, 0.8 / 3, 0.3 / 14, 0.3 / 14])


def test_a_unit_without_results_stays_at_nothing() -> None:
    table = FORK.copy()
    table["selectivity"][3] = 0.0
    assert seen(table, "sum") == pytest.approx([1.05 / 16] * 3 + [0.0])


@pytest.mark.parametrize("policy", ["rr", "fcfs", "lsf", "srpt", "edf", "fas", "qos", "chain"])
def test_a_policy_that_ranks_by_no_rate_sees_what_was_measured(policy: str) -> None:
    units, zeros = np.arange(4), np.zeros(4, dtype=np.int64)
    assert (
        GroupPriority("pdt", 99).seen(policy_named(policy), FORK, units, zeros, zeros, 0.0) is FORK
    )


positive = st.floats(0.01, 100.0)


one_unit = st.tuples(positive, positive, positive, st.integers(0, 2), st.integers(0, 1))


@given(st.lists(one_unit, min_size=2), positive, st.sampled_from(["hr", "hnr", "bsd"]))
def test_the_tree_is_that_of_the_thesis(
    units: list[tuple[float, float, float, int, int]], call_s: float, policy: str
) -> None:
    power = ["hr", "hnr", "bsd"].index(policy)
    selectivity, own_s, ideal_s, groups, cursors = map(list, zip(*units, strict=True))
    table = timed(selectivity, own_s, call_s, ideal_s)
    values = seen(table, "pdt", policy, groups, cursors)
    gains = [s / t**power for s, t in zip(selectivity, ideal_s, strict=True)]
    alone = [gain / (call_s + cost_s) for gain, cost_s in zip(gains, own_s, strict=True)]
    for place in set(zip(groups, cursors, strict=True)):
        members = [
            n
            for n, unit_place in enumerate(zip(groups, cursors, strict=True))
            if unit_place == place
        ]
        members.sort(key=lambda n: -alone[n])
        tree = [members[0]]
        for more in members[1:]:
            if not _worth([*tree, more], gains, own_s, call_s) > _worth(tree, gains, own_s, call_s):
                break
            tree.append(more)
        worth = _worth(tree, gains, own_s, call_s)
        for n in members:
            assert values[n] == pytest.approx(worth if n in tree else alone[n], rel=1e-9)


def _worth(tree: list[int], gains: list[float], own_s: list[float], call_s: float) -> float:
    return sum(gains[n] for n in tree) / (call_s + sum(own_s[n] for n in tree))


def scheduler(
    shared_priority: SharedPriority,
    policy: str = "hr",
    classes: str = "HHHH",
    groups: tuple[int, ...] = (3, 3, 3, 3),
) -> Scheduler:
    """Return a scheduler of four units that share code; a call costs 0.1 s, 100 tuples wait."""
    figures = [(0.4, 1e-4), (0.4, 1e-4), (0.05, 5e-4), (0.01, 9e-4)]
    names = [f"q{number}" for number in range(4)]
    network = Network(
        (Stream(name="s", format="rate"),),
        (QueryClass(name="H", priority=6), QueryClass(name="N", priority=1)),
        tuple(
            Path(
                query=Query(name=name, sql="SELECT 1", query_class=class_name),
                stream="s",
                operators=(Operator(kind="select"),),
            )
            for name, class_name in zip(names, classes, strict=True)
        ),
    )
    statistics = {
        name: QueryStatistics(cost_s=cost_s, selectivity=selectivity, overhead_s=0.1)
        for name, (selectivity, cost_s) in zip(names, figures, strict=True)
    }
    table = unit_table(units_of(network), statistics)
    full_scheduler = Scheduler(
        network,
        table,
        policy_named(policy),
        most_fused=9,
        groups=groups,
        shared_priority=shared_priority,
    )
    now = np.zeros(1)
    full_scheduler.hear(TrainArrived(0.0, 0, np.array([100]), now, now))
    return full_scheduler


@pytest.mark.parametrize("shared_priority", ["pdt", "sum", "max"])
def test_whatever_they_are_worth_units_of_a_group_run_together(
    shared_priority: SharedPriority,
) -> None:
    assert set(scheduler(shared_priority).plan(1.0)[0].units) == {0, 1, 2, 3}


def test_a_group_goes_before_a_unit_that_is_better_than_each_of_it() -> None:
    # c_x = 1 ms. The last unit alone is worth 0.5 / 1.1 a millisecond, the best of the others
    # 0.4 / 1.1, the tree of two 0.8 / 1.2, all of the group 0.85 / 1.7.
    leaders = {}
    for shared_priority in get_args(SharedPriority):
        one_more = scheduler(shared_priority, groups=(3, 3, 3, 4))
        one_more.table["selectivity"][3], one_more.table["cost_s"][3] = 0.5, 1.1e-3
        leaders[shared_priority] = one_more.plan(1.0)[0].units[0]
    assert leaders == {"max": 3, "sum": 0, "pdt": 0}


def test_the_priorities_of_classes_count_where_the_policy_has_them() -> None:
    # Both groups pass 0.8 in 1.2 ms, but one is of class H.
    important = scheduler("sum", "hr-class", "NNHH", groups=(3, 3, 4, 4))
    for key in ("selectivity", "tuple_cost_s", "cost_s"):
        important.table[key] = important.table[key][0]
    assert important.plan(1.0)[0].units[0] == 2


def test_a_group_of_several_classes_is_one_to_a_policy_that_lets_them_share_calls_only() -> None:
    assert scheduler("sum", "cqc", "HNHN").plan(1.0)[0].units == (0, 2)
    assert set(scheduler("sum", "hr", "HNHN").plan(1.0)[0].units) == {0, 1, 2, 3}
