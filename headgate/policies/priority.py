"""Priority policies: one decorated function of a unit and the time, compiled by Numba."""

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from headgate.model.network import Network
from headgate.model.plan import Step
from headgate.model.unit_table import UNIT, Unit, UnitTable
from headgate.policies.interface import Policy, State
from headgate.policies.registry import register

PriorityFunction = Callable[[Unit, float], float]


def priority(
    name: str, *, objective: str = "", paper: str = "", starves: bool = True
) -> Callable[[PriorityFunction], PriorityFunction]:
    """Makes a function of a unit and the time a policy: the unit with the largest value runs first.

    >>> @priority("longest-queue", objective="memory")
    ... def longest_queue(unit, now_s):
    ...     return float(unit.pending)
    """

    def enter(function: PriorityFunction) -> PriorityFunction:
        compiled = numba.njit(function)

        def make() -> Policy:
            return PriorityPolicy(compiled)

        rule = (function.__doc__ or "").strip()
        register(name, objective=objective, paper=paper, starves=starves, rule=rule)(make)
        return function

    return enter


class PriorityPolicy(Policy):
    """Runs the unit of the largest priority; ties go to the smaller unit number."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def prepare(self, network: Network) -> None:
        """Compiles, so that the first decision is as quick as the next."""
        priorities(np.ones(1, dtype=UNIT), np.zeros(1, dtype=np.int64), 0.0, self._function)

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        values = priorities(state.table, state.ready, now_s, self._function)
        return [Step(int(unit)) for unit in state.ready[np.argsort(-values, kind="stable")]]


@numba.njit()
def priorities(
    table: UnitTable, units: NDArray[np.int64], now_s: float, function: Any
) -> NDArray[np.float64]:
    """Gives the value of each unit; compiled once for every priority function."""
    values = np.empty(len(units))
    for position in range(len(units)):
        values[position] = function(table[units[position]], now_s)
    return values
