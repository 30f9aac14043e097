"""What units are worth that share their code and run in one call (Sharaf §3.6)."""

from typing import Any

import numpy as np

from headgate.compiled import compiled
from headgate.model.events import Floats, Ints
from headgate.model.unit_table import UnitTable
from headgate.model.units import Sharing
from headgate.policies.interface import Policy


class Together:
    """Shows a policy the units that share a call with the figures of that call.

    The shared operator of the thesis is here what a call takes however many are in it, per tuple
    c_x = o / n. A unit is a segment behind it, of cost C̄_i = c_x + c̄_i. Under `sum` all units of a
    group that stand at the same train are worth (Σ S_i w_i) / (c_x + Σ c̄_i), with the w of the
    policy (eq 3.9). Under `pdt` so are those of the priority-defining tree, taken in descending
    priority while the value grows (§3.6.2); the others are ranked on their own. Under `max` every
    unit keeps its own priority, and the group runs with the best of them.

    The units of a tree are shown with Σ S_i, with c_x + Σ c̄_i, and with the T at which the policy
    comes to that value. A policy whose priority is no rate is shown them as they are.
    """

    def __init__(self, sharing: Sharing) -> None:
        self.sharing = sharing
        self._policy: Policy | None = None
        self._power = 0.0

    def seen(
        self, policy: Policy, table: UnitTable, ready: Ints, groups: Ints, cursors: Ints
    ) -> tuple[UnitTable, Ints]:
        """Gives the table as the policy is to see it, and the groups, trees apart from the rest.

        Args:
            ready: the units that have tuples and do not run.
            groups: a number for every unit, the same for those that share their code.
            cursors: where each unit stands.
        """
        if self.sharing == "max" or len(ready) < 2:
            return table, groups
        values = policy.rates(*(table[key][ready] for key in ("selectivity", "cost_s", "ideal_s")))
        if values is None:
            return table, groups
        order = np.lexsort((-values, cursors[ready], groups[ready]))
        shown, apart = np.empty_like(table), 2 * groups
        shown.view(np.uint8)[:] = table.view(np.uint8)
        units, worth = ready[order], np.full(len(ready), np.nan)
        _plant(table, units, values[order], groups, cursors, self.sharing == "sum", shown, worth)
        outside = np.isnan(worth)
        apart[units[outside]] += 1
        if power := self._power_of(policy):
            members = units[~outside]
            passes, cost_s = shown["selectivity"][members], shown["cost_s"][members]
            at_one = policy.rates(passes, cost_s, np.ones(len(members)))
            shown["ideal_s"][members] = (at_one / worth[~outside]) ** (1 / power)
        return shown, apart

    def _power_of(self, policy: Policy) -> float:
        """Gives p of the T^−p in a policy's priority: 0 of hr, 1 of hnr, 2 of bsd."""
        if policy is not self._policy:
            values = policy.rates(np.ones(2), np.ones(2), np.array([1.0, 2.0]))
            self._policy = policy
            self._power = 0.0 if values is None else float(np.log2(values[0] / values[1]))
        return self._power


@compiled
def _plant(
    table: UnitTable,
    units: Ints,
    values: Floats,
    groups: Ints,
    cursors: Ints,
    takes_all: bool,
    shown: Any,
    worth: Floats,
) -> None:
    """Finds the tree of every group that stands at one train, and writes down what it is worth.

    Args:
        units: those of a group and a train one after the other, by descending value.
        takes_all: whether a tree has all of them.
        shown: gets S and C̄ of its tree for each unit that is in one.
        worth: the same for the value; what is in no tree keeps NaN.
    """
    first, count = 0, len(units)
    while first < count:
        group, cursor = groups[units[first]], cursors[units[first]]
        gain, selectivity, best, end = 0.0, 0.0, 0.0, first
        cost_s = table[units[first]].cost_s - table[units[first]].tuple_cost_s
        while end < count and groups[units[end]] == group and cursors[units[end]] == cursor:
            row = table[units[end]]
            more, more_s = gain + values[end] * row.cost_s, cost_s + row.tuple_cost_s
            if end > first and not (takes_all or more / more_s > best):
                break
            gain, cost_s, best = more, more_s, more / more_s
            selectivity += row.selectivity
            end += 1
        for at in range(first, end):
            shown[units[at]].selectivity, shown[units[at]].cost_s = selectivity, cost_s
            worth[at] = best
        while end < count and groups[units[end]] == group and cursors[units[end]] == cursor:
            end += 1
        first = end
