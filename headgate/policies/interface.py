"""What a policy is: prepare for the units, plan for a state, hear what happened."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headgate.model.arrays import Floats
from headgate.model.events import Measured, StepFinished, StepStarted
from headgate.model.plan import Step
from headgate.model.unit_table import UnitTable
from headgate.model.units import Units


class Foresight(Protocol):
    """What only a simulation can tell: what will become of tuples that wait."""

    def waiting(self, unit: int) -> tuple[Floats, Floats]:
        """Gives for each tuple of a unit's queue, oldest first, its seconds and its outputs."""


@dataclass(frozen=True, slots=True)
class State:
    """What a policy may look at: the unit table, and the units that have tuples and do not run.

    `ready` is in ascending order, so that a stable sort breaks ties by unit number. `figures` goes
    up whenever a cost or a selectivity of the table was measured anew.
    """

    table: UnitTable
    ready: NDArray[np.int64]
    figures: int = 0
    foresight: Foresight | None = None


@dataclass(frozen=True)
class Selection:
    """A policy in compiled form, for simulations of millions of steps. It decides as `plan` does.

    Args:
        memory: a tuple of NumPy arrays that the two functions share; the policy's own.
        changed: compiled `(memory, table, unit, now_s)`, called whenever a unit's row has changed;
            a unit whose `ready` is false must not be picked.
        pick: compiled `(memory, table, now_s)`, gives `(unit, tuples, examined)`: the first step of
            the plan (−1 when nobody is ready) and how many priorities were computed for it.
    """

    memory: tuple[Any, ...]
    changed: Any
    pick: Any


class Policy(ABC):
    """A rule that makes plans. State it keeps is in its own fields, never in the unit table."""

    name: str = ""

    spelled: str = ""
    """How it is written on a command line, parameters included, where it was made by name."""

    tuples_a_step: int = 1
    """How many tuples a step takes in the policy's paper, where a run does not say otherwise."""

    foresees: bool = False
    """Whether it needs to know what will become of waiting tuples, as only a simulation does."""

    fuses_at_any_cost: bool = False
    """Whether neighbours share calls although their results then wait for each other's."""

    cuts: bool = False
    """Whether it orders the segments of a query, so that queries should be cut for it."""

    wake_at_s: float = inf
    """When it wants to hear `Measured` and be asked again, although nothing may have happened."""

    def prepare(self, units: Units) -> None:  # noqa: B027  # most have nothing to prepare
        """Hears of the units before the first plan, and again whenever they change."""

    @abstractmethod
    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        """Gives the steps to take, best first. The same state gives the same plan."""

    def hear(self, event: StepStarted | StepFinished | Measured) -> None:  # noqa: B027  # nor to remember
        """Hears which of its steps were started, what came of them, and what was measured."""

    def may_fuse(self, table: UnitTable, unit: int, other: int) -> bool:
        """Says whether two neighbours of a plan may share one call, and so wait for each other."""
        return True

    def value(self, selectivity: float, cost_s: float, ideal_s: float) -> float:
        """Ranks a segment by S, C̄ and T, for shared operators (Sharaf §3.6); S / C̄ if not said."""
        return selectivity / cost_s

    def rates(self, table: UnitTable, units: NDArray[np.int64], now_s: float) -> Floats | None:
        """Gives the priorities that units will have in a second where they are rates; else None.

        A rate is something over C̄. Only those of units that run together add up (Sharaf §3.6).
        """
        return None

    def inside(self) -> Sequence["Policy"]:
        """Gives the policies that may decide for it."""
        return ()

    def in_charge(self, now_s: float) -> "Policy":
        """Gives the policy that decides at present: itself, or the one that it has chosen."""
        return self

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        """Gives the compiled form, or None: then `plan` is called for every step.

        Args:
            learns: costs and selectivities of the table change during the run.
        """
        return None
