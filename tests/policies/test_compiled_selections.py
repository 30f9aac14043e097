"""The compiled form of a policy decides as its plan does, whatever happens to the units."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.networks import lines_of

from headgate.model.events import StepStarted
from headgate.model.network.unit_table import UnitTable, unit_table
from headgate.model.network.units import Level, Units, units_of
from headgate.model.plan import BoxCall
from headgate.policies import Policy, State, policy_named

Case = tuple[str, dict[str, Any]]

CASES: list[Case] = [
    ("bsd", {"search": "exact"}),
    ("bsd", {"search": "uniform", "clusters": 3}),
    ("bsd", {"search": "log"}),
    ("bsd", {"search": "log", "epsilon": 1.5, "clustered": True}),
    ("bsd", {"search": "fagin"}),
    ("bsd", {"search": "fagin", "clusters": 2, "clustered": True}),
    ("bsd", {"search": "fagin-units"}),
    ("fas", {}),
    ("fas", {"beta": 0.5}),
    ("edf", {}),
    ("edf-hr", {}),
    ("hr-o", {}),
    ("hnr-o", {}),
    ("path-capacity", {}),
    ("threshold", {"threshold_tuples": 5}),
]
ONLY_GIVEN_FIGURES = {"threshold"}
"""Chain has no compiled form for figures that change, so the hybrid with it has none either."""


def named(case: Case) -> str:
    return " ".join([case[0], *(f"{key}={value}" for key, value in case[1].items())])


few = st.sampled_from([0.0, 0.25, 0.5, 1.0])
any_share = st.floats(0.0, 1.0) | few
any_cost_s = st.floats(1e-6, 10.0) | st.sampled_from([0.5, 1.0])


@cache
def policy_of(case: str) -> Policy:
    """Return the policy of a case, built only once because that compiles its formula."""
    name, parameters = next(known_case for known_case in CASES if named(known_case) == case)
    return policy_named(name, **parameters)


class Twins:
    """A policy that plans and its compiled form, with the same unit table and events."""

    def __init__(self, case: Case, units: Units, learns: bool) -> None:
        self.table: UnitTable = unit_table(units)
        self.policy = policy_of(named(case))
        self.policy.prepare(units)
        selection = self.policy.selection(units, self.table, learns=learns)
        assert selection is not None
        self.memory, self.changed, self.pick = selection.memory, selection.changed, selection.pick
        self.figures, self.now_s = 0, 0.0

    def tell(self, unit: int, **row: Any) -> None:
        for column, value in row.items():
            self.table[column][unit] = value
        self.changed(self.memory, self.table, unit, self.now_s)

    def decide(self) -> int:
        """Check that both choose the same unit, start it, and return it."""
        ready = np.flatnonzero(self.table["ready"])
        steps = self.policy.plan(State(self.table, ready, self.figures), self.now_s)
        planned = steps[0].unit if steps else -1
        picked, tuples, examined = self.pick(self.memory, self.table, self.now_s)
        assert picked == planned
        assert examined >= 0
        if steps:
            assert tuples == steps[0].tuples
            self.policy.hear(StepStarted(self.now_s, BoxCall(0, (planned,), 0, 0, 1, 1)))
        return planned


def live(twins: Twins, draw: Any, learns: bool) -> None:
    """Draw what happens: tuples arrive, calls start and end, figures are measured."""
    units = st.integers(0, len(twins.table) - 1)
    for _ in range(draw(st.integers(1, 12))):
        twins.now_s += draw(st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0.0, 3.0))
        for unit in draw(st.lists(units, max_size=8)):
            pending = draw(st.integers(0, 4))
            waits_s = draw(st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0.0, 5.0))
            row: dict[str, Any] = {"pending": pending, "ready": pending > 0}
            row["head_arrived_at_s"] = twins.now_s - waits_s if pending else np.inf
            row["deadline_at_s"] = draw(
                st.sampled_from([np.inf, twins.now_s, twins.now_s + 2]) | st.floats(0.0, 20.0)
            )
            row["due"] = draw(st.integers(0, pending))
            row["pending_outputs"] = draw(st.sampled_from([np.nan, 0.0, 1.0, 2.0]))
            row["pending_s"] = draw(st.sampled_from([np.nan, 0.0, 1.0, 2.5]))
            if learns and draw(st.booleans()):
                cost_s = draw(any_cost_s | st.just(np.nan))
                row["selectivity"] = draw(any_share | st.just(np.nan))
                row["tuple_cost_s"] = row["cost_s"] = cost_s
                twins.figures += 1
            twins.tell(unit, **row)
        started = twins.decide()
        if started >= 0:
            twins.tell(started, ready=False)
            other = twins.decide() if draw(st.booleans()) else -1
            for unit in {started, other} - {-1}:
                finish(twins, unit, draw(st.sampled_from([0.0, 0.5, 1.0])))


def finish(twins: Twins, unit: int, later_s: float) -> None:
    """End the call of a unit: one tuple less, and the next one arrived `later_s` later."""
    left = int(twins.table["pending"][unit]) - 1
    next_s = min(twins.now_s, float(twins.table["head_arrived_at_s"][unit]) + later_s)
    head_s = next_s if left else np.inf
    twins.tell(unit, pending=left, ready=left > 0, head_arrived_at_s=head_s)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=named)
@settings(max_examples=settings.default.max_examples // 2)
@given(data=st.data())
def test_a_compiled_policy_decides_as_its_plan(case: Case, data: st.DataObject) -> None:
    operators = st.lists(st.tuples(any_cost_s, any_share), min_size=1, max_size=2)
    figures = data.draw(st.lists(operators, min_size=1, max_size=7))
    levels: list[Level] = ["query"] if case[0].endswith("-o") else ["query", "operator"]
    units = units_of(lines_of(figures, streams=2), data.draw(st.sampled_from(levels)))
    learns = case[0] not in ONLY_GIVEN_FIGURES and data.draw(st.booleans())
    live(Twins(case, units, learns), data.draw, learns)
