"""The turns of a run's loop, and each of them as plain data: the lines of a recording."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from pydantic import TypeAdapter

from headgate.model.arrays import Floats
from headgate.model.events import (
    ClockTicked,
    Event,
    NetworkChanged,
    Overloaded,
    PolicyChanged,
    QueryStopped,
    SourcePolled,
    StepFinished,
    TrainArrived,
    UnitDelayed,
    UnitFailed,
)
from headgate.model.network.network import Network
from headgate.model.plan import BoxCall, Lane
from headgate.model.qos_graph import QoSGraph
from headgate.runtime.recording.network_data import PathData, RecordedStatistics, StreamData

Points = tuple[tuple[float, float], ...]
"""The points of a QoS graph: latency and utility."""

POINTS = 32
"""Most response times kept for a query in a call, unless the policy looks at all of them."""


@dataclass
class Turn:
    """One turn of the loop: the event, when the plan was made, the calls and when they started.

    In a recorded `PolicyChanged`, the policy is its text.
    """

    event: Event
    planned_at_s: float = 0.0
    calls: list[tuple[BoxCall, float]] = field(default_factory=list)
    exact: bool = False
    """Whether every single response time must be kept."""


class CallData(NamedTuple):
    """A call. Old recordings do not have the lane."""

    number: int
    units: tuple[int, ...]
    stream: int
    first_train: int
    end_train: int
    tuples: int
    started_at_s: float
    lane: Lane = "driver"


class TrainData(NamedTuple):
    """What is written of `TrainArrived`."""

    stream: int
    tuples: list[int]
    head_arrived_at_s: list[float]
    mean_arrived_at_s: list[float]
    tuple_bytes: float


class StepData(NamedTuple):
    """What is written of `StepFinished`; response times and tardiness are pairs of value and count.

    Old recordings have neither tardiness nor tuples that were shed nor CPU time.
    """

    call: int
    seconds: float
    tuples_out: tuple[int, ...]
    failed: tuple[int, ...]
    lane: str
    responses_s: list[list[list[float]]]
    instants: tuple[int, ...]
    tardiness_s: tuple[list[list[float]], ...] = ()
    shed: tuple[int, ...] = ()
    cpu_s: float | None = None


class NetworkChange(NamedTuple):
    """What is written of `NetworkChanged`: what is new.

    Old recordings have neither kept trains nor the class that readers give a producer (`lifted`:
    unit, class, whether it allows shedding) nor the names of dropped queries. In recordings of
    earlier versions, these are the names of all queries that were dropped so far. `changed` has
    unit, class, weight, deadline and QoS graph of queries for which one of these has changed.
    """

    streams: list[StreamData]
    paths: list[PathData]
    first_trains: list[tuple[int, int]]
    cursors: list[tuple[int, int]]
    known: dict[str, Any]
    groups: tuple[int, ...]
    kept: tuple[TrainData, ...] = ()
    lifted: tuple[tuple[int, str, bool], ...] = ()
    dropped: tuple[str, ...] = ()
    changed: tuple[tuple[int, str, float, float | None, Points | None], ...] = ()


class TurnData(NamedTuple):
    """A line of a recording; `values` depend on the kind of the event."""

    kind: str
    at_s: float
    values: Sequence[Any]
    planned_at_s: float
    calls: list[CallData]


_TURN, _TRAIN, _STEP = TypeAdapter(TurnData), TypeAdapter(TrainData), TypeAdapter(StepData)
_CHANGE, _KNOWN = TypeAdapter(NetworkChange), TypeAdapter(dict[str, RecordedStatistics])


def turn_data(turn: Turn) -> TurnData:
    """Return a turn as data."""
    kind, values = _event_data(turn.event, turn.exact)
    calls = [
        CallData(c.number, c.units, c.stream, c.first_train, c.end_train, c.tuples, at_s, c.lane)
        for c, at_s in turn.calls
    ]
    return TurnData(kind, turn.event.at_s, values, turn.planned_at_s, calls)


class TurnReader:
    """A reader of turns from their data. It keeps the calls and the network for later turns."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._calls: dict[int, BoxCall] = {}

    def turn(self, line: Sequence[Any]) -> Turn:
        """Return the next turn."""
        data = _TURN.validate_python(line)
        turn = Turn(self._event(data.kind, data.at_s, data.values), data.planned_at_s)
        for number, units, stream, first, end, tuples, started_at_s, lane in data.calls:
            call = BoxCall(number, units, stream, first, end, tuples, lane)
            self._calls[number] = call
            turn.calls.append((call, started_at_s))
        return turn

    def _event(self, kind: str, at_s: float, values: Sequence[Any]) -> Event:
        match kind:
            case "train":
                return _train(at_s, _TRAIN.validate_python(values))
            case "step":
                step = _STEP.validate_python(values)
                return StepFinished(
                    at_s, self._calls[step.call], step.seconds, step.tuples_out,
                    tuple(map(_expanded, step.responses_s)), failed=step.failed, lane=step.lane,
                    instants=step.instants, tardiness_s=tuple(map(_expanded, step.tardiness_s)),
                    shed=step.shed, cpu_s=step.cpu_s,
                )  # fmt: skip
            case "delayed":
                return UnitDelayed(at_s, values[0], values[1], RuntimeError(values[2]))
            case "failed":
                call = self._calls[values[1]]
                return UnitFailed(at_s, values[0], call, RuntimeError(values[2]))
            case "stopped":
                return QueryStopped(at_s, values[0])
            case "overloaded":
                return Overloaded(at_s, values[0])
            case "policy":
                return PolicyChanged(at_s, values[0])
            case "poll":
                return SourcePolled(at_s, *values)
            case "network":
                return self._changed(at_s, _CHANGE.validate_python(values))
            case _:
                return ClockTicked(at_s)

    def _changed(self, at_s: float, change: NetworkChange) -> NetworkChanged:
        before = self._network
        paths = {
            number: before.paths[place]
            for number, place in before.places.items()
            if before.paths[place].query.name not in change.dropped
        }
        for (number, _), path in zip(change.cursors, change.paths, strict=True):
            paths[number] = path.path()
        for number, query_class, weight, deadline_s, points in change.changed:
            query = replace(
                paths[number].query, query_class=query_class, weight=weight,
                deadline_s=deadline_s, qos=None if points is None else QoSGraph(points),
            )  # fmt: skip
            paths[number] = replace(paths[number], query=query)
        for number, query_class, sheds in change.lifted:
            if number in paths:  # in recordings of earlier versions, it may be a dropped query
                query = paths[number].query
                query = replace(query, query_class=query_class, allows_shedding=sheds)
                paths[number] = replace(paths[number], query=query)
        self._network = replace(
            before, paths=tuple(paths.values()), ids=tuple(paths),
            streams=(*before.streams, *(stream.stream() for stream in change.streams)),
        )  # fmt: skip
        return NetworkChanged(
            at_s, self._network, dict(change.cursors), dict(change.first_trains),
            _KNOWN.validate_python(change.known), change.groups,
            {train.stream: _train(at_s, train) for train in change.kept}, change.dropped,
            tuple(number for number, *_ in change.changed),
        )  # fmt: skip


