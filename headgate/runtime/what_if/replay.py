"""Replays: simulations of a recorded run under other policies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isnan, nan
from pathlib import Path as File
from typing import Any

import numpy as np

from headgate.metrics.report import Report
from headgate.metrics.run import RunMetrics
from headgate.model.arrays import Floats, places_before
from headgate.model.events import (
    Event,
    NetworkChanged,
    PolicyChanged,
    QueryStopped,
    StepFinished,
    TrainArrived,
    UnitFailed,
)
from headgate.model.network.derived_streams import producers
from headgate.model.network.unit_table import grown, unit_table
from headgate.model.network.units import units_of
from headgate.model.plan import BoxCall
from headgate.runtime.listeners import Observed
from headgate.runtime.pipeline import refuse_off_spark
from headgate.runtime.policy_text import Spelled
from headgate.runtime.recording.recordings import Recording, read_recording
from headgate.runtime.what_if.call_costs import CallCosts, fitted_costs
from headgate.runtime.what_if.difference import difference_of
from headgate.scheduler.loop import run
from headgate.scheduler.overload import Commit
from headgate.scheduler.rows import in_rows
from headgate.scheduler.scheduler import Scheduler
from headgate.scheduler.statistics import Statistics
from headgate.simulation.loop.replay import ReplayEngine, ResultCounts

BAR = 0.25
"""Largest relative error of a simulated mean response that is still trusted."""


FURTHER = 1e9
"""Tuples beyond the recorded ones for which results are extrapolated. A segment gets more tuples
than it did in the recorded run if the segment before it is quicker."""


@dataclass(frozen=True)
class Calibration:
    """The error of simulating the recorded run itself, for one class.

    `error` is (simulated − measured) / measured of the mean response of the class.
    """

    name: str
    measured_s: float
    simulated_s: float

    @property
    def error(self) -> float:
        return (self.simulated_s - self.measured_s) / self.measured_s if self.measured_s else nan

    @property
    def holds(self) -> bool:
        """Whether the error is within `BAR`; True for a class without results."""
        return isnan(self.error) or abs(self.error) <= BAR


@dataclass(frozen=True)
class Replay:
    """The measured report of a run, and simulated reports of policies on the same arrivals.

    Args:
        measured: the report of the recorded run itself.
        reports: the reports of simulations; the first is that of the policy that ran.
        same_decisions: whether the policy, given the same events again, decides the same again.
        difference: if not, where it first decides otherwise, and why that may be.
    """

    measured: Report
    reports: tuple[Report, ...]
    calibration: tuple[Calibration, ...]
    costs: CallCosts = field(repr=False)
    same_decisions: bool
    difference: str = ""

    @property
    def holds(self) -> bool:
        """Whether the error is within `BAR` in every class."""
        return all(calibration.holds for calibration in self.calibration)

    def _repr_html_(self) -> str:
        return "".join(report._repr_html_() for report in (self.measured, *self.reports))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "measured": self.measured.to_dict(),
            "reports": [report.to_dict() for report in self.reports],
            "calibration": {
                calibration.name: None if isnan(calibration.error) else calibration.error
                for calibration in self.calibration
            },
            "holds": self.holds,
            "same_decisions": self.same_decisions,
            "difference": self.difference,
            "costs": {
                "steps": self.costs.steps, "error": self.costs.error,
                "crowding": self.costs.crowding, "loop_s": self.costs.loop_s,
                "start_s": self.costs.start_s,
            },
        }  # fmt: skip


def replay(
    path: str | File,
    policies: Sequence[str] = (),
    progress: Callable[[str], None] = lambda policy: None,
    last_s: float = inf,
) -> Replay:
    """Simulate a recorded run under other policies.

    Args:
        path: a recording, or a state directory with one; its last run is simulated.
        policies: as written on a command line; the policy that ran is always simulated first.
        progress: called with each policy before it is simulated.
        last_s: how many seconds at the end of the run the reports are about; the simulation always
            begins with the run.

    Raises:
        ConfigRefused: there is no recording, or a policy does not run on Spark.
    """
    recording = read_recording(path)
    chosen = [Spelled(text) for text in policies]
    for policy in chosen:
        refuse_off_spark(policy.make())
    since_s = recording.turns[-1].event.at_s - last_s if recording.turns else -inf
    measured, costs = measured_report(recording, since_s), fitted_costs(recording)
    progress(recording.settings.policy)
    reports = [simulated_report(recording, costs, since_s=since_s)]
    for policy in chosen:
        if policy.text != recording.settings.policy:
            progress(policy.text)
            reports.append(simulated_report(recording, costs, policy, since_s))
    calibration = tuple(
        Calibration(was.name, was.response_s.mean, would_be.response_s.mean)
        for was, would_be in zip(measured.classes, reports[0].classes, strict=True)
    )
    difference = difference_of(recording, decisions(recording))
    return Replay(
        measured, tuple(reports), calibration, costs,
        same_decisions=not difference, difference=difference,
    )  # fmt: skip


def decisions(recording: Recording) -> list[list[BoxCall]]:
    """Return the calls that a new scheduler starts, turn by turn, on the recorded events."""
    scheduler = _scheduler(recording, Spelled(recording.settings.policy))
    calls = []
    for turn in recording.turns:
        event = turn.event
        if isinstance(event, PolicyChanged):
            event = replace(event, policy=Spelled(event.policy).make())
        scheduler.hear(event)
        calls.append(scheduler.plan(turn.planned_at_s))
    return calls


def measured_report(recording: Recording, since_s: float = -inf) -> Report:
    """Return the report of a recorded run, as measured, without results before an instant."""
    network = recording.network
    table = unit_table(units_of(network), recording.settings.known)
    statistics, metrics = Statistics(table), RunMetrics(network, table)
    for turn in recording.turns:
        event = turn.event
        if isinstance(event, NetworkChanged):
            before = places_before(event.network.places, network.places)
            network = event.network
            table = grown(table, units_of(network), event.known, before)
            statistics = statistics.moved(table, before)
            metrics.change(network, table)
        if not _is_before(event, since_s):
            metrics.hear(event)
        event = in_rows(event, network.places)
        if isinstance(event, StepFinished):
            statistics.learn(table, event)
    return Report.of(f"{recording.settings.policy}, measured", metrics)


def simulated_report(
    recording: Recording,
    costs: CallCosts,
    policy: Spelled | None = None,
    since_s: float = -inf,
) -> Report:
    """Return the report of a simulation under a policy, or under those that ran, when they ran.

    Args:
        since_s: results before this instant are left out of the report.
    """
    chosen = policy or Spelled(recording.settings.policy)
    happenings = list(_happenings(recording, changes_policy=policy is None))
    engine = ReplayEngine(
        recording.last_network, happenings, _first_trains(recording), _outputs(recording), costs,
        ends_at_s=_ends_at_s(recording), tuple_bytes=_tuple_bytes(recording),
        paths=recording.paths,
    )  # fmt: skip
    scheduler = _scheduler(recording, chosen, engine.shed)
    metrics = RunMetrics(recording.network, scheduler.table)

    def hear(event: Event) -> None:
        if metrics.table is not scheduler.table:
            metrics.change(scheduler.network, scheduler.table)
        if not _is_before(event, since_s):
            metrics.hear(event)

    run(scheduler, Observed(engine, [hear]))
    return Report.of(chosen.text, metrics)


def _is_before(event: Event, since_s: float) -> bool:
    return isinstance(event, StepFinished) and event.at_s < since_s


def _scheduler(recording: Recording, policy: Spelled, shed: Commit | None = None) -> Scheduler:
    settings, network = recording.settings, recording.network
    table = unit_table(units_of(network), settings.known)
    return Scheduler(
        network, table, policy.make(),
        workers=settings.workers, train_tuples=settings.train_tuples,
        most_fused=settings.most_fused, call_bytes=settings.call_bytes,
        call_s=settings.call_s,
        shed=shed, statistics=Statistics(table),
        first_trains=settings.first_trains, cursors=np.array(settings.cursors, dtype=np.int64),
        groups=settings.groups, shared_priority=settings.shared_priority, lane=settings.lane,
    )  # fmt: skip


def _happenings(recording: Recording, *, changes_policy: bool) -> list[Event]:
    """Return the events that would have happened under any policy."""
    kinds = (TrainArrived, NetworkChanged, QueryStopped, UnitFailed)
    network = recording.last_network
    queues = set(map(network.stream_number, producers(recording.paths.values())))
    events: list[Event] = []
    for turn in recording.turns:
        if isinstance(turn.event, TrainArrived) and turn.event.stream in queues:
            continue  # when it arrives depends on when the first segment runs
        if isinstance(turn.event, kinds):
            events.append(turn.event)
        elif isinstance(turn.event, PolicyChanged) and changes_policy:
            events.append(replace(turn.event, policy=Spelled(turn.event.policy).make()))
    return events


def _first_trains(recording: Recording) -> list[int]:
    firsts = dict(enumerate(recording.settings.first_trains))
    for turn in recording.turns:
        if isinstance(turn.event, NetworkChanged):
            firsts.update(turn.event.first_trains)
    return [firsts[stream] for stream in range(len(recording.last_network.streams))]


def _trains(recording: Recording) -> list[Floats]:
    """Return, by stream, the number of tuples of every train."""
    tuples: list[list[int]] = [[] for _ in recording.last_network.streams]
    for turn in recording.turns:
        if isinstance(turn.event, TrainArrived):
            tuples[turn.event.stream] += turn.event.tuples.tolist()
    return [np.array(counts, dtype=np.float64) for counts in tuples]


def _tuple_bytes(recording: Recording) -> dict[int, float]:
    events = [turn.event for turn in recording.turns if isinstance(turn.event, TrainArrived)]
    return {event.stream: event.tuple_bytes for event in events}


def _outputs(recording: Recording) -> dict[int, ResultCounts]:
    """Return, by unit, how many results it makes of the tuples of its stream.

    A tuple makes as many results as the recorded call that took its train made per tuple. If no
    call took the train, or it was not recorded, it is as many as the query made per tuple in all.
    """
    network, trains, firsts = recording.last_network, _trains(recording), _first_trains(recording)
    streams = {unit: network.stream_number(path.stream) for unit, path in recording.paths.items()}
    shares = {unit: np.full(len(trains[stream]), nan) for unit, stream in streams.items()}
    tuples_in, tuples_out = dict.fromkeys(streams, 0), dict.fromkeys(streams, 0)
    for step in _steps(recording):
        call = step.call
        first = firsts[call.stream]
        sheds = step.shed or [0] * len(call.units)
        for unit, out, shed in zip(call.units, step.tuples_out, sheds, strict=True):
            if unit not in step.failed and (left := call.tuples - shed):
                shares[unit][call.first_train - first : call.end_train - first] = out / left
                tuples_in[unit] += left
                tuples_out[unit] += out
    outputs = {}
    for unit, share in shares.items():
        usual = tuples_out[unit] / max(tuples_in[unit], 1)
        tuples = np.concatenate([[0.0], trains[streams[unit]], [FURTHER]])
        rates = np.append(np.where(np.isnan(share), usual, share), usual)
        results = np.cumsum(np.append(0.0, rates * tuples[1:]))
        outputs[unit] = ResultCounts(np.cumsum(tuples), results)
    return outputs


def _ends_at_s(recording: Recording) -> float:
    """Return when a recorded run broke off; ∞ if everything that arrived was processed."""
    network, firsts = recording.last_network, _first_trains(recording)
    ends = [first + len(trains) for first, trains in zip(firsts, _trains(recording), strict=True)]
    cursors = dict(zip(recording.network.places, recording.settings.cursors, strict=True))
    out: set[int] = set()
    for turn in recording.turns:
        match turn.event:
            case NetworkChanged() as event:
                cursors.update(event.cursors)
                out.difference_update(event.cursors)
            case QueryStopped() | UnitFailed() as event:
                out.add(event.unit)
            case StepFinished() as event:
                done = set(event.call.units).difference(event.failed)
                cursors.update(dict.fromkeys(done, event.call.end_train))
    streams = {unit: network.stream_number(path.stream) for unit, path in recording.paths.items()}
    waits = any(train < ends[streams[unit]] for unit, train in cursors.items() if unit not in out)
    return recording.turns[-1].event.at_s if waits and recording.turns else inf


def _steps(recording: Recording) -> list[StepFinished]:
    return [turn.event for turn in recording.turns if isinstance(turn.event, StepFinished)]
