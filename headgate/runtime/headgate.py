"""The Headgate: a Python user's way in. Streams and queries are added, started, asked, stopped."""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from headgate.config import Pipeline, fragment_of
from headgate.errors import ConfigRefused, HeadgateError, RequestRefused, UnknownName
from headgate.metrics.report import Report
from headgate.metrics.run import RunMetrics
from headgate.model.account import Account
from headgate.model.events import Event, Overloaded, TuplesShed, units_in
from headgate.model.network import Network, Path
from headgate.model.performance import Rows as SpecificationRows
from headgate.model.performance import specification_of
from headgate.model.plan import ALL, Lane
from headgate.model.query import Deliver, Query, QueryClass, QueryStatistics
from headgate.model.stream import Rows, Stream
from headgate.model.unit_table import unit_table
from headgate.model.units import units_of
from headgate.policies import Policy, policy_named
from headgate.policies.amos import Amos
from headgate.runtime.explanation import Explanation, number
from headgate.runtime.handle import QueryHandle
from headgate.runtime.observed import Listener, Observed
from headgate.runtime.pipeline import policy_of, refuse_off_spark
from headgate.runtime.placement import placed
from headgate.runtime.recorded import record_statistics, recorded_statistics
from headgate.runtime.recorder import Recorder
from headgate.runtime.registration import registered
from headgate.runtime.spelling import Spelled
from headgate.runtime.timed import Timed
from headgate.scheduler.engine import Engine
from headgate.scheduler.loop import run
from headgate.scheduler.scheduler import Scheduler
from headgate.scheduler.statistics import Statistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("headgate")

SAVE_EVERY_S = 30.0
"""How often what has been measured is written down; a run that is killed loses no more of it."""


