"""The timeline of some streams: their trains in order of arrival, and the watermark after each."""

import logging
import sqlite3
from collections.abc import Callable, Collection, Mapping
from math import floor, inf

import numpy as np
from numpy.typing import NDArray

from headgate.errors import TrainUnreadable
from headgate.model.kind import Kind
from headgate.model.stream import Stream
from headgate.model.window_ends import NEVER, Times, first_end
from headgate.spark.event_time.idle_streams import passed_in_quiet
from headgate.spark.event_time.retention import Retention
from headgate.spark.event_time.timeline_entries import CLOCK, PRODUCER, Entry
from headgate.spark.event_time.timeline_reader import TimelineReader
from headgate.spark.event_time.train_times import least_mark
from headgate.spark.journal.derived_trains import DerivedTrains
from headgate.spark.journal.journal import Journal
from headgate.spark.journal.journal_rows import Train
from headgate.spark.log.stream_log import StreamLog

log = logging.getLogger("headgate.spark")

ROUNDING = 1_000
"""Microseconds by which a lower bound is lower, since instants are rounded."""

SetAside = Callable[[str, int, int, NDArray[np.bool_], Times], bool]


class Timeline(TimelineReader):
    """A stream whose trains are those of other streams, in one order that the journal keeps.

    Args:
        sources: the streams, with their logs.
        put: receives new trains of the timeline, in order, once `publish` was called.
        set_aside: stores the tuples that no window by time will have, before the journal has their
            train. Its arguments are the stream, the train, the number of the train's first tuple,
            which tuples to store, and the times of all. It returns False if it cannot store them.
        idle: returns True if the producer of a derived stream has read all its input. Only then
            does the clock decide whether the stream is quiet.
        watched_s: returns the time of a stream's own clock, which measures how long the stream is
            quiet; None: it is the time of the tick.
    """

    def __init__(
        self,
        name: str,
        journal: Journal,
        sources: Mapping[str, tuple[Stream, StreamLog]],
        put: Callable[..., None],
        set_aside: SetAside = lambda *late: True,
        idle: Callable[[str], bool] = lambda stream: True,
        watched_s: Callable[[str], float] | None = None,
    ) -> None:
        super().__init__(name, journal, sources)
        self._journal, self._put, self._set_aside, self._idle = journal, put, set_aside, idle
        self._derived, self._watched_s = DerivedTrains(journal), watched_s
        self._retention = Retention(self._order, self._times, self.open_sessions)
        self._heard_at_s: dict[str, float] = {}
        self._publishes = False
        self._is_caught_up = False
        """Whether it has all trains that were in the logs when it was opened."""
        self._held_up: set[str] = set()
        """Streams whose next train cannot be added now."""
        self._warned: set[str] = set()
        self._bounds: dict[str, int] = {}
        """By stream whose source had nothing, the time that it has reached by that."""

    @property
    def readers(self) -> Collection[str]:
        """The queries that it keeps tuples for."""
        return self._retention.readers.keys() | self.open_sessions.queries.keys()

    def renew(self, stream: Stream) -> None:
        """Give one of its streams other settings than those of its time."""
        with self._lock:
            self._sources[stream.name] = stream, self._sources[stream.name][1]
            self._bounds.pop(stream.name, None)
            self._heard_at_s.pop(stream.name, None)

    def reads(self, query: str, kind: Kind) -> None:
        """Keep tuples as long as a query needs them, and advance time when its windows wait."""
        with self._lock:
            self._retention.reads(query, kind)

    def forget(self, query: str) -> None:
        """Keep nothing for a query that was dropped."""
        with self._lock:
            self._retention.forget(query)

    def keeps(self, kind: Kind, cursor: int) -> bool:
        """Return True if the log has all tuples that a query's windows need, open at a train."""
        with self._lock:
            return self._retention.keeps(kind, cursor)

    def catch_up(self) -> None:
        """Add the trains that the logs of its streams have and it does not, in order of arrival."""
        arrivals = [
            (train.mean_arrived_at_s, name, train)
            for name in self._sources
            for train in self._journal.trains(name)
            if train.number >= self._order.now[name].train
        ]
        waits: set[str] = set()
        for _, name, train in sorted(arrivals, key=lambda row: (row[0], row[1], row[2].number)):
            if name not in waits:
                self.take(name, train)
                waits |= self._held_up & {name}
        for name in self._sources:
            self.advance(name)
        self._is_caught_up = True

    def publish(self) -> None:
        """Pass on all existing trains at once, and from now on every new one."""
        with self._lock:
            self._publishes = True
            if self._order.entries:
                self._put(*map(_train_of, self._order.entries))

    def take(self, stream: str, train: Train) -> None:
        """Add a train of one of its streams, unless the timeline has it."""
        with self._lock:
            if train.number < self._order.now[stream].train:
                return
            missing = train.number > self._order.now[stream].train  # some before it were not taken
            earlier = self._journal.trains(stream, train.number) if missing else ()
            for next_train in (*earlier, train):
                if next_train.number >= self._order.now[stream].train:
                    if not self._take_next(stream, next_train):
                        self._held_up.add(stream)
                        break  # the next train or the next tick tries again
                    self._held_up.discard(stream)

    def advance(self, stream: str) -> None:
        """Advance the time of a derived stream to what its producer has reached after the last
        train, if that closes a window.
        """
        if not self._sources[stream][0].is_derived:
            return
        with self._lock:
            end, top, arrived_at_s = self._derived.end(stream)
            now = self._order.now[stream]
            if top is None or top <= now.top or end != now.train:
                return  # or a train comes first, and brings its own time
            self._heard_at_s.pop(stream, None)
            tops = {name: stand.top for name, stand in self._order.now.items()}
            if self._closes(tops, {**tops, stream: top}):
                self._append(self._empty_entry(stream, PRODUCER, top, arrived_at_s))

    def _take_next(self, stream: str, train: Train) -> bool:
        """Add the next train of a stream; return False if that is not possible now."""
        try:
            entry = self._entry_of(stream, train)
            in_time, times = self._times[stream].not_late(entry)
        except TrainUnreadable as error:
            self._warn(stream, error)
            return False
        late = train.number, entry.first_tuple, ~in_time, times
        if not in_time.all() and not self._set_aside(stream, *late):
            return False
        return self._append(entry, durable=not in_time.all())

    def _warn(self, stream: str, error: Exception) -> None:
        if stream not in self._warned:
            self._warned.add(stream)
            log.warning("queries over '%s' wait: %s", self.name, error)

    def _entry_of(self, stream: str, train: Train) -> Entry:
        """Return a train as the next entry of the timeline."""
        times = self._times[stream].times_of(train.number)
        now = self._order.now[stream]
        reach = max(now.reach, int(times.max(initial=NEVER)))
        derived = self._sources[stream][0].is_derived
        train_top = (NEVER if train.top is None else train.top) if derived else reach
        return Entry(
            number=self.next_number, stream=stream, train=train.number, tuples=train.tuples,
            first_tuple=self._journal.first_tuple(stream, train.number), before=now.top,
            top=max(now.top, train_top), arrived_at_s=train.mean_arrived_at_s, reach=reach,
        )  # fmt: skip

    def _empty_entry(self, stream: str, kind: int, top: int, arrived_at_s: float) -> Entry:
        """Return an entry without tuples that advances a stream's time."""
        now = self._order.now[stream]
        return Entry(
            number=self.next_number, stream=stream, train=kind, tuples=0, first_tuple=0,
            before=now.top, top=top, arrived_at_s=arrived_at_s, reach=now.reach,
        )  # fmt: skip

    def tick(self, now_s: float) -> None:
        """Let time pass in quiet streams if that closes a window."""
        with self._lock:
            if not self._is_caught_up:
                return  # the trains to come are older
            if self._held_up:
                self.catch_up()
            if self._held_up:
                return
            try:
                for name in self._sources:
                    self.advance(name)
                self._pass_time(now_s)
            except TrainUnreadable as error:
                self._warn(error.stream, error)

    def emptied(self, stream: str, at_s: float) -> None:
        """Let time pass in a stream whose source had nothing, where that closes a window.

        No later tuple of the stream has an event time before that of the poll, minus the longest
        delay. So no good tuple becomes late by this (BZ §4.1: the lower bound of an empty input).
        """
        source, _ = self._sources[stream]
        if source.bound_delay_s is None or not self._times[stream].has_zone:
            return
        with self._lock:
            bound = floor((at_s - source.bound_delay_s) * 1e6) - ROUNDING
            self._bounds[stream] = self._times[stream].top_of(bound)
            if self._is_caught_up and not self._held_up:
                try:
                    self._reach(self._bounds, at_s)
                except TrainUnreadable as error:  # the source is not the cause
                    self._warn(error.stream, error)

    def _pass_time(self, now_s: float) -> None:
        streams = [
            stream
            for stream, _ in self._sources.values()
            if not stream.is_derived or self._idle(stream.name)
        ]
        times_s = {
            stream.name: now_s if self._watched_s is None else self._watched_s(stream.name)
            for stream in streams
        }
        passed = passed_in_quiet(streams, self._order.now, self._heard_at_s, times_s)
        self._reach(passed, now_s)

    def _reach(self, times: Mapping[str, int], now_s: float) -> None:
        """Advance streams without tuples to these times, if that closes a window."""
        tops = {name: stand.top for name, stand in self._order.now.items()}
        passed = {name: top for name, top in times.items() if top > tops[name]}
        # All at once: two quiet streams would wait for each other.
        if passed and self._closes(tops, {**tops, **passed}):
            for name, top in passed.items():
                if not self._append(self._empty_entry(name, CLOCK, top, now_s)):
                    break  # the next tick tries again

    def _closes(self, tops: Mapping[str, int], passed: Mapping[str, int]) -> bool:
        """Return True if a window that has tuples closes once streams have reached these times."""
        before, after = least_mark(self._times, tops), least_mark(self._times, passed)
        reach = max(stand.reach for stand in self._order.now.values())
        if after in (NEVER, before) or reach == NEVER:
            return False
        if before == NEVER or self._ends_session(before, after):
            return True
        return any(
            (first := first_end(window, before)) <= after and first - window.size <= reach
            for window in self._retention.windows
        )

    def _ends_session(self, before: int, after: int) -> bool:
        """Return True if a session may end in [before, after): that of a single tuple would."""
        return any(
            (self.times(self.next_number, before - gap) + gap < after).any()
            for gap in self.open_sessions.gaps
        )

    def _append(self, entry: Entry, durable: bool = False) -> bool:
        """Append an entry; return False if the journal cannot be written now."""
        try:
            self._order.append(entry, durable)
        except sqlite3.Error as error:
            self._warn(entry.stream, error)
            return False
        self._warned.discard(entry.stream)
        if entry.train >= 0:
            self._heard_at_s.pop(entry.stream, None)
        if self._publishes:
            self._put(_train_of(entry))
        return True

    def held(self, stream: str) -> int:
        """Return the first train of a stream that is still needed."""
        with self._lock:
            trains = (entry.train for entry in self._order.entries if entry.stream == stream)
            return next((train for train in trains if train >= 0), self._order.now[stream].train)

    def drop(self, passed: int, before_s: float = inf) -> None:
        """Drop trains below a number that no window needs any more.

        Args:
            before_s: trains that arrived later stay: a new query begins with them.
        """
        with self._lock:
            self._retention.drop(passed, before_s)


def _train_of(entry: Entry) -> Train:
    return Train(entry.number, entry.tuples, 0, entry.arrived_at_s, entry.arrived_at_s)
