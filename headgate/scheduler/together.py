"""What units are worth that share their code and run in one call (Sharaf §3.6)."""

from typing import Any

import numpy as np

from headgate.compiled import compiled
from headgate.model.arrays import Floats, Ints
from headgate.model.unit_table import UnitTable
from headgate.model.units import Sharing
from headgate.policies.interface import Policy


class Together:
    """Shows a policy the units that share a call such that it ranks them by what the call is worth.

    The shared operator of the thesis is here what a call takes however many are in it, per tuple
    c_x = o / n. A unit is a segment behind it, of cost C̄_i = c_x + c̄_i. Under `sum` all units of a
    group that stand at the same train are worth (Σ S_i w_i) / (c_x + Σ c̄_i), with the w of the
    policy (eq 3.9). Under `pdt` so are those of the priority-defining tree, taken in descending
    priority while the value grows (§3.6.2); the others are ranked on their own. Under `max` every
    unit keeps its own priority, and the group is ranked by the best of them.

    In the thesis segments outside of the tree have queues of their own. Here the code of a group
    runs for all of it, so that they join the call: to leave them out would save nothing, and their
    own call would do the group's work again.

    A priority that is a rate is V = N / C̄ with some N. So a unit is shown with the cost at which
    its N makes the value of the call, V C̄ / V_call. Other priorities see what was measured.
    """

    def __init__(self, sharing: Sharing, most: int) -> None:
        self.sharing, self._most = sharing, most

    def seen(
        self,
        policy: Policy,
        table: UnitTable,
        ready: Ints,
        groups: Ints,
        cursors: Ints,
        now_s: float,
    ) -> UnitTable:
        """Gives the table as the policy is to see it.

        Args:
            ready: the units that have tuples and do not run.
            groups: a number for every unit, the same for those that share their code.
            cursors: where each unit stands.
        """
        if self.sharing == "max" or len(ready) < 2 or self._most < 2:
            return table
        values = policy.rates(table, ready, now_s)
        if values is None:
            return table
        order = np.lexsort((-values, cursors[ready], groups[ready]))
        shown = np.empty_like(table)
        shown.view(np.uint8)[:] = table.view(np.uint8)
        takes_all = self.sharing == "sum"
        _plant(table, ready[order], values[order], groups, cursors, self._most, takes_all, shown)
        return shown


@compiled
def _plant(
    table: UnitTable,
    units: Ints,
    values: Floats,
    groups: Ints,
    cursors: Ints,
    most: int,
    takes_all: bool,
    shown: Any,
) -> None:
    """Finds the tree of every group that stands at one train, and shows its units at its value.

    Args:
        units: those of a group and a train one after the other, by descending value.
        most: how many a tree has at the most.
        takes_all: whether a tree has as many as it can.
        shown: gets the cost of each unit that is in a tree.
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
        for at in range(first, end if end - first > 1 else first):
            unit = units[at]
            if values[at] > 0.0:  # a unit without results can be shown at no value but its own
                shown[unit].cost_s = values[at] * table[unit].cost_s / best
        while end < count and groups[units[end]] == group and cursors[units[end]] == cursor:
            end += 1
        first = end
