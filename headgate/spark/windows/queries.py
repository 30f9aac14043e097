"""The queries with windows of an executor, and what they have in common."""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.model.network import Path
from headgate.model.plan import Lane, Share
from headgate.model.window import Stateful
from headgate.spark.event_time.timeline import Timeline
from headgate.spark.jvm.lane.plan_runner import DriverLane
from headgate.spark.jvm.lane.small_query import SmallQuery
from headgate.spark.jvm.query.analysis import SessionPlans, WindowPlans
from headgate.spark.jvm.query.plans import Plan
from headgate.spark.log.stream_log import StreamLog, TimelineTrains, Trains
from headgate.spark.output import Output, numbered
from headgate.spark.sharing.panes import Panes
from headgate.spark.sharing.sharing_plan import shared_by
from headgate.spark.sinks.files import FileSink
from headgate.spark.windows.closing import ClosingWindows
from headgate.spark.windows.joins import Pairs
from headgate.spark.windows.results import Results
from headgate.spark.windows.sessions import Sessions
from headgate.spark.windows.unions import Union

Computation = ClosingWindows | Pairs | Union | Sessions


class WindowedQueries:
    """Makes what runs a query when it first does; safe to use from several workers.

    Args:
        driver: where plans run without a job.
        share: between which queries equal parts run once: the panes of what they aggregate.
            Prepared plans they have in common whatever it is, unless it is `none`.
    """

    def __init__(
        self,
        timelines: Mapping[str, Timeline],
        logs: Mapping[str, StreamLog],
        sinks: Mapping[str, FileSink],
        driver: DriverLane,
        share: Share,
    ) -> None:
        self._timelines, self._logs, self._sinks = timelines, logs, sinks
        self._driver, self._share = driver, share
        self._queries: dict[str, Computation] = {}
        # A prepared plan lives as long as a query has it.
        self._plans: WeakValueDictionary[tuple[object, ...], SmallQuery] = WeakValueDictionary()
        self._panes: dict[tuple[object, ...], Panes] = {}
        self._pane_keys: dict[str, tuple[object, ...]] = {}
        self._lock = threading.Lock()

    def run(
        self,
        session: SparkSession,
        lane: Lane,
        path: Path,
        trains: Trains,
        known: dict[Any, Any],
    ) -> Output | Exception:
        """Return what trains of its timeline bring a query, or why that cannot be told.

        Args:
            known: what other queries of the timeline have read of these trains.
        """
        assert path.stateful is not None
        assert isinstance(trains, TimelineTrains)
        name = path.query.name
        try:
            with self._lock:
                if name not in self._queries:
                    self._queries[name] = self._new(path, path.stateful)
                computation = self._queries[name]
            return computation(session, lane, trains.first, trains.end, known)
        except Exception as error:
            return error

    def needs_job(self, path: Path) -> bool:
        """Return True if it is known that a query cannot run in the driver."""
        computation = self._queries.get(path.query.name)
        return computation is not None and computation.needs_job

    def with_panes_of(self, query: str) -> list[str]:
        """Return the queries that have a query's panes, itself among them; none if it has none."""
        with self._lock:
            own = self._pane_keys.get(query)
            if own is None:
                return []
            return sorted(name for name, key in self._pane_keys.items() if key == own)

    @property
    def memory_bytes(self) -> int:
        """What panes take in memory."""
        with self._lock:
            return sum(panes.nbytes for panes in self._panes.values())

    def spare_memory(self) -> None:
        """Give up what can be computed again."""
        with self._lock:
            kept = list(self._panes.values())
        for panes in kept:
            panes.spare_memory()

    def forget(self, query: str) -> None:
        """Forget a query that was dropped."""
        with self._lock:
            self._queries.pop(query, None)
            self._pane_keys.pop(query, None)
            kept = set(self._pane_keys.values())
            self._panes = {key: panes for key, panes in self._panes.items() if key in kept}

    def _new(self, path: Path, how: Stateful) -> Computation:
        columns = numbered(len(path.columns))
        text = self._sinks[path.query.name].text(columns, path.columns)
        timeline = self._timelines[path.stream]

        def way(plan: Plan) -> tuple[Results, SmallQuery]:
            results = Results(plan, len(path.columns), text)
            return results, self._query(path, plan, results, text)

        match how.plans:
            case SessionPlans(ended, every):
                results, query = way(ended)
                all_sessions = SmallQuery(every, self._driver)
                return Sessions(how, timeline, self._nothing, results, query, all_sessions)
            case WindowPlans(one, at_once, always):
                together = way(at_once) if at_once is not None and how.mode == "windows" else None
                share = partial(self._panes_of, path)
                return ClosingWindows(
                    how, timeline, self._nothing, way(one), together, always, share
                )
            case Plan() as plan:
                kind = Union if how.mode == "union" else Pairs
                return kind(how, timeline, self._nothing, *way(plan))
        raise AssertionError(how.mode)

    def _query(self, path: Path, plan: Plan, results: Results, text: str | None) -> SmallQuery:
        """Return the prepared plan of a query: the same for all that compute the same.

        The size of a window is not part of a plan: many sizes, one plan.
        """
        own = (path.query.name,) if self._share == "none" else ()
        names = tuple(results.plan.schema.names)
        key = (plan.key, text, names, path.query.apply, path.stream, *own)
        query = self._plans.get(key)
        if query is None:
            inputs = path.stateful.inputs if path.stateful is not None else ()
            streams = {source.view: source.stream for source in inputs}
            query = self._plans[key] = SmallQuery(results.plan, self._driver, streams)
        return query

    def _panes_of(self, path: Path, key: int, make: Callable[[], Panes]) -> Panes:
        """Return the panes of a query: those of others that aggregate alike."""
        own = path.stream, shared_by(path, self._share), key
        with self._lock:
            self._pane_keys[path.query.name] = own
            if own not in self._panes:
                self._panes[own] = make()
            return self._panes[own]

    def _nothing(self, stream: str) -> pa.Table:
        return self._logs[stream].arrow_schema.empty_table()
