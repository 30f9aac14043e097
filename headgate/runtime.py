"""Puts policy, scheduler and engine together: the only room that knows all three."""

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from headgate.config import Pipeline
from headgate.errors import (
    ConfigRefused,
    HeadgateError,
    QueryRefused,
    StatisticsMissing,
    UnknownName,
)
from headgate.handle import QueryHandle
from headgate.language.parse import path_of, whole
from headgate.language.refuse import refuse_luck, refuse_stateful
from headgate.metrics.report import Report
from headgate.metrics.run import RunMetrics
from headgate.model.events import Event, Floats, StepStarted
from headgate.model.network import Network, Path
from headgate.model.operator import Operator
from headgate.model.plan import ALL, BoxCall
from headgate.model.query import Query, QueryClass, QueryStatistics, Sink
from headgate.model.stream import Stream
from headgate.model.unit_table import unit_table
from headgate.policies import Policy, policy_named
from headgate.scheduler.engine import Engine
from headgate.scheduler.loop import run
from headgate.scheduler.scheduler import Scheduler
from headgate.scheduler.statistics import Statistics
from headgate.simulation.engine import SimulationEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STATISTICS = "statistics.json"
Listener = Callable[[Event], None]


class Observed:
    """An engine whose events are also told to listeners, starts included."""

    def __init__(self, engine: Engine, listeners: Sequence[Listener]) -> None:
        self._engine, self._listeners = engine, listeners

    def now_s(self) -> float:
        return self._engine.now_s()

    def start(self, call: BoxCall) -> None:
        self._tell(StepStarted(self.now_s(), call))
        self._engine.start(call)

    def next_event(self, wake_at_s: float) -> Event | None:
        event = self._engine.next_event(wake_at_s)
        if event is not None:
            self._tell(event)
        return event

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)


def simulate(
    network: Network,
    arrivals: Mapping[str, Floats],
    *,
    policy: str | Policy = "hr",
    statistics: Mapping[str, QueryStatistics] | None = None,
    seed: int = 0,
    workers: int = 1,
    train_tuples: int = 1,
    most_fused: int = 1,
    trigger_s: Mapping[str, float] | None = None,
    together: bool = False,
    fates: Mapping[str, Sequence[int]] | None = None,
    progress: Callable[[float], None] = lambda now_s: None,
    listeners: Sequence[Listener] = (),
) -> Report:
    """Runs a network in virtual time and reports what every query and class had of it.

    Args:
        arrivals: arrival times by stream, in seconds.
        train_tuples: tuples a call takes at the most; 1 decides for every tuple, as Sharaf does.
        trigger_s: by stream, how often its source is asked; without it a tuple is seen at once.
        together: results leave at the end of a call, as from a Spark job.
    """
    known = dict(statistics or {})
    network = replace(network, paths=tuple(_as_known(path, known) for path in network.paths))
    table = unit_table(network, known)
    chosen = policy_named(policy) if isinstance(policy, str) else policy
    engine = SimulationEngine(
        network, table, arrivals, seed=seed, workers=workers, trigger_s=trigger_s,
        together=together, fates=fates, progress=progress,
    )  # fmt: skip
    scheduler = Scheduler(
        network, table, chosen, workers=workers, train_tuples=train_tuples, most_fused=most_fused
    )
    metrics = RunMetrics(network, table)
    run(scheduler, Observed(engine, [metrics.hear, *listeners]))
    return Report.of(chosen.name, metrics)


