"""The queries of an executor that have windows, and what these queries share."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.extensions.lazy_import import lazy_import
from headgate.model.network.network import Path
from headgate.model.plan import Lane, Share
from headgate.spark.event_time.timeline_reader import TimelineReader
from headgate.spark.jvm.lane.plan_runner import DriverLane
from headgate.spark.jvm.lane.small_query import SmallQuery
from headgate.spark.jvm.query.plans import Plan
from headgate.spark.log.shedding_rules import QueryDrops, SheddingRules
from headgate.spark.log.stream_log import StreamLog
from headgate.spark.log.trains import TimelineTrains, Trains
from headgate.spark.output import Output, numbered
from headgate.spark.sharing.panes import Panes
from headgate.spark.sharing.sharing_plan import shared_by
from headgate.spark.sinks.files.file_sink import FileSink
from headgate.spark.windows.bad_row_filter import BadRowFilter, Checked
from headgate.spark.windows.computation import Computation, Material
from headgate.spark.windows.results import Results


class WindowedQueries:
    """The computations of queries over windows. Several workers may use it at the same time.

    The computation of a query is created when the query first runs.

    Args:
        driver: the lane that runs plans without a job.
        letters_from: returns the train from which on bad tuples of a query have no letters yet.
        share: the scope within which queries share panes of equal aggregates. Prepared plans are
            shared by all queries, unless this is `none`.
        rules: what queries drop in overload.
    """

    def __init__(
        self,
        timelines: Mapping[str, TimelineReader],
        logs: Mapping[str, StreamLog],
        sinks: Mapping[str, FileSink],
        driver: DriverLane,
        share: Share,
        rules: SheddingRules,
        letters_from: Callable[[str], int] = lambda query: 0,
    ) -> None:
        self._rules, self._letters_from = rules, letters_from
        self._timelines, self._logs, self._sinks = timelines, logs, sinks
        self._driver, self._share = driver, share
        self._queries: dict[str, Computation] = {}
        # A prepared plan lives as long as a query uses it.
        self.plans: WeakValueDictionary[tuple[object, ...], SmallQuery] = WeakValueDictionary()
        self.panes: dict[tuple[object, ...], Panes] = {}
        self._pane_keys: dict[str, tuple[object, ...]] = {}
        self._lock = threading.Lock()

    def run(
        self,
        session: SparkSession,
        lane: Lane,
        path: Path,
        trains: Trains,
        shared_reads: dict[Any, Any],
    ) -> Output | Exception:
        """Return the output of a query over trains of its timeline, or the error that prevents it.

        Args:
            shared_reads: what other queries of the timeline have read from these trains.
        """
        assert isinstance(trains, TimelineTrains)
        name = path.query.name
        try:
            with self._lock:
                computation = self._queries.get(name)
                checks = path.query.on_error == "dead_letter"
                if computation is None or isinstance(computation, Checked) != checks:
                    computation = self._queries[name] = self._new(path)
            output = computation(session, lane, trains.first, trains.end, shared_reads)
            shed = self._timelines[path.stream].shed(trains.first, trains.end, self._drops(path))
            return replace(output, shed=shed) if shed else output
        except Exception as error:
            return error

    def needs_job(self, path: Path) -> bool:
        """Return True if a query is known to be unable to run in the driver."""
        computation = self._queries.get(path.query.name)
        return computation is not None and computation.needs_job

    def with_panes_of(self, query: str) -> list[str]:
        """Return the queries that use the same panes as a query, including the query itself.

        The list is empty if the query has no panes.
        """
        with self._lock:
            pane_key = self._pane_keys.get(query)
            if pane_key is None:
                return []
            return sorted(name for name, key in self._pane_keys.items() if key == pane_key)

    @property
    def memory_bytes(self) -> int:
        """The memory that panes take."""
        with self._lock:
            return sum(panes.bytes for panes in self.panes.values())

    @property
    def disk_bytes(self) -> int:
        return 0

    def spare_memory(self) -> None:
        """Drop partial results that can be computed again."""
        with self._lock:
            all_panes = list(self.panes.values())
        for panes in all_panes:
            panes.spare_memory()

    def forget(self, query: str) -> None:
        """Forget a query that was dropped."""
        with self._lock:
            self._queries.pop(query, None)
            self._pane_keys.pop(query, None)
            used_keys = set(self._pane_keys.values())
            self.panes = {key: panes for key, panes in self.panes.items() if key in used_keys}

    def _drops(self, path: Path) -> QueryDrops:
        return QueryDrops(self._rules, path.query.name, path.stream)

    def _new(self, path: Path) -> Computation:
        columns = numbered(len(path.columns))
        text = self._sinks[path.query.name].text(columns, path.columns)

        def with_results(plan: Plan) -> tuple[Results, SmallQuery]:
            results = Results(plan, len(path.columns), text)
            return results, self._query(path, plan, results, text)

        timeline, checked = self._timelines[path.stream], None
        if path.query.on_error == "dead_letter":
            checked = BadRowFilter(path.kind, timeline, self._driver)
            timeline = checked.timeline
        material = Material(
            kind=path.kind, timeline=timeline, nothing=self._nothing,
            query=lambda plan: SmallQuery(plan, self._driver), results=with_results,
            panes=partial(self._panes_of, path), drops=self._drops(path),
        )  # fmt: skip
        computation: Computation = lazy_import(path.kind.computed_by)(material)
        if checked is None:
            return computation
        return Checked(checked, computation, partial(self._letters_from, path.query.name))

    def _query(self, path: Path, plan: Plan, results: Results, text: str | None) -> SmallQuery:
        """Return the prepared plan of a query, the same for all queries that compute the same.

        The size of a window is not part of a plan, so windows of many sizes share one plan.
        """
        scope = (path.query.name,) if self._share == "none" else ()
        names = tuple(results.plan.schema.names)
        key = (plan.key, text, names, path.query.apply, path.stream, *scope)
        query = self.plans.get(key)
        if query is None:
            streams = {source.view: source.stream for source in path.kind.inputs}
            query = self.plans[key] = SmallQuery(results.plan, self._driver, streams)
        return query

    def _panes_of(self, path: Path, key: int, make: Callable[[], Panes]) -> Panes:
        """Return the panes of a query, shared with other queries that aggregate alike."""
        # Panes of bad tuples are not those of other queries.
        alone = path.query.name if path.query.on_error == "dead_letter" else ""
        pane_key = path.stream, shared_by(path, self._share), key, alone
        with self._lock:
            self._pane_keys[path.query.name] = pane_key
            if pane_key not in self.panes:
                self.panes[pane_key] = make()
            return self.panes[pane_key]

    def _nothing(self, stream: str) -> pa.Table:
        return self._logs[stream].arrow_schema.empty_table()
