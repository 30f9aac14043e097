"""CQC's baselines as they ran in AQSIOS: queues are drained, and sources come last (CQC §3)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headgate.model.arrays import Floats, Ints
from headgate.model.events import Measured, StepFinished, StepStarted
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.model.plan import ALL, Step
from headgate.policies.interface import Policy, Ranking, State
from headgate.policies.methods.outer_policy import OuterPolicy
from headgate.policies.registry import register


@register(
    "sources-last",
    objective="that of the inner policy, as AQSIOS ran it",
    paper="CQC §3",
    use="You want hr or round robin as the baselines that cqc was compared with.",
    avoid="Streams are unbounded bursts: tuples wait outside until the operators are idle.",
)
class SourcesLast(OuterPolicy):
    """The order of the inner policy; an operator drains its queue, and sources run last (CQC §3).

    Sources are the operators that only streams feed. They run when no other operator has tuples. At
    query level there are none: a unit is a source and its operators in one.

    Args:
        inner: the policy that orders the operators, by name or as an object.
    """

    tuples_a_step = ALL

    def __init__(self, inner: str | Policy = "hr") -> None:
        super().__init__(inner)
        self._is_source = np.zeros(0, dtype=np.bool_)

    def prepare(self, units: Units) -> None:
        self.inner.prepare(units)
        self._is_source = source_operators(units)

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        ready = operators_first(state.ready, self._is_source)
        return self.inner.plan(replace(state, ready=ready), now_s)

    def hear(self, event: StepStarted | StepFinished | Measured) -> None:
        self.inner.hear(event)

    def may_fuse(self, table: UnitTable, unit: int, other: int) -> bool:
        return self.inner.may_fuse(table, unit, other)

    def ranking(self, now_s: float) -> Ranking | None:
        return self.inner.ranking(now_s)

    def value(self, selectivity: float, cost_s: float, ideal_s: float) -> float:
        return self.inner.value(selectivity, cost_s, ideal_s)

    def rates(self, table: UnitTable, units: Ints, now_s: float) -> Floats | None:
        return self.inner.rates(table, units, now_s)


def source_operators(units: Units) -> "np.typing.NDArray[np.bool_]":
    """Return for each unit whether it is an operator that only streams feed."""
    by_box = units.level == "operator"
    return np.array([by_box and not shape.fed_by for shape in units.shapes], dtype=np.bool_)


def operators_first(ready: Ints, is_source: "np.typing.NDArray[np.bool_]") -> Ints:
    """Return the units that are no sources, or the sources if there are no others."""
    operational = ready[~is_source[ready]]
    return operational if len(operational) else ready
