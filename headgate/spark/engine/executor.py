"""The executor: evaluates box calls in the driver or as Spark jobs, and commits the results."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from headgate.model.events import ConditionSample
from headgate.model.network import Path
from headgate.model.plan import Lane, Share
from headgate.spark.engine.condition_sampling import ConditionSampler
from headgate.spark.engine.row_origins import produced
from headgate.spark.engine.workers import Turn
from headgate.spark.event_time.timeline import Timeline
from headgate.spark.jvm.lane.plan_runner import DriverLane
from headgate.spark.jvm.query.plans import Parts, Plan
from headgate.spark.log.budget import Budget
from headgate.spark.log.journal import Journal
from headgate.spark.log.stream_log import StreamLog, Trains
from headgate.spark.output import Output, numbered
from headgate.spark.sharing.constants_group import constants_group
from headgate.spark.sharing.group_plan import Prepared
from headgate.spark.sharing.mask_group import mask_group
from headgate.spark.sharing.sharing_plan import Member, Part, parts_of, shared_by
from headgate.spark.sharing.whole_query import WholeQuery
from headgate.spark.sinks.commit import Commits
from headgate.spark.sinks.derived_streams import DerivedStreams
from headgate.spark.sinks.files import FileSink
from headgate.spark.windows.queries import WindowedQueries
from headgate.spark.work import Work

log = logging.getLogger("headgate.spark")


class Executor:
    """Evaluates and commits calls; safe to use from several workers, each with its own session.

    `arrange` decides which queries share their code. A call may need only some of these queries.
    The shared code then runs for all of them and the other results are ignored: that is cheaper
    than separate code for every choice of members.

    Args:
        share: between which queries equal parts run once.
        reached: called at every point where a crash must lose nothing; a test raises there.
    """

    def __init__(
        self,
        session: SparkSession,
        journal: Journal,
        logs: Mapping[str, StreamLog],
        sinks: Mapping[str, FileSink],
        reached: Callable[[str], None],
        driver: DriverLane,
        budget: Budget | None = None,
        timelines: Mapping[str, Timeline] | None = None,
        derived: DerivedStreams | None = None,
        *,
        share: Share = "class",
    ) -> None:
        self._session, self._budget, self._share = session, budget, share
        self.driver = driver
        self._journal, self._logs, self._sinks = journal, logs, sinks
        self._timelines, self._derived = {} if timelines is None else timelines, derived
        self.windowed = WindowedQueries(self._timelines, logs, sinks, driver, share)
        self.commits = Commits(journal, sinks, reached, derived)
        self._shared: dict[str, Prepared] = {}
        self._alone: dict[str, Prepared] = {}
        self._lock, self._arranging = threading.Lock(), threading.Lock()
        self._parts_by_query: dict[str, tuple[Path, Parts]] = {}
        self._orders: dict[str, tuple[int, ...]] = {}
        self._sampler = ConditionSampler(driver, self._parts)

    def arrange(self, paths: Iterable[Path], costly: Callable[[Path], bool]) -> None:
        """Decide again which queries share their code."""
        with self._arranging:
            self._arranged, self._costly = list(paths), costly
            self._rearrange()

    def _rearrange(self) -> None:
        paths = self._arranged
        members = [Member(path, self._ordered(path)) for path in paths if not path.runs_whole]
        shared: dict[str, Prepared] = {}
        for part in parts_of(members, self._costly, self._share):
            prepared = self._shared.get(part.names[0])
            if prepared is None or prepared.part != part:
                prepared = self._prepare(part)
            shared.update(dict.fromkeys(part.names, prepared))
        with self._lock:
            self._shared = shared

    def group_numbers(self, paths: Sequence[Path]) -> list[int]:
        """Return a number for each path, equal for paths that share their code or their answer."""
        numbers: dict[object, int] = {}
        twins = self.twins(paths)
        with self._lock:
            shared = [self._shared.get(path.query.name) for path in paths]
        return [
            numbers.setdefault(
                id(prepared) if prepared else self._group_key(path, twins), len(numbers)
            )
            for path, prepared in zip(paths, shared, strict=True)
        ]

    def _group_key(self, path: Path, twins: Mapping[str, str]) -> object:
        """Return a key that is equal for queries that had better run in one call.

        Such queries have an answer, a join, or an aggregate in common. The windows of the aggregate
        may have different sizes.
        """
        stateful = path.stateful
        if stateful is not None and stateful.mode == "pairs":
            return shared_by(path, self._share), path.stream, stateful.inputs, stateful.join
        if stateful is not None and stateful.mode == "windows":
            return shared_by(path, self._share), path.stream, stateful.key
        return twins.get(path.query.name, path.query.name)

    def twins(self, paths: Iterable[Path]) -> dict[str, str]:
        """Return, for each query that runs whole, the query whose answer it uses.

        Equal queries use the answer of the first of them. Queries that do not run whole are in
        groups, which compute equal parts once.
        """
        first: dict[object, str] = {}
        twin_by_query = {}
        for path in paths:
            if path.runs_whole:
                shared = shared_by(path, self._share)
                windows = path.stateful.windows if path.stateful is not None else ()
                names, text = path.columns, self._whole_text(path)
                key = shared, path.stream, path.key, windows, path.query.apply, names, text
                twin_by_query[path.query.name] = first.setdefault(key, path.query.name)
        return twin_by_query

    def shared_whole(self, path: Path, paths: Sequence[Path]) -> tuple[list[str], str]:
        """Return the queries that share a whole query's answer, panes or join, and a description.

        Args:
            path: that of a query that runs whole.
            paths: those of all queries.
        """
        twins, name = self.twins(paths), path.query.name
        equal = [other for other, twin in twins.items() if twin == twins[name]]
        alike = [other for other in self.windowed.with_panes_of(name) if other not in equal]
        words = [f"one answer for {len(equal)} equal queries"] if len(equal) > 1 else []
        if alike:
            words.append(f"panes in common with {len(alike)} that aggregate alike")
        group_key = self._group_key(path, twins)
        joins = [
            other.query.name
            for other in paths
            if other.stateful is not None
            and other.stateful.mode == "pairs"
            and other.query.name not in equal
            and self._group_key(other, twins) == group_key
        ]
        if joins:
            words.append(f"a join in common with {len(joins)}")
            alike += joins
        return [*equal, *alike], ", ".join(words) or "single"

    def source(self, stream: str) -> StreamLog:
        """Return the log that holds the tuples of a stream."""
        return self._logs[stream]

    def trains(self, stream: str, first: int, end: int, tuples: int) -> Trains:
        """Return trains first, ..., end − 1 of a stream, which together have `tuples` tuples."""
        if stream in self._timelines:
            return self._timelines[stream].trains(first, end, tuples)
        return self.source(stream).trains(first, end, tuples)

    def prepared(self, path: Path) -> Prepared:
        """Return the plan that a query runs as when other queries are in its call."""
        with self._lock:
            return self._shared.get(path.query.name) or self._solo(path)

    def solo(self, path: Path) -> Prepared:
        """Return the plan that a query runs as when it is alone in its call."""
        with self._lock:
            return self._solo(path)

    def forget(self, query: str) -> None:
        with self._lock:
            self._alone.pop(query, None)
            self._parts_by_query.pop(query, None)
            self._orders.pop(query, None)
        self.windowed.forget(query)
        self._sampler.forget(query)

    def renew(self, paths: Iterable[Path]) -> None:
        """Have the code of queries generated again."""
        for path in paths:
            if path.stateful is None:
                self.prepared(path).renew()
                self.solo(path).renew()

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
        parts: dict[int, tuple[Prepared, list[Path]]] = {}
        outcomes: dict[str, Output | Exception] = {}
        lanes: list[Lane] = []
        twins = self.twins(paths)
        shared_reads: dict[Any, Any] = {}
        for path in paths:
            name = path.query.name
            if twins.get(name, name) != name:
                continue
            if path.stateful is not None:
                check()
                outcomes[name] = self.windowed.run(session, lane, path, trains, shared_reads)
                lanes.append("job" if self.windowed.needs_job(path) else lane)
                continue
            prepared = self.solo(path) if len(paths) == 1 else self.prepared(path)
            parts.setdefault(id(prepared), (prepared, []))[1].append(path)
        for prepared, members in parts.values():
            lanes.append(self._together(session, prepared, members, trains, lane, outcomes, check))
        main_lane: Lane = "job" if lanes.count("job") * 2 > len(lanes) else "driver"
        names = [path.query.name for path in paths]
        return [outcomes[twins.get(name, name)] for name in names], main_lane

    def measure(
        self, session: SparkSession, path: Path, trains: Trains, lane: Lane
    ) -> tuple[float, Lane]:
        """Run one query alone; return its seconds and its lane, or raise its error."""
        prepared = self.solo(path)
        if lane == "driver":
            prepared.prepare()
        began_s = time.perf_counter()
        _, used_lane = prepared.run_or_repeat(session, lane, trains, [path.query.name], "")
        return time.perf_counter() - began_s, used_lane

    def _together(
        self,
        session: SparkSession,
        prepared: Prepared,
        members: list[Path],
        trains: Trains,
        lane: Lane,
        outcomes: dict[str, Output | Exception],
        check: Callable[[], None],
    ) -> Lane:
        """Evaluate members at once or, if that fails, each alone; return the lane."""
        check()
        names = [path.query.name for path in members]
        try:
            outputs, used_lane = prepared.run_or_repeat(session, lane, trains, names, "")
            outcomes.update(zip(names, outputs, strict=True))
            return used_lane
        except Exception as error:
            if len(members) == 1:
                outcomes[names[0]] = error
                return "job"
            log.debug("%s queries failed together: %s", len(members), error)
            for path in members:
                self._together(session, self.solo(path), [path], trains, lane, outcomes, check)
        return "job"

    def run(
        self, session: SparkSession, work: Work, turn: Turn | None = None
    ) -> tuple[list[Output | Exception], Lane]:
        """Evaluate a call and commit the results of the queries that succeeded, all or none."""
        check = (lambda: None) if turn is None else turn.check
        stream, derived = work.paths[0].stream, self._derived
        self._reorder(work)
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
        with self._budget.holding(output_bytes) if self._budget else nullcontext():
            unwritten = self._commit_good(work, outputs)
        names = [path.query.name for path in work.paths]
        return [unwritten.get(name, out) for name, out in zip(names, outputs, strict=True)], lane

    def sampled(self, units: Sequence[int], work: Work) -> list[ConditionSample]:
        """Return samples of the conditions of a call's costly queries, where one is due."""
        samples = []
        for unit, path in zip(units, work.paths, strict=True):
            conditions = path.conditions
            if len(conditions) > 1 and any(c.calls for c in conditions) and self._costly(path):
                trains = self.trains(path.stream, work.first_train, work.end_train, work.tuples)
                samples.append(self._sampler.sample(unit, path, work.tuples, trains.table))
        return [sample for sample in samples if sample is not None]

    def _reorder(self, work: Work) -> None:
        """Make conditions run in the order that a call asks for."""
        changed = {
            name: order for name, order in work.orders.items() if self._orders.get(name) != order
        }
        if changed:
            with self._arranging:
                with self._lock:
                    self._orders.update(changed)
                    for name in changed:
                        self._alone.pop(name, None)
                self._rearrange()

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

    def _solo(self, path: Path) -> Prepared:
        name = path.query.name
        if name not in self._alone:
            self._alone[name] = self._prepare_alone(path)
        return self._alone[name]

    def _prepare_alone(self, path: Path) -> Prepared:
        if not path.runs_whole:
            return self._prepare(Part((Member(path, self._ordered(path)),)))
        plan = self._output_plan(path)
        whole = WholeQuery(path.stream, plan, {path.query.name: 0}, path.query.sql)
        return Prepared(None, whole, self.driver)

    def _prepare(self, part: Part) -> Prepared:
        paths = [member.path for member in part.members]
        parts = [member.parts for member in part.members]
        group = (constants_group if part.table else mask_group)(paths, parts)
        return Prepared(part, group, self.driver)

    def _ordered(self, path: Path) -> Parts:
        """Return the parts of a query, with its conditions in the order chosen for it."""
        parts, order = self._parts(path), self._orders.get(path.query.name)
        if order is None or len(order) != len(path.conditions):
            return parts
        return parts.ordered(order)

    def _parts(self, path: Path) -> Parts:
        """Return the parts of a query. With a text sink, a query has one output column."""
        cached = self._parts_by_query.get(path.query.name)
        if cached is None or cached[0].plan is not path.plan:
            parts = self._output_plan(path).parts
            assert parts is not None
            cached = self._parts_by_query[path.query.name] = path, parts
        return cached[1]

    def _output_plan(self, path: Path) -> Plan:
        """Return the plan of a query's output columns. With a text sink there is one column."""
        assert isinstance(path.plan, Plan)
        text = None if path.into is not None else self._whole_text(path)
        if text is None:
            return path.plan
        return path.plan.named(numbered(len(path.columns))).select(text)

    def _whole_text(self, path: Path) -> str | None:
        """Return the SQL of the one column that a text sink takes, or None for other sinks."""
        columns = numbered(len(path.columns))
        return self._sinks[path.query.name].text(columns, path.columns)
