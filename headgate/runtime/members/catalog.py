"""The streams and queries of a Headgate, with the ids of queries, as an immutable snapshot."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from headgate.errors import ConfigRefused, UnknownName
from headgate.model.network.derived_streams import lifted, readers_of
from headgate.model.network.network import Network, Path
from headgate.model.query import QueryClass
from headgate.model.stream import Stream
from headgate.runtime.members.sink_folder import versioned
from headgate.runtime.views import refuse_filled

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True, eq=False)
class Catalog:
    """Streams and paths in the order in which they came. A change returns another catalog.

    A stream that was dropped keeps its number and may come back.

    Args:
        ids: by name of a path, its id; empty before the start, when the journal is not open.
        schemas: by name of a stream, its schema.
        gone: the names of streams that were dropped while others ran.
    """

    classes: tuple[QueryClass, ...]
    streams: tuple[Stream, ...] = ()
    paths: tuple[Path, ...] = ()
    ids: Mapping[str, int] = field(default_factory=dict)
    schemas: "Mapping[str, StructType]" = field(default_factory=dict)
    gone: frozenset[str] = frozenset()

    @property
    def network(self) -> Network:
        return self.network_of(self.streams, self.paths)

    def network_of(
        self, streams: Sequence[Stream], paths: Sequence[Path], new: Mapping[str, int] | None = None
    ) -> Network:
        """Return the network of streams and paths, producers in the class of their readers.

        Args:
            new: the ids of paths that are about to be added.
        """
        raised = lifted(paths, streams, self.classes)
        id_by_name = {**self.ids, **(new or {})}
        ids = tuple(id_by_name[path.query.name] for path in paths if path.query.name in id_by_name)
        complete = len(ids) == len(paths)
        return Network(tuple(streams), self.classes, raised, ids=ids if complete else ())

    @property
    def readable(self) -> dict[str, str]:
        """The formats of the streams that queries may read, by name."""
        hidden = {path.into for path in self.paths if path.first_of is not None}
        return {
            stream.name: stream.format
            for stream in self.streams
            if not stream.of and stream.name not in hidden | self.gone
        }

    def with_stream(self, stream: Stream) -> tuple[int, list[Stream]]:
        """Return the number of a stream to be added, and all streams with it.

        Raises:
            ConfigRefused: another stream has its name.
        """
        names = [other.name for other in self.streams]
        again = stream.name in self.gone
        if not again and stream.name.lower() in map(str.lower, names):
            raise ConfigRefused(
                path="streams",
                key="name",
                value=stream.name,
                expected="unique: another stream has it",
            )
        number = names.index(stream.name) if again else len(names)
        return number, [*self.streams[:number], stream, *self.streams[number + again :]]

    def refuse_to_drop(self, name: str) -> None:
        """Refuse to drop a stream that does not exist, or that a query reads or fills."""
        if name not in self.readable:
            raise UnknownName(kind="stream", name=name, known=self.readable)
        refuse_filled(name, self.paths)
        readers = [path.first_of or path.query.name for path in readers_of(name, self.paths)]
        if readers:
            raise ConfigRefused(
                path=f"stream '{name}'", key=f"queries {', '.join(readers)}", value=None,
                expected="dropped before the stream that they read",
            )  # fmt: skip

    def with_query(
        self, queues: Sequence[Stream], new: Sequence[Path]
    ) -> tuple[list[Stream], list[Path]]:
        """Return all streams and paths, with those of a query to be added.

        Args:
            queues: the timeline that it reads, and the streams that it fills.
            new: the paths of the query.

        Raises:
            ConfigRefused: another stream has the name of one of them.
        """
        streams = list(self.streams)
        for queue in queues:
            names = [stream.name.lower() for stream in streams]
            if queue.name.lower() not in names:
                streams.append(queue)
                continue
            place = names.index(queue.name.lower())
            self._refuse_other(streams[place], queue, new[-1])
            if not queue.of:
                streams[place] = queue
        return streams, [*self.paths, *new]

    def _refuse_other(self, stream: Stream, queue: Stream, path: Path) -> None:
        """Refuse a query that needs a stream if another stream has its name."""
        name = path.query.name
        if {*stream.of} != {*queue.of}:
            needs = f"the time of {' and '.join(queue.of)}" if queue.of else "its results"
            raise ConfigRefused(
                path="streams", key="name", value=stream.name,
                expected=f"another name: query '{name}' needs this one for {needs}",
            )  # fmt: skip
        free = stream.is_derived and stream.name in self.gone
        if not queue.of and not free:
            raise ConfigRefused(
                path=f"query '{name}'", key="sink.options.stream", value=queue.name,
                expected="unique: another stream has it",
            )  # fmt: skip

    def ids_of(self, query: str) -> list[int]:
        """Return the ids of a query's paths, in the order in which a tuple passes them."""
        return [self.ids[path.query.name] for path in self.segments_of(query)]

    def segments_of(self, query: str) -> list[Path]:
        """Return a query's paths, in the order in which a tuple passes them.

        Raises:
            UnknownName: the query was dropped.
        """
        paths = self.paths
        segments = [path for path in paths if query in (path.query.name, path.first_of)]
        if not segments:
            names = [path.query.name for path in paths]
            raise UnknownName(kind="query", name=query, known=names)
        return segments

    def all_segments(self) -> dict[str, list[Path]]:
        """Return the paths of every query, by its name, in the order in which a tuple passes them.

        One pass over the paths: to ask `segments_of` for each of hundreds of queries takes longer.
        """
        segments: dict[str, list[Path]] = {}
        for path in tuple(self.paths):
            segments.setdefault(path.first_of or path.query.name, []).append(path)
        return segments

    def class_of(self, query: str) -> str:
        """Return the class that a query runs in; a producer may be raised to that of a reader."""
        path = self.segments_of(query)[-1]
        if path.into is not None:
            raised = lifted(self.paths, self.streams, self.classes)
            path = next(producer for producer in raised if producer.query.name == query)
        return path.query.query_class

    def with_ids(self, ids: Mapping[str, int]) -> "Catalog":
        """Return the catalog with the ids that the journal has for its paths."""
        return replace(self, ids=ids)

    def add_stream(
        self, streams: Iterable[Stream], name: str, schema: "StructType | None"
    ) -> "Catalog":
        """Return the catalog with a stream.

        Args:
            streams: what `with_stream` returned for it.
            schema: None if its source did not start; it then has a number, and is gone.
        """
        if schema is None:
            return replace(self, streams=tuple(streams), gone=self.gone | {name})
        schemas = {**self.schemas, name: schema}
        return replace(self, streams=tuple(streams), schemas=schemas, gone=self.gone - {name})

    def drop_stream(self, name: str, *, runs: bool) -> "Catalog":
        """Return the catalog without a stream, which keeps its number while a Headgate runs."""
        catalog = self.without_schema(name)
        if runs:
            return replace(catalog, gone=self.gone | {name})
        return replace(
            catalog, streams=tuple(stream for stream in self.streams if stream.name != name)
        )

    def without_schema(self, stream: str) -> "Catalog":
        """Return the catalog without the schema of a stream, so that no query can read it."""
        schemas = {name: schema for name, schema in self.schemas.items() if name != stream}
        return replace(self, schemas=schemas)

    def add_query(
        self,
        streams: Iterable[Stream],
        paths: Iterable[Path],
        new: Sequence[Path],
        ids: Mapping[str, int],
        schemas: "Mapping[str, StructType]",
    ) -> "Catalog":
        """Return the catalog with a query.

        Args:
            streams, paths: what `with_query` returned for it.
            new: the paths of the query.
            schemas: those of the streams that it fills.
        """
        filled = {path.into for path in new if path.into is not None}
        return replace(
            self, streams=tuple(streams), paths=tuple(paths), ids={**self.ids, **ids},
            schemas={**self.schemas, **schemas}, gone=self.gone - filled,
        )  # fmt: skip

    def with_paths(self, paths: Iterable[Path]) -> "Catalog":
        """Return the catalog with other values of its queries."""
        return replace(self, paths=tuple(paths))

    def replace_query(
        self, query: str, streams: Iterable[Stream], new: Path, ids: Mapping[str, int]
    ) -> "Catalog":
        """Return the catalog with the next version of a query in its place."""
        left = self.remove(query)
        return left.add_query(streams, [*left.paths, new], [new], ids, {})

    def remove(self, query: str) -> "Catalog":
        """Return the catalog without a query that was dropped. Its streams keep their numbers."""
        leaving = self.segments_of(query)
        names = {path.query.name for path in leaving}
        return replace(
            self,
            paths=tuple(path for path in self.paths if path.query.name not in names),
            ids={name: number for name, number in self.ids.items() if name not in names},
            gone=self.gone | {path.into for path in leaving if path.into is not None},
        )

    def forget(self, query: str) -> "Catalog":
        """Return the catalog without a query that has never run, and without its streams."""
        leaving = self.segments_of(query)
        names, filled = {path.query.name for path in leaving}, {path.into for path in leaving}
        paths = tuple(path for path in self.paths if path.query.name not in names)
        read = {path.stream for path in paths}
        streams = tuple(
            stream
            for stream in self.streams
            if stream.name not in filled and (not stream.of or stream.name in read)
        )
        return replace(self, streams=streams, paths=paths)

    def place_version(self, query: str, version: int) -> "Catalog":
        """Return the catalog with the version of a query, and its results folder, in its paths."""
        return self.with_paths(
            replace(path, query=versioned(path.query, version), version=version)
            if query in (path.query.name, path.first_of)
            else path
            for path in self.paths
        )
