"""The `Headgate` class, entry point of the Python API: add streams and queries, start, stop."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from headgate.access import access_of
from headgate.config import settings_of, show_settings
from headgate.errors import ConfigRefused
from headgate.metrics.report import Report
from headgate.model.argument_types import refuse_type
from headgate.model.performance import Rows as SpecificationRows
from headgate.model.performance import specification_of
from headgate.model.query import Deliver, Query, View, query_class_of
from headgate.model.stream import Rows, Stream
from headgate.policies import Policy, policy_named
from headgate.runtime.listeners import Listener
from headgate.runtime.live.amos_library import amos_among, newcomer_of, refuse_newcomer
from headgate.runtime.live.call_file import save_calls
from headgate.runtime.live.commands import Commands
from headgate.runtime.live.handle import QueryHandle
from headgate.runtime.live.run_names import Members
from headgate.runtime.live.state_folder import StateFolder
from headgate.runtime.members.cut_decision import cut_pays
from headgate.runtime.members.membership import Membership
from headgate.runtime.pipeline import refuse_off_spark
from headgate.runtime.policy_text import Spelled
from headgate.runtime.recording.statistics_file import recorded_statistics
from headgate.runtime.run.rehearsal import Rehearsal
from headgate.runtime.run.run import Running
from headgate.runtime.run.spark_room import LiveEngine, spark_room

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Headgate(Commands):
    """Many continuous queries on one Spark application, under one policy.

    Args:
        spark: your own session, which Headgate never stops; without one, a local session is started
            here and stopped by `stop`.
        state: the directory of log, journal, results and statistics. A run resumes what it finds.
        policy: a policy, or its name.
        classes: priority by class, a higher number is more important; or, by class, a mapping with
            `priority` and `target_s`, the mean response time in seconds that is asked for.
        master: Spark master of the local session, if none is passed in; `spark_config` has its
            settings.
        fresh: begin without what an earlier run has left in the state directory. It is deleted once
            `start` has succeeded.
        settings: any field of `Settings`, such as `workers=4`; docs/reference.md lists them.
    """

    @show_settings
    def __init__(
        self,
        spark: "SparkSession | None" = None,
        *,
        state: str | os.PathLike[str],
        policy: str | Policy = "cqc",
        classes: Mapping[str, float | Mapping[str, float | None]] | None = None,
        master: str = "local[*]",
        spark_config: Mapping[str, str] | None = None,
        fresh: bool = False,
        **settings: Any,
    ) -> None:
        for name, value, kind in (
            ("state", state, str | os.PathLike), ("policy", policy, str | Policy),
            ("classes", classes, Mapping | None), ("master", master, str),
            ("spark_config", spark_config, Mapping | None),
        ):  # fmt: skip
            refuse_type("headgate", name, value, kind)
        self.state = File(state).absolute()
        chosen = policy_named(policy) if isinstance(policy, str) else policy
        refuse_off_spark(chosen)
        self.classes = tuple(
            query_class_of(name, values) for name, values in (classes or {"default": 1.0}).items()
        )
        self._settings = settings_of(settings, signature(Headgate).parameters)
        self._owns_session = spark is None
        access = access_of(self._settings.file_mode, self._settings.group)
        self._folder = StateFolder(self.state, fresh=fresh, access=access)
        if self._owns_session:  # its Spark writes to the state directory
            self._folder.take()
        try:
            room = self._room = spark_room()
            with room.noticed_end():
                # A copy: its time zone stays as it is now, whatever the user sets in theirs.
                self._session = room.own_session(
                    spark or room.local_session(self.state, master, spark_config or {}, access)
                )
                room.quiet_python()
                membership = Membership(
                    room, self._session, self.state, self.classes, self._settings, self._cuts
                )  # fmt: skip
        except BaseException:
            self._folder.release()
            raise
        super().__init__(chosen, membership, Rehearsal(self.state, self._settings.rehearsal_s))
        if fresh:
            self.changes.begin_fresh()
        self._engine: LiveEngine | None = None
        self._run: Running | None = None

    def __repr__(self) -> str:
        streams, queries = len(self._membership.catalog.readable), len(self._membership.queries)
        return (
            f"Headgate(state={str(self.state)!r}, policy={self.policy.name!r},"
            f" streams={streams}, queries={queries}, running={self.running})"
        )

    def add_stream(self, stream: Stream, rows: Rows | None = None) -> None:
        """Add a stream, also while running; its source is opened to learn the schema.

        Args:
            rows: for a stream of format `python`: a function from n to the tuples from the n-th on,
                as mappings from column to value. After a restart, n is the first that is not in the
                log.

        Raises:
            ConfigRefused: Spark cannot open it, or a time column is not a timestamp.
            RecoveryRefused: the log of its name has another schema.
        """
        self._refuse_stopped("add_stream")
        refuse_type("headgate", "stream", stream, Stream)
        with self._room.noticed_end():
            self._membership.add_stream(stream, rows)

    def drop_stream(self, name: str) -> None:
        """Stop polling a stream's source; its log stays as long as retention demands.

        Raises:
            ConfigRefused: a query still reads it, or one fills it.
        """
        self._refuse_stopped("drop_stream")
        self._membership.drop_stream(name)

    def add_query(self, query: Query, deliver: Deliver | None = None) -> QueryHandle:
        """Add a query, also while running; Spark analyzes it against the streams.

        Args:
            deliver: for a sink of format `callback`: called with each result, a pyarrow table, and
                with a key that identifies the result if it comes again after a crash.

        Raises:
            QueryRefused: it cannot run continuously; names the clause, the reason and the fix.
            UnknownName: its class does not exist.
            RecoveryRefused: a query of its name was dropped, and its results are still in the
                folder; before the start, `start` raises it.
        """
        self._refuse_stopped("add_query")
        refuse_type("headgate", "query", query, Query)
        with self._room.noticed_end():
            live_query = self._membership.add_query(query, deliver)
        return QueryHandle(live_query, self.explanation, self.why)

    def add_view(self, view: View) -> QueryHandle:
        """Add a view, also while running: a stream of its name that queries, and other views, read.

        The view is computed once for all its readers, in the highest class of theirs, and its input
        is shed only if all of them allow it. Without readers it runs in the lowest class.

        Raises:
            QueryRefused: it cannot run continuously; names the clause, the reason and the fix.
            ConfigRefused: a stream has its name.
        """
        refuse_type("headgate", "view", view, View)
        lowest = min(self.classes, key=lambda query_class: query_class.priority)
        return self.add_query(view.query(lowest.name))

    def drop_query(self, name: str) -> None:
        """End a query or view for good: its results stay, its position in the log is forgotten.

        The stream that it fills is dropped with it.

        Raises:
            ConfigRefused: other queries read the stream that it fills; names them.
        """
        self._refuse_stopped("drop_query")
        self._membership.drop_query(name)

    def set_policy(self, policy: str | Policy) -> None:
        """Change the policy from now on; nothing is lost and nothing runs twice."""
        self._refuse_stopped("set_policy")
        refuse_type("headgate", "policy", policy, str | Policy)
        chosen = Spelled(policy).make() if isinstance(policy, str) else policy
        refuse_off_spark(chosen)
        if self._run is not None:
            self._earlier_policies.append(self._named_policy())
        self.policy = chosen
        self._spelling = Spelled(policy).text if isinstance(policy, str) else None
        if self._engine is not None:
            self._engine.change_policy(chosen)

    def set_specification(self, rows: SpecificationRows) -> None:
        """Change the performance specification of a running `amos`, as of its next choice.

        Raises:
            ConfigRefused: another policy is in charge, or a row is invalid.
            UnknownName: there is no such metric.
        """
        wanted, amos = specification_of(rows), amos_among(self.policy)
        self._change(lambda: setattr(amos, "specification", wanted))

    def add_policy(self, policy: str | Policy) -> None:
        """Add a policy to the library of a running `amos`.

        Raises:
            ConfigRefused: another policy is in charge, or the new one cannot come into the library.
        """
        amos, newcomer = amos_among(self.policy), newcomer_of(policy)
        refuse_newcomer(amos, newcomer)
        self._change(lambda: amos.add(newcomer))

    def _change(self, change: Callable[[], None]) -> None:
        """Change the policy, which belongs to the scheduler's thread while a run goes on."""
        if self._run is None:
            change()
        else:
            self._run.wish(change)

    def sql(self, text: str) -> "DataFrame":
        """Return the DataFrame of a SELECT over the retained past of the streams.

        Every stream is a view of its name, with the arrival time as `_arrived_at_s`; the views are
        in a session of their own, not in yours.

        Raises:
            UnknownName: the text names a table or stream that does not exist.
            QueryRefused: Spark cannot parse the text, it is not a SELECT, or it breaks a rule.
        """
        session = self._room.own_session(self._session)
        return self._room.history_of(session, self.state, text, self._settings)

    def start(
        self,
        *,
        listeners: Sequence[Listener] = (),
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        """Rehearse the queries, then start ingest and the scheduler, and return.

        Args:
            listeners: called with every event, in the scheduler's thread, which they must not
                block: add and drop queries from another thread. A listener that raises is no longer
                called.
            progress: called with the number of queries rehearsed and to rehearse.

        Raises:
            RecoveryRefused: another Headgate uses the state directory, or it does not fit. Nothing
                in it is deleted then.
        """
        self._refuse_stopped("start")
        if self._engine is not None:
            raise ConfigRefused(
                path="headgate", key="start", value=None,
                expected="called once, after all additions",
            )  # fmt: skip
        membership = self._membership
        if not membership.queries:
            raise ConfigRefused(path="queries", key="", value=None, expected="at least one query")
        values = {name: self.values_of(name) for name in membership.queries}
        self.changes.begin_without_file(self.policy_text, values)
        self._rehearsal.rehearsed_of = 0, len(membership.catalog.paths)
        with self._folder.for_start(), self._room.noticed_end():
            membership.run = self._run = self._started(listeners, progress)

    def _started(
        self,
        listeners: Sequence[Listener],
        progress: Callable[[int, int], None],
    ) -> Running:
        """Start the engine, rehearse, and return the run."""
        membership = self._membership
        membership.place_versions()
        membership.engine = self._engine = engine = self._room.open_engine(
            self._session, membership.catalog.network, membership.catalog.schemas, self.state,
            self._settings,
            rows=membership.rows, deliver=membership.deliver, reached=self._reached,
        )  # fmt: skip
        membership.catalog = membership.catalog.with_ids(engine.ids)
        try:
            new = Running(
                engine, membership.catalog.network, self.policy,
                self._rehearsal.statistics(engine, membership.catalog.paths, progress),
                self.state, self._settings,
            )  # fmt: skip
            for name, query in membership.queries.items():
                new.bind(membership.catalog.ids[name], query)
            self._repairs.begin()
            new.start(listeners, record=self._settings.record)
        except BaseException as error:
            cause = engine.cause_of(error)
            engine.close()
            if cause is not error:
                raise cause from error
            raise
        return new

    def drain(self, timeout_s: float | None = None) -> bool:
        """Stop ingest and wait until all arrived tuples are processed; False if time ran out."""
        began_s = time.monotonic()
        self._membership.engine_for("drain").drain(timeout_s)
        if timeout_s is not None:
            timeout_s = max(0.0, timeout_s - (time.monotonic() - began_s))
        return self.wait(timeout_s)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of the run; return False if time ran out first.

        Raises:
            Exception: whatever ended the run, if it was not asked to end.
        """
        return self._membership.run_for("wait").wait(timeout_s)

    def stop(self) -> Report | None:
        """Stop cleanly, save the statistics, and return the report of the run, if any."""
        try:
            if self._run is not None:
                self._run.stop()
                save_calls(self.state, self._run.call_log, Members.of(self._membership, self._run))
        finally:
            self._stopped = True
            for query in tuple(self._membership.queries.values()):
                query.stopped, query.runs = True, False
            try:
                if self._owns_session:
                    self._room.stop_session(self._session)
            finally:
                self._folder.release()
        return None if self._run is None else self.report()

    def _reached(self, point: str) -> None:
        """Do nothing. A test of crashes overrides it: nothing may be lost at any of these points.

        Args:
            point: what the engine has just done, such as `results written`.
        """

    def _cuts(self, query: Query) -> bool:
        """Return True if the policy cuts queries and a cut of this one pays."""
        recorded = {} if self._folder.fresh else recorded_statistics(self.state)
        return self.policy.cuts and cut_pays(query.name, recorded)
