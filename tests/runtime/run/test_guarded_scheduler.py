"""A policy that raises, or plans what cannot run, is replaced by round robin; no call is lost."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from kit.networks import line, network, select

from headgate.model.events import PolicyChanged, StepFinished, TrainArrived
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.plan import BoxCall, Step
from headgate.policies import Policy, State, policy_named
from headgate.runtime.run.guarded_scheduler import GuardedScheduler


class Fails(Policy):
    """A policy of which one method does not do what it should."""

    name = "mine"

    def __init__(self, method: str, instead: Callable[..., Any]) -> None:
        setattr(self, method, instead)

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        return [Step(int(unit)) for unit in state.ready]


def raises(*arguments: object) -> None:
    raise ValueError("a slip of the pen")


@pytest.mark.parametrize(
    ("method", "instead"),
    [(name, raises) for name in ("prepare", "plan", "hear", "may_fuse", "in_charge")]
    + [("plan", lambda state, now_s: [Step(7)]), ("plan", lambda state, now_s: ["all of them"])],
)
def test_round_robin_takes_over_and_every_unit_runs(
    method: str, instead: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    net = network(line("a", select(0.001)), line("b", select(0.001)))
    table = unit_table(units_of(net), overhead_s=1.0)
    scheduler = GuardedScheduler(net, table, Fails(method, instead), most_fused=2)
    units: list[int] = []

    def run() -> None:
        scheduler.hear(TrainArrived(0.0, 0, np.array([3]), np.zeros(1), np.zeros(1)))
        while calls := scheduler.plan(0.0):
            for call in calls:
                units.extend(call.units)
                scheduler.hear(_finished(call))

    run()
    assert sorted(units) == [0, 1]
    assert scheduler.policy.name == "rr"
    assert scheduler.policy_error
    assert caplog.text.count("policy 'mine' failed; 'rr' decides until a policy is set") == 1
    scheduler.hear(PolicyChanged(0.0, policy_named("fcfs")))
    run()
    assert sorted(units) == [0, 0, 1, 1]
    assert scheduler.policy.name == "fcfs"
    assert not scheduler.policy_error


def _finished(call: BoxCall) -> StepFinished:
    nothing = tuple(np.zeros(0) for _ in call.units)
    return StepFinished(0.0, call, 1.0, (0,) * len(call.units), nothing)
