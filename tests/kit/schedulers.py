"""Schedulers over queries that are all alike, and what happens to them."""

from collections.abc import Sequence

import numpy as np

from headgate.model.events import StepFinished, StepStarted, TrainArrived
from headgate.model.network.network import Network
from headgate.model.network.operator import Kind, Operator
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.plan import BoxCall, Step
from headgate.policies import Policy, State, policy_named
from headgate.scheduler.scheduler import Scheduler
from kit.networks import line, network


def queries_alike(
    units: int, *, streams: int = 1, kinds: Sequence[Kind] = (), **operator_figures: float
) -> Network:
    """Return queries of one box each, which read the streams in turn."""
    figures = operator_figures or {"cost_s": 0.001, "selectivity": 0.5}
    names = [f"s{number}" for number in range(streams)]
    boxes = [Operator(kind=kind, **figures) for kind in kinds or ["select"] * units]
    paths = (
        line(f"q{number}", box, stream=names[number % streams]) for number, box in enumerate(boxes)
    )
    return network(*paths, streams=names)


def scheduler_of(units: int, policy: str | Policy = "rr", **options: object) -> Scheduler:
    network = queries_alike(units)
    chosen = policy_named(policy) if isinstance(policy, str) else policy
    table = unit_table(units_of(network), overhead_s=1.0)
    return Scheduler(network, table, chosen, **options)  # type: ignore[arg-type]


def arrive(scheduler: Scheduler, *tuples: int, stream: int = 0, at_s: float = 0.0) -> None:
    times_s = np.full(len(tuples), at_s)
    scheduler.hear(TrainArrived(at_s, stream, np.array(tuples), times_s, times_s))


def finish(
    scheduler: Scheduler, call: BoxCall, seconds: float = 1.0, failed: tuple[int, ...] = ()
) -> None:
    nothing, outs = tuple(np.zeros(0) for _ in call.units), (0,) * len(call.units)
    scheduler.hear(StepFinished(0.0, call, seconds, outs, nothing, failed=failed))


def only(calls: list[BoxCall]) -> BoxCall:
    assert len(calls) == 1
    return calls[0]


class Always(Policy):
    """A policy that plans the same steps whatever the state, and records the events it hears."""

    name = "always"

    def __init__(self, *units: int) -> None:
        self.units = units
        self.heard: list[tuple[str, int]] = []

    def hear(self, event: StepStarted | StepFinished) -> None:
        self.heard.append((type(event).__name__, event.call.number))

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        return [Step(unit) for unit in self.units]
