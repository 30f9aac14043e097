"""The Headgate: a Python user's way in. Streams and queries are added, started, asked, stopped."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from headgate.config import fragment_of
from headgate.errors import ConfigRefused
from headgate.metrics.report import Report
from headgate.model.account import Account
from headgate.model.admission import AdmissionRules
from headgate.model.performance import Rows as SpecificationRows
from headgate.model.performance import specification_of
from headgate.model.plan import ALL, Lane, Share
from headgate.model.query import Deliver, Query, QueryClass, QueryStatistics, View
from headgate.model.stream import Rows, Stream
from headgate.model.units import Sharing
from headgate.policies import Policy, policy_named
from headgate.policies.amos import Amos
from headgate.runtime.describe.drawing import Drawing
from headgate.runtime.describe.explanation import Explanation
from headgate.runtime.listeners import Listener
from headgate.runtime.live.cutting import cut_pays
from headgate.runtime.live.handle import QueryHandle
from headgate.runtime.live.membership import Roster
from headgate.runtime.live.run import Running
from headgate.runtime.live.status import drawing_of, explanation_of, starting, status_of
from headgate.runtime.pipeline import refuse_off_spark
from headgate.runtime.policy_text import Spelled
from headgate.runtime.recording.statistics_file import recorded_statistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
        share: between which queries equal parts run once: those of one `class`, `all`, or `none`.
        sharing: what queries are worth that share a call, to a policy that ranks by rates: as much
            as those whose part in it raises the value of all, `pdt`; as all, `sum`; as the best of
            them, `max` (Sharaf §3.6).
        most_text_bytes: how long the text of a query may be, in UTF-8.
        most_nesting: how deep brackets, CASEs and comments of a text may be inside each other.
        most_plan_nodes: operators and expressions that a query may have, subqueries included.
        analysis_timeout_s: how long Spark may take to parse and analyze a text.
        allows_paths: lets queries read files by their path, as in ``parquet.`/data/a` ``; never
            those of the state directory.
        allows_reflection: lets queries call Java methods: `reflect`, `java_method`, `try_reflect`.
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
        share: Share = "class",
        sharing: Sharing = "pdt",
        most_text_bytes: int = AdmissionRules.most_text_bytes,
        most_nesting: int = AdmissionRules.most_nesting,
        most_plan_nodes: int = AdmissionRules.most_plan_nodes,
        analysis_timeout_s: float = AdmissionRules.analysis_timeout_s,
        allows_paths: bool = AdmissionRules.allows_paths,
        allows_reflection: bool = AdmissionRules.allows_reflection,
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
        _refuse_nothing("bytes", memory_bytes=memory_bytes, log_bytes=log_bytes)
        _refuse_nothing("seconds", call_timeout_s=call_timeout_s)
        self._limits = room.Limits(memory_bytes, log_bytes)
        self._rules = AdmissionRules(
            most_text_bytes=most_text_bytes, most_nesting=most_nesting,
            most_plan_nodes=most_plan_nodes, analysis_timeout_s=analysis_timeout_s,
            allows_paths=allows_paths, allows_reflection=allows_reflection,
        )  # fmt: skip
        self._call_timeout_s = call_timeout_s
        self._reached, self._lane = reached, lane
        self._share, self._sharing = share, sharing
        self._record = record
        self._owns_session = spark is None
        # A copy, so that its time zone stays what it is now whatever the user sets in theirs.
        self._session = room.own_session(
            spark or room.local_session(self.state, master, spark_config or {})
        )
        room.quiet_python()
        self._roster = Roster(
            room, self._session, self.state, self.classes, rehearsal_s, self.explanation,
            self._cuts, record, self._rules,
        )  # fmt: skip
        self._engine: Any = None
        self._run: Running | None = None
        self._spelling: str | None = None
        self._rehearsed_of = (0, 0)

    def add_stream(self, stream: Stream, rows: Rows | None = None) -> None:
        """Adds a stream, also while running; its source is opened to learn the schema.

        Args:
            rows: for a stream of format `python`: gives the tuples from the n-th on, as mappings
                from column to value. After a restart it is asked for those that follow the log.

        Raises:
            ConfigRefused: Spark cannot open it, or a time column is none.
            RecoveryRefused: the log of its name has another schema.
        """
        self._roster.add_stream(stream, rows)

    def drop_stream(self, name: str) -> None:
        """Asks a stream's source no more; its log stays as long as retention says.

        Raises:
            ConfigRefused: a query still reads it, or one fills it.
        """
        self._roster.drop_stream(name)

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
        return self._roster.add_query(query, deliver)

    def add_view(self, view: View) -> QueryHandle:
        """Add a view, also while running: a stream of its name that queries, and other views, read.

        It is computed once for all of them, in the highest class of its readers, and tuples before
        it are shed only if all of them allow it. Without readers it runs in the lowest class.

        Raises:
            QueryRefused: it cannot run continuously; says which clause, why, and what to do.
            ConfigRefused: a stream has its name.
        """
        lowest = min(self.classes, key=lambda each: each.priority)
        return self._roster.add_query(view.query(lowest.name))

    def drop_query(self, name: str) -> None:
        """Ends a query or view for good: its results stay, its place in the log is forgotten.

        The stream that it fills goes with it.

        Raises:
            ConfigRefused: queries read the stream that it fills; names them.
        """
        self._roster.drop_query(name)

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
        if self._run is None:
            change()
        else:
            self._run.wish(change)

    def add(self, fragment: Mapping[str, Any], where: str = "fragment") -> list[str]:
        """Adds streams, views and queries as a pipeline file has them; gives their names.

        All of them are checked first: where one is refused, none is added.

        Args:
            where: what they come from, for refusals.

        Raises:
            HeadgateError: one is refused, as `add_stream` and `add_query` do.
        """
        classes = {each.name: each.priority for each in self.classes}
        new = fragment_of(fragment, where, classes)
        return self._roster.add(new.stream_models(), new.query_models())

    def sql(self, text: str) -> "DataFrame":
        """Gives what a SELECT finds in the retained past of the streams, as a frame of Spark.

        Every stream is a view of its name, with the arrival as `_arrived_at_s`; the views are in a
        session beside yours.

        Raises:
            UnknownName: the text names a table or stream that does not exist.
            QueryRefused: Spark cannot read the text, it is no SELECT, or it breaks a rule.
        """
        session = self._room.own_session(self._session)
        frame: DataFrame = self._room.history_of(session, self.state, text, self._rules)
        return frame

    def query(self, name: str) -> QueryHandle:
        """Gives the handle of a query."""
        return self._roster.handle(name)

    def start(
        self,
        *,
        listeners: Sequence[Listener] = (),
        progress: Callable[[int, int], None] = lambda done, of: None,
    ) -> None:
        """Rehearses the queries, then starts ingest and the scheduler and returns.

        Args:
            listeners: called with every event, from the scheduler's thread, which they must not
                keep waiting: queries are added and dropped from another one. One that raises hears
                no more.
            progress: called with the number of queries rehearsed and to rehearse.
        """
        if self._engine is not None:
            raise ConfigRefused(
                path="headgate", key="start", value=None,
                expected="called once, after all additions",
            )  # fmt: skip
        roster, network = self._roster, self._roster.catalogue.network
        if not network.paths:
            raise ConfigRefused(path="queries", key="", value=None, expected="at least one query")
        self._rehearsed_of = 0, len(network.paths)
        roster.engine = self._engine = self._room.SparkEngine(
            self._session, network, roster.catalogue.schemas, self.state,
            rows=roster.rows, workers=self._workers, retention_s=self._retention_s,
            limits=self._limits, reached=self._reached, deliver=roster.deliver,
            lane=self._lane or "driver", call_timeout_s=self._call_timeout_s, share=self._share,
        )  # fmt: skip
        try:
            new = Running(
                self._engine, network, self.policy, self._rehearsed(progress), self.state,
                workers=self._workers, train_tuples=self._train_tuples,
                most_fused=self._most_fused, sharing=self._sharing, lane=self._lane,
                call_bytes=self._limits.memory_bytes / 8 / self._workers,
            )  # fmt: skip
            for name, handle in roster.handles.items():
                new.bind(roster.catalogue.units_of(name)[-1], handle)
            new.start(listeners, record=self._record)
        except BaseException:
            self._engine.close()
            raise
        roster.run = self._run = new

    def drain(self, timeout_s: float | None = None) -> bool:
        """Stops ingest and waits until all that arrived is processed; False: time ran out."""
        self._engine.drain()
        return self.wait(timeout_s)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end of the run; False when time ran out first.

        Raises:
            Exception: what has ended the run, if it was not asked to end.
        """
        assert self._run is not None
        return self._run.wait(timeout_s)

    def stop(self) -> Report | None:
        """Stops cleanly, keeps the statistics, and reports on the run, if there was one."""
        try:
            if self._run is not None:
                self._run.stop()
        finally:
            if self._owns_session:
                self._session.stop()
        return None if self._run is None else self.report()

    def report(self) -> Report:
        """Reports on the run so far."""
        assert self._run is not None
        return self._run.report(self.policy.name)

    def totals(self) -> dict[str, tuple[int, int]]:
        """Gives the tuples that every query has consumed and produced, over all runs."""
        totals: dict[str, tuple[int, int]] = self._engine.totals()
        return totals

    def accounts(self) -> dict[str, Account]:
        """Gives what has become of every tuple, by query, over all runs.

        Of every query, arrived = delivered + filtered + queued + shed + missed + late +
        dead_lettered.
        """
        accounts: dict[str, Account] = self._engine.accounts()
        return accounts

    def explanation(self, name: str) -> Explanation:
        """Gives how a query runs: operators, shared code, lane, figures, sink, cursor, policy."""
        return explanation_of(self.query(name), self._roster, self.policy_in_charge())

    def drawing(self) -> Drawing:
        """Gives the network: streams, the parts that queries share, queries and their sinks."""
        return drawing_of(self._roster, self.policy_in_charge())

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
        if self._run is None:
            return starting(self._roster, self._spelling or self.policy.name, self._rehearsed_of)
        return status_of(self._roster, self._run, self.policy_in_charge())

    @property
    def running(self) -> bool:
        """Whether the start is over: tuples are let in, and everything can be asked and changed."""
        return self._run is not None

    @property
    def used(self) -> dict[str, float]:
        """What is in use of memory and log, as shares of their budgets."""
        budget = self._engine.budget
        return {"memory": budget.memory, "log": budget.log}

    @property
    def queries(self) -> tuple[QueryHandle, ...]:
        return tuple(self._roster.handles.values())

    def _rehearsed(self, progress: Callable[[int, int], None]) -> dict[str, QueryStatistics]:
        """Gives what is known before the first tuple: recorded by runs, else rehearsed."""
        known = recorded_statistics(self.state)
        if not self._rehearsal_s:
            return known
        new = [path for path in self._roster.catalogue.paths if path.known_as not in known]
        self._rehearsed_of = 0, len(new)

        def tell(done: int, of: int) -> None:
            self._rehearsed_of = done, of
            progress(done, of)

        rehearsed: dict[str, QueryStatistics]
        rehearsed = self._engine.rehearse(known, self._rehearsal_s, tell)
        return rehearsed

    def _cuts(self, query: Query) -> bool:
        """Tells whether the policy has a query cut."""
        return self.policy.cuts and cut_pays(query.name, recorded_statistics(self.state))


def _refuse_nothing(unit: str, **limits: float) -> None:
    for key, value in limits.items():
        if not value > 0:
            raise ConfigRefused(path="headgate", key=key, value=value, expected=f"above 0 {unit}")
