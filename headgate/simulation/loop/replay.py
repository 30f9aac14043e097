"""The engine of a replay: recorded trains at their recorded instants, calls at fitted costs."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Protocol

import numpy as np

from headgate.model.arrays import Floats, Ints
from headgate.model.events import (
    ClockTicked,
    Event,
    NetworkChanged,
    SheddingChanged,
    StepFinished,
    TrainArrived,
)
from headgate.model.network.network import Network, Path
from headgate.model.plan import BoxCall

SAME_PACE_S = 0.25
"""The longest time for which the pace of the machine is taken to be constant."""


class Costs(Protocol):
    """The cost model that a replay needs."""

    @property
    def loop_s(self) -> float:
        """Return the seconds that the scheduler loop takes from an event to the plan."""

    @property
    def start_s(self) -> float:
        """Return the seconds of a call that are not spent in its worker."""

    @property
    def crowding(self) -> float:
        """Return the fraction by which every other running call slows a call down."""

    def call(self, call: BoxCall, outs: Sequence[int], new: int, at_s: float) -> tuple[float, str]:
        """Return the seconds of a call that starts at an instant and runs alone, and its lane.

        Args:
            new: how many of its units run for the first time.
        """

    def pace(self, at_s: float) -> float:
        """Return how many times slower the machine was at an instant."""


@dataclass(frozen=True)
class ResultCounts:
    """The cumulative number of results of a unit, by the number of tuples of its stream.

    Between two recorded points the results are taken to be spread evenly.
    """

    tuples: Floats
    results: Floats

    def between(self, bounds: Floats) -> Ints:
        """Return how many results the tuples from each bound to the next have."""
        counts: Ints = np.diff(np.rint(np.interp(bounds, self.tuples, self.results))).astype(int)
        return counts


@dataclass
class _Trains:
    """The trains of a stream: when their tuples arrived, and the tuple count up to each train."""

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
    shed: tuple[int, ...]


class ReplayEngine:
    """An engine that replays recorded events at their instants and times calls by a cost model.

    Calls that run at the same time slow each other down. The scheduler loop takes time too: it
    handles one event after the other, and meanwhile calls and arrivals go on.

    Args:
        happenings: the events that do not depend on the policy: arrivals, queries that come and go.
            What one segment of a query passes to the next arrives when the first has computed it.
        network: the network at the end, with all streams.
        outputs: by unit, its results over the tuples of its stream.
        ends_at_s: when the run is over, even if tuples still wait.
        tuple_bytes: by stream, the size of a tuple that one segment passes to the next.
        paths: by unit, those that are in the network at any time; by default those of `network`.
    """

    def __init__(
        self,
        network: Network,
        happenings: Sequence[Event],
        first_trains: Sequence[int],
        outputs: Mapping[int, ResultCounts],
        costs: Costs,
        ends_at_s: float = inf,
        tuple_bytes: Mapping[int, float] | None = None,
        paths: Mapping[int, Path] | None = None,
    ) -> None:
        self._network, self._costs, self._ends_at_s = network, costs, ends_at_s
        self._tuple_bytes = tuple_bytes or {}
        self._outputs, self._firsts = outputs, first_trains
        self._paths = paths or dict(zip(network.places, network.paths, strict=True))
        self._left = deque(happenings)
        self._trains = [_Trains() for _ in network.streams]
        for event in happenings:
            if isinstance(event, TrainArrived):
                self._trains[event.stream].take(event)
        self._fills = {
            unit: network.stream_number(path.into)
            for unit, path in self._paths.items()
            if path.into is not None
        }
        self._rules: dict[int, list[SheddingChanged]] = {}
        """By unit, what it drops, each from a train on."""
        self._under_way: list[_UnderWay] = []
        self._ran: set[int] = set()
        self._done: deque[StepFinished | TrainArrived] = deque()
        self._clock_s = self._now_s = happenings[0].at_s if happenings else 0.0

    def now_s(self) -> float:
        return self._now_s

    def shed(self, changes: Sequence[SheddingChanged]) -> Sequence[SheddingChanged]:
        """Have units drop a fraction of their tuples from a train on; return the changes."""
        for change in changes:
            self._rules.setdefault(change.unit, []).append(change)
        return changes

    def start(self, call: BoxCall) -> None:
        self._advance(self._now_s)
        first = self._firsts[call.stream]
        trains = slice(call.first_train - first, call.end_train - first + 1)
        bounds = np.array(self._trains[call.stream].upto[trains])
        shares_left = [self._shares_kept(unit, call) for unit in call.units]
        counts = tuple(
            np.rint(self._outputs[unit].between(bounds) * shares).astype(int)
            for unit, shares in zip(call.units, shares_left, strict=True)
        )
        outs = [int(unit_counts.sum()) for unit_counts in counts]
        new = len(set(call.units) - self._ran)
        self._ran.update(call.units)
        tuples = np.diff(bounds)
        lefts = [float(tuples @ shares) for shares in shares_left]
        smaller = replace(call, tuples=round(max(lefts)))  # code that is shared runs for all
        seconds, lane = self._costs.call(smaller, outs, new, self._now_s)
        left_s = self._costs.start_s + seconds
        shed = (
            tuple(call.tuples - round(left) for left in lefts)
            if min(map(min, shares_left)) < 1
            else ()
        )
        self._under_way.append(_UnderWay(call, self._now_s, left_s, lane, counts, shed))

    def next_event(self, wake_at_s: float) -> Event | None:
        """Advance to the next arrival, end of a call or alarm, and return it as an event."""
        if not (self._left or self._under_way or self._done):
            return None
        self._advance(min(wake_at_s, self._arrives_at_s), until_done=True)
        arrives_at_s = self._arrives_at_s
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
            event = self._with_our_cursors(self._left.popleft())
        self._now_s = max(self._now_s, event.at_s) + self._costs.loop_s
        return event

    @property
    def _arrives_at_s(self) -> float:
        """When the next happening is due. Dropped queries stay until their calls have ended."""
        if not self._left:
            return inf
        event = self._left[0]
        if isinstance(event, NetworkChanged) and event.dropped:
            calls = [running.call for running in self._under_way]
            calls += [done.call for done in self._done if isinstance(done, StepFinished)]
            if any(unit not in event.network.places for call in calls for unit in call.units):
                return inf
        return event.at_s

    def _with_our_cursors(self, event: Event) -> Event:
        """Replace recorded cursors between segments by the ends of the queues in this replay.

        A query that is cut into segments and comes again then starts at the end of its queue.
        """
        if not isinstance(event, NetworkChanged):
            return event
        cursors = dict(event.cursors)
        for unit in cursors:
            stream = self._network.stream_number(self._paths[unit].stream)
            if stream in self._fills.values():
                cursors[unit] = self._firsts[stream] + len(self._trains[stream].heads_s)
        return replace(event, cursors=cursors)

    def _advance(self, to_s: float, *, until_done: bool = False) -> None:
        """Advance the running calls up to an instant, or until one of them is done."""
        while self._under_way and not (until_done and self._done):
            slowed = 1.0 + self._costs.crowding * (len(self._under_way) - 1)
            slowed *= self._costs.pace(self._clock_s)
            first = min(self._under_way, key=lambda candidate: candidate.left_s)
            needs_s = first.left_s * slowed
            passes_s = min(needs_s, to_s - self._clock_s, SAME_PACE_S)
            if passes_s < 0:
                return
            over = needs_s <= passes_s
            for running in self._under_way:
                running.left_s -= passes_s / slowed
            self._clock_s += passes_s
            if over:
                self._under_way.remove(first)
                self._done += [*self._passed_on(first), self._finished(first)]
            elif passes_s < SAME_PACE_S:
                return
        if not self._under_way and to_s < inf and not (until_done and self._done):
            self._clock_s = max(self._clock_s, to_s)

    def _finished(self, running: _UnderWay) -> StepFinished:
        took_s = self._clock_s - running.begun_s - self._costs.start_s
        outs = tuple(int(counts.sum()) for counts in running.counts)
        responses = tuple(
            np.zeros(0) if unit in self._fills
            else self._clock_s - self._arrivals_s(running.call, unit, counts)
            for unit, counts in zip(running.call.units, running.counts, strict=True)
        )  # fmt: skip
        return StepFinished(
            self._clock_s, running.call, took_s, outs, responses, lane=running.lane,
            shed=running.shed,
        )  # fmt: skip

    def _shares_kept(self, unit: int, call: BoxCall) -> Floats:
        """Return the share of its tuples that a unit keeps of each train of a call."""
        trains = np.arange(call.first_train, call.end_train)
        shares = np.ones(len(trains))
        for rule in self._rules.get(unit, ()):
            shares[trains >= rule.first_train] = 1.0 - rule.fraction
        return shares

    def _passed_on(self, running: _UnderWay) -> list[TrainArrived]:
        """Return the trains that a call's segments pass to the next, with the original arrivals."""
        events = []
        for unit, counts in zip(running.call.units, running.counts, strict=True):
            if unit in self._fills and counts.sum():
                arrivals_s = self._arrivals_s(running.call, unit, counts)
                heads_s, means_s = arrivals_s.min(keepdims=True), arrivals_s.mean(keepdims=True)
                tuples = counts.sum(keepdims=True)
                event = TrainArrived(
                    self._clock_s, self._fills[unit], tuples, heads_s, means_s,
                    tuple_bytes=self._tuple_bytes.get(self._fills[unit], 0.0),
                )  # fmt: skip
                self._trains[event.stream].take(event)
                events.append(event)
        return events

    def _arrivals_s(self, call: BoxCall, unit: int, counts: Ints) -> Floats:
        """Return when the tuples of the results arrived: spread evenly from their train's head."""
        first = self._firsts[call.stream]
        trains = slice(call.first_train - first, call.end_train - first)
        stream = self._trains[call.stream]
        heads_s, means_s = np.array(stream.heads_s[trains]), np.array(stream.means_s[trains])
        if self._paths[unit].runs_whole:
            return np.full(int(counts.sum()), float(means_s.mean()))
        places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        shares = (places + 0.5) / np.repeat(counts, counts)
        arrivals_s: Floats = np.repeat(heads_s, counts)
        return arrivals_s + 2.0 * shares * np.repeat(means_s - heads_s, counts)