class Headgate:
    """Many continuous queries on one Spark application, under one policy.

    Args:
        spark: an existing session; without one, a local session is started and stopped with us.
        state: the directory of log, journal, results and statistics. A run that finds one resumes.
        policy: a policy, or its name.
        classes: priority by class, the higher the more important.
        workers: calls under way at once; more than the cores only adds waiting.
        train_tuples: tuples a call takes at the most; a call takes at least one train.
        most_fused: queries that may share one Spark job.
        retention_s: how long trains are kept after every query has passed them.
        rehearsal_s: how long new queries may be warmed up and measured before the first tuple.
        master: which Spark to start when none is passed in, with `spark_config` as settings.
        reached: called at every point where a crash must lose nothing; a test raises there.
    """

    def __init__(
        self,
        spark: "SparkSession | None" = None,
        *,
        state: str | os.PathLike[str],
        policy: str | Policy = "cqc",
        classes: Mapping[str, float] | None = None,
        workers: int = 2,
        train_tuples: int = ALL,
        most_fused: int = 16,
        retention_s: float = 3600.0,
        rehearsal_s: float = 12.0,
        master: str = "local[*]",
        spark_config: Mapping[str, str] | None = None,
        reached: Callable[[str], None] = lambda point: None,
    ) -> None:
        from headgate.spark import room  # noqa: PLC0415  # simulation must start without Java

        self._room = room
        self.state = File(state).absolute()
        self.policy = policy_named(policy) if isinstance(policy, str) else policy
        self.classes = tuple(
            QueryClass(name=name, priority=priority)
            for name, priority in (classes or {"default": 1.0}).items()
        )
        self._workers, self._train_tuples, self._most_fused = workers, train_tuples, most_fused
        self._retention_s, self._rehearsal_s = retention_s, rehearsal_s
        self._reached = reached
        self._owns_session = spark is None
        self._session = spark or room.local_session(self.state, master, spark_config or {})
        room.quiet_python()
        self._analyst = room.Analyst(room.own_session(self._session))
        self._streams: list[Stream] = []
        self._schemas: dict[str, Any] = {}
        self._paths: list[Path] = []
        self._handles: dict[str, QueryHandle] = {}
        self._engine: Any = None
        self._metrics: RunMetrics | None = None
        self._scheduler: Scheduler | None = None
        self._loop: threading.Thread | None = None
        self._crash: BaseException | None = None
        self._lock = threading.Lock()
        self._forget_at_s = 0.0

    def add_stream(self, stream: Stream) -> None:
        """Adds a stream; its source is opened to learn the schema.

        Raises:
            ConfigRefused: Spark cannot open it, or a time column is none.
        """
        self._refuse_if_started()
        if any(known.name.lower() == stream.name.lower() for known in self._streams):
            raise ConfigRefused(
                path="streams",
                key="name",
                value=stream.name,
                expected="unique: two streams have it",
            )
        schema = self._room.source_of(self._session, stream).schema
        self._analyst.add_stream(stream.name, schema)
        self._streams.append(stream)
        self._schemas[stream.name] = schema

    def add_query(self, query: Query) -> QueryHandle:
        """Adds a query, analysed by Spark against the streams.

        Raises:
            QueryRefused: it cannot run continuously; says which clause, why, and what to do.
            UnknownName: its class does not exist.
        """
        self._refuse_if_started()
        folder = File(query.sink.path or self.state / "results" / query.name).absolute()
        query = replace(query, sink=Sink(format=query.sink.format, path=str(folder)))
        for known in self._paths:
            if known.query.sink.path == query.sink.path and known.query.name != query.name:
                raise QueryRefused(
                    query=query.name, clause="sink", reason=f"is also that of '{known.query.name}'",
                    fix="give each query a directory of its own: their files have the same names",
                )  # fmt: skip
        path = self._analysed(query)
        Network(tuple(self._streams), self.classes, (*self._paths, path))
        self._paths.append(path)
        handle = QueryHandle(path)
        self._handles[query.name] = handle
        return handle

    def query(self, name: str) -> QueryHandle:
        """Gives the handle of a query."""
        if name not in self._handles:
            raise UnknownName(kind="query", name=name, known=self._handles)
        return self._handles[name]

    def start(
        self,
        *,
        listeners: Sequence[Listener] = (),
        progress: Callable[[int, int], None] = lambda done, of: None,
    ) -> None:
        """Rehearses the queries, then starts ingest and the scheduler and returns.

        Args:
            listeners: called with every event, from the scheduler's thread.
            progress: called with the number of queries rehearsed and to rehearse.
        """
        self._refuse_if_started()
        network = Network(tuple(self._streams), self.classes, tuple(self._paths))
        if not network.paths:
            raise ConfigRefused(path="queries", key="", value=None, expected="at least one query")
        self._engine = self._room.SparkEngine(
            self._session, network, self._schemas, self.state,
            workers=self._workers, retention_s=self._retention_s, reached=self._reached,
        )  # fmt: skip
        try:
            self._begin(network, listeners, progress)
        except BaseException:
            self._engine.close()
            raise

    def _begin(
        self,
        network: Network,
        listeners: Sequence[Listener],
        progress: Callable[[int, int], None],
    ) -> None:
        engine = self._engine
        table = unit_table(network, self._rehearsed(network, progress))
        self._scheduler = Scheduler(
            network, table, self.policy,
            workers=self._workers, train_tuples=self._train_tuples, most_fused=self._most_fused,
            statistics=Statistics(table), first_trains=engine.first_trains, cursors=engine.cursors,
        )  # fmt: skip
        self._metrics = RunMetrics(network, table)
        for unit, handle in enumerate(self._handles.values()):
            handle.bind(unit, self._scheduler, engine.stop_query)
        engine.begin()
        observed = Observed(engine, [self._hear, *listeners])
        self._loop = threading.Thread(
            target=self._run, args=(observed,), name="headgate-loop", daemon=True
        )
        self._loop.start()

    def drain(self, timeout_s: float | None = None) -> bool:
        """Stops ingest and waits until all that arrived is processed; False: time ran out."""
        self._engine.drain()
        return self.wait(timeout_s)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end of the run; False when time ran out first.

        Raises:
            Exception: what has ended the run, if it was not asked to end.
        """
        assert self._loop is not None
        self._loop.join(timeout_s)
        if self._crash is not None:
            raise self._crash
        return not self._loop.is_alive()

    def stop(self) -> Report | None:
        """Stops cleanly, keeps the statistics, and reports on the run, if there was one."""
        try:
            if self._loop is not None:
                self._engine.stop()
                try:
                    self.wait()
                finally:
                    self._engine.close()
                self._save_statistics()
        finally:
            if self._owns_session:
                self._session.stop()
        return None if self._metrics is None else self.report()

    def report(self) -> Report:
        """Reports on the run so far."""
        assert self._metrics is not None
        with self._lock:
            errors = (*self._metrics.errors, *self._engine.failures)
            return Report.of(self.policy.name, self._metrics, self._engine.scheduler_s, errors)

    def totals(self) -> dict[str, tuple[int, int]]:
        """Gives the tuples that every query has consumed and produced, over all runs."""
        totals: dict[str, tuple[int, int]] = self._engine.totals()
        return totals

    @property
    def queries(self) -> tuple[QueryHandle, ...]:
        return tuple(self._handles.values())

    def _run(self, engine: Engine) -> None:
        assert self._scheduler is not None
        try:
            run(self._scheduler, engine)
        except BaseException as error:
            self._crash = error

    def _hear(self, event: Event) -> None:
        assert self._metrics is not None
        assert self._scheduler is not None
        with self._lock:
            self._metrics.hear(event)
        for handle in self._handles.values():
            handle.hear(event)
        if event.at_s >= self._forget_at_s:
            self._forget_at_s = event.at_s + 5.0
            for stream in range(len(self._streams)):
                self._engine.forget(stream, self._scheduler.passed(stream))
            self._save_statistics()

    def _save_statistics(self) -> None:
        """Writes what has been measured, for the next run and for simulations."""
        assert self._scheduler is not None
        assert self._metrics is not None
        known = {}
        for line, row in zip(self._metrics.by_query(), self._scheduler.table, strict=True):
            if line.tuples_in:
                known[line.name] = {
                    "cost_s": float(row["tuple_cost_s"]),
                    "selectivity": min(1.0, float(row["selectivity"])),
                    "overhead_s": float(row["overhead_s"]),
                }
        earlier = {name: asdict(each) for name, each in recorded_statistics(self.state).items()}
        temporary = self.state / f".{STATISTICS}"
        temporary.write_text(json.dumps({"queries": {**earlier, **known}}, indent=1))
        temporary.replace(self.state / STATISTICS)

    def _rehearsed(
        self, network: Network, progress: Callable[[int, int], None]
    ) -> dict[str, QueryStatistics]:
        """Gives what is known before the first tuple: recorded by runs, else rehearsed."""
        known = recorded_statistics(self.state)
        new = [path for path in network.paths if path.query.name not in known]
        if not self._rehearsal_s:
            return known
        parts: dict[tuple[str, str], list[Path]] = {}
        for path in network.paths:
            if not path.runs_whole:
                parts.setdefault((path.stream, path.query.query_class), []).append(path)
        groups = [tuple(paths[: self._most_fused]) for paths in parts.values()]
        return {**self._engine.rehearse(new, groups, self._rehearsal_s, progress), **known}

    def _analysed(self, query: Query) -> Path:
        analysis = self._analyst.analyse(query)
        refuse_stateful(query.name, query.sql, analysis.nodes, analysis.expressions)
        if analysis.random is not None:
            refuse_luck(query.name, analysis.random)
        if len(analysis.streams) != 1:
            raise QueryRefused(
                query=query.name, clause="FROM", reason=f"names {len(analysis.streams)} streams",
                fix="read exactly one stream",
            )  # fmt: skip
        _refuse_twin_columns(query, analysis.columns)
        columns = {stream.name: self._schemas[stream.name].names for stream in self._streams}
        stream = next(name for name in columns if name.lower() == analysis.streams[0].lower())
        try:
            path = replace(path_of(query, columns), columns=analysis.columns)
        except HeadgateError:
            path = whole(query, stream)  # Spark reads what sqlglot does not
        taken_apart = (
            "Generate" not in analysis.nodes  # one row makes several: not a matter of flags
            and len(path.outputs) == len(path.columns)
            and self._analyst.same(path)
        )
        return path if taken_apart else replace(whole(query, stream), columns=analysis.columns)

    def _refuse_if_started(self) -> None:
        if self._engine is not None:
            raise ConfigRefused(
                path="headgate",
                key="start",
                value=None,
                expected="called once, after all additions",
            )


def load(
    pipeline: Pipeline,
    *,
    spark: "SparkSession | None" = None,
    policy: str | None = None,
    state: File | None = None,
) -> Headgate:
    """Gives a Headgate with everything a pipeline file says, ready to start."""
    headgate = Headgate(
        spark,
        state=state or File(pipeline.state),
        policy=policy_of(pipeline, policy),
        classes=pipeline.classes,
        workers=pipeline.workers,
        train_tuples=pipeline.train_tuples or ALL,
        most_fused=pipeline.most_fused,
        retention_s=pipeline.retention_s,
        rehearsal_s=pipeline.rehearsal_s,
        master=pipeline.spark.master,
        spark_config=pipeline.spark.config,
    )
    try:
        for stream in pipeline.stream_models():
            headgate.add_stream(stream)
        for query in pipeline.query_models():
            headgate.add_query(query)
    except BaseException:
        headgate.stop()
        raise
    return headgate


def simulate_pipeline(
    pipeline: Pipeline,
    *,
    policy: str,
    seconds: float,
    seed: int = 0,
    progress: Callable[[float], None] = lambda now_s: None,
) -> Report:
    """Runs a pipeline in virtual time, at the costs that a run has recorded or the file gives.

    Raises:
        StatisticsMissing: a query's figures are in neither.
        ConfigRefused: a stream's arrivals are not known.
    """
    streams = pipeline.stream_models()
    columns: dict[str, Sequence[str]] = {stream.name: () for stream in streams}
    paths = tuple(path_of(query, columns) for query in pipeline.query_models())
    classes = tuple(
        QueryClass(name=name, priority=priority) for name, priority in pipeline.classes.items()
    )
    network = Network(streams, classes, paths)
    known = _known_statistics(pipeline, paths)
    arrivals = {}
    for stream in streams:
        bursts = pipeline.arrivals_of(stream.name)
        arrivals[stream.name] = bursts.times_s(0, bursts.count_by(seconds))
    return simulate(
        network, arrivals, policy=policy_of(pipeline, policy), statistics=known, seed=seed,
        workers=pipeline.workers, train_tuples=pipeline.train_tuples or ALL,
        most_fused=pipeline.most_fused, together=True, progress=progress,
        trigger_s={stream.name: stream.trigger_s for stream in streams},
    )  # fmt: skip


def _as_known(path: Path, known: Mapping[str, QueryStatistics]) -> Path:
    """Gives a path as one box of the figures that are known of it; as it is where none are."""
    figures = known.get(path.query.name)
    if figures is None:
        return path
    box = Operator(kind="select", cost_s=figures.cost_s, selectivity=figures.selectivity)
    return replace(path, operators=(box,))


def policy_of(pipeline: Pipeline, name: str | None = None) -> Policy:
    """Gives the file's policy with its parameters, or another by name."""
    if name is None or name == pipeline.policy.name:
        return policy_named(pipeline.policy.name, **pipeline.policy.parameters)
    return policy_named(name)


