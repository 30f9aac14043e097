"""The Spark engine: ingest feeds the log, a few workers run calls as jobs, events come back."""

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

NO_MORE = Limits()

QUIET_S = 5.0
"""After so long without an event the clock is told of: trains get too old also while none comes."""

STOP_S, LEAST_S = 8.5, 0.5
"""What a stop takes at the most, but for Spark's own: so that it is over in ten seconds. Results on
their way have so long to arrive in any case."""

WAYS = {
    "windows": "all windows that have closed at once",
    "each": "one window that has closed after the other",
    "pairs": "tuples that are new, with those in their windows",
    "sessions": "sessions that have ended, from the beginning of the oldest that was open",
    "union": "tuples in the order of their time, once no earlier one can come",
}
"""How queries with windows are computed, for `explain`."""


class SparkEngine:
    """Owns the real clock, the workers, the log and the journal of one application.

    Args:
        schemas: what Spark says each stream's tuples look like.
        state: the directory of log, journal and checkpoints.
        rows: for streams of format `python`, what gives their tuples.
        deliver: for queries with sinks of format `callback`, what takes their results.
        lane: the lane that queries are rehearsed on.
        share: between which queries equal parts run once.
        limits: what may be used of memory and of disk.
        call_timeout_s: how long a call may take; its query has failed then.
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
        limits: Limits = NO_MORE,
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
            kept=lambda: self._windows_bytes(),
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
            self._own = own_session(session)
            self._deliver = {} if deliver is None else deliver  # it may grow while we run
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
            self._own, self._journal, store.logs, self.sinks, reached,
            driver_lane(own_session(session), state), self.budget, store.timelines,
            self._derived, share=share,
        )  # fmt: skip
        self._windows_bytes = lambda: self._executor.windowed.memory_bytes
        self.rehearsal = Rehearsal(
            self._own, self._executor, state / "rehearsal", call_timeout_s, lane
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
        """What results that wait for their sinks take on disk."""
        return sum(each.waiting_bytes for each in list(self.sinks.values()))

    @property
    def groups(self) -> tuple[int, ...]:
        """A number for every unit, the same for those that share their code."""
        return tuple(self._executor.group_numbers(self.members.paths))

    @property
    def first_trains(self) -> list[int]:
        """Where each stream's kept log begins."""
        return [self._store.first_train(stream.name) for stream in self.members.streams]

    def rehearse(
        self,
        recorded: Mapping[str, QueryStatistics],
        budget_s: float,
        progress: Callable[[int, int], None],
    ) -> dict[str, QueryStatistics]:
        """Measures what earlier runs have not, and warms up; gives what is known of all queries."""
        return self.rehearsal.of_all(self.members.paths, recorded, budget_s, progress)

    def begin(self) -> None:
        """Tells of the trains that are there already, then starts ingest."""
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
        """Return the queries that share a query's code, how they do, and the SQL of all."""
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
        """Lets another policy decide from now on."""
        self._events.put(PolicyChanged(self.now_s(), policy))

    def _sink_of(self, path: Path) -> FileSink:
        taker = self._deliver.get(path.query.name)
        return sink_of(
            path, self._own, self._state, taker, self._reached,
            lambda: self._waiting_bytes() <= self.budget.limits.outbox_bytes,
        )  # fmt: skip

    def _keep_no_sessions(self, path: Path) -> None:
        """Has the log not wait for a query that runs no more."""
        if path.stateful is not None:
            self._store.timelines[path.stream].open_sessions.forget(path.query.name)

    def now_s(self) -> float:
        return self._clock.now_s()

    def start(self, call: BoxCall) -> None:
        self._calls.start(call)

    def next_event(self, wake_at_s: float) -> Event | None:
        """Waits on the queue; what passes outside this method is the loop's own time."""
        if self._returned_at_s is not None:
            self.loop_s += time.perf_counter() - self._returned_at_s
        try:
            self.changes.settle_drops()
        except sqlite3.Error as error:
            self._warn_of_journal(error)
        event = self._wait(wake_at_s)
        self._calls.heard(event)
        self.changes.heard(event)
        if isinstance(event, QueryStopped | UnitFailed):
            self._keep_no_sessions(self.members.paths[event.unit])
        self._returned_at_s = time.perf_counter()
        return event

    def drain(self) -> None:
        """Stops ingest; the run ends when everything that has arrived is processed."""
        self._intake.stop()
        self._calls.draining = True
        self._events.put(ClockTicked(self.now_s()))

    def stop(self) -> None:
        """Ends the run when the calls under way have; the rest waits in the log for the next start.

        Calls that take longer than the engine's patience are interrupted, and so not committed.
        """
        self._calls.stopping = True
        self._give_up_at_s = time.monotonic() + self._patience_s
        self._end_at_s = time.monotonic() + STOP_S
        self._events.put(ClockTicked(self.now_s()))

    def totals(self) -> dict[str, tuple[int, int]]:
        """Gives the tuples that every query has consumed and produced, over all runs."""
        return self._cursors.counts() if self._totals is None else self._totals

    def accounts(self) -> dict[str, Account]:
        """Gives what has become of every tuple, by query, over all runs."""
        return self._cursors.accounts() if self._accounts is None else self._accounts

    def dead_letters(self) -> dict[str, int]:
        """Gives how many dead letters each stream has that has any, over all runs."""
        return self._journal.letters() if self._letters is None else self._letters

    def shed(self, events: Sequence[TuplesShed]) -> list[TuplesShed]:
        """Makes it certain that queries pass over trains, and tells of it; gives which do."""
        certain: list[TuplesShed] = []
        for event in events:
            path, tuples = self.members.paths[event.unit], event.tuples
            name, timeline = path.query.name, self._store.timelines.get(path.stream)
            if timeline is not None:  # the scheduler counts beats of the clock, too
                tuples = timeline.tuples(event.first_train, event.end_train)
            try:
                self._cursors.shed(name, event.first_train, event.end_train, tuples)
            except sqlite3.Error as error:
                self._warn_of_journal(error)
                break
            log.warning("query '%s': %s tuples are shed in overload", name, tuples)
            certain.append(event)
        return certain

    def forget(self, stream: int, passed: int) -> None:
        """Drops trains that every consumer has passed and retention no longer asks for.

        When the log fills up, what is passed goes at once.
        """
        name = self.members.streams[stream].name
        # At once: a train may say that it is from the future, where clocks were set back.
        fills_up = self.budget.log >= SLOW_DOWN
        before_s = inf if fills_up else self.now_s() - self._retention_s
        alive = self.members.alive
        hidden = [path.into or "" for path in alive if path.first_of and path.stream == name]
        first_of = next((path.first_of for path in alive if path.into == name), None)
        with self.changes.forgetting:
            if self.changes.query_is_coming:
                return  # it begins with the oldest train, which `passed` knows nothing of
            try:
                self._store.drop(name, passed, before_s, first_of, hidden)
            except (sqlite3.Error, OSError) as error:
                self._warn_of_journal(error)

    def _warn_of_journal(self, error: Exception) -> None:
        """Tells that a disk is full, say, once in a while; the loop tries again and goes on."""
        if time.monotonic() >= self._warn_at_s:
            self._warn_at_s = time.monotonic() + 60.0
            log.warning("the state directory cannot be written, and is tried again: %s", error)

    def close(self) -> None:
        """Ends ingest, lets calls under way finish, closes the journal."""
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
            tried_again = set(self._calls.attempts) - self.changes.unplanned
            if idle and (self._calls.stopping or (self._calls.draining and not tried_again)):
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
        """Notices a source that died; the run ends once the last has and all is processed."""
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
        read = (name,) if timeline is None else timeline.streams
        return TrainArrived(
            self.now_s(),
            stream,
            # A beat of the clock has no tuple, but is to be heard.
            np.array([max(1, train.tuples) for train in trains]),
            np.array([train.head_arrived_at_s for train in trains]),
            np.array([train.mean_arrived_at_s for train in trains]),
            tuple_bytes=max(self._executor.source(each).tuple_bytes for each in read),
        )

    def _passed_on(self, stream: str, *trains: Train) -> None:
        self._arrived(self.members.network.stream_number(stream), *trains)
