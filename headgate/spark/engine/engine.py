"""The Spark engine: ingest fills the log, a few workers run calls, events report the outcome."""

import logging
import queue
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headgate.errors import HeadgateError
from headgate.extensions import Receiver
from headgate.model.account import Account
from headgate.model.events import (
    ClockTicked,
    Event,
    Overloaded,
    PolicyChanged,
    QueryStopped,
    SheddingChanged,
    UnitFailed,
)
from headgate.model.lag import Lag
from headgate.model.plan import BoxCall
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import QueryStatistics
from headgate.model.trouble import Trouble
from headgate.spark.engine.changes import Changes
from headgate.spark.engine.explanation import lane_text, way_of
from headgate.spark.engine.log_space import LogSpace
from headgate.spark.engine.parts import Parts
from headgate.spark.engine.recovery import recover
from headgate.spark.engine.repairs import Repairs
from headgate.spark.engine.requests import Request
from headgate.spark.engine.shedding_changes import Shedding
from headgate.spark.engine.totals import Totals
from headgate.spark.engine.upkeep import Upkeep
from headgate.spark.journal.cursors import Cursors
from headgate.spark.log.budget import FULL
from headgate.spark.log.dead_letters import sweep_query_letters
from headgate.spark.sinks.outbox import Outbox

log = logging.getLogger("headgate.spark")

QUIET_S = 5.0
"""After so long without an event the scheduler gets a tick of the clock: trains grow too old even
while nothing arrives."""

STOP_S = 8.5
"""Time budget for a clean stop, excluding Spark's own shutdown, so that the whole stop takes at
most ten seconds."""

PATIENCE_S = 5.0
"""How long a stop waits for calls under way before it interrupts them."""

LEAST_S = 0.5
"""The time that ingest gets in any case when a run ends."""