class Headgate:
    """Many continuous queries on one Spark application, under one policy.

    Args:
        spark: an existing session; without one, a local session is started and stopped with us.
        state: the directory of log, journal, results and statistics. A run that finds one resumes.
        policy: a policy, or its name.
        classes: priority by class, the higher the more important.
        workers: calls under way at once; more than the cores only adds waiting.
        train_tuples: tuples a call takes at the most; a call takes at least one train.
        most_fused: queries that may share one call.
        retention_s: how long trains are kept after every query has passed them.
        rehearsal_s: how long new queries may be warmed up and measured before the first tuple.
        memory_bytes: what trains and results in memory may take; sources wait before it is used up.
        log_bytes: what the log may take on disk; then what is passed goes, sources wait, and tuples
            are shed where queries allow it.
        record: keeps what happens in `STATE/recording`, for `replay`.
        call_timeout_s: how long a call may take; its query has failed then, the others go on.
        lane: `driver` or `job` for every call that can go this way; without it the cheaper one.
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
        most_fused: int = 256,
        retention_s: float = 3600.0,
        rehearsal_s: float = 12.0,
        memory_bytes: int = 512 << 20,
        log_bytes: int = 10 << 30,
        record: bool = False,
        call_timeout_s: float = 300.0,
        lane: Lane | None = None,
        master: str = "local[*]",
        spark_config: Mapping[str, str] | None = None,
        reached: Callable[[str], None] = lambda point: None,
    ) -> None:
        from headgate.spark import room  # noqa: PLC0415  # simulation must start without Java

        self._room = room
        self.state = File(state).absolute()
        self.policy = policy_named(policy) if isinstance(policy, str) else policy
        refuse_off_spark(self.policy)
        self.classes = tuple(
            QueryClass(name=name, priority=priority)
            for name, priority in (classes or {"default": 1.0}).items()
        )
        self._workers, self._train_tuples, self._most_fused = workers, train_tuples, most_fused
        self._retention_s, self._rehearsal_s = retention_s, rehearsal_s
        for key, value in (("memory_bytes", memory_bytes), ("log_bytes", log_bytes)):
            if value <= 0:
                raise ConfigRefused(path="headgate", key=key, value=value, expected="above 0 bytes")
        if not call_timeout_s > 0:
            raise ConfigRefused(
                path="headgate", key="call_timeout_s", value=call_timeout_s,
                expected="above 0 seconds",
            )  # fmt: skip
        self._limits = room.Limits(memory_bytes, log_bytes)
        self._call_timeout_s = call_timeout_s
        self._reached, self._lane = reached, lane
        self._record = record
        self._recorder: Recorder | None = None
        self._owns_session = spark is None
        self._session = spark or room.local_session(self.state, master, spark_config or {})
        room.quiet_python()
        self._analyst = room.Analyst(room.own_session(self._session))
        self._streams: list[Stream] = []
        self._schemas: dict[str, Any] = {}
        self._rows: dict[str, Rows] = {}
        self._deliver: dict[str, Deliver] = {}
        self._paths: list[Path] = []
        self._handles: dict[str, QueryHandle] = {}
        self._bound: dict[int, QueryHandle] = {}
        self._engine: Any = None
        self._metrics: RunMetrics | None = None
        self._scheduler: Scheduler | None = None
        self._timed: Timed | None = None
        self._loop: threading.Thread | None = None
        self._crash: BaseException | None = None
        self._dropped: set[str] = set()
        self._gone: set[str] = set()
        self._lock, self._changes = threading.Lock(), threading.RLock()
        self._forget_at_s = self._save_at_s = 0.0
        self._spelling: str | None = None
        self._rehearsed_of = (0, 0)
        self._wishes: deque[Callable[[], None]] = deque()

    def add_stream(self, stream: Stream, rows: Rows | None = None) -> None:
        """Adds a stream, also while running; its source is opened to learn the schema.

        Args:
            rows: for a stream of format `python`: gives the tuples from the n-th on, as mappings
                from column to value. After a restart it is asked for those that follow the log.

        Raises:
            ConfigRefused: Spark cannot open it, or a time column is none.
            RecoveryRefused: the log of its name has another schema.
        """
        names = [known.name for known in self._streams]
        again = stream.name in self._gone
        if not again and stream.name.lower() in map(str.lower, names):
            raise ConfigRefused(
                path="streams",
                key="name",
                value=stream.name,
                expected="unique: two streams have it",
            )
        if (rows is None) == (stream.format == "python"):
            raise ConfigRefused(
                path=f"stream '{stream.name}'", key="rows", value=None,
                expected="given for format 'python', and for no other",
            )  # fmt: skip
        schema = self._room.source_of(self._session, stream).schema
        if rows is not None:
            self._rows[stream.name] = rows
        number = names.index(stream.name) if again else len(names)
        streams = [*self._streams[:number], stream, *self._streams[number + again :]]
        if self._engine is not None:
            network = Network(tuple(streams), self.classes, tuple(self._paths))
            self._engine.add_stream(network, number, schema)
        self._analyst.add_stream(stream.name, schema)
        self._streams, self._schemas[stream.name] = streams, schema
        self._gone.discard(stream.name)

    def drop_stream(self, name: str) -> None:
        """Asks a stream's source no more; its log stays as long as retention says.

        Raises:
            ConfigRefused: a query still reads it.
        """
        known = {stream.name for stream in self._streams} - self._gone
        if name not in known:
            raise UnknownName(kind="stream", name=name, known=known)
        readers = [p.query.name for p in self._paths if p.stream == name and self._lives(p)]
        if readers:
            raise ConfigRefused(
                path=f"stream '{name}'", key="queries", value=", ".join(readers),
                expected="dropped before the stream that they read",
            )  # fmt: skip
        if self._engine is not None:
            self._engine.drop_stream(name)
            self._gone.add(name)  # others are known by their number, so it keeps its own
        else:
            self._streams = [each for each in self._streams if each.name != name]
        self._analyst.drop_stream(name)
        del self._schemas[name]

    def add_query(self, query: Query, deliver: Deliver | None = None) -> QueryHandle:
        """Adds a query, also while running; Spark analyses it against the streams.

        Args:
            deliver: for a sink of format `callback`: is called with each result, a pyarrow table,
                and the key to recognise it by, should it come again after a crash.

        Raises:
            QueryRefused: it cannot run continuously; says which clause, why, and what to do.
            UnknownName: its class does not exist.
            RecoveryRefused: one of its name was dropped, and its results are still in the folder;
                before the start, `start` raises it.
        """
        query = placed(query, self.state, filter(self._lives, self._paths), deliver)
        self._room.refuse_sink(self._session, query)
        columns = {name: schema.names for name, schema in self._schemas.items()}
        path = registered(query, self._analyst, columns)
        with self._changes:
            names = [known.query.name for known in self._paths]
            again = query.name in self._dropped
            unit = names.index(query.name) if again else len(names)
            paths = [*self._paths[:unit], path, *self._paths[unit + again :]]
            network = Network(tuple(self._streams), self.classes, tuple(paths))
            if deliver is not None:
                self._deliver[query.name] = deliver
            handle = QueryHandle(path, self.explanation)
            if self._engine is not None:
                self._engine.add_query(network, unit, self._rehearsal_s)
                self._bind(unit, handle)
            self._paths, self._handles[query.name] = paths, handle
            self._dropped.discard(query.name)
        return handle

    def drop_query(self, name: str) -> None:
        """Ends a query for good: its results stay, its place in the log is forgotten."""
        with self._changes:
            self.query(name)
            unit = [path.query.name for path in self._paths].index(name)
            if self._engine is None:
                del self._paths[unit]
            else:
                gone = self._engine.drop_query(unit)
                while not gone.wait(0.2) and self._loop is not None and self._loop.is_alive():
                    pass
                self._dropped.add(name)
            del self._handles[name]

    def set_policy(self, policy: str | Policy) -> None:
        """Lets another policy decide from now on; nothing is lost and nothing runs twice."""
        chosen = Spelled(policy).make() if isinstance(policy, str) else policy
        refuse_off_spark(chosen)
        self.policy = chosen
        self._spelling = Spelled(policy).text if isinstance(policy, str) else None
        if self._engine is not None:
            self._engine.change_policy(chosen)

    def set_specification(self, rows: SpecificationRows) -> None:
        """Changes what counts for a running `amos`, as of its next choice.

        Raises:
            ConfigRefused: another policy is in charge, or a row cannot be.
            UnknownName: there is no such metric.
        """
        policy, wanted = self.policy, specification_of(rows)
        if not isinstance(policy, Amos):
            raise ConfigRefused(
                path="policy", key="name", value=policy.name,
                expected="amos: no other has a performance specification",
            )  # fmt: skip

        def change() -> None:
            policy.specification = wanted

        # The policy belongs to the scheduler's thread, which hears something at every dwell.
        self._wishes.append(change)
        if self._engine is None:
            self._grant()

    def add(self, fragment: Mapping[str, Any], where: str = "fragment") -> list[str]:
        """Adds streams and queries as a pipeline file has them; gives their names.

        All of them are checked first: where one is refused, none is added.

        Args:
            where: what they come from, for refusals.

        Raises:
            HeadgateError: one is refused, as `add_stream` and `add_query` do.
        """
        new = fragment_of(fragment, where, [each.name for each in self.classes])
        added: list[str] = []
        with self._changes:
            streams, queries = new.stream_models(), new.query_models()
            self._check(streams, queries)
            try:
                for stream in streams:
                    self.add_stream(stream)
                    added.append(stream.name)
                for query in queries:
                    self.add_query(query)
                    added.append(query.name)
            except HeadgateError as error:
                raise RequestRefused(message=str(error), added=added) from error
        return added

    def _check(self, streams: Sequence[Stream], queries: Sequence[Query]) -> None:
        """Refuses streams and queries that could not be added; adds nothing."""
        analyst = self._room.Analyst(self._room.own_session(self._session))
        schemas = dict(self._schemas)
        for stream in streams:
            schemas[stream.name] = self._room.source_of(self._session, stream).schema
        for name, schema in schemas.items():
            analyst.add_stream(name, schema)
        columns = {name: schema.names for name, schema in schemas.items()}
        alive = tuple(filter(self._lives, self._paths))
        paths: tuple[Path, ...] = ()
        for query in queries:
            query = placed(query, self.state, (*alive, *paths), None)
            paths = (*paths, registered(query, analyst, columns))
        old = [each for each in self._streams if each.name not in self._gone]
        Network((*old, *streams), self.classes, (*alive, *paths))
        if self._engine is not None:
            self._engine.refuse_old_results(paths)

    def sql(self, text: str) -> "DataFrame":
        """Gives what a SELECT finds in the retained past of the streams, as a frame of Spark.

        Every stream is a view of its name, with the arrival as `_arrived_at_s`; the views are in a
        session beside yours.

        Raises:
            UnknownName: the text names a stream that does not exist.
            QueryRefused: Spark cannot read the text, or it is no SELECT.
        """
        session = self._room.own_session(self._session)
        frame: DataFrame = self._room.history_of(session, self.state, text)
        return frame

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
        network = self._network()
        if not network.paths:
            raise ConfigRefused(path="queries", key="", value=None, expected="at least one query")
        self._engine = self._room.SparkEngine(
            self._session, network, self._schemas, self.state,
            rows=self._rows, workers=self._workers, retention_s=self._retention_s,
            limits=self._limits, lane=self._lane, reached=self._reached, deliver=self._deliver,
            call_timeout_s=self._call_timeout_s,
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
        known = self._rehearsed(progress)
        table = unit_table(units_of(network), known)
        self._scheduler = Scheduler(
            network, table, self.policy,
            workers=self._workers, train_tuples=self._train_tuples, most_fused=self._most_fused,
            call_bytes=self._limits.memory_bytes / 8 / self._workers,
            shed=self._shed, statistics=Statistics(table),
            first_trains=engine.first_trains, cursors=engine.cursors, groups=engine.groups,
        )  # fmt: skip
        self._metrics = RunMetrics(network, table)
        for unit, handle in enumerate(self._handles.values()):
            self._bind(unit, handle)
        engine.begin()
        observed: Engine = Observed(engine, [self._hear, *listeners])
        if self._record:
            observed = self._recorder = Recorder(observed, self.state, self._scheduler, known)
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
                    self._forget()
                finally:
                    self._engine.close()
                    if self._recorder is not None:
                        self._recorder.close(self._known_now())
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
            scheduler_s = 0.0 if self._timed is None else self._timed.seconds
            loop_s = self._engine.loop_s
            return Report.of(self.policy.name, self._metrics, scheduler_s, errors, loop_s)

    def totals(self) -> dict[str, tuple[int, int]]:
        """Gives the tuples that every query has consumed and produced, over all runs."""
        totals: dict[str, tuple[int, int]] = self._engine.totals()
        return totals

    def accounts(self) -> dict[str, Account]:
        """Gives what has become of every tuple, by query, over all runs.

        Of every query, arrived = delivered + filtered + queued + shed + missed.
        """
        accounts: dict[str, Account] = self._engine.accounts()
        return accounts

    def explanation(self, name: str) -> Explanation:
        """Gives how a query runs: operators, shared code, lane, figures, sink, cursor, policy."""
        handle = self.query(name)
        found = Explanation.of(handle.path, self.policy_in_charge())
        if self._engine is None or self._scheduler is None:
            return found
        pending = self._pending(handle.unit)
        members, shape, sql, lane = self._engine.way_of(handle.unit, pending)
        return replace(
            found,
            state=handle.state,
            cause=None if handle.exception() is None else str(handle.exception()),
            shares_code_with=[each for each in members if each != name],
            shape=shape,
            group_sql=sql,
            lane=lane,
            statistics={key: number(value) for key, value in handle.statistics().items()},
            next_train=self._next_train(handle.unit),
            behind=pending,
        )

    def policy_in_charge(self) -> str:
        """Gives the policy's name, as it was spelled; of `amos` also whose turn it is."""
        name = self._spelling or self.policy.name
        if isinstance(self.policy, Amos) and self._engine is not None:
            return f"{name}, at present {self.policy.in_charge(self._engine.now_s()).name}"
        return name

    def status(self) -> dict[str, Any]:
        """Gives the policy, the streams and every query's state and figures, as plain data.

        Before the first tuple it also has `starting`: queries that are rehearsed, `of` how many.
        """
        if self._loop is None:
            return self._starting()
        lines = {line.name: line for line in self.report().queries}
        accounts = self.accounts()
        rows = []
        for handle in self.queries:
            line, account = lines.get(handle.name), accounts.get(handle.name)
            rows.append({
                "query": handle.name,
                "class": handle.path.query.query_class,
                "stream": handle.path.stream,
                "state": handle.state,
                "cause": None if handle.exception() is None else str(handle.exception()),
                "waiting": self._pending(handle.unit),
                "mean_response_s": None if line is None else number(line.response_s.mean),
                "lane": handle.lane,
                "account": None if account is None else asdict(account),
                "statistics": {key: number(each) for key, each in handle.statistics().items()},
            })  # fmt: skip
        streams = [each.name for each in self._streams if each.name not in self._gone]
        return {"policy": self.policy_in_charge(), "streams": streams, "queries": rows}

    def _starting(self) -> dict[str, Any]:
        done, of = self._rehearsed_of
        rows: list[dict[str, Any]] = [
            {
                "query": handle.name, "class": handle.path.query.query_class,
                "stream": handle.path.stream, "state": "STARTING", "cause": None, "waiting": 0,
                "mean_response_s": None, "lane": None, "account": None, "statistics": {},
            }
            for handle in self.queries
        ]  # fmt: skip
        streams = [stream.name for stream in self._streams]
        return {
            "policy": self._spelling or self.policy.name, "streams": streams, "queries": rows,
            "starting": {"rehearsed": done, "of": of},
        }  # fmt: skip

    @property
    def running(self) -> bool:
        """Whether the start is over: tuples are let in, and everything can be asked and changed."""
        return self._loop is not None

    @property
    def used(self) -> dict[str, float]:
        """What is in use of memory and log, as shares of their budgets."""
        budget = self._engine.budget
        return {"memory": budget.memory, "log": budget.log}

    @property
    def queries(self) -> tuple[QueryHandle, ...]:
        return tuple(self._handles.values())

    def _bind(self, unit: int, handle: QueryHandle) -> None:
        assert self._scheduler is not None
        engine = self._engine
        handle.bind(unit, self._scheduler, engine.stop_query, engine.sinks[handle.name])
        self._bound[unit] = handle

    def _network(self) -> Network:
        return Network(tuple(self._streams), self.classes, tuple(self._paths))

    def _pending(self, unit: int) -> int:
        """Gives the tuples that wait for a unit; none for one that the scheduler has yet to see."""
        table = None if self._scheduler is None else self._scheduler.table
        return 0 if table is None or not 0 <= unit < len(table) else int(table["pending"][unit])

    def _next_train(self, unit: int) -> int | None:
        cursors = None if self._scheduler is None else self._scheduler.cursors
        return None if cursors is None or not 0 <= unit < len(cursors) else int(cursors[unit])

    def _grant(self) -> None:
        while self._wishes:
            self._wishes.popleft()()

    def _lives(self, path: Path) -> bool:
        return path.query.name not in self._dropped

    def _run(self, engine: Engine) -> None:
        assert self._scheduler is not None
        try:
            self._timed = Timed(self._scheduler)
            run(self._timed, engine)
        except BaseException as error:
            self._crash = error

    def _hear(self, event: Event) -> None:
        assert self._metrics is not None
        assert self._scheduler is not None
        with self._lock:
            if self._metrics.table is not self._scheduler.table:
                self._metrics.grow(self._scheduler.network, self._scheduler.table)
            self._metrics.hear(event)
        for position, unit in enumerate(units_in(event)):
            if (handle := self._bound.get(unit)) is not None:
                handle.hear(event, position)
        self._grant()
        overloaded = isinstance(event, Overloaded)
        if overloaded or event.at_s >= self._forget_at_s:
            self._forget_at_s = event.at_s + 5.0
            self._forget()
        if event.at_s >= self._save_at_s:
            self._save_at_s = event.at_s + SAVE_EVERY_S
            self._save_statistics()

    def _shed(self, events: Sequence[TuplesShed]) -> None:
        assert self._metrics is not None
        self._engine.shed(events)
        with self._lock:
            for event in events:
                self._metrics.hear(event)

    def _forget(self) -> None:
        """Drops trains that every query has passed, as retention allows."""
        assert self._scheduler is not None
        for stream in range(len(self._streams)):
            self._engine.forget(stream, self._scheduler.passed(stream))

    def _save_statistics(self) -> None:
        """Writes what has been measured, for the next run and for simulations."""
        try:
            record_statistics(self.state, self._known_now())
        except OSError as error:
            log.warning("statistics are not kept: %s", error)

    def _known_now(self) -> dict[str, QueryStatistics]:
        """Gives what has been measured of the queries that have run."""
        assert self._scheduler is not None
        assert self._metrics is not None
        return {
            line.name: QueryStatistics(
                cost_s=float(row["tuple_cost_s"]),
                selectivity=min(1.0, float(row["selectivity"])),
                overhead_s=float(row["overhead_s"]),
                alone_s=self._engine.rehearsal.alone_s.get(line.name, 0.0),
            )
            for line, row in zip(self._metrics.by_query(), self._scheduler.table, strict=False)
            if line.tuples_in
        }

    def _rehearsed(self, progress: Callable[[int, int], None]) -> dict[str, QueryStatistics]:
        """Gives what is known before the first tuple: recorded by runs, else rehearsed."""
        known = recorded_statistics(self.state)
        if not self._rehearsal_s:
            return known
        new = [path for path in self._paths if path.query.name not in known]
        self._rehearsed_of = 0, len(new)

        def tell(done: int, of: int) -> None:
            self._rehearsed_of = done, of
            progress(done, of)

        rehearsed: dict[str, QueryStatistics]
        rehearsed = self._engine.rehearse(known, self._rehearsal_s, tell)
        return rehearsed

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
        memory_bytes=pipeline.memory_bytes,
        log_bytes=pipeline.log_bytes,
        record=pipeline.record,
        call_timeout_s=pipeline.call_timeout_s,
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
