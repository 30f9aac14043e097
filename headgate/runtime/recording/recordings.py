"""Recordings: the events that a run's scheduler received, when it planned, what it started.

A recording is a folder with a file for each run. The first line of a file holds the network, the
settings, and the statistics at the start. Then comes a line for each turn of the loop: the event,
the instant of the plan, the calls that were started. The last line, of a run that was stopped
cleanly, holds the statistics at the end. Numbers are read back exactly as they were written.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import inf
from pathlib import Path as File
from typing import Any

import numpy as np

from headgate.errors import ConfigRefused
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
from headgate.model.network import Network, Path
from headgate.model.operator import Operator
from headgate.model.plan import ALL, BoxCall, Lane
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import Query, QueryClass, QueryStatistics
from headgate.model.stream import Stream
from headgate.model.units import Sharing

FOLDER, FORMAT = "recording", 3

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


@dataclass(frozen=True)
class Settings:
    """The settings of a scheduler, besides the network.

    Args:
        known: the statistics of the queries at the start.
    """

    policy: str
    workers: int
    train_tuples: int
    most_fused: int
    call_bytes: float
    first_trains: tuple[int, ...]
    cursors: tuple[int, ...]
    known: Mapping[str, QueryStatistics]
    groups: tuple[int, ...] = ()
    sharing: Sharing = "max"  # what runs used before it could be chosen
    lane: Lane | None = None


@dataclass(frozen=True)
class Recording:
    """One recorded run.

    Args:
        network: the network at the start.
        learned: the statistics of the queries at the end; empty if the run did not end cleanly.
    """

    file: File
    network: Network
    settings: Settings
    turns: tuple[Turn, ...]
    learned: Mapping[str, QueryStatistics]

    @cached_property
    def last_network(self) -> Network:
        """The network with everything that was added during the run."""
        changes = [t.event.network for t in self.turns if isinstance(t.event, NetworkChanged)]
        return changes[-1] if changes else self.network


def header_of(network: Network, settings: Settings) -> str:
    """Return the first line of a recording, without options and paths of sources and sinks."""
    streams = [_stream_data(stream) for stream in network.streams]
    paths = [_path_data(path) for path in network.paths]
    classes = [asdict(query_class) for query_class in network.classes]
    network_data = {"streams": streams, "classes": classes, "queries": paths}
    settings_data = {**asdict(settings), "known": _figures(settings.known)}
    settings_data["call_bytes"] = None if settings.call_bytes == inf else settings.call_bytes
    return _line({"format": FORMAT, "network": network_data, "settings": settings_data})


def line_of(turn: Turn) -> str:
    """Return the line of one turn."""
    kind, *values = _event_data(turn.event, turn.exact)
    calls = [
        [c.number, c.units, c.stream, c.first_train, c.end_train, c.tuples, at_s, c.lane]
        for c, at_s in turn.calls
    ]
    return _line([kind, turn.event.at_s, values, turn.planned_at_s, calls])


def footer_of(learned: Mapping[str, QueryStatistics]) -> str:
    """Return the last line of a run that ends cleanly."""
    return _line({"learned": _figures(learned)})


def read_recording(path: str | File) -> Recording:
    """Read one run: a file, or the last file of a recording or of a state directory.

    A line that a crash has left unfinished is dropped, with all that follows it.

    Raises:
        ConfigRefused: there is no recording, or it has another format.
    """
    file = _file_of(File(path))
    lines = _lines(file)
    first = next(lines, None)
    if not isinstance(first, dict) or first.get("format") != FORMAT:
        expected = f"a recording of format {FORMAT}"
        raise ConfigRefused(path=str(path), key="recording", value=file.name, expected=expected)
    network, settings = _network(first["network"]), _settings(first["settings"])
    reader, turns, learned = _Reader(network), [], {}
    for line in lines:
        if isinstance(line, dict):
            learned = _statistics(line["learned"])
        else:
            turns.append(reader.turn(line))
    return Recording(file, network, settings, tuple(turns), learned)


def _file_of(path: File) -> File:
    if path.is_file():
        return path
    for folder in (path / FOLDER, path):
        if files := sorted(folder.glob("*.jsonl")):
            return files[-1]
    expected = "a recording, or a state directory with one: `headgate run --record` makes it"
    raise ConfigRefused(path=str(path), key="recording", value=None, expected=expected)


def _lines(file: File) -> Iterator[Any]:
    with file.open(encoding="utf-8") as text:
        for line in text:
            if not line.endswith("\n"):
                return
            try:
                yield json.loads(line)
            except ValueError:
                return


def _line(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"), default=lambda number: number.item()) + "\n"


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
            streams = [_stream_data(event.network.streams[number]) for number in event.first_trains]
            paths = [_path_data(event.network.paths[unit]) for unit in event.cursors]
            starts, cursors = list(event.first_trains.items()), list(event.cursors.items())
            figures = _figures(event.known)
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


class _Reader:
    """A parser of lines into turns, with the calls and the network that later lines refer to."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._calls: dict[int, BoxCall] = {}

    def turn(self, line: Sequence[Any]) -> Turn:
        kind, at_s, values, planned_at_s, calls = line
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
            all_paths[unit : unit + 1] = [_path(data)]
        for unit, query_class, sheds in lifted:
            query = replace(all_paths[unit].query, query_class=query_class, allows_shedding=sheds)
            all_paths[unit] = replace(all_paths[unit], query=query)
        self._network = replace(
            before, streams=(*before.streams, *map(_stream, streams)), paths=tuple(all_paths),
            dropped=frozenset(dropped),
        )  # fmt: skip
        statistics = _statistics(figures)
        trains = {train[0]: _train(at_s, train) for train in kept_trains}
        return NetworkChanged(
            at_s, self._network, dict(cursors), dict(starts), statistics, tuple(groups), trains
        )


