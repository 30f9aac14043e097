"""The Spark engine: ingest feeds the log, a few workers run calls as jobs, events come back."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path as File
from uuid import uuid4

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from headgate.errors import HeadgateError, StepFailed, StreamFailed
from headgate.model.events import (
    ClockTicked,
    Event,
    Floats,
    QueryStopped,
    StepFinished,
    TrainArrived,
    UnitFailed,
)
from headgate.model.network import Network, Path
from headgate.model.plan import BoxCall
from headgate.model.query import QueryStatistics
from headgate.spark.executor import Executor, Work
from headgate.spark.files import remove
from headgate.spark.ingest import start_ingest
from headgate.spark.journal import Journal, Train
from headgate.spark.recovery import recover
from headgate.spark.refusals import cause_of
from headgate.spark.rehearsal import FEW, MANY, invent, rehearse, warm_up
from headgate.spark.session import own_session
from headgate.spark.sinks import FileSink
from headgate.spark.stream_log import StreamLog

log = logging.getLogger("headgate.spark")

NOTHING: Floats = np.zeros(0)


class CallGone(ClockTicked):
    """A call was interrupted and leaves no outcome."""


class SparkEngine:
    """Owns the real clock, the workers, the log and the journal of one application.

    Args:
        schemas: what Spark says each stream's tuples look like.
        state: the directory of log, journal and checkpoints.
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
        workers: int = 2,
        retention_s: float = 3600.0,
        patience_s: float = 8.0,
        reached: Callable[[str], None] = lambda point: None,
    ) -> None:
        self._session, self._network, self._state = session, network, state
        self._retention_s, self._patience_s = retention_s, patience_s
        self._journal = Journal(state)
        try:
            for stream in network.streams:
                self._journal.remember_stream(stream.name, schemas[stream.name].simpleString())
            self._logs = {
                stream.name: StreamLog(
                    state, stream.name, self._journal, schemas[stream.name], reached
                )
                for stream in network.streams
            }
            sinks = {path.query.name: FileSink(path.query.sink) for path in network.paths}
            self.recovered = recover(self._journal, sinks.values())
            self.cursors = np.array(
                [
                    self._journal.remember_query(path.query.name, path.query.sql, path.stream)
                    for path in network.paths
                ],
                dtype=np.int64,
            )
        except BaseException:
            self._journal.close()
            raise
        self._executor = Executor(self._journal, self._logs, sinks, reached)
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._ingests: dict[str, StreamingQuery] = {}
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="headgate-worker")
        self._sessions = threading.local()
        self._running = 0
        self._draining = self._stopping = False
        self._watching, self._look_at_s = True, 0.0
        self._give_up_at_s = 0.0
        self._tag = f"headgate-{uuid4().hex}"
        self._returned_at_s: float | None = None
        self._totals: dict[str, tuple[int, int]] | None = None
        self.scheduler_s = 0.0
        self.failures: list[HeadgateError] = []

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
        paths: Sequence[Path],
        groups: Sequence[tuple[Path, ...]],
        budget_s: float,
        progress: Callable[[int, int], None],
    ) -> dict[str, QueryStatistics]:
        """Measures each new path alone, then warms up with the groups that will run fused."""
        ends_at_s = time.perf_counter() + budget_s
        session, folder = own_session(self._session), self._state / "rehearsal"
        trains = {
            name: (
                invent(session, each.schema, FEW, folder / name),
                invent(session, each.schema, MANY, folder / name),
            )
            for name, each in self._logs.items()
        }
        known = rehearse(
            session, self._executor, paths, trains, budget_s=budget_s * 0.75, progress=progress
        )
        warm_up(session, self._executor, groups, trains, ends_at_s - time.perf_counter())
        remove(folder)
        return known

    def begin(self) -> None:
        """Tells of the trains that are there already, then starts ingest."""
        for number, stream in enumerate(self._network.streams):
            # All at once: a cursor may stand anywhere among them, but never beyond the last.
            if trains := self._journal.trains(stream.name):
                self._arrived(number, *trains)
        for number, stream in enumerate(self._network.streams):
            self._ingests[stream.name] = start_ingest(
                own_session(self._session),
                stream,
                self._logs[stream.name],
                self._state,
                partial(self._arrived, number),
            )

    def now_s(self) -> float:
        return time.time()

    def start(self, call: BoxCall) -> None:
        if self._stopping:
            return  # what is under way is finished, nothing new begins
        self._running += 1
        self._pool.submit(self._run, call)

    def next_event(self, wake_at_s: float) -> Event | None:
        """Waits on the queue; what passes outside this method is the scheduler's own time."""
        if self._returned_at_s is not None:
            self.scheduler_s += time.perf_counter() - self._returned_at_s
        event = self._wait(wake_at_s)
        if isinstance(event, StepFinished | CallGone):
            self._running -= 1
        self._returned_at_s = time.perf_counter()
        return event

    def drain(self) -> None:
        """Stops ingest; the run ends when everything that has arrived is processed."""
        self._watching = False
        for ingest in list(self._ingests.values()):
            ingest.stop()
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

    def forget(self, stream: int, passed: int) -> None:
        """Drops trains that every consumer has passed and retention no longer asks for."""
        name = self._network.streams[stream].name
        before_s = self.now_s() - self._retention_s
        old = [
            train.number
            for train in self._journal.trains(name)
            if train.number < passed and train.mean_arrived_at_s <= before_s
        ]
        if old:
            self._logs[name].drop(max(old) + 1)

    def close(self) -> None:
        """Ends ingest, lets calls under way finish, closes the journal."""
        if self._totals is not None:
            return
        self._watching = False
        for ingest in list(self._ingests.values()):
            ingest.stop()
        alarm = threading.Timer(
            max(0.1, self._give_up_at_s - time.monotonic()),
            self._session.sparkContext.cancelJobsWithTag,
            (self._tag,),
        )
        alarm.start()
        self._pool.shutdown(wait=True, cancel_futures=True)
        alarm.cancel()
        self._totals = self._journal.counts()
        self._journal.close()

    def _wait(self, wake_at_s: float) -> Event | None:
        while True:
            idle = not self._running and self._events.empty()
            if (self._stopping or self._draining) and idle:
                return None
            if self._stopping and time.monotonic() > self._give_up_at_s:
                return None
            left_s = wake_at_s - self.now_s()
            if left_s <= 0:
                return ClockTicked(self.now_s())
            if time.monotonic() >= self._look_at_s:
                self._look_at_s = time.monotonic() + 0.5
                self._look_after_ingest()
            try:
                return self._events.get(timeout=min(left_s, 0.5))
            except queue.Empty:
                continue

    def _look_after_ingest(self) -> None:
        """Notices a source that died; the run ends once the last has and all is processed."""
        for name, ingest in list(self._ingests.items()):
            # In this order: drain() stops watching before it stops a source.
            if not ingest.isActive and self._watching:
                error = ingest.exception()
                del self._ingests[name]
                failure = StreamFailed(stream=name, cause=cause_of(error))
                self.failures.append(failure)
                log.warning("%s", failure)
                self._draining = not self._ingests

    def _arrived(self, stream: int, *trains: Train) -> None:
        self._events.put(
            TrainArrived(
                self.now_s(),
                stream,
                np.array([train.tuples for train in trains]),
                np.array([train.head_arrived_at_s for train in trains]),
                np.array([train.mean_arrived_at_s for train in trains]),
            )
        )

    def _run(self, call: BoxCall) -> None:
        """A worker's turn: the call as one job or, should that fail, each member alone."""
        began_s = time.perf_counter()
        paths = tuple(self._network.paths[unit] for unit in call.units)
        work = Work(paths, call.first_train, call.end_train, call.tuples)
        try:
            responses = self._evaluate_and_commit(work)
        except Exception as error:
            log.debug("call=%s failed together: %s", call.number, error)
            if self._stopping:  # interrupted, not committed: the next start runs it
                self._events.put(CallGone(self.now_s()))
                return
            responses = [self._alone(call, unit, work) for unit in call.units]
        took_s = time.perf_counter() - began_s
        outs = tuple(len(response_s) for response_s in responses)
        self._events.put(StepFinished(self.now_s(), call, took_s, outs, tuple(responses)))

    def _alone(self, call: BoxCall, unit: int, work: Work) -> Floats:
        path: Path = self._network.paths[unit]
        try:
            return self._evaluate_and_commit(replace(work, paths=(path,)))[0]
        except Exception as error:
            if not self._stopping:
                failure = StepFailed(
                    query=path.query.name,
                    stream=path.stream,
                    trains=(call.first_train, call.end_train - 1),
                    attempts=2,
                    cause=cause_of(error),
                )
                log.warning("%s", failure)
                self._events.put(UnitFailed(self.now_s(), unit, call, failure))
            return NOTHING

    def _evaluate_and_commit(self, work: Work) -> list[Floats]:
        if not hasattr(self._sessions, "own"):
            self._sessions.own = own_session(self._session)
            self._session.sparkContext.addJobTag(self._tag)
        outputs = self._executor.run(self._sessions.own, work)
        committed_at_s = self.now_s()
        return [committed_at_s - output.arrived_at_s for output in outputs]