def recorded_statistics(state: File) -> dict[str, QueryStatistics]:
    """Gives what runs in a state directory have measured, by query."""
    try:
        text = (state / STATISTICS).read_text()
    except OSError:
        return {}
    return {name: QueryStatistics(**each) for name, each in json.loads(text)["queries"].items()}


def _known_statistics(pipeline: Pipeline, paths: Iterable[Path]) -> dict[str, QueryStatistics]:
    state = File(pipeline.state)
    recorded: dict[str, QueryStatistics] = {}
    for folder in [*sorted(state.glob("*/")), state]:
        recorded.update(recorded_statistics(folder))
    known, missing = {}, []
    for path in paths:
        figures = recorded.get(path.query.name, path.query.statistics)
        if figures is None:
            missing.append(path.query.name)
        else:
            known[path.query.name] = figures
    if missing:
        raise StatisticsMissing(queries=missing, looked_in=str(state))
    return known


def _refuse_twin_columns(query: Query, columns: Sequence[str]) -> None:
    seen: set[str] = set()
    for column in columns:
        if column.lower() in seen:
            raise QueryRefused(
                query=query.name, clause=f"column `{column}`", reason="comes out twice",
                fix="give one of the two another name with AS",
            )  # fmt: skip
        seen.add(column.lower())
