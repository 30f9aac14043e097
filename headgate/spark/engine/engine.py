"""The Spark engine: ingest fills the log, a few workers run calls, events report the outcome."""

import logging
import queue
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path as File
from typing import Any

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.errors import HeadgateError
from headgate.model.account import Account
from headgate.model.events import (
    ClockTicked,
    Event,
    Overloaded,
    PolicyChanged,
    QueryStopped,
    TrainArrived,
    TuplesShed,
    UnitFailed,
)
from headgate.model.network import Network, Path
from headgate.model.plan import BoxCall, Lane, Share
from headgate.model.query import Deliver, QueryStatistics
from headgate.model.stream import Rows
from headgate.spark.clock import Clock
from headgate.spark.engine.calls import Calls
from headgate.spark.engine.changes import Changes
from headgate.spark.engine.executor import Executor
from headgate.spark.engine.members import Members
from headgate.spark.engine.recovery import recover, refuse_old_results, refuse_other_zone, resumed
from headgate.spark.engine.warm_up import Rehearsal
from headgate.spark.event_time.store import Store
from headgate.spark.jvm.lane.compatibility import driver_lane
from headgate.spark.jvm.session import own_session
from headgate.spark.log.budget import FULL, SLOW_DOWN, SPARE, Budget, Limits
from headgate.spark.log.cursors import Cursors
from headgate.spark.log.journal import Journal, Train
from headgate.spark.sinks.derived_streams import DerivedStreams
from headgate.spark.sinks.files import FileSink
from headgate.spark.sinks.outbox import LAST_S
from headgate.spark.sinks.registry import sink_of
from headgate.spark.sources.ingest import Intake

log = logging.getLogger("headgate.spark")

DEFAULT_LIMITS = Limits()

QUIET_S = 5.0
"""After so long without an event the scheduler gets a tick of the clock: trains grow too old even
while nothing arrives."""

STOP_S, LEAST_S = 8.5, 0.5
"""Time budget for a clean stop, excluding Spark's own shutdown, so that the whole stop takes at
most ten seconds; and the time that ingest and results on their way get in any case."""

WAYS = {
    "windows": "all closed windows at once",
    "each": "closed windows, one after the other",
    "pairs": "new tuples, with those in their windows",
    "sessions": "sessions that have ended, from the start of the oldest that was open",
    "union": "tuples in the order of event time, once no earlier one can come",
}
"""How queries with windows are computed, for `explain`."""