def _stream_data(stream: Stream) -> dict[str, Any]:
    keys = ("name", "format", "trigger_s", "ingest", "tuple_bytes", "of")
    return {key: getattr(stream, key) for key in keys}


def _stream(data: Mapping[str, Any]) -> Stream:
    return Stream(**{**data, "of": tuple(data.get("of", ()))})


def _path_data(path: Path) -> dict[str, Any]:
    query = path.query
    return {
        "name": query.name, "sql": query.sql, "class": query.query_class, "stream": path.stream,
        "weight": query.weight, "deadline_s": query.deadline_s,
        "qos": None if query.qos is None else query.qos.points, "shed": query.allows_shedding,
        "operators": [asdict(operator) for operator in path.operators], "columns": path.columns,
        "into": path.into, "first_of": path.first_of,
    }  # fmt: skip


def _path(data: Mapping[str, Any]) -> Path:
    points = data["qos"]
    query = Query(
        name=data["name"], sql=data["sql"], query_class=data["class"], weight=data["weight"],
        deadline_s=data["deadline_s"], allows_shedding=data["shed"],
        qos=None if points is None else QoSGraph(tuple((x, y) for x, y in points)),
    )  # fmt: skip
    operators = tuple(
        Operator(**{**operator, "expressions": tuple(operator["expressions"])})
        for operator in data["operators"]
    )
    return Path(
        query=query, stream=data["stream"], operators=operators, columns=tuple(data["columns"]),
        into=data.get("into"), first_of=data.get("first_of"),
    )  # fmt: skip


def _network(data: Mapping[str, Any]) -> Network:
    return Network(
        tuple(map(_stream, data["streams"])),
        tuple(QueryClass(**query_class) for query_class in data["classes"]),
        tuple(map(_path, data["queries"])),
    )


def _settings(data: Mapping[str, Any]) -> Settings:
    values = {
        **data,
        "call_bytes": inf if data["call_bytes"] is None else data["call_bytes"],
        "train_tuples": data["train_tuples"] or ALL,
        "first_trains": tuple(data["first_trains"]),
        "cursors": tuple(data["cursors"]),
        "groups": tuple(data["groups"]),
        "known": _statistics(data["known"]),
    }
    return Settings(**values)


def _figures(statistics: Mapping[str, QueryStatistics]) -> dict[str, list[Any]]:
    return {
        name: [figures.cost_s, figures.selectivity, figures.overhead_s, figures.lane]
        for name, figures in statistics.items()
    }


def _statistics(data: Mapping[str, Sequence[Any]]) -> dict[str, QueryStatistics]:
    return {
        name: QueryStatistics(
            cost_s=cost_s, selectivity=selectivity, overhead_s=overhead_s, lane=(*lane, "driver")[0]
        )
        for name, (cost_s, selectivity, overhead_s, *lane) in data.items()
    }
