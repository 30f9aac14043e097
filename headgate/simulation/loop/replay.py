"""The engine of a replay: recorded trains at their instants, calls at fitted costs."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Protocol

import numpy as np

from headgate.model.arrays import Floats, Ints
from headgate.model.events import ClockTicked, Event, NetworkChanged, StepFinished, TrainArrived
from headgate.model.network import Network
from headgate.model.plan import BoxCall

SAME_PACE_S = 0.25
"""The machine is taken to be as fast for so long as at the beginning of it."""


class Costs(Protocol):
    """What a replay asks of a cost model."""

    @property
    def loop_s(self) -> float:
        """What the loop takes from an event to the plan."""

    @property
    def start_s(self) -> float:
        """What of a call's time is not its worker's."""

    @property
    def crowding(self) -> float:
        """How much longer a call takes for every other that is under way."""

    def call(self, call: BoxCall, outs: Sequence[int], new: int, at_s: float) -> tuple[float, str]:
        """Gives the seconds of a call that begins at an instant and runs alone, and its lane.

        Args:
            new: how many of its units run for the first time.
        """

    def pace(self, at_s: float) -> float:
        """Gives how many times slower the machine was at an instant."""


@dataclass(frozen=True)
class Made:
    """How many results a unit makes of the first so many tuples of its stream.

    Between two that are known it makes them evenly.
    """

    tuples: Floats
    results: Floats

    def between(self, bounds: Floats) -> Ints:
        """Gives the results of the tuples from each bound to the next."""
        counts: Ints = np.diff(np.rint(np.interp(bounds, self.tuples, self.results))).astype(int)
        return counts


@dataclass
class _Trains:
    """The trains of a stream: when tuples arrived, and how many there are up to each."""

    heads_s: list[float] = field(default_factory=list)
    means_s: list[float] = field(default_factory=list)
    upto: list[float] = field(default_factory=lambda: [0.0])

    def take(self, event: TrainArrived) -> None:
        self.heads_s += event.head_arrived_at_s.tolist()
        self.means_s += event.mean_arrived_at_s.tolist()
        self.upto += (self.upto[-1] + np.cumsum(event.tuples)).tolist()


@dataclass
class _UnderWay:
    call: BoxCall
    begun_s: float
    left_s: float
    lane: str
    counts: tuple[Ints, ...]


class ReplayEngine:
    """Tells of recorded events at their instants and answers calls by a cost model.

    Calls that are under way together slow each other. The loop is a server of its own: it hears
    one event after the other, and meanwhile calls and arrivals go on.

    Args:
        happenings: what does not depend on the policy: arrivals, queries that come and go. What
            goes from one segment of a query to the next arrives when the first has made it.
        outputs: by unit, what it makes of the tuples of its stream.
        ends_at_s: when the run is over, whatever waits.
        tuple_bytes: by stream, of what goes from one segment to the next.
    """

    def __init__(
        self,
        network: Network,
        happenings: Sequence[Event],
        first_trains: Sequence[int],
        outputs: Sequence[Made],
        costs: Costs,
        ends_at_s: float = inf,
        tuple_bytes: Mapping[int, float] | None = None,
    ) -> None:
        self._network, self._costs, self._ends_at_s = network, costs, ends_at_s
        self._tuple_bytes = tuple_bytes or {}
        self._outputs, self._firsts = outputs, first_trains
        self._left = deque(happenings)
        self._trains = [_Trains() for _ in network.streams]
        for each in happenings:
            if isinstance(each, TrainArrived):
                self._trains[each.stream].take(each)
        self._fills = {
            unit: network.stream_number(path.into)
            for unit, path in enumerate(network.paths)
            if path.into is not None
        }
        self._under_way: list[_UnderWay] = []
        self._ran: set[int] = set()
        self._done: deque[StepFinished | TrainArrived] = deque()
        self._clock_s = self._now_s = happenings[0].at_s if happenings else 0.0

    def now_s(self) -> float:
        return self._now_s

    def start(self, call: BoxCall) -> None:
        self._advance(self._now_s)
        first = self._firsts[call.stream]
        trains = slice(call.first_train - first, call.end_train - first + 1)
        bounds = np.array(self._trains[call.stream].upto[trains])
        counts = tuple(self._outputs[unit].between(bounds) for unit in call.units)
        outs = [int(each.sum()) for each in counts]
        new = len(set(call.units) - self._ran)
        self._ran.update(call.units)
        seconds, lane = self._costs.call(call, outs, new, self._now_s)
        left_s = self._costs.start_s + seconds
        self._under_way.append(_UnderWay(call, self._now_s, left_s, lane, counts))

    def next_event(self, wake_at_s: float) -> Event | None:
        """Advances to the next arrival, end of a call or alarm."""
        if not (self._left or self._under_way or self._done):
            return None
        self._advance(min(wake_at_s, self._left[0].at_s if self._left else inf), until_done=True)
        arrives_at_s = self._left[0].at_s if self._left else inf
        ended_at_s = self._done[0].at_s if self._done else inf
        at_s = min(wake_at_s, arrives_at_s, ended_at_s)
        if max(at_s, self._now_s) > self._ends_at_s:
            return None
        event: Event
        if wake_at_s <= max(self._now_s, min(arrives_at_s, ended_at_s)):
            event = ClockTicked(max(self._now_s, wake_at_s))
        elif ended_at_s <= arrives_at_s:
            event = self._done.popleft()
        else:
            event = self._in_our_numbers(self._left.popleft())
        self._now_s = max(self._now_s, event.at_s) + self._costs.loop_s
        return event

    def _in_our_numbers(self, event: Event) -> Event:
        """Has a query that comes again, and is cut, begin where its queue ends here."""
        if not isinstance(event, NetworkChanged):
            return event
        cursors = dict(event.cursors)
        for unit in cursors:
            stream = self._network.stream_number(self._network.paths[unit].stream)
            if stream in self._fills.values():
                cursors[unit] = self._firsts[stream] + len(self._trains[stream].heads_s)
        return replace(event, cursors=cursors)

    def _advance(self, to_s: float, *, until_done: bool = False) -> None:
        """Lets calls work up to an instant, or until one of them is done."""
        while self._under_way and not (until_done and self._done):
            slowed = 1.0 + self._costs.crowding * (len(self._under_way) - 1)
            slowed *= self._costs.pace(self._clock_s)
            first = min(self._under_way, key=lambda each: each.left_s)
            needs_s = first.left_s * slowed
            passes_s = min(needs_s, to_s - self._clock_s, SAME_PACE_S)
            if passes_s < 0:
                return
            over = needs_s <= passes_s
            for each in self._under_way:
                each.left_s -= passes_s / slowed
            self._clock_s += passes_s
            if over:
                self._under_way.remove(first)
                self._done += [*self._passed_on(first), self._finished(first)]
            elif passes_s < SAME_PACE_S:
                return
        if not self._under_way and to_s < inf and not (until_done and self._done):
            self._clock_s = max(self._clock_s, to_s)

    def _finished(self, each: _UnderWay) -> StepFinished:
        took_s = self._clock_s - each.begun_s - self._costs.start_s
        outs = tuple(int(counts.sum()) for counts in each.counts)
        responses = tuple(
            np.zeros(0) if unit in self._fills
            else self._clock_s - self._arrivals_s(each.call, unit, counts)
            for unit, counts in zip(each.call.units, each.counts, strict=True)
        )  # fmt: skip
        return StepFinished(self._clock_s, each.call, took_s, outs, responses, lane=each.lane)

    def _passed_on(self, each: _UnderWay) -> list[TrainArrived]:
        """Gives what first segments have made for the next; a tuple arrived when its first did."""
        found = []
        for unit, counts in zip(each.call.units, each.counts, strict=True):
            if unit in self._fills and counts.sum():
                arrivals_s = self._arrivals_s(each.call, unit, counts)
                heads_s, means_s = arrivals_s.min(keepdims=True), arrivals_s.mean(keepdims=True)
                tuples = counts.sum(keepdims=True)
                event = TrainArrived(
                    self._clock_s, self._fills[unit], tuples, heads_s, means_s,
                    tuple_bytes=self._tuple_bytes.get(self._fills[unit], 0.0),
                )  # fmt: skip
                self._trains[event.stream].take(event)
                found.append(event)
        return found

    def _arrivals_s(self, call: BoxCall, unit: int, counts: Ints) -> Floats:
        """Gives when the tuples behind results arrived: evenly from the head of their train on."""
        first = self._firsts[call.stream]
        trains = slice(call.first_train - first, call.end_train - first)
        known = self._trains[call.stream]
        heads_s, means_s = np.array(known.heads_s[trains]), np.array(known.means_s[trains])
        if self._network.paths[unit].runs_whole:
            return np.full(int(counts.sum()), float(means_s.mean()))
        places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        shares = (places + 0.5) / np.repeat(counts, counts)
        arrivals_s: Floats = np.repeat(heads_s, counts)
        return arrivals_s + 2.0 * shares * np.repeat(means_s - heads_s, counts)
