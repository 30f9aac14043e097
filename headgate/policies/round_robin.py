"""Round robin: queries in turn (Aurora §5.1, Sharaf §3.7)."""

from collections.abc import Sequence

import numpy as np

from headgate.model.events import Measured, StepFinished, StepStarted
from headgate.model.plan import ALL, Step
from headgate.model.units import Units
from headgate.policies.interface import Policy, State
from headgate.policies.registry import register


@register("rr", objective="fairness by turns", paper="Aurora §5.1", starves=False)
class RoundRobin(Policy):
    """Queries in turn, beginning behind the one that was served last.

    The papers leave open how long a turn is. Here it is a train: `quantum_s` limits it to the
    tuples that fit into that many seconds by the unit's measured cost, at least one; None takes
    what the run's train size allows.

    The turn moves on from the *first* unit of a fused call: counted from the last one, a unit that
    reads other trains than its neighbours could be passed over for ever.
    """

    def __init__(self, quantum_s: float | None = None) -> None:
        if quantum_s is not None and quantum_s < 0:
            raise ValueError("quantum_s of 0 or more seconds")
        self.quantum_s = quantum_s
        self._served_last = -1

    def prepare(self, units: Units) -> None:
        self._served_last = -1

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        cut = int(np.searchsorted(state.ready, self._served_last, side="right"))
        order = np.concatenate([state.ready[cut:], state.ready[:cut]])
        return [Step(int(unit), self._tuples(state.table[unit])) for unit in order]

    def hear(self, event: StepStarted | StepFinished | Measured) -> None:
        if isinstance(event, StepStarted):
            self._served_last = event.call.units[0]

    def _tuples(self, row: np.void) -> int:
        if self.quantum_s is None:
            return ALL
        return max(1, int((self.quantum_s - row["overhead_s"]) / row["tuple_cost_s"]))