class SparkEngine:
    """Owns the real clock, the workers, the log and the journal of one application.

    Args:
        schemas: the schema of each stream, as Spark reports it.
        state: the directory of log, journal and checkpoints.
        rows: for streams of format `python`, the function that returns their tuples.
        deliver: for queries with sinks of format `callback`, the function that takes their results.
        lane: the lane that queries are rehearsed on.
        share: between which queries equal parts run once.
        limits: how much memory and disk may be used.
        call_timeout_s: how long a call may take; after that its query has failed.
        patience_s: how long a stop waits for calls under way before it interrupts them.
        reached: called at every point where a crash must lose nothing; a test raises there.
    """

    def __init__(
        self,
        session: SparkSession,
        network: Network,
        schemas: Mapping[str, StructType],
        state: File,
        *,
        rows: Mapping[str, Rows] | None = None,
        deliver: Mapping[str, Deliver] | None = None,
        workers: int = 2,
        retention_s: float = 3600.0,
        lane: Lane = "driver",
        share: Share = "class",
        limits: Limits = DEFAULT_LIMITS,
        call_timeout_s: float = 300.0,
        patience_s: float = 5.0,
        reached: Callable[[str], None] = lambda point: None,
    ) -> None:
        self._session, self._state = session, state
        self._retention_s, self._patience_s = retention_s, patience_s
        self._clock, self._reached = Clock(), reached
        self._journal = Journal(state)
        self._cursors = Cursors(self._journal)
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.sinks: dict[str, FileSink] = {}
        self._windows_bytes: Callable[[], int] = lambda: 0
        self.budget = Budget(
            limits,
            cached=lambda: self._store.cached_bytes,
            windowed=lambda: self._windows_bytes(),
            logged=lambda: self._store.disk_bytes + self._waiting_bytes(),
        )
        self._store = store = Store(
            state, self._journal, schemas, self.budget.train_room_bytes, reached,
            idle=lambda stream: self._derived.idle(stream),
        )  # fmt: skip
        self._derived = DerivedStreams(
            self._journal, store, self._passed_on, self.budget.derived_bytes
        )
        self._derived.connect(network.paths)
        self.members = Members(network)
        try:
            refuse_other_zone(session, self._journal, state)
            for stream in network.streams:
                store.open(stream, partial(self._passed_on, stream.name))
            for path in network.paths:
                store.keep_for(path)
            self._own_session = own_session(session)
            self._deliver = {} if deliver is None else deliver  # it may grow during the run
            ends = [path for path in network.paths if path.first_of is None]
            refuse_old_results(self._journal, ends)
            self.sinks |= {path.query.name: self._sink_of(path) for path in ends}
            self.recovered = recover(self._journal, self.sinks.values(), reached)
            cursors = [resumed(path, network, self._journal, store) for path in network.paths]
            self.cursors = np.array(cursors, dtype=np.int64)
        except BaseException:
            self._journal.close()
            raise
        self._executor = Executor(
            self._own_session, self._journal, store.logs, self.sinks, reached,
            driver_lane(own_session(session), state), self.budget, store.timelines,
            self._derived, share=share,
        )  # fmt: skip
        self._windows_bytes = lambda: self._executor.windowed.memory_bytes
        self.rehearsal = Rehearsal(
            self._own_session, self._executor, state / "rehearsal", call_timeout_s, lane
        )
        self._executor.arrange(network.paths, self.rehearsal.is_costly)
        self._intake = Intake(
            session, self._journal, state, rows={} if rows is None else rows, arrived=self._arrived,
            pause_s=self.budget.pause_s, now_s=self.now_s,
            importance=lambda stream: self.members.network.importance.get(stream, 0.0),
        )  # fmt: skip
        self._calls = Calls(
            session, self._executor, self.members, workers=workers, now_s=self.now_s,
            tell=self._events.put, call_timeout_s=call_timeout_s,
        )  # fmt: skip
        self.changes = Changes(
            self.members, self._journal, store, self._executor, self._derived, self.rehearsal,
            self._intake, self._calls, self.sinks, sink_of=self._sink_of,
            arrival_of=self._arrival_of, arrived=self._arrived, passed_on=self._passed_on,
            tell=self._events.put, now_s=self.now_s,
        )  # fmt: skip
        self._look_at_s = self._warn_at_s = 0.0
        self._give_up_at_s = self._end_at_s = 0.0
        self._returned_at_s: float | None = None
        self._totals: dict[str, tuple[int, int]] | None = None
        self._accounts: dict[str, Account] | None = None
        self._letters: dict[str, int] | None = None
        self.loop_s = 0.0
        self.failures: list[HeadgateError] = []

    def _waiting_bytes(self) -> int:
        """Return the bytes on disk of results that wait for their sinks."""
        return sum(sink.waiting_bytes for sink in list(self.sinks.values()))

    @property
    def groups(self) -> tuple[int, ...]:
        """A number for every unit, the same for those that share their code."""
        return tuple(self._executor.group_numbers(self.members.paths))

    @property
    def first_trains(self) -> list[int]:
        """The number of the oldest train in each stream's log."""
        return [self._store.first_train(stream.name) for stream in self.members.streams]

    def rehearse(
        self,
        recorded: Mapping[str, QueryStatistics],
        budget_s: float,
        progress: Callable[[int, int], None],
    ) -> dict[str, QueryStatistics]:
        """Time queries that have no record yet, and warm up; return the statistics of all."""
        return self.rehearsal.of_all(self.members.paths, recorded, budget_s, progress)

    def begin(self) -> None:
        """Report the trains that are in the log already, then start ingest."""
        for sink in list(self.sinks.values()):
            sink.resume()
        for number, stream in enumerate(self.members.streams):
            # All at once: a cursor may stand anywhere among them, but never beyond the last.
            if stream.of:
                self._store.timelines[stream.name].speak()
            elif trains := self._journal.trains(stream.name):
                self._arrived(number, *trains)
        self._derived.catch_up()
        self._intake.begin(self.members.streams, self._store.logs)

    def way_of(self, unit: int) -> tuple[list[str], str, str]:
        """Return the queries that share a query's code, how they share it, and the SQL of all."""
        path = self.members.paths[unit]
        if path.runs_whole:
            members, shape = self._executor.shared_whole(path, self.members.alive)
            return members, shape, path.query.sql
        group = self._executor.prepared(path).group
        return list(group.members), group.shape, group.text

    def lane_text(self, unit: int, planned: str) -> str:
        """Return the lane of a query and the reason, for `explain`.

        Args:
            planned: the lane that its next call is planned for, as the first word, and why.
        """
        path = self.members.paths[unit]
        if path.stateful is not None:
            needs_job = self._executor.windowed.needs_job(path)
            return f"{'job' if needs_job else planned.split()[0]}: {WAYS[path.stateful.mode]}"
        whole = path.runs_whole
        prepared = self._executor.solo(path) if whole else self._executor.prepared(path)
        return "job: the plan cannot run in the driver" if prepared.needs_job else planned

    def change_policy(self, policy: Any) -> None:
        """Switch to another policy."""
        self._events.put(PolicyChanged(self.now_s(), policy))

    def _sink_of(self, path: Path) -> FileSink:
        taker = self._deliver.get(path.query.name)
        return sink_of(
            path, self._own_session, self._state, taker, self._reached,
            lambda: self._waiting_bytes() <= self.budget.limits.outbox_bytes,
        )  # fmt: skip

    def _release_sessions(self, path: Path) -> None:
        """Stop keeping trains for open sessions of a query that runs no more."""
        if path.stateful is not None:
            self._store.timelines[path.stream].open_sessions.forget(path.query.name)

    def now_s(self) -> float:
        return self._clock.now_s()

    def start(self, call: BoxCall) -> None:
        self._calls.start(call)

    def next_event(self, wake_at_s: float) -> Event | None:
        """Wait for the next event. The time between two calls of this method is the loop's own."""
        if self._returned_at_s is not None:
            self.loop_s += time.perf_counter() - self._returned_at_s
        try:
            self.changes.settle_drops()
        except sqlite3.Error as error:
            self._warn_of_journal(error)
        event = self._wait(wake_at_s)
        self._calls.note(event)
        self.changes.note(event)
        if isinstance(event, QueryStopped | UnitFailed):
            self._release_sessions(self.members.paths[event.unit])
        self._returned_at_s = time.perf_counter()
        return event

    def drain(self) -> None:
        """Stop ingest; the run ends when everything that has arrived is processed."""
        self._intake.stop()
        self._calls.draining = True
        self._events.put(ClockTicked(self.now_s()))

    def stop(self) -> None:
        """End the run once the calls under way have ended.

        Tuples that are not processed wait in the log for the next start. Calls that take longer
        than the engine's patience are interrupted, and so not committed.
        """
        self._calls.stopping = True
        self._give_up_at_s = time.monotonic() + self._patience_s
        self._end_at_s = time.monotonic() + STOP_S
        self._events.put(ClockTicked(self.now_s()))

    def totals(self) -> dict[str, tuple[int, int]]:
        """Return how many tuples each query has consumed and produced, over all runs."""
        return self._cursors.counts() if self._totals is None else self._totals

    def accounts(self) -> dict[str, Account]:
        """Return, by query, what has become of its tuples, over all runs."""
        return self._cursors.accounts() if self._accounts is None else self._accounts

    def dead_letters(self) -> dict[str, int]:
        """Return the number of dead letters of each stream that has any, over all runs."""
        return self._journal.letters() if self._letters is None else self._letters

    def shed(self, events: Sequence[TuplesShed]) -> list[TuplesShed]:
        """Journal that queries skip trains in overload; return the events that are journaled."""
        journaled: list[TuplesShed] = []
        for event in events:
            path, tuples = self.members.paths[event.unit], event.tuples
            name, timeline = path.query.name, self._store.timelines.get(path.stream)
            if timeline is not None:  # the scheduler counts clock beats as tuples, too
                tuples = timeline.tuples(event.first_train, event.end_train)
            try:
                self._cursors.shed(name, event.first_train, event.end_train, tuples)
            except sqlite3.Error as error:
                self._warn_of_journal(error)
                break
            log.warning("query '%s': %s tuples are shed in overload", name, tuples)
            journaled.append(event)
        return journaled

    def forget(self, stream: int, passed: int) -> None:
        """Drop trains that every consumer has passed and that retention no longer keeps.

        When the log fills up, trains that are passed are dropped whatever their age.
        """
        name = self.members.streams[stream].name
        # inf, not now_s: a train may seem to be from the future if clocks were set back.
        fills_up = self.budget.log >= SLOW_DOWN
        before_s = inf if fills_up else self.now_s() - self._retention_s
        alive = self.members.alive
        hidden = [path.into or "" for path in alive if path.first_of and path.stream == name]
        first_of = next((path.first_of for path in alive if path.into == name), None)
        with self.changes.forgetting:
            if self.changes.query_is_coming:
                return  # it begins with the oldest train, and `passed` does not count it
            try:
                self._store.drop(name, passed, before_s, first_of, hidden)
            except (sqlite3.Error, OSError) as error:
                self._warn_of_journal(error)

    def _warn_of_journal(self, error: Exception) -> None:
        """Warn of a full disk, for example, once a minute at most; the loop goes on."""
        if time.monotonic() >= self._warn_at_s:
            self._warn_at_s = time.monotonic() + 60.0
            log.warning("the state directory cannot be written, and is tried again: %s", error)

    def close(self) -> None:
        """End ingest, let calls under way finish, and close the journal."""
        if self._totals is not None:
            return
        end_at_s = self._end_at_s or time.monotonic() + STOP_S
        self._intake.stop(max(LEAST_S, self._give_up_at_s - time.monotonic()))
        self._calls.close(max(0.1, self._give_up_at_s - time.monotonic()))
        self._executor.commits.promises.try_again()
        left_s = end_at_s - time.monotonic()
        for sink in list(self.sinks.values()):
            sink.close(max(LEAST_S, min(LAST_S, left_s)))
        for sink in list(self.sinks.values()):
            sink.join()
        self._letters = self._journal.letters()
        self._totals, self._accounts = self._cursors.counts(), self._cursors.accounts()
        self._journal.close()

    def _wait(self, wake_at_s: float) -> Event | None:
        since_s = time.monotonic()
        while True:
            idle = not self._calls.running and self._events.empty()
            retried = set(self._calls.attempts) - self.changes.unplanned
            if idle and (self._calls.stopping or (self._calls.draining and not retried)):
                return None
            if self._calls.stopping and time.monotonic() > self._give_up_at_s:
                return None
            left_s = wake_at_s - self.now_s()
            if left_s <= 0:
                return ClockTicked(self.now_s())
            if time.monotonic() >= self._look_at_s:
                self._look_at_s = time.monotonic() + 0.5
                self._look_after_sources()
                for timeline in list(self._store.timelines.values()):
                    timeline.beat(self.now_s())
                self._calls.look_after()
                self._executor.commits.promises.try_again()
                if max(self.budget.memory, self.budget.held) >= SPARE:
                    self._store.spare_memory()
                    self._executor.windowed.spare_memory()
                if self.budget.pressure >= FULL:
                    return Overloaded(self.now_s(), self.now_s() + 1.0)
            try:
                return self._events.get(timeout=min(left_s, 0.5))
            except queue.Empty:
                if time.monotonic() - since_s >= QUIET_S:
                    return ClockTicked(self.now_s())

    def _look_after_sources(self) -> None:
        """Record sources that died. Once all have, the run ends when everything is processed."""
        for failure in self._intake.failures():
            self.failures.append(failure)
            log.warning("%s", failure)
            self._calls.draining |= self._intake.over

    def _arrived(self, stream: int, *trains: Train) -> None:
        name = self.members.streams[stream].name
        self._events.put(self._arrival_of(stream, trains))
        for timeline in self._store.timelines_of(name):
            for train in trains:
                timeline.take(name, train)

    def _arrival_of(self, stream: int, trains: Sequence[Train]) -> TrainArrived:
        name = self.members.streams[stream].name
        timeline = self._store.timelines.get(name)
        sources = (name,) if timeline is None else timeline.streams
        return TrainArrived(
            self.now_s(),
            stream,
            # A clock beat has no tuple, but the scheduler has to see it.
            np.array([max(1, train.tuples) for train in trains]),
            np.array([train.head_arrived_at_s for train in trains]),
            np.array([train.mean_arrived_at_s for train in trains]),
            tuple_bytes=max(self._executor.source(source).tuple_bytes for source in sources),
        )

    def _passed_on(self, stream: str, *trains: Train) -> None:
        self._arrived(self.members.network.stream_number(stream), *trains)
