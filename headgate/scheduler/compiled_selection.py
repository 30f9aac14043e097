"""The compiled selection of a policy, which a live run uses as simulations do."""

from functools import cache
from math import inf
from typing import Any

import numpy as np

from headgate.compiled import with_functions
from headgate.model.arrays import Ints
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import SharedPriority, Units
from headgate.model.plan import Step
from headgate.policies.interface import Policy, Selection

FROM_UNITS = 256
"""Among fewer units, ranking all of them costs less than to compile the selection at the start."""

changed: Any = None
"""The function of a selection, which `with_functions` puts in its place in `_tell`."""


class CompiledSelection:
    """The memory of a compiled selection, and the units whose rows have changed since a decision.

    A decision then costs what the selection needs, and not a plan of all units.
    """

    def __init__(self, selection: Selection, units: int) -> None:
        self._memory, self._pick = selection.memory, selection.pick
        self._tell = _teller(selection.changed)
        self._changed: list[Ints] = [np.arange(units)]

    def note(self, units: Ints) -> None:
        """Note that rows of the unit table have changed."""
        self._changed.append(units)

    def pick(self, table: UnitTable, now_s: float) -> Step | None:
        """Return the first step of the policy's plan, or None if no unit is ready."""
        for units in self._changed:
            self._tell(self._memory, table, units, now_s)
        self._changed.clear()
        unit, tuples, _ = self._pick(self._memory, table, now_s)
        return None if unit < 0 else Step(int(unit), int(tuples))


def compiled_selection(
    policy: Policy,
    units: Units,
    table: UnitTable,
    groups: Ints | None,
    shared_priority: SharedPriority,
) -> CompiledSelection | None:
    """Return the compiled selection of a policy; None if plans are needed, or cost less.

    Plans are needed where other policies decide inside this one, and where units that share code
    are ranked by the value of their common call (Sharaf §3.6), which changes with every call.

    Args:
        groups: a number for every unit, the same for units that share code.
    """
    if len(table) < FROM_UNITS or policy.plans_live or policy.inside() or policy.wake_at_s < inf:
        return None
    nobody = np.zeros(0, dtype=np.int64)
    shared = groups is not None and len(np.unique(groups)) < len(groups)
    if shared and shared_priority != "max" and policy.rates(table, nobody, 0.0) is not None:
        return None
    selection = policy.selection(units, table, learns=True)
    return None if selection is None else CompiledSelection(selection, len(table))


def _tell(memory: Any, table: UnitTable, units: Ints, now_s: float) -> None:
    """Tell the selection that rows have changed. This is a template for a policy's `changed`."""
    for place in range(len(units)):
        changed(memory, table, units[place], now_s)


@cache
def _teller(function: Any) -> Any:
    return with_functions(_tell, borrows=True, changed=function)
