"""The membership: streams and queries are added and dropped, before the start and while running."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from headgate.config import since_of
from headgate.errors import (
    ConfigRefused,
    HeadgateError,
    QueryRefused,
    RequestRefused,
    UnknownName,
)
from headgate.extensions import source_entry
from headgate.model.network.network import Path
from headgate.model.query import Deliver, Query, QueryClass
from headgate.model.settings import Settings
from headgate.model.stream import Rows, Stream
from headgate.runtime.members.catalog import Catalog
from headgate.runtime.members.query_paths import changed_query, segments_of, with_values
from headgate.runtime.members.sink_folder import placed, versioned
from headgate.runtime.run.live_query import LiveQuery
from headgate.runtime.run.run import Running
from headgate.runtime.run.spark_room import LiveEngine, SparkRoom, StreamAnalyst
from headgate.runtime.views import (
    derived_stream,
    reading_order,
    refuse_itself,
    refuse_read,
    refuse_unordered,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class Membership:
    """The streams and queries of a Headgate: keeps catalog, engine and run in step.

    The methods of `Headgate` with the same names document the errors that methods raise here.

    Args:
        cuts: decides whether to cut a query that leaves it open.
    """

    def __init__(
        self,
        room: SparkRoom,
        session: "SparkSession",
        state: File,
        classes: Sequence[QueryClass],
        settings: Settings,
        cuts: Callable[[Query], bool],
    ) -> None:
        self._room, self._session, self.state = room, session, state
        self.settings, self._cuts = settings, cuts
        self._analyst = room.Analyst(room.own_session(session), settings, state)
        self.lock = threading.RLock()
        """Held by the thread that changes streams or queries: one change after the other."""
        self.catalog = Catalog(tuple(classes))
        """The latest snapshot. Who reads it takes no lock."""
        self.rows: dict[str, Rows] = {}
        self.deliver: dict[str, Deliver] = {}
        self.definitions: dict[str, Query] = {}
        """The queries as they were added, by name: their sinks have the directories of users."""
        self.queries: dict[str, LiveQuery] = {}
        self.engine: LiveEngine | None = None
        """The Spark engine; None before the start."""
        self.run: Running | None = None
        """The run; None until the start is complete."""

    def engine_for(self, method: str) -> LiveEngine:
        """Return the engine that a method of `Headgate` needs.

        Raises:
            ConfigRefused: there is none before the start.
        """
        if self.engine is None:
            raise _too_early(method)
        return self.engine

    def run_for(self, method: str) -> Running:
        """Return the run that a method of `Headgate` needs.

        Raises:
            ConfigRefused: there is none before the start.
        """
        if self.run is None:
            raise _too_early(method)
        return self.run

    def add_stream(self, stream: Stream, rows: Rows | None = None) -> None:
        with self.lock:
            self._add_stream(stream, rows)

    def _add_stream(self, stream: Stream, rows: Rows | None) -> None:
        number, streams = self.catalog.with_stream(stream)
        entry = source_entry(stream.format)
        if (rows is None) == (entry is not None and entry.takes_function):
            raise ConfigRefused(
                path=f"stream '{stream.name}'", key="rows", value=None,
                expected="given for format 'python', and for no other",
            )  # fmt: skip
        schema = self._room.source_of(self._session, stream).schema
        if rows is not None:
            self.rows[stream.name] = rows
        catalog = self.catalog
        if self.engine is not None:
            network = catalog.network_of(streams, catalog.paths)
            try:
                self.engine.changes.add_stream(network, number, schema)
            except BaseException:
                if self.engine.changes.has_stream(number):  # but its source did not start
                    self.catalog = catalog.add_stream(streams, stream.name, None)
                raise
        self._analyst.add_stream(stream.name, schema, stream.event_time)
        self.catalog = catalog.add_stream(streams, stream.name, schema)

    def drop_stream(self, name: str) -> None:
        with self.lock:
            catalog = self.catalog
            catalog.refuse_to_drop(name)
            if self.engine is not None:
                self.engine.changes.drop_stream(name)
            self._analyst.drop_stream(name)
            self.catalog = catalog.drop_stream(name, runs=self.engine is not None)

    def add_query(self, query: Query, deliver: Deliver | None = None) -> LiveQuery:
        with self.lock:
            return self._add_query(query, deliver)

    def _add_query(self, query: Query, deliver: Deliver | None) -> LiveQuery:
        catalog, definition = self.catalog, query
        query = placed(query, self.state, catalog.paths, deliver)
        version = 1
        if self.engine is not None:
            version = self._room.versions_of(self.state).get(query.name, 1)
            query = versioned(query, version)
        queues, new, schemas = self._segments(
            query, self._analyst, catalog.schemas, catalog.streams, catalog.paths
        )
        new = tuple(replace(path, version=version) for path in new)
        self._room.refuse_sink(self._session, new[-1], deliver)
        streams, paths = catalog.with_query(queues, new)
        catalog.network_of(streams, paths)  # before the query gets an id
        if deliver is not None:
            self.deliver[query.name] = deliver
        live_query, ids = LiveQuery(new[-1]), dict[str, int]()
        if self.engine is not None:
            ids = self.engine.changes.ids_of(new)
            network, budget_s = catalog.network_of(streams, paths, ids), self.settings.rehearsal_s
            self.engine.changes.add_query(network, [*ids.values()], budget_s, schemas)
        if self.run is not None:
            self.run.bind(ids[query.name], live_query)
        if query.into is not None:
            self._analyst.add_stream(query.into, schemas[query.into], queues[-1].event_time)
        self.catalog = catalog.add_query(streams, paths, new, ids, schemas)
        self.queries[query.name], self.definitions[query.name] = live_query, definition
        return live_query

    def place_versions(self) -> None:
        """Give every query the version, and the results folder, that the journal has for it."""
        for name, version in self._room.versions_of(self.state).items():
            if version > 1 and name in self.queries:
                self.catalog = self.catalog.place_version(name, version)
                self.queries[name].path = self.catalog.segments_of(name)[-1]

    def with_text(self, query: Query, others: Sequence[Path]) -> tuple[list[Stream], Path]:
        """Return the timeline that the next version of a query reads, if any, and its path.

        Args:
            others: the paths of the other queries.

        Raises:
            QueryRefused: the text is refused, or the query fills a stream of other columns.
        """
        catalog = self.catalog
        queues, (path,), filled = self._segments(
            query, self._analyst, catalog.schemas, catalog.streams, others
        )
        self._room.refuse_sink(self._session, path, self.deliver.get(query.name))
        into = query.into
        if into is not None and filled[into] != catalog.schemas[into]:
            raise QueryRefused(
                query=query.name, clause="SELECT", reason=f"gives stream '{into}' other columns:"
                f" {filled[into].simpleString()} instead of {catalog.schemas[into].simpleString()}",
                fix="keep the columns, or add a query of another name",
            )  # fmt: skip
        return [queue for queue in queues if queue.name != into], path

    def _segments(
        self,
        query: Query,
        analyst: StreamAnalyst,
        schemas: "Mapping[str, StructType]",
        streams: Sequence[Stream],
        others: Sequence[Path],
    ) -> "tuple[list[Stream], tuple[Path, ...], dict[str, StructType]]":
        """Return the derived streams of a query, its paths, and the schemas of what it fills.

        Args:
            schemas, streams: those that it may read.
            others: the paths of the other queries.
        """
        columns = {name: schema.names for name, schema in schemas.items()}
        refuse_itself(query)
        queues, new = segments_of(query, analyst, columns, streams, self._cuts)
        self._room.refuse_outputs(self._session, new[-1])
        refuse_unordered(new[-1], others)
        since_s = since_of(query.name, query.start_from)
        new = tuple(replace(path, since_s=since_s) for path in new)
        filled = {queue.name: schemas[new[0].stream] for queue in queues if not queue.of}
        if query.into is None:
            return [*queues], new, filled
        schema = analyst.schema_of(new[-1])
        derived = derived_stream(new[-1], schema, streams)
        return [*queues, derived], new, {**filled, derived.name: schema}

    def drop_query(self, name: str) -> None:
        with self.lock:
            catalog = self.catalog
            stream = self.query(name).path.into
            refuse_read(name, stream, catalog.paths)
            leaving, reads = self.queries.pop(name), catalog.segments_of(name)[0].reads
            self.deliver.pop(name, None)
            self.definitions.pop(name, None)
            if stream is not None:  # from here on no query can begin to read it
                self._analyst.drop_stream(stream)
                catalog = self.catalog = catalog.without_schema(stream)
            if self.engine is None:
                self.catalog = catalog.forget(name)
                return
            number = catalog.ids[name]
            gone = self.engine.changes.drop_query(number)
        # Without the lock: a call under way may take long.
        while not gone.wait(0.2) and self.run is not None and self.run.is_alive:
            pass
        with self.lock:
            leaving.stopped = True
            if self.run is not None:
                self.run.release(number)
            if gone.is_set():  # else the engine still has it
                self.catalog = self.catalog.remove(name)
                if any(path.into in reads for path in self.catalog.paths):
                    self.engine.changes.reclassify(self.catalog.network)

    def set_query(self, name: str, values: Mapping[str, Any]) -> Query:
        """Change fields of a query or of its sink, by their names; return the query with them."""
        with self.lock:
            live_query, catalog = self.query(name), self.catalog
            paths = with_values(catalog.paths, name, values)
            network = catalog.network_of(catalog.streams, paths)
            if self.engine is not None:
                self.engine.changes.set_query(network, catalog.ids_of(name))
            self.catalog = catalog.with_paths(paths)
            self.definitions[name] = changed_query(self.definitions[name], values)
            live_query.path = self.catalog.segments_of(name)[-1]
            return live_query.path.query

    def add(self, streams: Sequence[Stream], queries: Sequence[Query]) -> list[str]:
        """Add all of them, or none if one is refused; return their names."""
        added: list[str] = []
        with self.lock:
            queries = reading_order(queries)
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

    def check(self, streams: Sequence[Stream], queries: Sequence[Query]) -> None:
        """Raise what `add` would raise, and add nothing."""
        with self.lock:
            self._check(streams, reading_order(queries))

    def query(self, name: str) -> LiveQuery:
        if name not in self.queries:
            raise UnknownName(kind="query", name=name, known=self.queries)
        return self.queries[name]

    def _check(self, streams: Sequence[Stream], queries: Sequence[Query]) -> None:
        """Refuse streams and queries that could not be added, without adding any."""
        session = self._room.own_session(self._session)
        analyst = self._room.Analyst(session, self.settings, self.state)
        catalog, schemas = self.catalog, dict(self.catalog.schemas)
        for stream in streams:
            schemas[stream.name] = self._room.source_of(self._session, stream).schema
        times = {stream.name: stream.event_time for stream in (*catalog.streams, *streams)}
        for name, schema in schemas.items():
            analyst.add_stream(name, schema, times.get(name))
        paths: tuple[Path, ...] = ()
        queues: tuple[Stream, ...] = ()
        for query in queries:
            query = placed(query, self.state, (*catalog.paths, *paths), None)
            readable = (*catalog.streams, *streams, *queues)
            more, new, filled = self._segments(
                query, analyst, schemas, readable, (*catalog.paths, *paths)
            )
            self._room.refuse_sink(self._session, new[-1])
            catalog.with_query(more, new)
            timelines = {queue.name for queue in queues if queue.of}
            queues = (*queues, *(queue for queue in more if queue.name not in timelines))
            paths, schemas = (*paths, *new), {**schemas, **filled}
            if query.into is not None:
                analyst.add_stream(query.into, filled[query.into], more[-1].event_time)
        names = {stream.name for stream in (*streams, *queues)} | catalog.gone
        old = [stream for stream in catalog.streams if stream.name not in names]
        catalog.network_of((*old, *streams, *queues), (*catalog.paths, *paths))
        if self.engine is not None:
            ends = [path for path in paths if path.first_of is None]
            self.engine.changes.refuse_old_results(ends)


def _too_early(method: str) -> ConfigRefused:
    return ConfigRefused(path="headgate", key=method, value=None, expected="called after start")
