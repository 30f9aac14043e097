"""Which calls have run lately and when trains came in: what explains why a query waited."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import numpy as np

from headgate.model.arrays import Floats
from headgate.model.events import (
    Event,
    NetworkChanged,
    Overloaded,
    QueryStopped,
    StepFinished,
    StepStarted,
    TrainArrived,
    UnitDelayed,
    UnitFailed,
)
from headgate.model.plan import BoxCall
from headgate.runtime.run.decisions import Decisions, RankingOf

KEPT_S = 3600.0
MOST_BYTES = 100_000_000

CALL_BYTES, UNIT_BYTES, TRAIN_BYTES = 700, 110, 64
"""What a call, each of its units and a train take at most; sys.getsizeof of their parts says so."""


@dataclass(slots=True)
class CallRecord:
    """A call: when it began and ended, and the slowest result of each unit.

    Args:
        slowest_s: by unit, the longest response time; only units with results.
        idle_s: by unit, how long that result waited for other streams; only of unions.
        failed: units that have consumed nothing.
    """

    call: BoxCall
    policy: str
    begun_at_s: float
    ended_at_s: float = inf
    commit_s: float = 0.0
    lane: str = ""
    slowest_s: dict[int, float] = field(default_factory=dict)
    failed: tuple[int, ...] = ()
    idle_s: dict[int, float] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        return CALL_BYTES + UNIT_BYTES * len(self.call.units)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Trains of a stream that became durable together.

    Args:
        first: the number of the first train.
        heads_s: by train, when its first tuple arrived.
        bounds: the places of trains without tuples.
    """

    at_s: float
    first: int
    heads_s: Floats
    bounds: tuple[int, ...] = ()


class LoggedTrain(NamedTuple):
    """A train of a stream.

    Args:
        head_at_s: when its first tuple arrived.
        in_log_at_s: when its log had it.
        is_bound: whether it has no tuples, and says how far a silent stream has come.
    """

    number: int
    head_at_s: float
    in_log_at_s: float
    is_bound: bool


