"""Which calls have run lately and when trains came in: what explains why a query waited."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, nan

import numpy as np

from headgate.model.arrays import Floats
from headgate.model.events import (
    Event,
    NetworkChanged,
    StepFinished,
    StepStarted,
    TrainArrived,
    UnitDelayed,
)
from headgate.model.plan import BoxCall

KEPT_S = 3600.0
MOST_BYTES = 100_000_000

CALL_BYTES, UNIT_BYTES, TRAIN_BYTES = 700, 110, 64
"""What a call, each of its units and a train take at most; sys.getsizeof of their parts says so."""


@dataclass(slots=True)
class CallRecord:
    """A call: when it began and ended, and the slowest result of each unit.

    Args:
        slowest_s: by unit, the longest response time; only units with results.
        failed: units that have consumed nothing.
    """

    call: BoxCall
    policy: str
    begun_at_s: float
    ended_at_s: float = inf
    seconds: float = nan
    lane: str = ""
    slowest_s: dict[int, float] = field(default_factory=dict)
    failed: tuple[int, ...] = ()

    @property
    def size_bytes(self) -> int:
        return CALL_BYTES + UNIT_BYTES * len(self.call.units)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Trains of a stream that became durable together.

    Args:
        first: the number of the first train.
        heads_s: by train, when its first tuple arrived.
    """

    at_s: float
    first: int
    heads_s: Floats


class CallLog:
    """The calls and arrivals of the last hour, in at most 100 MB; the oldest are dropped first.

    Args:
        first_trains: by stream, the number of the first train that will arrive.
    """

    def __init__(self, first_trains: Sequence[int]) -> None:
        self._calls: deque[CallRecord] = deque()
        self._under_way: dict[int, CallRecord] = {}
        self._next_train = dict(enumerate(first_trains))
        self._arrivals: dict[int, deque[Arrivals]] = {}
        self._delays: deque[tuple[int, float, float]] = deque()
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
            case NetworkChanged():
                self._next_train |= event.first_trains
            case UnitDelayed():
                self._delays.append((event.unit, event.at_s, event.until_s))

    def calls(self) -> Iterator[CallRecord]:
        """Yield the calls, oldest first."""
        yield from list(self._calls)

    def delays(self, unit: int) -> list[tuple[float, float]]:
        """Return the periods in which a unit waited to be tried again."""
        return [(begin_s, end_s) for other, begin_s, end_s in list(self._delays) if other == unit]

    def train_at(self, stream: int, arrived_at_s: float, call: BoxCall) -> tuple[int, float] | None:
        """Return the train of a call that has the tuple of an instant, and when it was durable."""
        result = None
        for arrivals in list(self._arrivals.get(stream, ())):
            heads_s = arrivals.heads_s
            for place in np.flatnonzero(heads_s <= arrived_at_s + 1e-6).tolist():
                train = arrivals.first + place
                if call.first_train <= train < call.end_train:
                    result = train, arrivals.at_s
        return result

    def _finish(self, event: StepFinished) -> None:
        record = self._under_way.pop(event.call.number, None)
        if record is None:
            return
        record.ended_at_s, record.seconds = event.at_s, event.seconds
        record.lane, record.failed = event.lane, event.failed
        for unit, responses_s in zip(event.call.units, event.responses_s, strict=True):
            if len(responses_s):
                record.slowest_s[unit] = float(np.max(responses_s))

    def _arrive(self, event: TrainArrived) -> None:
        first, count = self._next_train.get(event.stream, 0), len(event.tuples)
        self._next_train[event.stream] = first + count
        trains = self._arrivals.setdefault(event.stream, deque())
        trains.append(Arrivals(event.at_s, first, event.head_arrived_at_s))
        self._bytes += TRAIN_BYTES * (count + 1)

    def _forget(self, now_s: float) -> None:
        """Drop what is older than an hour, and the oldest while there is too much."""
        since_s = now_s - KEPT_S
        while self._calls and (self._calls[0].begun_at_s < since_s or self._bytes > MOST_BYTES):
            record = self._calls.popleft()
            self._bytes -= record.size_bytes
            since_s = max(since_s, record.begun_at_s)
        for trains in self._arrivals.values():
            # A tuple may wait longer than its train; a call explains at most what is still here.
            while trains and trains[0].at_s < since_s:
                self._bytes -= TRAIN_BYTES * (len(trains.popleft().heads_s) + 1)
        while self._delays and self._delays[0][2] < since_s:
            self._delays.popleft()