class SparkEngine:
    """Owns the real clock, the workers, the log and the journal of one application."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.members, self.budget, self.sinks = parts.members, parts.budget, parts.sinks
        self.rehearsal = parts.warm_up
        self.cursors = np.array(parts.cursors, dtype=np.int64)
        self._events, self._calls, self._requests = parts.events, parts.calls, parts.requests
        self._totals = Totals(parts.journal)
        self.changes = Changes(parts)
        self.repairs = Repairs(parts, self.changes)
        self._upkeep = Upkeep(parts)
        self.log_space = LogSpace(parts, self.changes)
        self.shedding = Shedding(parts, self.log_space)
        self._give_up_at_s = self._end_at_s = 0.0
        self._returned_at_s: float | None = None
        self.loop_s = 0.0

    @property
    def ids(self) -> dict[str, int]:
        """The ids of all paths, by name."""
        members = self.members
        names = [path.query.name for path in members.paths]
        return dict(zip(names, members.network.places, strict=True))

    @property
    def storage_s(self) -> float:
        """The seconds in which trains and results were written and journalled, by all threads."""
        return self.parts.journal.storage.seconds

    @property
    def paused(self) -> list[str]:
        """The queries that were paused, in this run or before, and not resumed since."""
        return Cursors(self.parts.journal).paused

    @property
    def groups(self) -> tuple[int, ...]:
        """A number for every unit, the same for those that share their code."""
        return tuple(self.parts.executor.arrangement.group_numbers(self.members.paths))

    @property
    def first_trains(self) -> list[int]:
        """The number of the oldest train in each stream's log."""
        return [self.parts.store.first_train(stream.name) for stream in self.members.streams]

    def rehearse(
        self,
        recorded: Mapping[str, QueryStatistics],
        budget_s: float,
        progress: Callable[[int, int], None],
    ) -> dict[str, QueryStatistics]:
        """Time queries that have no record yet, and warm up; return the statistics of all."""
        return self.rehearsal.of_all(self.members.paths, recorded, budget_s, progress)

    def begin(self) -> None:
        """Finish what the last run has begun, report the trains in the log, then start ingest.

        Nothing refuses the start any more. Only now is anything removed.
        """
        _, late = recover(self.parts.journal, self.sinks, self.parts.reached)
        self.parts.executor.commits.renames.adopt(late)
        self.parts.store.sweep()
        sweep_query_letters(self.parts.journal)
        self.sinks.resume()
        self.parts.publisher.begin()
        for number, stream in enumerate(self.members.streams):
            # All at once: a cursor may stand anywhere among them, but never beyond the last.
            if stream.of:
                self.parts.store.timelines[stream.name].publish()
            elif trains := self.parts.journal.trains(stream.name):
                self.parts.arrivals.put(number, *trains)
        self.parts.derived.catch_up()
        self.parts.ingest.begin()
        self._requests.open()

    def way_of(self, unit: int) -> tuple[list[str], str, str]:
        """Return the queries that share a query's code, how they share it, and the SQL of all."""
        return way_of(self.members.path_of(unit), self.members.paths, self.parts.executor)

    def lane_text(self, unit: int, planned: str) -> str:
        """Return the lane of a query and the reason, for `explain`.

        Args:
            planned: the lane that its next call is planned for, as the first word, and why.
        """
        return lane_text(self.members.path_of(unit), planned, self.parts.executor)

    def receiver_of(self, query: str) -> Receiver | None:
        """Return what the results of a query are delivered to; None if they are files."""
        sink = self.sinks[query]
        return sink.receiver if isinstance(sink, Outbox) else None

    def change_policy(self, policy: Any) -> None:
        """Switch to another policy."""
        self._events.put(PolicyChanged(self.now_s(), policy))

    def now_s(self) -> float:
        return self.parts.clock.now_s()

    def start(self, call: BoxCall) -> None:
        self._calls.start(call)

    def next_event(self, wake_at_s: float) -> Event | None:
        """Wait for the next event. The time between two calls of this method is the loop's own."""
        self._requests.enter()
        if self._returned_at_s is not None:
            self.loop_s += time.perf_counter() - self._returned_at_s
        try:
            self.changes.settle_leaving()
        except (sqlite3.Error, OSError) as error:
            self.log_space.warn(error)
        event = self._wait(wake_at_s)
        self._calls.note(event)
        self.changes.note(event)
        if isinstance(event, QueryStopped | UnitFailed):
            self.parts.store.release_sessions(self.members.path_of(event.unit))
        self._returned_at_s = time.perf_counter()
        return event

    def drain(self, timeout_s: float | None = None) -> None:
        """Stop ingest; the run ends when everything that has arrived is processed.

        Args:
            timeout_s: how long to wait for a source that does not answer. If it answers later, its
                tuples are processed too.
        """
        self.parts.ingest.finish(timeout_s)
        self._calls.draining = True
        self._events.put(ClockTicked(self.now_s()))

    def stop(self) -> None:
        """End the run once the calls under way have ended.

        Tuples that are not processed wait in the log for the next start. Calls that take longer
        than `PATIENCE_S` are interrupted, and so not committed.
        """
        self._calls.stopping = True
        self._give_up_at_s = time.monotonic() + PATIENCE_S
        self._end_at_s = time.monotonic() + STOP_S
        self._events.put(ClockTicked(self.now_s()))

    def cause_of(self, error: BaseException) -> BaseException:
        """Return what ended the run: SparkGone if the JVM is gone, otherwise the error itself."""
        return self.parts.jvm.cause_of(error)

    @property
    def unusable(self) -> Mapping[str, HeadgateError]:
        """The queries that do not run, as their folders cannot be written, and why."""
        return self.sinks.unusable

    @property
    def failures(self) -> list[HeadgateError]:
        """Why sources have died, and queries could not begin."""
        return [*self._upkeep.failures, *self.sinks.unusable.values()]

    def troubles(self) -> list[Trouble]:
        """Return the streams whose sources do not deliver, and why."""
        return self.parts.ingest.troubles()

    def lags(self) -> list[Lag]:
        """Return the streams that lag behind their sources, how far, and since when."""
        return self.parts.ingest.lags()

    def totals(self) -> dict[str, tuple[int, int]]:
        """Return how many tuples each query has consumed and produced, over all runs."""
        return self._totals.counts()

    def accounts(self) -> dict[str, Account]:
        """Return, by query, what has become of its tuples, over all runs."""
        return self._totals.accounts()

    def added_delays_s(self) -> dict[str, float]:
        """Return, by query, how long after their commit its results became visible at most.

        Only queries whose results are collected have such a delay.
        """
        collected = {query: sink.collected for query, sink in list(self.sinks.items())
                     if sink.collects}  # fmt: skip
        return {query: results.most_delay_s for query, results in collected.items() if results}

    def dead_letters(self) -> dict[str, int]:
        """Return the number of dead letters of each stream that has any, over all runs."""
        return self._totals.dead_letters()

    def query_letters(self) -> dict[str, int]:
        """Return the number of dead letters of each query that has any, over all runs."""
        return self._totals.query_letters()

    def shed(self, changes: Sequence[SheddingChanged]) -> list[SheddingChanged]:
        """Journal what queries drop from now on; return the changes that are journaled."""
        return self.shedding.change(changes)

    def loss_of(self, unit: int) -> QoSGraph | None:
        """Return the utility left by the share of tuples dropped, where a unit drops by value."""
        return self.shedding.loss_of(unit)

    def forget(self, stream: int, passed: int) -> None:
        """Drop trains that every consumer has passed and that retention no longer keeps.

        When the log fills up, trains that are passed are dropped whatever their age.
        """
        self.log_space.forget(stream, passed)

    def close(self) -> None:
        """End ingest, let calls under way finish, and close the journal."""
        if self._totals.are_frozen:
            return
        end_at_s = self._end_at_s or time.monotonic() + STOP_S
        self.parts.ingest.stop(max(LEAST_S, self._give_up_at_s - time.monotonic()))
        self._calls.close(max(0.1, self._give_up_at_s - time.monotonic()))
        self.parts.executor.commits.renames.try_again()
        self.parts.publisher.close(max(LEAST_S, end_at_s - time.monotonic() - LEAST_S))
        self.sinks.close(end_at_s - time.monotonic())
        self._totals.freeze()
        self.parts.journal.close()
        self.parts.jvm.close()

    def _wait(self, wake_at_s: float) -> Event | None:
        since_s = time.monotonic()
        while True:
            if self._requests.ahead:
                return self._requests.ahead.popleft()
            drained = (
                self._calls.draining and self.parts.ingest.over
            )  # before the look at the events
            idle = not self._calls.running and self._events.empty()
            retried = set(self._calls.attempts) - self.changes.unplanned
            if idle and (self._calls.stopping or (drained and not retried)):
                return None
            if self._calls.stopping and time.monotonic() > self._give_up_at_s:
                return None
            left_s = wake_at_s - self.now_s()
            if left_s <= 0:
                return ClockTicked(self.now_s())
            if self._upkeep.is_due:
                self._upkeep.run()
                if self.budget.pressure >= FULL:
                    return Overloaded(self.now_s(), self.now_s() + 1.0)
            try:
                event = self._events.get(timeout=min(left_s, 0.5))
                if not isinstance(event, Request):
                    return event
                self._requests.make(event)
            except queue.Empty:
                if time.monotonic() - since_s >= QUIET_S:
                    return ClockTicked(self.now_s())
