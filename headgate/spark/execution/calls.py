"""Calls under way: workers run them, failed ones are retried, and events report how they went."""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from operator import mul
from typing import Protocol
from uuid import uuid4

import numpy as np
from pyspark.sql import SparkSession

from headgate.errors import (
    CallTimedOut,
    LogFull,
    LogUnwritable,
    ResultsHidden,
    SinkBehind,
    SinkUnwritable,
    StepFailed,
)
from headgate.model.arrays import Floats
from headgate.model.events import ClockTicked, Event, StepFinished, UnitDelayed, UnitFailed
from headgate.model.network.network import Path
from headgate.model.plan import BoxCall
from headgate.spark.execution.backfill import Backfill
from headgate.spark.execution.executor import Executor
from headgate.spark.execution.workers import Task, Turn, Workers
from headgate.spark.jvm.cpu_time import CpuTime
from headgate.spark.jvm.errors import SPARK_ERRORS, cause_of, is_of_row
from headgate.spark.jvm.session import own_session
from headgate.spark.jvm.waiting_jobs import waits_for_cores
from headgate.spark.output import Output
from headgate.spark.time_limit import GRACE_S
from headgate.spark.work import Work

log = logging.getLogger("headgate.spark")

NOTHING: Floats = np.zeros(0)

ATTEMPTS = 3
PAUSE_S = 0.5
"""A query whose call fails is retried after PAUSE_S, then after twice as long. After ATTEMPTS
failures in a row the query has failed."""

SURELY_S = 1.0
"""A call that takes longer is asked whether its jobs wait for a core."""


class CallGone(ClockTicked):
    """A call was interrupted and leaves no outcome."""


class Queries(Protocol):
    """The queries that calls run, looked up by the id of a unit."""

    def path_of(self, unit: int) -> Path: ...

    def segments_of(self, unit: int) -> list[int]: ...


