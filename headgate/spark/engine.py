"""The Spark engine: ingest feeds the log, a few workers run calls as jobs, events come back."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as File
from typing import Any
from uuid import uuid4

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.errors import (
    CallTimedOut,
    HeadgateError,
    ResultsHidden,
    SinkUnwritable,
    StepFailed,
)
from headgate.model.account import Account
from headgate.model.events import (
    ClockTicked,
    Event,
    Floats,
    NetworkChanged,
    Overloaded,
    PolicyChanged,
    QueryStopped,
    StepFinished,
    TrainArrived,
    TuplesShed,
    UnitDelayed,
    UnitFailed,
)
from headgate.model.network import Network, Path
from headgate.model.plan import BoxCall, Lane
from headgate.model.query import Deliver, QueryStatistics
from headgate.model.stream import Rows, Stream
from headgate.spark.budget import FULL, SLOW_DOWN, SPARE, Budget, Limits
from headgate.spark.clock import Clock
from headgate.spark.executor import Executor, Work
from headgate.spark.group import Output
from headgate.spark.intake import Intake
from headgate.spark.journal import Journal, Train
from headgate.spark.patience import GRACE_S
from headgate.spark.receivers import sink_of
from headgate.spark.recovery import recover, refuse_old_results
from headgate.spark.refusals import cause_of
from headgate.spark.rehearsal import Rehearsal
from headgate.spark.session import own_session
from headgate.spark.sinks import FileSink
from headgate.spark.stream_log import StreamLog
from headgate.spark.train_cache import TrainCache
from headgate.spark.workers import Task, Turn, Workers

log = logging.getLogger("headgate.spark")

NOTHING: Floats = np.zeros(0)

NO_MORE = Limits()

ATTEMPTS = 3
PAUSE_S = 0.5
"""A query that fails is tried again after this, then after twice this, then has failed."""


class CallGone(ClockTicked):
    """A call was interrupted and leaves no outcome."""


class SparkEngine:
    """Owns the real clock, the workers, the log and the journal of one application.

    Args:
        schemas: what Spark says each stream's tuples look like.
        state: the directory of log, journal and checkpoints.
        rows: for streams of format `python`, what gives their tuples.
        deliver: for queries with sinks of format `callback`, what takes their results.
        lane: the way that every call takes, if it can; without it the cheaper one.
        limits: what may be used of memory and of disk.
        call_timeout_s: how long a call may take; its query has failed then.
        patience_s: how long `close` waits for calls under way before it interrupts them.
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
        lane: Lane | None = None,
        limits: Limits = NO_MORE,
        call_timeout_s: float = 300.0,
        patience_s: float = 8.0,
        reached: Callable[[str], None] = lambda point: None,
    ) -> None:
        self._session, self._network, self._state = session, network, state
        self._retention_s, self._patience_s = retention_s, patience_s
        self._call_timeout_s, self._clock = call_timeout_s, Clock()
        self._schemas, self._reached = dict(schemas), reached
        self._cache = TrainCache(limits.cache_bytes)
        self._logs: dict[str, StreamLog] = {}
        self.budget = Budget(
            limits, lambda: self._cache.bytes,
            lambda: sum(each.bytes for each in list(self._logs.values())),
        )  # fmt: skip
        self._journal = Journal(state)
        try:
            self._logs |= {stream.name: self._log_of(stream) for stream in network.streams}
            self._own = own_session(session)
            self._deliver = {} if deliver is None else deliver  # it may grow while we run
            refuse_old_results(self._journal, network.paths)
            self.sinks = {path.query.name: self._sink_of(path) for path in network.paths}
            self.recovered = recover(self._journal, self.sinks.values())
            cursors = [self._remember(path) for path in network.paths]
            self.cursors = np.array(cursors, dtype=np.int64)
        except BaseException:
            self._journal.close()
            raise
        self._executor = Executor(
            self._own, self._journal, self._logs, self.sinks, reached, lane, self.budget
        )
        self.rehearsal = Rehearsal(
            self._own, self._executor, self._logs, state / "rehearsal", call_timeout_s
        )
        self._executor.arrange(network.paths, self.rehearsal.is_costly)
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._intake = Intake(
            session, self._journal, state, rows={} if rows is None else rows, arrived=self._arrived,
            pause_s=self.budget.pause_s, now_s=self.now_s,
        )  # fmt: skip
        self._attempts: dict[int, int] = {}
        self._under_way: dict[int, BoxCall] = {}
        self._unplanned: set[int] = set()
        self._dropping: dict[int, threading.Event] = {}
        self._dropped: set[int] = set()
        self._tag = f"headgate-{uuid4().hex}"
        self._workers = Workers(workers, self._run, self._tag)
        self._sessions = threading.local()
        self._running = 0
        self._draining = self._stopping = False
        self._look_at_s = 0.0
        self._give_up_at_s = 0.0
        self._returned_at_s: float | None = None
        self._totals: dict[str, tuple[int, int]] | None = None
        self._accounts: dict[str, Account] | None = None
        self.loop_s = 0.0
        self.failures: list[HeadgateError] = []

    def _remember(self, path: Path) -> int:
        """Gives the train a query goes on at, and tells of what it has missed."""
        query = path.query
        cursor = self._journal.remember_query(query.name, query.sql, path.stream)
        if cursor.missed:
            log.warning(
                "query '%s' was away too long: retention has dropped %s tuples of stream '%s' that"
                " it has not seen; it goes on with train %s",
                query.name, cursor.missed, path.stream, cursor.train,
            )  # fmt: skip
        return cursor.train

    @property
    def groups(self) -> tuple[int, ...]:
        """A number for every unit, the same for those that share their code."""
        return tuple(self._executor.group_numbers(self._network.paths))

    @property
    def first_trains(self) -> list[int]:
        """Where each stream's kept log begins."""
        return [
            trains[0].number if trains else self._journal.next_train(stream.name)
            for stream in self._network.streams
            for trains in [self._journal.trains(stream.name)]
        ]

    def rehearse(
        self,
        recorded: Mapping[str, QueryStatistics],
        budget_s: float,
        progress: Callable[[int, int], None],
    ) -> dict[str, QueryStatistics]:
        """Measures what earlier runs have not, and warms up; gives what is known of all queries."""
        return self.rehearsal.of_all(self._network.paths, recorded, budget_s, progress)

    def begin(self) -> None:
        """Tells of the trains that are there already, then starts ingest."""
        for sink in self.sinks.values():
            sink.resume()
        for number, stream in enumerate(self._network.streams):
            # All at once: a cursor may stand anywhere among them, but never beyond the last.
            if trains := self._journal.trains(stream.name):
                self._arrived(number, *trains)
        self._intake.begin(self._network.streams, self._logs)

    def add_stream(self, network: Network, number: int, schema: StructType) -> None:
        """Takes in a stream of a network: one more, or one that was dropped and comes back."""
        stream = network.streams[number]
        self._journal.remember_stream(stream.name, schema.simpleString())
        self._schemas[stream.name] = schema
        new = number == len(self._network.streams)
        stream_log = self._log_of(stream) if new else self._logs[stream.name]
        begin = self._intake.opened(number, stream, stream_log)
        self._logs[stream.name] = stream_log
        trains = self._journal.trains(stream.name) if new else []
        first = trains[0].number if trains else stream_log.next_number
        self._change(network, {}, {number: first} if new else {}, {})
        if trains:
            self._arrived(number, *trains)
        begin()

    def drop_stream(self, name: str) -> None:
        """Asks a stream's source no more; its log stays, as long as retention says."""
        self._intake.drop(name)

    def add_query(self, network: Network, unit: int, budget_s: float) -> None:
        """Takes in a query, which is the unit of a network that has it; measures it alone first."""
        path = network.paths[unit]
        self.refuse_old_results([path])
        sink = self._sink_of(path)
        self.sinks[path.query.name] = sink
        sink.resume()
        known = self.rehearsal.of_one(path, budget_s) if budget_s else {}
        cursor = self._remember(path)
        self._change(network, {unit: cursor}, {}, known)

    def refuse_old_results(self, paths: Sequence[Path]) -> None:
        """Refuses queries whose results would mix with those of a query that was dropped."""
        refuse_old_results(self._journal, paths)

    def drop_query(self, unit: int) -> threading.Event:
        """Forgets a query once its last call has ended; gives what tells when that is."""
        gone = threading.Event()
        self._dropping[unit] = gone
        self._events.put(QueryStopped(self.now_s(), unit))
        return gone

    def way_of(self, unit: int, tuples: int) -> tuple[list[str], str, str, str]:
        """Gives who shares a query's code and how, the SQL of all, and which lane tuples take."""
        path = self._network.paths[unit]
        if path.runs_whole:
            return [path.query.name], "single", path.query.sql, "job: it runs as it is written"
        prepared = self._executor.prepared(path)
        group = prepared.group
        sql = group.text.format(trains=path.stream, constants="constants")
        return list(group.members), group.shape, sql, prepared.lanes.why(tuples)

    def change_policy(self, policy: Any) -> None:
        """Lets another policy decide from now on."""
        self._events.put(PolicyChanged(self.now_s(), policy))

    def _change(
        self,
        network: Network,
        cursors: Mapping[int, int],
        first_trains: Mapping[int, int],
        known: Mapping[str, QueryStatistics],
    ) -> None:
        self._network = network
        alive = [p for u, p in enumerate(network.paths) if u not in self._dropped - set(cursors)]
        self._dropped -= set(cursors)
        self._unplanned -= set(cursors)
        self._executor.arrange(alive, self.rehearsal.is_costly)
        self._events.put(
            NetworkChanged(self.now_s(), network, cursors, first_trains, known, self.groups)
        )

    def _settle_drops(self) -> None:
        """Forgets dropped queries that the scheduler has heard of and no call runs."""
        for unit in self._unplanned & self._dropping.keys():
            if not any(unit in call.units for call in self._under_way.values()):
                name = self._network.paths[unit].query.name
                self._executor.promises.forget(name)
                self._journal.forget_query(name)
                self._executor.forget(name)
                self.sinks[name].close()
                self._dropped.add(unit)
                self._attempts.pop(unit, None)
                self._unplanned.discard(unit)
                self._dropping.pop(unit).set()

    def _sink_of(self, path: Path) -> FileSink:
        taker = self._deliver.get(path.query.name)
        return sink_of(path, self._own, self._state, taker, self._reached)

    def _log_of(self, stream: Stream) -> StreamLog:
        schema = self._schemas[stream.name]
        self._journal.remember_stream(stream.name, schema.simpleString())
        return StreamLog(
            self._state, stream.name, self._journal, schema, self._cache, self._reached
        )

    def now_s(self) -> float:
        return self._clock.now_s()

    def start(self, call: BoxCall) -> None:
        if self._stopping:
            return  # what is under way is finished, nothing new begins
        self._running += 1
        self._under_way[call.number] = call
        self._submit(Task(call, left=[call.units]))

    def next_event(self, wake_at_s: float) -> Event | None:
        """Waits on the queue; what passes outside this method is the loop's own time."""
        if self._returned_at_s is not None:
            self.loop_s += time.perf_counter() - self._returned_at_s
        self._settle_drops()
        event = self._wait(wake_at_s)
        if isinstance(event, StepFinished | CallGone):
            self._running -= 1
        if isinstance(event, StepFinished):
            del self._under_way[event.call.number]
        if isinstance(event, QueryStopped):
            self._unplanned.add(event.unit)
        self._returned_at_s = time.perf_counter()
        return event

    def drain(self) -> None:
        """Stops ingest; the run ends when everything that has arrived is processed."""
        self._intake.stop()
        self._draining = True
        self._events.put(ClockTicked(self.now_s()))

    def stop(self) -> None:
        """Ends the run when the calls under way have; the rest waits in the log for the next start.

        Calls that take longer than the engine's patience are interrupted, and so not committed.
        """
        self._stopping = True
        self._give_up_at_s = time.monotonic() + self._patience_s
        self._events.put(ClockTicked(self.now_s()))

    def stop_query(self, unit: int) -> None:
        self._events.put(QueryStopped(self.now_s(), unit))

    def totals(self) -> dict[str, tuple[int, int]]:
        """Gives the tuples that every query has consumed and produced, over all runs."""
        return self._journal.counts() if self._totals is None else self._totals

    def accounts(self) -> dict[str, Account]:
        """Gives what has become of every tuple, by query, over all runs."""
        return self._journal.accounts() if self._accounts is None else self._accounts

    def shed(self, events: Sequence[TuplesShed]) -> None:
        """Makes it certain that queries pass over trains, and tells of it."""
        for event in events:
            name = self._network.paths[event.unit].query.name
            self._journal.shed(name, event.first_train, event.end_train, event.tuples)
            log.warning("query '%s': %s tuples are shed in overload", name, event.tuples)

    def forget(self, stream: int, passed: int) -> None:
        """Drops trains that every consumer has passed and retention no longer asks for.

        When the log fills up, what is passed goes at once.
        """
        name = self._network.streams[stream].name
        keep_s = 0.0 if self.budget.log >= SLOW_DOWN else self._retention_s
        before_s = self.now_s() - keep_s
        self._logs[name].drop(self._journal.first_younger(name, passed, before_s))

    def close(self) -> None:
        """Ends ingest, lets calls under way finish, closes the journal."""
        if self._totals is not None:
            return
        self._intake.stop()
        patience_s = max(0.1, self._give_up_at_s - time.monotonic())
        alarm = threading.Timer(
            patience_s, self._session.sparkContext.cancelJobsWithTag, (self._tag,)
        )
        alarm.start()
        self._workers.close(patience_s + GRACE_S)
        alarm.cancel()
        self._executor.promises.try_again()
        for sink in self.sinks.values():
            sink.close()
        for sink in self.sinks.values():
            sink.join()
        self._totals, self._accounts = self._journal.counts(), self._journal.accounts()
        self._journal.close()

    def _wait(self, wake_at_s: float) -> Event | None:
        while True:
            idle = not self._running and self._events.empty()
            tried_again = set(self._attempts) - self._unplanned
            if idle and (self._stopping or (self._draining and not tried_again)):
                return None
            if self._stopping and time.monotonic() > self._give_up_at_s:
                return None
            left_s = wake_at_s - self.now_s()
            if left_s <= 0:
                return ClockTicked(self.now_s())
            if time.monotonic() >= self._look_at_s:
                self._look_at_s = time.monotonic() + 0.5
                self._look_after_sources()
                self._look_after_calls()
                self._executor.promises.try_again()
                if self.budget.pressure >= FULL:
                    return Overloaded(self.now_s(), self.now_s() + 1.0)
                if self.budget.memory >= SPARE:
                    self._cache.clear()
            try:
                return self._events.get(timeout=min(left_s, 0.5))
            except queue.Empty:
                continue

    def _look_after_sources(self) -> None:
        """Notices a source that died; the run ends once the last has and all is processed."""
        for failure in self._intake.failures():
            self.failures.append(failure)
            log.warning("%s", failure)
            self._draining = self._intake.over

    def _look_after_calls(self) -> None:
        """Cancels the jobs of a call that takes too long; abandons one that goes on even so."""
        for turn in self._workers.running():
            took_s = time.monotonic() - turn.since_s
            if took_s > self._call_timeout_s and not turn.cancelled:
                turn.cancel(self._session.sparkContext.cancelJobsWithTag)
            elif turn.cancelled and took_s > self._call_timeout_s + GRACE_S and turn.abandon():
                self._executor.renew(self._network.paths[unit] for unit in turn.units)
                self._workers.replace(turn)
                self._settle(turn, [CallTimedOut(limit_s=self._call_timeout_s)] * len(turn.units))

    def _arrived(self, stream: int, *trains: Train) -> None:
        self._events.put(
            TrainArrived(
                self.now_s(),
                stream,
                np.array([train.tuples for train in trains]),
                np.array([train.head_arrived_at_s for train in trains]),
                np.array([train.mean_arrived_at_s for train in trains]),
                tuple_bytes=self._logs[self._network.streams[stream].name].tuple_bytes,
            )
        )

    def _submit(self, task: Task) -> None:
        self._workers.submit(Turn(task, task.left.pop(0), self._call_timeout_s))

    def _run(self, turn: Turn) -> None:
        """A worker's turn: evaluates and commits, tells how it went."""
        began_s, call = time.perf_counter(), turn.task.call
        paths = tuple(self._network.paths[unit] for unit in turn.units)
        work = Work(paths, call.first_train, call.end_train, call.tuples)
        lane = ""
        try:
            outputs, lane = self._executor.run(self._worker_session(turn.tag), work, turn)
        except Exception as error:  # nothing was committed
            outputs = [CallTimedOut(limit_s=turn.limit_s) if turn.cancelled else error] * len(paths)
        if not turn.end():
            return  # abandoned, and settled
        turn.task.lane = lane or turn.task.lane
        turn.task.seconds += time.perf_counter() - began_s
        self._settle(turn, outputs)

    def _settle(self, turn: Turn, outputs: Sequence[Output | Exception]) -> None:
        """Takes in what a turn made; lets units that together took too long run each alone."""
        task = turn.task
        if len(outputs) > 1 and all(isinstance(each, CallTimedOut) for each in outputs):
            task.left += [(unit,) for unit in turn.units]
        else:
            task.outcomes.update(zip(turn.units, outputs, strict=True))
        if task.left and not self._stopping:
            self._submit(task)
        else:
            self._finish(task)

    def _finish(self, task: Task) -> None:
        call, committed_at_s = task.call, self.now_s()
        stopped = CallTimedOut(limit_s=self._call_timeout_s)
        outputs = [task.outcomes.get(unit, stopped) for unit in call.units]
        failed = [
            (unit, output)
            for unit, output in zip(call.units, outputs, strict=True)
            if isinstance(output, Exception)
        ]
        if failed and self._stopping:  # interrupted, perhaps: the next start runs it
            self._events.put(CallGone(self.now_s()))
            return
        for unit, output in failed:
            self._fail(call, unit, output)
        responses = tuple(
            committed_at_s - output.arrived_at_s if isinstance(output, Output) else NOTHING
            for output in outputs
        )
        outs = tuple(len(each) for each in responses)
        self._events.put(
            StepFinished(
                self.now_s(), call, task.seconds, outs, responses,
                failed=tuple(unit for unit, _ in failed), lane=task.lane,
            )
        )  # fmt: skip
        for unit in set(call.units).difference(unit for unit, _ in failed):
            self._attempts.pop(unit, None)

    def _fail(self, call: BoxCall, unit: int, error: Exception) -> None:
        """Has a unit tried again later or, after the last attempt, no more."""
        path: Path = self._network.paths[unit]
        attempts = self._attempts[unit] = self._attempts.get(unit, 0) + 1
        failure = StepFailed(
            query=path.query.name,
            stream=path.stream,
            trains=(call.first_train, call.end_train - 1),
            attempts=attempts,
            cause=cause_of(error),
            **({"fix": error.fix} if isinstance(error, SinkUnwritable) else {}),
        )
        waits = isinstance(error, ResultsHidden) and not self._draining
        if waits or (attempts < ATTEMPTS and not isinstance(error, CallTimedOut)):
            log.info("%s", failure)
            until_s = self.now_s() + PAUSE_S * 2 ** min(attempts - 1, ATTEMPTS)
            self._events.put(UnitDelayed(self.now_s(), unit, until_s, failure))
        else:
            del self._attempts[unit]
            log.warning("%s", failure)
            self._events.put(UnitFailed(self.now_s(), unit, call, failure))

    def _worker_session(self, tag: str) -> SparkSession:
        if not hasattr(self._sessions, "own"):
            self._sessions.own = own_session(self._session)
            for each in (self._tag, tag):
                self._session.sparkContext.addJobTag(each)
        session: SparkSession = self._sessions.own
        return session
