"""The interface of a policy: prepare for the units, plan for a state, hear of events."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headgate.model.arrays import Floats
from headgate.model.events import Measured, StepFinished, StepStarted
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.model.outlook import Outlook
from headgate.model.plan import ALL, Step


class Foresight(Protocol):
    """What only a simulation can know: the cost and the outputs of tuples that still wait."""

    def waiting(self, unit: int) -> tuple[Floats, Floats]:
        """Return the seconds and the outputs of each tuple in a unit's queue, oldest first."""


@dataclass(frozen=True, slots=True)
class State:
    """What a policy may look at: the unit table, and the units that have tuples and do not run.

    `ready` is in ascending order, so that a stable sort breaks ties by unit number. `figures`
    increases whenever a cost or a selectivity in the table has been measured again.
    """

    table: UnitTable
    ready: NDArray[np.int64]
    figures: int = 0
    foresight: Foresight | None = None


@dataclass(frozen=True)
class Selection:
    """A policy in compiled form, for simulations of millions of steps. It decides as `plan` does.

    Args:
        memory: a tuple of NumPy arrays that the two functions share. Only the policy uses it.
        changed: compiled `(memory, table, unit, now_s)`, called whenever a unit's row has changed;
            a unit whose `ready` is false must not be picked.
        pick: compiled `(memory, table, now_s)`. It returns `(unit, tuples, examined)`: the first
            step of the plan (unit −1 if no unit is ready) and how many priorities it computed.
    """

    memory: tuple[Any, ...]
    changed: Any
    pick: Any


LookAhead = Callable[[Sequence["Policy"], float], None]
"""A request to run candidates ahead from the present state, for a horizon in seconds."""


class Ranking(Protocol):
    """A policy that runs the unit of largest priority: see `PriorityPolicy`."""

    def priority_of(
        self, row: Any, unit: int, now_s: float, class_priorities: Sequence[float]
    ) -> float:
        """Return the priority of a unit from a row of it."""


class Policy(ABC):
    """A rule that makes plans. It keeps its state in its own fields, never in the unit table."""

    name: str = ""

    spelled: str = ""
    """The policy as written on a command line, with parameters; empty if not created by name."""

    tuples_a_step: int | None = None
    """The most tuples per call, where the policy's definition fixes it; None leaves it to the run,
    so that policies are compared with the same trains. The settings of a run may limit it."""

    train: str = ""
    """The train in words, where `tuples_a_step` does not say it."""

    visits_empty: bool = False
    """True if a decision visits units without tuples, whose turn it would be."""

    foresees: bool = False
    """True if the policy must know the outcome of waiting tuples, as only a simulation does."""

    fuses_at_any_cost: bool = False
    """True if neighbors in a plan share calls although their results then wait for each other."""

    cuts: bool = False
    """True if the policy orders the segments of a query, so that queries should be cut for it."""

    plans_live: bool = False
    """True if a plan costs less than the compiled selection while figures change all the time."""

    wake_at_s: float = inf
    """When the policy wants a `Measured` event and a new plan, even if nothing has happened."""

    looks_ahead: bool = False
    """True if the policy asks what other policies would achieve from the present state."""

    look_ahead: LookAhead | None = None
    """Set by the run, for a policy that looks ahead. The answer comes by `hear_outlook`."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spelled or self.name!r})"

    def prepare(self, units: Units) -> None:  # noqa: B027  # most have nothing to prepare
        """Prepare for the units. Called before the first plan, and again whenever they change.

        A unit then has another number if queries before it were dropped.
        """

    @abstractmethod
    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        """Return the steps to take, best first. The same state gives the same plan."""

    def hear(self, event: StepStarted | StepFinished | Measured) -> None:  # noqa: B027  # nor to remember
        """Take note of a started step, of a finished step, or of new measurements."""

    def charge_polls(self, stream: int, seconds: float) -> None:
        """Take note that polls of a stream's source have taken CPU time."""
        for policy in self.inside():
            policy.charge_polls(stream, seconds)

    def hear_outlook(self, outlook: Outlook, now_s: float) -> None:  # noqa: B027  # most never ask
        """Take note of what each candidate of a request to `look_ahead` would achieve."""

    def take_polls(self) -> int:
        """Return how often sources were polled in vain since the last call of this."""
        return 0

    def may_fuse(self, table: UnitTable, unit: int, other: int) -> bool:
        """Return True if two neighbors in a plan may share one call, and so wait for each other."""
        return True

    def value(self, selectivity: float, cost_s: float, ideal_s: float) -> float:
        """Rank a segment by S, C̄ and T, for shared operators (Sharaf §3.6); S / C̄ by default."""
        return selectivity / cost_s

    def rates(self, table: UnitTable, units: NDArray[np.int64], now_s: float) -> Floats | None:
        """Return the priorities of the units one second from now if these are rates, else None.

        A rate is a numerator over C̄. Only rates add up when units run together (Sharaf §3.6).
        """
        return None

    def train_text(self, usual: int) -> str:
        """Return the train of a call in words.

        Args:
            usual: the most tuples per call if the policy's definition does not fix it.
        """
        tuples = usual if self.tuples_a_step is None else self.tuples_a_step
        return self.train or ("all" if tuples >= ALL else str(tuples))

    def inside(self) -> Sequence["Policy"]:
        """Return the policies that may decide in place of this one."""
        return ()

    def in_charge(self, now_s: float) -> "Policy":
        """Return the policy that decides now: this one, or the one that it has chosen."""
        return self

    def ranking(self, now_s: float) -> Ranking | None:
        """Return the policy whose priorities order units: this one, one inside, or none."""
        policy = self.in_charge(now_s)
        return None if policy is self else policy.ranking(now_s)

    def quotas(self) -> Mapping[int, tuple[float, float]]:
        """Return the seconds granted to each class and used by it; empty without quotas."""
        return {}

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        """Return the compiled form, or None to have `plan` called for every step.

        Args:
            learns: True if costs and selectivities in the table change during the run.
        """
        return None