class CallLog:
    """The calls and arrivals of the last hour, in at most 100 MB; the oldest are dropped first.

    Args:
        first_trains: by stream, the number of the first train that will arrive.
        decisions: what decided the calls.
    """

    def __init__(self, first_trains: Sequence[int], decisions: Decisions | None = None) -> None:
        self.decisions = Decisions() if decisions is None else decisions
        self._calls: deque[CallRecord] = deque()
        self._under_way: dict[int, CallRecord] = {}
        self._next_train = dict(enumerate(first_trains))
        self._arrivals: dict[int, deque[Arrivals]] = {}
        self._delays: deque[tuple[int, float, float]] = deque()
        self._halts: deque[tuple[int, float, float]] = deque()
        self._halted_at_s: dict[int, float] = {}
        self._full: deque[tuple[float, float]] = deque()
        self._bytes = 0

    def hear(self, event: Event, policy: str) -> None:
        """Take note of an event.

        Args:
            policy: the name of the policy that decides.
        """
        match event:
            case StepStarted():
                record = CallRecord(event.call, policy, event.at_s)
                self._under_way[event.call.number] = record
                self._calls.append(record)
                self._bytes += record.size_bytes
                self._forget(event.at_s)
            case StepFinished():
                self._finish(event)
            case TrainArrived():
                self._arrive(event)
                self._forget(event.at_s)
            case NetworkChanged():
                self._next_train |= event.first_trains
                for unit in event.cursors:
                    if unit in self._halted_at_s:
                        self._halts.append((unit, self._halted_at_s.pop(unit), event.at_s))
                for unit in self._halted_at_s.keys() - event.network.places.keys():
                    del self._halted_at_s[unit]  # it was dropped
            case UnitDelayed():
                self._delays.append((event.unit, event.at_s, event.until_s))
            case QueryStopped() | UnitFailed():
                # A query that is resumed is stopped once more before it begins again.
                self._halted_at_s.setdefault(event.unit, event.at_s)
            case Overloaded():
                self._full.append((event.at_s, event.until_s))

    def calls(self) -> Iterator[CallRecord]:
        """Yield the calls, oldest first."""
        yield from list(self._calls)

    def delays(self, unit: int) -> list[tuple[float, float]]:
        """Return the periods in which a unit waited to be tried again."""
        return [(begin_s, end_s) for other, begin_s, end_s in list(self._delays) if other == unit]

    def halts(self, unit: int) -> list[tuple[float, float]]:
        """Return the periods in which a unit was paused, stopped or had failed."""
        return [(begin_s, end_s) for other, begin_s, end_s in list(self._halts) if other == unit]

    def full(self) -> list[tuple[float, float]]:
        """Return the periods in which a budget was used up, so that sources were not polled."""
        return list(self._full)

    def arrival_after(self, stream: int, arrived_at_s: float) -> float | None:
        """Return when the first train that may have the tuple of an instant was in a log."""
        for arrivals in list(self._arrivals.get(stream, ())):
            if arrivals.at_s >= arrived_at_s and float(arrivals.heads_s[0]) <= arrived_at_s + 1e-6:
                return arrivals.at_s
        return None

    def train_at(self, stream: int, arrived_at_s: float, call: BoxCall) -> LoggedTrain | None:
        """Return the train of a call that has the tuple of an instant."""
        arrived = [
            train for train in self._trains_of(stream, call)
            if train.head_at_s <= arrived_at_s + 1e-6
        ]  # fmt: skip
        return arrived[-1] if arrived else None

    def train_near(self, stream: int, arrived_at_s: float, call: BoxCall) -> LoggedTrain | None:
        """Return the train of a call that arrived nearest to an instant."""
        trains = self._trains_of(stream, call)
        return min(trains, key=lambda train: abs(train.head_at_s - arrived_at_s), default=None)

    def _trains_of(self, stream: int, call: BoxCall) -> list[LoggedTrain]:
        """Return the trains of a call, in order, as far as they are recorded."""
        return [
            LoggedTrain(
                arrivals.first + place, float(head_at_s), arrivals.at_s, place in arrivals.bounds
            )
            for arrivals in list(self._arrivals.get(stream, ()))
            if arrivals.first < call.end_train
            for place, head_at_s in enumerate(arrivals.heads_s)
            if call.first_train <= arrivals.first + place < call.end_train
        ]

    def to_dict(self, encoded: Callable[[bytes], str]) -> dict[str, Any]:
        """Return all of it as plain data.

        Args:
            encoded: spells bytes as text.
        """
        calls = [
            [call.number, call.units, call.stream, call.first_train, call.end_train, call.tuples,
             record.policy, record.begun_at_s, record.ended_at_s, record.commit_s, record.lane,
             list(record.slowest_s.items()), record.failed, list(record.idle_s.items())]
            for record in self._calls
            for call in (record.call,) if record.ended_at_s < inf
        ]  # fmt: skip
        arrivals = {
            stream: [
                [entry.at_s, entry.first, entry.heads_s.tolist(), entry.bounds] for entry in entries
            ]
            for stream, entries in self._arrivals.items()
        }
        return {
            "calls": calls, "arrivals": arrivals, "delays": list(self._delays),
            "halts": list(self._halts), "full": list(self._full),
            "decisions": self.decisions.to_dict(encoded),
        }  # fmt: skip

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], decoded: Callable[[str], bytes], ranking: RankingOf
    ) -> "CallLog":
        """Return the log whose `to_dict` this is."""
        log = cls((), Decisions.from_dict(data["decisions"], decoded, ranking))
        for (number, units, stream, first, end, tuples, policy, begun_at_s, ended_at_s, commit_s,
             lane, slowest_s, failed, idle_s) in data["calls"]:  # fmt: skip
            call = BoxCall(number, tuple(units), stream, first, end, tuples)
            log._calls.append(
                CallRecord(
                    call, policy, begun_at_s, ended_at_s, commit_s=commit_s, lane=lane,
                    slowest_s=dict(slowest_s), failed=tuple(failed), idle_s=dict(idle_s),
                )
            )  # fmt: skip
        for stream, entries in data["arrivals"].items():
            log._arrivals[int(stream)] = deque(
                Arrivals(at_s, first, np.array(heads_s), tuple(bounds))
                for at_s, first, heads_s, bounds in entries
            )
        for periods, key in ((log._delays, "delays"), (log._halts, "halts")):
            periods.extend((unit, begin_s, end_s) for unit, begin_s, end_s in data[key])
        log._full.extend((begin_s, end_s) for begin_s, end_s in data["full"])
        return log

    def _finish(self, event: StepFinished) -> None:
        record = self._under_way.pop(event.call.number, None)
        if record is None:
            return
        record.ended_at_s, record.commit_s = event.at_s, event.commit_s
        record.lane, record.failed = event.lane, event.failed
        for place, unit in enumerate(event.call.units):
            responses_s = event.responses_s[place]
            if len(responses_s):
                slowest = int(np.argmax(responses_s))
                record.slowest_s[unit] = float(responses_s[slowest])
                if event.idle_s and event.idle_s[place][slowest] > 0:
                    record.idle_s[unit] = float(event.idle_s[place][slowest])

    def _arrive(self, event: TrainArrived) -> None:
        first, count = self._next_train.get(event.stream, 0), len(event.tuples)
        self._next_train[event.stream] = first + count
        trains = self._arrivals.setdefault(event.stream, deque())
        trains.append(Arrivals(event.at_s, first, event.head_arrived_at_s, event.bounds))
        self._bytes += TRAIN_BYTES * (count + 1)

    def _forget(self, now_s: float) -> None:
        """Drop what is older than an hour, and the oldest while there is too much."""
        since_s = now_s - KEPT_S
        decisions = self.decisions
        while self._calls and (
            self._calls[0].begun_at_s < since_s or self._bytes + decisions.size_bytes > MOST_BYTES
        ):
            record = self._calls.popleft()
            self._bytes -= record.size_bytes
            since_s = max(since_s, record.begun_at_s)
            decisions.forget(record.call.number + 1)
        if not self._calls and self._bytes > MOST_BYTES:  # trains come, and no query runs
            since_s = now_s
        for trains in self._arrivals.values():
            # A tuple may wait longer than its train; a call explains at most what is still here.
            while trains and trains[0].at_s < since_s:
                self._bytes -= TRAIN_BYTES * (len(trains.popleft().heads_s) + 1)
        for periods in (self._delays, self._halts):
            while periods and periods[0][2] < since_s:
                periods.popleft()
        while self._full and self._full[0][1] < since_s:
            self._full.popleft()
