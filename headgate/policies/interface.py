"""What a policy is: prepare for a network, plan for a state, hear what happened."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headgate.model.events import StepFinished, StepStarted
from headgate.model.network import Network
from headgate.model.plan import Step
from headgate.model.unit_table import UnitTable


@dataclass(frozen=True, slots=True)
class State:
    """What a policy may look at: the unit table, and the units that have tuples and do not run.

    `ready` is in ascending order, so that a stable sort breaks ties by unit number.
    """

    table: UnitTable
    ready: NDArray[np.int64]


class Policy(ABC):
    """A rule that makes plans. State it keeps is in its own fields, never in the unit table."""

    name: str = ""

    def prepare(self, network: Network) -> None:  # noqa: B027  # most have nothing to prepare
        """Hears of the network before the first plan, and again whenever it changes."""

    @abstractmethod
    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        """Gives the steps to take, best first. The same state gives the same plan."""

    def hear(self, event: StepStarted | StepFinished) -> None:  # noqa: B027  # nor to remember
        """Hears which of its steps were started, and what came of them."""

    def may_fuse(self, table: UnitTable, unit: int, other: int) -> bool:
        """Says whether two neighbours of a plan may share one call, and so wait for each other."""
        return True
