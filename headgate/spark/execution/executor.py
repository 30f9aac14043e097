"""The executor: evaluates box calls in the driver or as Spark jobs, and commits the results."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.model.events import ConditionSample
from headgate.model.network.network import Path
from headgate.model.plan import Lane, Share
from headgate.spark.event_time.timeline_reader import TimelineReader
from headgate.spark.execution.arrangement import Arrangement
from headgate.spark.execution.call_drops import CallDrops
from headgate.spark.execution.condition_sampling import ConditionSampler
from headgate.spark.execution.dead_rows import without_bad_rows
from headgate.spark.execution.row_origins import produced
from headgate.spark.execution.workers import Turn
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal
from headgate.spark.jvm.lane.plan_runner import DriverLane
from headgate.spark.log.budget import Budget
from headgate.spark.log.shedding_rules import SheddingRules
from headgate.spark.log.stream_log import StreamLog
from headgate.spark.log.trains import Trains
from headgate.spark.output import Output
from headgate.spark.sharing.group_plan import Prepared
from headgate.spark.sinks.commit import Commits
from headgate.spark.sinks.derived_streams import DerivedStreams
from headgate.spark.sinks.files.file_sink import FileSink
from headgate.spark.windows.queries import WindowedQueries
from headgate.spark.work import Work

log = logging.getLogger("headgate.spark")

NO_ROWS = Output(pa.table({}), np.zeros(0))
"""The output of a call of which every tuple is dropped."""


class Executor:
    """Evaluates and commits calls; safe to use from several workers, each with its own session.

    Args:
        share: between which queries equal parts run once.
        reached: called at every point where a crash must lose nothing; a test raises there.
    """

    def __init__(
        self,
        journal: Journal,
        logs: Mapping[str, StreamLog],
        sinks: Mapping[str, FileSink],
        reached: Callable[[str], None],
        driver: DriverLane,
        budget: Budget | None = None,
        timelines: Mapping[str, TimelineReader] | None = None,
        derived: DerivedStreams | None = None,
        *,
        share: Share = "class",
    ) -> None:
        self._budget, self.driver = budget, driver
        self._journal, self._logs = journal, logs
        self._timelines, self._derived = {} if timelines is None else timelines, derived
        self.arrangement = Arrangement(driver, sinks, share)
        self.rules = SheddingRules(journal, reached)
        self._drops = CallDrops(journal, self.rules)
        self.windowed = WindowedQueries(
            self._timelines, logs, sinks, driver, share, self.rules, Cursors(journal).letters_from
        )
        self.commits = Commits(journal, sinks, reached, derived)
        self._sampler = ConditionSampler(driver, self.arrangement.parts)

    def source(self, stream: str) -> StreamLog:
        """Return the log that holds the tuples of a stream."""
        return self._logs[stream]

    def trains(self, stream: str, first: int, end: int, tuples: int) -> Trains:
        """Return trains first, ..., end − 1 of a stream, which together have `tuples` tuples."""
        if stream in self._timelines:
            return self._timelines[stream].trains(first, end, tuples)
        return self.source(stream).trains(first, end, tuples)

    def forget(self, query: str) -> None:
        """Forget a query that was dropped."""
        self.arrangement.forget(query)
        self.windowed.forget(query)
        self._sampler.forget(query)

    def evaluate(
        self,
        session: SparkSession,
        paths: Sequence[Path],
        trains: Trains,
        lane: Lane,
        check: Callable[[], None] = lambda: None,
    ) -> tuple[list[Output | Exception], Lane]:
        """Return the results of each query, or its error, and the lane that most queries took.

        Args:
            lane: the lane for all queries but those that need a job.
            check: raises when nothing more may begin.
        """
        parts: dict[Any, tuple[Prepared, list[Path]]] = {}
        outcomes: dict[str, Output | Exception] = {}
        lanes: list[Lane] = []
        arrangement = self.arrangement
        drops = {path.query.name: self._drops.of(path, trains) for path in paths}
        twins = {
            name: twin if drops[name] == drops.get(twin) else name
            for name, twin in arrangement.twins(paths).items()
        }
        shared_reads: dict[Any, Any] = {}
        for path in paths:
            name = path.query.name
            if twins.get(name, name) != name:
                continue
            if path.stream in self._timelines:
                check()
                outcomes[name] = self.windowed.run(session, lane, path, trains, shared_reads)
                lanes.append("job" if self.windowed.needs_job(path) else lane)
                continue
            prepared = arrangement.solo(path) if len(paths) == 1 else arrangement.prepared(path)
            # Code that is shared drops a tuple only if all queries that it now runs for drop it.
            parts.setdefault((id(prepared), drops[name]), (prepared, []))[1].append(path)
        for (_, dropped), (prepared, members) in parts.items():
            left = self._drops.without_dropped(trains, dropped)
            if left.tuples or not trains.tuples:
                lanes.append(
                    self._evaluate_members(session, prepared, members, left, lane, outcomes, check)
                )
            for path in members:
                output = outcomes.get(path.query.name, NO_ROWS)
                if dropped and isinstance(output, Output):
                    shed = trains.tuples - left.tuples
                    outcomes[path.query.name] = replace(output, shed=shed)
        main_lane: Lane = "job" if lanes.count("job") * 2 > len(lanes) else "driver"
        names = [path.query.name for path in paths]
        return [outcomes[twins.get(name, name)] for name in names], main_lane

    def measure(
        self, session: SparkSession, path: Path, trains: Trains, lane: Lane
    ) -> tuple[float, Lane]:
        """Run one query alone; return its seconds and its lane, or raise its error."""
        prepared = self.arrangement.solo(path)
        if lane == "driver":
            prepared.prepare()
        began_s = time.perf_counter()
        _, used_lane = prepared.run_or_repeat(session, lane, trains, [path.query.name], "")
        return time.perf_counter() - began_s, used_lane

    def _evaluate_members(
        self,
        session: SparkSession,
        prepared: Prepared,
        members: list[Path],
        trains: Trains,
        lane: Lane,
        outcomes: dict[str, Output | Exception],
        check: Callable[[], None],
    ) -> Lane:
        """Evaluate members at once or, if that fails, each alone; return the lane.

        Shared code may fail for a query that is not among the members, even one that was dropped.
        """
        check()
        names = [path.query.name for path in members]
        try:
            if members[0].query.on_error == "dead_letter" and not prepared.is_shared:
                output, used_lane = without_bad_rows(
                    session, prepared, members[0], trains, lane, check
                )
                if output.letters:
                    self.arrangement.leave_out(members[0])
                outcomes[names[0]] = output
                return used_lane
            outputs, used_lane = prepared.run_or_repeat(session, lane, trains, names, "")
            outcomes.update(zip(names, outputs, strict=True))
            return used_lane
        except Exception as error:
            if not prepared.is_shared:
                outcomes[names[0]] = error
                return "job"
            log.debug("%s queries failed together: %s", len(members), error)
            for path in members:
                alone = self.arrangement.solo(path)
                self._evaluate_members(session, alone, [path], trains, lane, outcomes, check)
        return "job"

    def run(
        self, session: SparkSession, work: Work, turn: Turn | None = None
    ) -> tuple[list[Output | Exception], Lane]:
        """Evaluate a call and commit the results of the queries that succeeded, all or none."""
        check = (lambda: None) if turn is None else turn.check
        stream, derived = work.paths[0].stream, self._derived
        self.arrangement.reorder(work.orders)
        if derived is not None and derived.needs_numbers(work.paths):
            outputs, lane = produced(
                self.evaluate, derived, self._journal, self.source(stream), session, work, check
            )
        else:
            trains = self.trains(stream, work.first_train, work.end_train, work.tuples)
            outputs, lane = self.evaluate(session, work.paths, trains, work.lane, check)
        if turn is not None:
            turn.commits()
        output_bytes = sum(output.table.nbytes for output in outputs if isinstance(output, Output))
        holding = self._budget.holding(output_bytes) if self._budget else nullcontext()
        with holding, self._journal.storage:
            unwritten = self._commit_good(work, outputs)
        names = [path.query.name for path in work.paths]
        return [unwritten.get(name, out) for name, out in zip(names, outputs, strict=True)], lane

    def sampled(self, units: Sequence[int], work: Work) -> list[ConditionSample]:
        """Return samples of the conditions of a call's costly queries, where one is due."""
        samples = []
        for unit, path in zip(units, work.paths, strict=True):
            conditions = path.conditions
            if (
                len(conditions) > 1
                and any(c.calls for c in conditions)
                and self.arrangement.is_costly(path)
            ):
                trains = self.trains(path.stream, work.first_train, work.end_train, work.tuples)
                samples.append(self._sampler.sample(unit, path, work.tuples, trains.table))
        return [sample for sample in samples if sample is not None]

    def _commit_good(
        self, work: Work, outputs: Sequence[Output | Exception]
    ) -> Mapping[str, Exception]:
        good = [
            (path, output)
            for path, output in zip(work.paths, outputs, strict=True)
            if isinstance(output, Output)
        ]
        if not good:
            return {}
        timeline = self._timelines.get(work.paths[0].stream)
        if timeline is None:
            return self.commits(work, good)
        tuples = timeline.tuples(work.first_train, work.end_train)
        late = timeline.late(work.first_train, work.end_train)
        return self.commits(replace(work, tuples=tuples), good, late)