class Calls:
    """Runs calls and reports how they went.

    Args:
        tell: takes the events, from any thread.
        call_timeout_s: how long a call may take; after that its query has failed.
    """

    def __init__(
        self,
        session: SparkSession,
        executor: Executor,
        queries: Queries,
        *,
        workers: int,
        now_s: Callable[[], float],
        tell: Callable[[Event], None],
        call_timeout_s: float,
        backfill: Backfill,
    ) -> None:
        self._session, self._executor, self._queries = session, executor, queries
        self._now_s, self._tell, self._call_timeout_s = now_s, tell, call_timeout_s
        self._backfill = backfill
        self._tag = f"headgate-{uuid4().hex}"
        self._workers = Workers(workers, self._run, self._tag)
        self._sessions = threading.local()
        self._cpu_time = CpuTime(session)
        self._under_way: dict[int, BoxCall] = {}
        self._most_apart, self._settling = workers, threading.Lock()
        self._looked_at_s = time.monotonic()
        self.attempts: dict[int, int] = {}
        """By unit that will be retried, how often it has failed."""
        self.running = 0
        self.stopping = self.draining = False

    def start(self, call: BoxCall) -> None:
        if self.stopping:
            return  # calls under way are finished, new ones do not begin
        self.running += 1
        self._under_way[call.number] = call
        task = Task(call, left=[], turns=1)
        self._workers.submit(Turn(task, call.units, self._call_timeout_s))

    def note(self, event: Event | None) -> None:
        """Remove a call from those under way when the scheduler is about to receive its end."""
        if isinstance(event, StepFinished | CallGone):
            self.running -= 1
        if isinstance(event, StepFinished):
            del self._under_way[event.call.number]

    def runs_any(self, units: set[int]) -> bool:
        """Return True if a call of one of these units is under way."""
        return any(units & set(call.units) for call in self._under_way.values())

    def look_after(self) -> None:
        """Abandon the calls that take too long, all at once, and give others fresh workers.

        The jobs of a call that hangs may hold all cores. So the time does not count in which the
        jobs of a call wait for a core: that call is held up by others.
        """
        now_s = time.monotonic()
        passed_s, self._looked_at_s = now_s - self._looked_at_s, now_s
        for turn in self._workers.running():
            took_s = now_s - turn.since_s
            if took_s > SURELY_S and waits_for_cores(self._session, turn.tag):
                self._wait(turn, min(passed_s, took_s))
            elif took_s - turn.waited_s > self._call_timeout_s and turn.abandon(
                self._session.sparkContext.cancelJobsWithTag
            ):
                arrangement = self._executor.arrangement
                arrangement.renew(self._queries.path_of(unit) for unit in turn.units)
                self._workers.replace(turn)
                self._settle(turn, [CallTimedOut(limit_s=self._call_timeout_s)] * len(turn.units))

    def _wait(self, turn: Turn, seconds: float) -> None:
        limit_s = self._call_timeout_s
        if turn.waited_s < limit_s <= turn.waited_s + seconds:
            names = ", ".join(self._queries.path_of(unit).query.name for unit in turn.units)
            log.warning("a call of %s has waited %g s for a core", names, limit_s)
        turn.waited_s += seconds

    def close(self, patience_s: float) -> None:
        """Wait for the calls under way; interrupt those that take longer than `patience_s`."""
        context = self._session.sparkContext
        alarm = threading.Timer(patience_s, context.cancelJobsWithTag, (self._tag,))
        alarm.start()
        self._workers.close(patience_s + GRACE_S)
        alarm.cancel()
        self._cpu_time.end()

    def _next_turns(self, task: Task) -> list[Turn]:
        """Return the turns of a call that may begin, each in a thread of its own."""
        units = task.left[: max(0, self._most_apart - task.turns)]
        del task.left[: len(units)]
        task.turns += len(units)
        return [Turn(task, alone, self._call_timeout_s, is_apart=True) for alone in units]

    def _run(self, turn: Turn) -> None:
        """Run a turn on a worker's thread: evaluate, commit, and report how it went."""
        began_s, call = time.perf_counter(), turn.task.call
        cpu_began_s = self._cpu_time.at_begin_s()
        paths = tuple(self._queries.path_of(unit) for unit in turn.units)
        chosen = dict(call.orders)
        orders = {
            path.query.name: chosen[unit]
            for unit, path in zip(turn.units, paths, strict=True)
            if unit in chosen
        }
        work = Work(paths, call.first_train, call.end_train, call.tuples, call.lane, orders)
        lane = ""
        try:
            outputs, lane = self._executor.run(self._worker_session(turn.tag), work, turn)
        except Exception as error:  # nothing was committed
            outputs = [error] * len(paths)
        ended_s, committed_at_s = time.perf_counter(), self._now_s()
        if not turn.end():
            return  # abandoned, and settled already
        samples = [] if self.stopping else self._executor.sampled(turn.units, work)
        cpu_s = self._cpu_s(turn, lane, cpu_began_s)
        with self._settling:
            turn.task.lane = lane or turn.task.lane
            turn.task.seconds += time.perf_counter() - began_s
            if cpu_s is not None:
                turn.task.cpu_s = (turn.task.cpu_s or 0.0) + cpu_s
            turn.task.committed_at_s = max(turn.task.committed_at_s or 0.0, committed_at_s)
            turn.task.commit_s = ended_s - (turn.commits_since_s or ended_s)
            turn.task.samples += samples
        self._settle(turn, outputs)

    def _cpu_s(self, turn: Turn, lane: str, began_s: float | None) -> float | None:
        """Return the CPU time of a turn in its threads and, for jobs, in tasks; None if unknown."""
        now_s = None if began_s is None else self._cpu_time.of_thread_s()
        if began_s is None or now_s is None:
            return None
        tasks_s = self._cpu_time.of_jobs_s(turn.tag) if lane != "driver" else 0.0
        return max(0.0, now_s - began_s) + tasks_s

    def _settle(self, turn: Turn, outputs: Sequence[Output | Exception]) -> None:
        """Record the outcomes of a turn.

        Units that together took too long then run each alone, some at the same time, so that those
        that hang do so together, and do not hold up the others.
        """
        task = turn.task
        timed_out = all(isinstance(output, CallTimedOut) for output in outputs)
        with self._settling:
            if timed_out and len(turn.units) > 1:
                task.left += [(unit,) for unit in turn.units]
            else:
                task.outcomes.update(zip(turn.units, outputs, strict=True))
            task.turns -= 1
            turns = [] if self.stopping else self._next_turns(task)
            has_ended = not task.turns
        for new_turn in turns:
            self._workers.submit(new_turn)
        if has_ended:
            self._finish(task)

    def _finish(self, task: Task) -> None:
        call, committed_at_s = task.call, task.committed_at_s or self._now_s()
        stopped = CallTimedOut(limit_s=self._call_timeout_s)
        outputs = [task.outcomes.get(unit, stopped) for unit in call.units]
        failed = [
            (unit, output)
            for unit, output in zip(call.units, outputs, strict=True)
            if isinstance(output, Exception)
        ]
        if failed and self.stopping:  # perhaps interrupted: the next start runs it again
            self._tell(CallGone(self._now_s()))
            return
        for unit, output in failed:
            self._fail(call, unit, output)
        paths = [self._queries.path_of(unit) for unit in call.units]
        old = [
            isinstance(output, Output) and self._backfill.has(unit, path, call.first_train)
            for unit, path, output in zip(call.units, paths, outputs, strict=True)
        ]
        ends = [path.into is None and not is_old for path, is_old in zip(paths, old, strict=True)]
        responses = tuple(
            committed_at_s - output.arrived_at_s if isinstance(output, Output) and end else NOTHING
            for output, end in zip(outputs, ends, strict=True)
        )
        tardiness = tuple(
            np.maximum(0.0, committed_at_s - output.due_at_s)
            if isinstance(output, Output) and output.due_at_s is not None and end
            else NOTHING
            for output, end in zip(outputs, ends, strict=True)
        )
        idle = tuple(
            output.idle_s if isinstance(output, Output) and output.idle_s is not None and end
            else np.zeros(len(responses_s))
            for output, end, responses_s in zip(outputs, ends, responses, strict=True)
        )  # fmt: skip
        outs = tuple(
            output.table.num_rows if isinstance(output, Output) else 0 for output in outputs
        )
        shed = tuple(output.shed if isinstance(output, Output) else 0 for output in outputs)
        instants = tuple(output.instants if isinstance(output, Output) else 0 for output in outputs)
        for unit in set(call.units).difference(unit for unit, _ in failed):
            self.attempts.pop(unit, None)
        self._tell(
            StepFinished(
                committed_at_s, call, task.seconds, outs, responses,
                failed=tuple(unit for unit, _ in failed), lane=task.lane,
                instants=() if instants == outs else instants, samples=tuple(task.samples),
                tardiness_s=tardiness if any(map(len, tardiness)) else (),
                idle_s=idle if any(map(np.any, idle)) else (),
                backfilled=tuple(map(mul, outs, old)) if any(old) else (),
                shed=shed if any(shed) else (), cpu_s=task.cpu_s, commit_s=task.commit_s,
            )
        )  # fmt: skip

    def _fail(self, call: BoxCall, unit: int, error: Exception) -> None:
        """Retry a unit later or, after the last attempt, report that its query has failed."""
        path = self._queries.path_of(unit)
        if isinstance(error, (CallTimedOut, *SPARK_ERRORS)):
            self._executor.arrangement.leave_out(path)
        attempts = self.attempts[unit] = self.attempts.get(unit, 0) + 1
        failure = StepFailed(
            query=path.query.name,
            stream=path.stream,
            trains=(call.first_train, call.end_train - 1),
            attempts=attempts,
            cause=cause_of(error),
            **_fix_of(error, path.query.name),
        )
        # A journal or log that cannot be written, as on a full disk, is not the query's failure.
        state_unwritable = isinstance(error, sqlite3.OperationalError | LogUnwritable)
        waits = (state_unwritable or isinstance(error, ResultsHidden)) and not self.draining
        waits |= isinstance(error, LogFull)
        if waits or (attempts < ATTEMPTS and not isinstance(error, CallTimedOut)):
            level = logging.WARNING if state_unwritable and attempts == 1 else logging.INFO
            pause_s = PAUSE_S * 2 ** min(attempts - 1, ATTEMPTS)
            log.log(
                level, "query '%s': attempt %s on trains %s..%s of stream '%s' failed, the next is"
                " in %g s: %s", path.query.name, attempts, *failure.trains, path.stream, pause_s,
                failure.cause,
            )  # fmt: skip
            until_s = self._now_s() + pause_s
            self._tell(UnitDelayed(self._now_s(), unit, until_s, failure))
        else:
            del self.attempts[unit]
            log.warning("%s", failure)
            for segment in self._queries.segments_of(unit):
                self._tell(UnitFailed(self._now_s(), segment, call, failure))

    def _worker_session(self, tag: str) -> SparkSession:
        if not hasattr(self._sessions, "session"):
            self._sessions.session = own_session(self._session)
            for job_tag in (self._tag, tag):
                self._session.sparkContext.addJobTag(job_tag)
        session: SparkSession = self._sessions.session
        return session


def _fix_of(error: Exception, query: str) -> dict[str, str]:
    """Return what to do about the error of a query, if that is not the usual."""
    if isinstance(error, SinkBehind | SinkUnwritable):
        return {"fix": error.fix}
    if is_of_row(error):  # the tuple is in the log: nobody can correct it any more
        leave_out = f"leave such tuples out by `headgate set query {query} --on-error dead_letter`"
        return {"fix": f"{leave_out}, or give the query another text by `headgate alter`"}
    return {}