def _event_data(event: Event, exact: bool) -> tuple[str, Sequence[Any]]:
    """Return the kind of an event and its values."""
    match event:
        case TrainArrived():
            return "train", _train_data(event)
        case StepFinished():
            # A replay has the trains of the timeline, which end the idle waiting of unions.
            responses = [
                condensed(event.scheduled_s(place), exact=exact)
                for place in range(len(event.responses_s))
            ]
            return "step", StepData(
                event.call.number, event.seconds, event.tuples_out, event.failed, event.lane,
                responses, event.instants,
                tuple(condensed(values, exact=exact) for values in event.tardiness_s), event.shed,
                event.cpu_s,
            )  # fmt: skip
        case UnitDelayed():
            return "delayed", (event.unit, event.until_s, str(event.error))
        case UnitFailed():
            return "failed", (event.unit, event.call.number, str(event.error))
        case QueryStopped():
            return "stopped", (event.unit,)
        case Overloaded():
            return "overloaded", (event.until_s,)
        case PolicyChanged():
            return "policy", (event.policy.spelled or event.policy.name,)
        case SourcePolled():
            return "poll", (event.stream, event.seconds)
        case NetworkChanged():
            return "network", _change(event)
        case _:
            return "tick", ()


def _change(event: NetworkChanged) -> NetworkChange:
    network = event.network
    return NetworkChange(
        streams=[
            StreamData.model_validate(network.streams[number]) for number in event.first_trains
        ],
        paths=[PathData.of(network.path_of(number)) for number in event.cursors],
        first_trains=list(event.first_trains.items()),
        cursors=list(event.cursors.items()),
        known=_KNOWN.dump_python(dict(event.known)),
        groups=event.groups,
        kept=tuple(_train_data(train) for train in event.kept.values()),
        lifted=tuple(
            (number, path.query.query_class, path.query.allows_shedding)
            for number, path in zip(network.places, network.paths, strict=True)
            if path.into is not None
        ),
        dropped=event.dropped,
        changed=tuple(
            (number, query.query_class, query.weight, query.deadline_s,
             None if query.qos is None else query.qos.points)
            for number in event.changed
            for query in (network.path_of(number).query,)
        ),
    )  # fmt: skip


def _train_data(event: TrainArrived) -> TrainData:
    return TrainData(
        event.stream, event.tuples.tolist(), event.head_arrived_at_s.tolist(),
        event.mean_arrived_at_s.tolist(), event.tuple_bytes,
    )  # fmt: skip


def _train(at_s: float, data: TrainData) -> TrainArrived:
    return TrainArrived(
        at_s, data.stream, np.array(data.tuples, dtype=np.int64),
        np.array(data.head_arrived_at_s), np.array(data.mean_arrived_at_s),
        tuple_bytes=data.tuple_bytes,
    )  # fmt: skip


def condensed(values: Floats, *, exact: bool) -> list[list[float]]:
    """Return values as pairs of value and count: runs of equal values, or means of a few groups.

    >>> condensed(np.array([0.5, 0.5, 0.25]), exact=True)
    [[0.5, 2], [0.25, 1]]
    """
    if not len(values):
        return []
    ends = np.append(np.flatnonzero(np.diff(values)) + 1, len(values))
    if exact or len(ends) <= POINTS:
        counts = np.diff(ends, prepend=0)
        return [list(pair) for pair in zip(values[ends - 1].tolist(), counts.tolist(), strict=True)]
    firsts = len(values) * np.arange(POINTS) // POINTS
    counts = np.diff(np.append(firsts, len(values)))
    means = np.round(np.add.reduceat(np.sort(values), firsts) / counts, 6)
    return [list(pair) for pair in zip(means.tolist(), counts.tolist(), strict=True)]


def _expanded(pairs: Sequence[Sequence[float]]) -> Floats:
    if not pairs:
        return np.zeros(0)
    values, counts = np.array(pairs, dtype=np.float64).T
    return np.repeat(values, counts.astype(np.int64))
