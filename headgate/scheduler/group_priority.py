"""The priority of units that share code and run in one call (Sharaf §3.6)."""

from typing import Any

import numpy as np

from headgate.compiled import compiled
from headgate.model.arrays import Floats, Ints
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import SharedPriority
from headgate.policies.interface import Policy


class GroupPriority:
    """A view of the unit table that makes a policy rank units by the value of their shared call.

    The shared operator of the thesis is here the fixed part of a call, whose cost per tuple is
    c_x = o / n. A unit is a segment behind it, of cost C̄_i = c_x + c̄_i. Under `sum`, all units of a
    group that stand at the same train have the value (Σ S_i w_i) / (c_x + Σ c̄_i), with the w of the
    policy (eq 3.9). Under `pdt`, so do the units of the priority-defining tree, which takes units
    in descending priority while the value grows (§3.6.2); the other units keep their own priority.
    Under `max`, every unit keeps its own priority, and the group is ranked by the best of them.

    Departs from the thesis, where segments outside the tree have their own queues. Here the code of
    a group runs for all of its units, so that those segments join the call. To leave them out would
    save nothing, and a call of their own would do the group's work again.

    A priority that is a rate is V = N / C̄ with some N. So the policy sees a unit at the cost for
    which its N yields the value of the call, V C̄ / V_call. Other priorities see measured costs.
    """

    def __init__(self, shared_priority: SharedPriority, most: int) -> None:
        self.shared_priority, self._most = shared_priority, most

    def seen(
        self,
        policy: Policy,
        table: UnitTable,
        ready: Ints,
        groups: Ints,
        cursors: Ints,
        now_s: float,
    ) -> UnitTable:
        """Return the unit table that the policy is to see.

        Args:
            ready: the units that have pending tuples and do not run.
            groups: a number for every unit, the same for units that share code.
            cursors: the next train of each unit.
        """
        if self.shared_priority == "max" or len(ready) < 2 or self._most < 2:
            return table
        values = policy.rates(table, ready, now_s)
        if values is None:
            return table
        order = np.lexsort((-values, cursors[ready], groups[ready]))
        visible = np.empty_like(table)
        visible.view(np.uint8)[:] = table.view(np.uint8)
        takes_all = self.shared_priority == "sum"
        _plant(table, ready[order], values[order], groups, cursors, self._most, takes_all, visible)
        return visible


def call_groups(groups: Ints | None, table: UnitTable, policy: Policy, classes: int) -> Ints | None:
    """Return the groups, split by class if the policy allows no call for two classes.

    Args:
        groups: a number for every unit, the same for units that share code.
        classes: how many classes there are.
    """
    if groups is None:
        return None
    class_by_unit, first = table["query_class"].tolist(), dict[int, int]()
    for unit, group in enumerate(groups.tolist()):
        other = first.setdefault(group, unit)
        if class_by_unit[unit] == class_by_unit[other] or policy.may_fuse(table, other, unit):
            continue
        by_class: Ints = groups * classes + table["query_class"]
        return by_class
    return groups


@compiled
def _plant(
    table: UnitTable,
    units: Ints,
    values: Floats,
    groups: Ints,
    cursors: Ints,
    most: int,
    takes_all: bool,
    visible: Any,
) -> None:
    """Find the tree of each group and train, and set its units' costs so that V is the tree's.

    Args:
        units: ready units; those of one group and train are adjacent, by descending value.
        values: the priority of each of `units`, before sharing.
        most: the largest number of units in a tree.
        takes_all: whether a tree takes as many units as it can (`sum`).
        visible: a copy of the table; gets the cost of each unit that is in a tree.
    """
    first, count = 0, len(units)
    while first < count:
        group, cursor = groups[units[first]], cursors[units[first]]
        gain, best, end = 0.0, 0.0, first
        cost_s = table[units[first]].cost_s - table[units[first]].tuple_cost_s
        while end < count and groups[units[end]] == group and cursors[units[end]] == cursor:
            row = table[units[end]]
            more, more_s = gain + values[end] * row.cost_s, cost_s + row.tuple_cost_s
            full = end - first == most
            if end > first and (full or not (takes_all or more / more_s > best)):
                break
            gain, cost_s, best = more, more_s, more / more_s
            end += 1
        for position in range(first, end if end - first > 1 else first):
            unit = units[position]
            if values[position] > 0.0:  # no cost can change the value 0 of a unit without results
                visible[unit].cost_s = values[position] * table[unit].cost_s / best
        while end < count and groups[units[end]] == group and cursors[units[end]] == cursor:
            end += 1
        first = end
