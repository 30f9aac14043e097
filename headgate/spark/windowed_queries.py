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
from headgate.spark.arrangement import shared_by
from headgate.spark.group import Output, quoted
from headgate.spark.panes import Panes, Passed
from headgate.spark.sessions import Sessions
from headgate.spark.sinks import FileSink
from headgate.spark.small_query import SmallQuery
from headgate.spark.stream_log import StreamLog, TimelineTrains, Trains
from headgate.spark.timeline import Timeline
from headgate.spark.windowed import Windowed


class WindowedQueries:
    """Makes what runs a query when it first does; safe to use from several workers.

    Args:
        lane: `job` for every call, or the quicker.
        share: between which queries equal parts run once: the panes of what they aggregate.
            Compiled code they have in common whatever it is, unless it is `none`.
    """

    def __init__(
        self,
        timelines: Mapping[str, Timeline],
        logs: Mapping[str, StreamLog],
        sinks: Mapping[str, FileSink],
        lane: Lane | None,
        share: Share,
    ) -> None:
        self._timelines, self._logs, self._sinks = timelines, logs, sinks
        self._lane, self._share = lane, share
        self._queries: dict[str, Windowed | Sessions] = {}
        # Compiled code lives as long as a query has it.
        self._texts: WeakValueDictionary[tuple[object, ...], SmallQuery] = WeakValueDictionary()
        self._panes: dict[tuple[str, ...], Panes] = {}
        self._pane_keys: dict[str, tuple[str, ...]] = {}
        self._passed: dict[tuple[str, ...], Passed] = {}
        self._lock = threading.Lock()

    def run(
        self, session: SparkSession, path: Path, trains: Trains, known: dict[Any, Any]
    ) -> Output | Exception:
        """Gives what trains of its timeline bring a query, or why that cannot be told.

        Args:
            known: what other queries of the timeline have found over these trains.
        """
        assert path.stateful is not None
        assert isinstance(trains, TimelineTrains)
        name = path.query.name
        with self._lock:
            if name not in self._queries:
                self._queries[name] = self._new(path, path.stateful)
        try:
            return self._queries[name](session, trains.first, trains.end, known)
        except Exception as error:
            return error

    def lane(self, path: Path) -> Lane:
        """Gives the way that small calls of a query take."""
        found = self._queries.get(path.query.name)
        return "job" if found is None else found.lane

    def with_panes_of(self, query: str) -> list[str]:
        """Gives the queries that have a query's panes, itself among them; none if it has none."""
        with self._lock:
            own = self._pane_keys.get(query)
            return sorted(each for each, key in self._pane_keys.items() if key == own)

    @property
    def memory_bytes(self) -> int:
        """What panes take in memory, and what is known of rows."""
        with self._lock:
            return sum(each.nbytes for each in self._kept())

    def spare_memory(self) -> None:
        """Gives up what can be computed again."""
        with self._lock:
            kept = self._kept()
        for each in kept:
            each.spare_memory()

    def _kept(self) -> list[Panes | Passed]:
        return [*self._panes.values(), *self._passed.values()]

    def forget(self, query: str) -> None:
        with self._lock:
            self._queries.pop(query, None)
            self._pane_keys.pop(query, None)
            kept = set(self._pane_keys.values())
            self._panes = {key: panes for key, panes in self._panes.items() if key in kept}
            streams = {key[:-1] for key in kept}
            self._passed = {key: each for key, each in self._passed.items() if key in streams}

    def _new(self, path: Path, how: Stateful) -> Windowed | Sessions:
        columns = [quoted(column) for column in path.columns]
        text = self._sinks[path.query.name].text(columns, path.columns)
        streams = {each.view: each.stream for each in how.inputs}
        fields = {view: self._logs[name].schema.fields for view, name in streams.items()}
        # The size of a window is not part of the text: many sizes, one text.
        own = (path.query.name,) if self._share == "none" else ()

        def query_of(sql: str) -> SmallQuery:
            apply = path.query.apply
            key = (sql, apply, path.columns, text, tuple(streams.items()), *own)
            found = self._texts.get(key)
            if found is None:
                found = self._texts[key] = SmallQuery(
                    sql, path.columns, text, fields.__getitem__, self._lane, apply
                )
            return found

        timeline = self._timelines[path.stream]
        if how.mode == "sessions":
            opened = None if how.opened is None else query_of(how.opened)
            return Sessions(how, timeline, self._nothing, query_of(how.text), opened)
        alone = None if how.alone is None else query_of(how.alone)
        share = partial(self._panes_of, path)
        return Windowed(how, timeline, self._nothing, query_of(how.text), share, alone)

    def _panes_of(self, path: Path, key: tuple[str, ...], make: Callable[[Passed], Panes]) -> Panes:
        """Gives the panes of a query: those of others that aggregate alike."""
        own = path.stream, shared_by(path, self._share), *key
        with self._lock:
            self._pane_keys[path.query.name] = own
            if own not in self._panes:
                # All but what they aggregate, and how.
                self._panes[own] = make(self._passed.setdefault(own[:-1], Passed()))
            return self._panes[own]

    def _nothing(self, stream: str) -> pa.Table:
        return self._logs[stream].arrow_schema.empty_table()
