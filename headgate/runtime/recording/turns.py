"""The turns of a run's loop, and each of them as plain data: the lines of a recording."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headgate.model.arrays import Floats
from headgate.model.events import (
    ClockTicked,
    Event,
    NetworkChanged,
    Overloaded,
    PolicyChanged,
    QueryStopped,
    StepFinished,
    TrainArrived,
    UnitDelayed,
    UnitFailed,
)
from headgate.model.network import Network
from headgate.model.plan import BoxCall
from headgate.runtime.recording.network_data import (
    figures_of,
    path_data,
    path_of,
    statistics_of,
    stream_data,
    stream_of,
)

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


def turn_data(turn: Turn) -> list[Any]:
    """Return a turn as data."""
    kind, *values = _event_data(turn.event, turn.exact)
    calls = [
        [c.number, c.units, c.stream, c.first_train, c.end_train, c.tuples, at_s, c.lane]
        for c, at_s in turn.calls
    ]
    return [kind, turn.event.at_s, values, turn.planned_at_s, calls]


class TurnReader:
    """A reader of turns from their data. It keeps the calls and the network for later turns."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._calls: dict[int, BoxCall] = {}

    def turn(self, data: Sequence[Any]) -> Turn:
        """Return the next turn."""
        kind, at_s, values, planned_at_s, calls = data
        turn = Turn(self._event(kind, at_s, values), planned_at_s)
        # Old recordings do not have the lane of calls.
        for number, units, stream, first, end, tuples, started_at_s, *lane in calls:
            call = BoxCall(number, tuple(units), stream, first, end, tuples, *lane)
            self._calls[number] = call
            turn.calls.append((call, started_at_s))
        return turn

    def _event(self, kind: str, at_s: float, values: Sequence[Any]) -> Event:
        match kind:
            case "train":
                return _train(at_s, values)
            case "step":
                number, seconds, outs, failed, lane, responses, instants = values
                return StepFinished(
                    at_s, self._calls[number], seconds, tuple(outs),
                    tuple(map(_expanded, responses)), failed=tuple(failed), lane=lane,
                    instants=tuple(instants),
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
            case "network":
                return self._changed(at_s, values)
            case _:
                return ClockTicked(at_s)

    def _changed(self, at_s: float, values: Sequence[Any]) -> NetworkChanged:
        # Old recordings have neither kept trains nor the class that readers give a producer.
        streams, paths, starts, cursors, figures, groups, *more = values
        kept_trains, lifted, dropped = [*more, [], [], []][:3]
        before = self._network
        all_paths = list(before.paths)
        for (unit, _), data in zip(cursors, paths, strict=True):
            all_paths[unit : unit + 1] = [path_of(data)]
        for unit, query_class, sheds in lifted:
            query = replace(all_paths[unit].query, query_class=query_class, allows_shedding=sheds)
            all_paths[unit] = replace(all_paths[unit], query=query)
        self._network = replace(
            before, streams=(*before.streams, *map(stream_of, streams)), paths=tuple(all_paths),
            dropped=frozenset(dropped),
        )  # fmt: skip
        statistics = statistics_of(figures)
        trains = {train[0]: _train(at_s, train) for train in kept_trains}
        return NetworkChanged(
            at_s, self._network, dict(cursors), dict(starts), statistics, tuple(groups), trains
        )


def _event_data(event: Event, exact: bool) -> list[Any]:
    match event:
        case TrainArrived():
            return ["train", *_train_data(event)]
        case StepFinished():
            responses = [condensed(values, exact=exact) for values in event.responses_s]
            return [
                "step", event.call.number, event.seconds, event.tuples_out, event.failed,
                event.lane, responses, event.instants,
            ]  # fmt: skip
        case UnitDelayed():
            return ["delayed", event.unit, event.until_s, str(event.error)]
        case UnitFailed():
            return ["failed", event.unit, event.call.number, str(event.error)]
        case QueryStopped():
            return ["stopped", event.unit]
        case Overloaded():
            return ["overloaded", event.until_s]
        case PolicyChanged():
            return ["policy", event.policy.spelled or event.policy.name]
        case NetworkChanged():
            streams = [stream_data(event.network.streams[number]) for number in event.first_trains]
            paths = [path_data(event.network.paths[unit]) for unit in event.cursors]
            starts, cursors = list(event.first_trains.items()), list(event.cursors.items())
            figures = figures_of(event.known)
            kept_trains = [_train_data(train) for train in event.kept.values()]
            lifted = [
                [unit, path.query.query_class, path.query.allows_shedding]
                for unit, path in enumerate(event.network.paths)
                if path.into is not None
            ]
            return [
                "network", streams, paths, starts, cursors, figures, event.groups, kept_trains,
                lifted, sorted(event.network.dropped),
            ]  # fmt: skip
        case _:
            return ["tick"]


def _train_data(event: TrainArrived) -> list[Any]:
    arrays = (event.tuples, event.head_arrived_at_s, event.mean_arrived_at_s)
    return [event.stream, *(array.tolist() for array in arrays), event.tuple_bytes]


def _train(at_s: float, values: Sequence[Any]) -> TrainArrived:
    stream, tuples, heads, means, tuple_bytes = values
    return TrainArrived(
        at_s, stream, np.array(tuples, dtype=np.int64), np.array(heads), np.array(means),
        tuple_bytes=tuple_bytes,
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
