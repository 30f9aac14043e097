"""One run on Spark: the engine, the scheduler, the metrics, and the thread of the loop."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path as File
from typing import Any

from headgate.metrics.histogram import Histogram
from headgate.metrics.last_minute import Counts, LastMinute
from headgate.metrics.report import Report
from headgate.metrics.run import RunMetrics
from headgate.model.events import Event, NetworkChanged, Overloaded, StepFinished, units_in
from headgate.model.network.network import Network
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.plan import ALL, LANES
from headgate.model.query import QueryStatistics
from headgate.model.settings import Settings
from headgate.policies import Policy
from headgate.runtime.listeners import Guarded, Listener, Observed
from headgate.runtime.recording.recorder import Recorder
from headgate.runtime.recording.statistics_file import record_statistics, recorded_statistics
from headgate.runtime.run.call_log import CallLog
from headgate.runtime.run.guarded_scheduler import GuardedScheduler
from headgate.runtime.run.live_query import LiveQuery
from headgate.runtime.run.scheduler_timer import Timed
from headgate.runtime.run.spans import Spans
from headgate.runtime.run.spark_room import LiveEngine
from headgate.scheduler.engine import Engine
from headgate.scheduler.loop import run
from headgate.scheduler.statistics import Statistics

log = logging.getLogger("headgate")

FORGET_EVERY_S = 5.0
"""How often trains that no query needs are dropped."""

SAVE_EVERY_S = 30.0
"""How often statistics are saved; a run that is killed loses no more than those since."""


class Running:
    """A run, made before the first tuple; `start` begins the loop, in a thread of its own.

    Args:
        statistics: of the queries, at the start.
        state: the directory with the statistics file.
    """

    def __init__(
        self,
        engine: LiveEngine,
        network: Network,
        policy: Policy,
        statistics: Mapping[str, QueryStatistics],
        state: File,
        settings: Settings,
    ) -> None:
        self.engine, self._first_statistics, self._state = engine, statistics, state
        self.workers, self._traces = settings.workers, settings.traces
        table = unit_table(units_of(network), statistics)
        self.scheduler = GuardedScheduler(
            network, table, policy, shed=engine.shed, loss_of=engine.loss_of,
            statistics=Statistics(table),
            first_trains=engine.first_trains, cursors=engine.cursors, groups=engine.groups,
            workers=settings.workers, train_tuples=settings.train_tuples or ALL,
            call_s=settings.call_s or inf,
            most_fused=settings.most_fused, shared_priority=settings.shared_priority,
            lane=settings.lane, call_bytes=settings.memory_bytes / 8 / settings.workers,
        )  # fmt: skip
        recorded = recorded_statistics(state)
        assert self.scheduler.overload is not None
        self.scheduler.overload.trust(
            [number for number, unit in network.places.items()
             if network.paths[unit].known_as in recorded]
        )  # fmt: skip
        self._timed = Timed(self.scheduler)
        self._metrics, self._lock = RunMetrics(network, table), threading.Lock()
        self._last_minute = LastMinute()
        self.call_log = CallLog(engine.first_trains, self.scheduler.decisions)
        self._bound: dict[int, LiveQuery] = {}
        self.names: dict[int, str] = {}
        """The names of queries by id, also of versions and queries that are gone."""
        self._warned: set[int] = set()
        """The queries that were warned of."""
        self._wishes: deque[Callable[[], None]] = deque()
        self._begun: tuple[int, ...] = ()
        """The ids of units that the last change of the network has begun."""
        self._recorder: Recorder | None = None
        self._loop: threading.Thread | None = None
        self._crash: BaseException | None = None
        self._forget_at_s = self._save_at_s = 0.0

    def bind(self, number: int, query: LiveQuery) -> None:
        """Connect a query under its id, so that it gets its events."""
        engine = self.engine
        receiver = engine.receiver_of(query.name)
        if query.id != number:  # not one that was restarted, whose figures go on
            query.bound_at_s = engine.now_s()
        query.bind(number, self.scheduler, engine.changes.stop_query, receiver)
        self._bound[number], self.names[number] = query, query.name

    def release(self, number: int) -> None:
        """Disconnect a query that was dropped."""
        self._bound.pop(number, None)

    def start(self, listeners: Sequence[Listener], *, record: bool) -> None:
        """Start ingest and the loop."""
        heard: list[Listener] = [self._hear, *map(Guarded, listeners)]
        if self._traces:
            heard.append(Guarded(Spans(lambda: self.scheduler.network)))
        observed: Engine = Observed(self.engine, heard)
        if record:
            observed = self._recorder = Recorder(
                observed, self._state, self.scheduler, self._first_statistics
            )
        self.engine.begin()  # last: it removes what the last run has left
        self._loop = threading.Thread(
            target=self._run, args=(observed,), name="headgate-loop", daemon=True
        )
        self._loop.start()

    @property
    def is_alive(self) -> bool:
        return self._loop is not None and self._loop.is_alive()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; return False if time ran out first. Raise what ended the run."""
        assert self._loop is not None
        self._loop.join(timeout_s)
        if self._crash is not None:
            raise self._crash
        return not self._loop.is_alive()

    def stop(self) -> None:
        """End the run cleanly and save its statistics."""
        self.engine.stop()
        try:
            self.wait()
            self._forget()
        finally:
            self.engine.close()
            if self._recorder is not None:
                self._recorder.close(self._measured_statistics())
        self._save_statistics()

    def wish(self, change: Callable[[], None]) -> None:
        """Queue a change, which the scheduler's thread makes at its next event."""
        self._wishes.append(change)

    def report(self, policy: str) -> Report:
        """Return the report of the run so far."""
        with self._lock:
            engine, errors = self.engine, (*self._metrics.errors, *self.engine.failures)
            report = Report.of(
                policy, self._metrics, self._timed.seconds, errors, engine.loop_s,
                self.workers, engine.storage_s,
            )  # fmt: skip
        return replace(report, dead_letters=self.engine.query_letters())

    def last_minute(self, now_s: float) -> tuple[Counts, ...]:
        """Return what was counted in the last minute."""
        with self._lock:
            return self._last_minute.counts(now_s)

    def responses(self) -> tuple[dict[str, Histogram], dict[str, Histogram]]:
        """Return histograms of the response times, by query and by class."""
        with self._lock:
            return self._metrics.responses()

    def oldest_arrived_at_s(self, units: Sequence[int]) -> float | None:
        """Return when the oldest tuple that waits at units arrived; None if none waits."""
        rows = [self.scheduler.rows.unit(unit) for unit in units]
        heads_s = [float(row["head_arrived_at_s"]) for row in rows if row is not None]
        return min((head_s for head_s in heads_s if head_s < inf), default=None)

    def pending(self, units: Sequence[int]) -> int:
        """Return the tuples that wait at units; 0 for a unit that the scheduler does not have."""
        rows = [self.scheduler.rows.unit(unit) for unit in units]
        return sum(int(row["pending"]) for row in rows if row is not None)

    def shedding(self, units: Sequence[int]) -> dict[str, Any] | None:
        """Return the share of its tuples that a query drops, and why; None if it drops none."""
        overload = self.scheduler.overload
        assert overload is not None
        left, reason = 1.0, ""
        for unit in units:
            fraction, why = overload.dropped(unit)
            left, reason = left * (1 - fraction), reason or why
        return {"fraction": 1 - left, "reason": reason} if left < 1 else None

    def unmet(self, unit: int) -> str | None:
        """Return what is asked of a query that its costs cannot meet; None if nothing is."""
        overload = self.scheduler.overload
        assert overload is not None
        return overload.infeasible(unit) or None

    def _warn_of_unmet(self) -> None:
        """Warn once of each query of which more is asked than its measured costs can meet."""
        for number, query in list(self._bound.items()):  # at once: other threads bind queries
            if number not in self._warned and (text := self.unmet(number)) is not None:
                self._warned.add(number)
                log.warning("query '%s' cannot deliver what is asked: %s", query.name, text)

    def _run(self, engine: Engine) -> None:
        try:
            run(self._timed, engine)
        except BaseException as error:
            self._crash = self.engine.cause_of(error)

    def _hear(self, event: Event) -> None:
        with self._lock:
            self._follow()
            self._metrics.hear(event)
            if isinstance(event, StepFinished):
                self._last_minute.hear(event)
        self.call_log.hear(event, self.scheduler.policy.name)
        for position, unit in enumerate(units_in(event)):
            if (query := self._bound.get(unit)) is not None:
                query.hear(event, position)
        self._make_wishes()
        if isinstance(event, NetworkChanged):
            self._begun = tuple(event.cursors)
        if isinstance(event, Overloaded) or event.at_s >= self._forget_at_s:
            self._forget_at_s = event.at_s + FORGET_EVERY_S
            self._forget()
            self._warn_of_unmet()
        if event.at_s >= self._save_at_s:
            self._save_at_s = event.at_s + SAVE_EVERY_S
            self._save_statistics()

    def _follow(self) -> None:
        """Change the metrics to the units that the scheduler has."""
        if self._metrics.table is not self.scheduler.table:
            self._metrics.change(self.scheduler.network, self.scheduler.table, self._begun)

    def _make_wishes(self) -> None:
        """Change the policy as was asked; an error of a policy of the user's own ends no run."""
        while self._wishes:
            try:
                self._wishes.popleft()()
            except Exception:
                log.exception("the policy '%s' could not be changed", self.scheduler.policy.name)

    def _forget(self) -> None:
        """Drop trains that every query has passed, as retention allows."""
        for stream in range(len(self.scheduler.network.streams)):
            self.engine.forget(stream, self.scheduler.passed(stream))

    def _save_statistics(self) -> None:
        """Save the measured statistics, for the next run and for simulations."""
        members = self.engine.members
        left = members.dropped_names
        try:
            record_statistics(self._state, self._measured_statistics(), left)
        except OSError as error:
            log.warning("statistics could not be saved: %s", error)
        else:
            members.forget(left)

    def _measured_statistics(self) -> dict[str, QueryStatistics]:
        """Return the measured statistics of the queries that have run."""
        metrics, alone_s = self._metrics, self.engine.rehearsal.alone_s
        return {
            path.known_as: QueryStatistics(
                cost_s=float(row["box_cost_s"]),
                selectivity=float(row["box_selectivity"]),
                overhead_s=float(row["overhead_s"]),
                alone_s=alone_s.get(path.known_as, 0.0),
                lane=LANES[row["lane"]],
            )
            for path, line, row in zip(
                metrics.network.paths, metrics.by_query(), metrics.table, strict=True
            )
            if line.tuples_in
        }
