"""The streams and queries of a Headgate, with their numbers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headgate.errors import ConfigRefused, UnknownName
from headgate.model.network.derived import lifted, readers_of
from headgate.model.network.network import Network, Path
from headgate.model.query import QueryClass
from headgate.model.stream import Stream
from headgate.runtime.views import refuse_filled

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class Catalog:
    """Streams and paths in the order in which they came.

    A stream or query that was dropped keeps its number and may come back.

    Args:
        gives_again: whether another query may get the number of a dropped one. A recording
            identifies queries by number, so no number is given twice while one is made.
    """

    def __init__(self, classes: Sequence[QueryClass], gives_again: bool = True) -> None:
        self.classes, self._gives_again = tuple(classes), gives_again
        self.streams: list[Stream] = []
        self.paths: list[Path] = []
        self.schemas: dict[str, StructType] = {}
        self.dropped: set[str] = set()
        """Names of paths that were dropped while others ran."""
        self.gone: set[str] = set()
        """Names of streams that were dropped while others ran."""

    @property
    def network(self) -> Network:
        return self.network_of(self.streams, self.paths)

    def network_of(self, streams: Sequence[Stream], paths: Sequence[Path]) -> Network:
        """Return the network of streams and paths, producers in the class of their readers."""
        # A query that comes back has another path, and is no longer dropped.
        new = {id(path) for path in paths}.difference(map(id, self.paths))
        gone = {path.query.name for path in paths if id(path) not in new} & self.dropped
        raised = lifted(paths, streams, self.classes, gone)
        return Network(tuple(streams), self.classes, raised, dropped=frozenset(gone))

    @property
    def columns(self) -> dict[str, Sequence[str]]:
        """The columns of every stream."""
        return {name: schema.names for name, schema in self.schemas.items()}

    @property
    def alive(self) -> tuple[Path, ...]:
        """The paths that were not dropped."""
        return tuple(path for path in self.paths if path.query.name not in self.dropped)

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
        refuse_filled(name, self.alive)
        readers = [path.first_of or path.query.name for path in readers_of(name, self.alive)]
        if readers:
            raise ConfigRefused(
                path=f"stream '{name}'", key="queries", value=", ".join(readers),
                expected="dropped before the stream that they read",
            )  # fmt: skip

    def with_query(
        self, queues: Sequence[Stream], new: Sequence[Path]
    ) -> tuple[list[int], list[Stream], list[Path]]:
        """Return the numbers of the paths of a query to be added, and all streams and paths.

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
        units = self._places(new)
        return units, streams, [*self.paths[: units[0]], *new, *self.paths[units[-1] + 1 :]]

    def _refuse_other(self, stream: Stream, queue: Stream, path: Path) -> None:
        """Refuse a query that needs a stream if another stream has its name."""
        name = path.query.name
        if {*stream.of} != {*queue.of}:
            needs = f"the time of {' and '.join(queue.of)}" if queue.of else "its results"
            raise ConfigRefused(
                path="streams", key="name", value=stream.name,
                expected=f"another name: query '{name}' needs this one for {needs}",
            )  # fmt: skip
        hidden = {other.into for other in self.paths if other.first_of == name}
        free = stream.is_derived and stream.name in self.gone | hidden
        if not queue.of and not free:
            raise ConfigRefused(
                path=f"query '{name}'", key="sink.options.stream", value=queue.name,
                expected="unique: another stream has it",
            )  # fmt: skip

    def units_of(self, query: str) -> list[int]:
        """Return the numbers of a query's paths, in the order in which a tuple passes them.

        Raises:
            UnknownName: the query was dropped, and another has its number.
        """
        paths = self.paths
        last = next((path for path in paths if path.query.name == query), None)
        if last is None:
            names = [path.query.name for path in self.alive]
            raise UnknownName(kind="query", name=query, known=names)
        return [unit for unit, path in enumerate(paths) if path is last or path.first_of == query]

    def segments_of(self, query: str) -> list[Path]:
        """Return a query's paths, in the order in which a tuple passes them."""
        return [self.paths[unit] for unit in self.units_of(query)]

    def class_of(self, query: str) -> str:
        """Return the class that a query runs in; a producer may be raised to that of a reader."""
        path = self.paths[self.units_of(query)[-1]]
        if path.into is not None:
            raised = lifted(self.alive, self.streams, self.classes)
            path = next(producer for producer in raised if producer.query.name == query)
        return path.query.query_class

    def forget(self, units: Sequence[int]) -> None:
        """Remove the paths of a query that has never run."""
        filled = {self.paths[unit].into for unit in units}
        del self.paths[units[0] : units[-1] + 1]
        read = {path.stream for path in self.paths}
        self.streams = [
            stream
            for stream in self.streams
            if stream.name not in filled and (not stream.of or stream.name in read)
        ]

    def add_query(self, streams: list[Stream], paths: list[Path], new: Sequence[Path]) -> None:
        """Add a query, with the streams and paths that `with_query` returned for it."""
        self.streams, self.paths = streams, paths
        self.gone -= {path.into for path in new}
        here = {path.query.name for path in paths} - {path.query.name for path in new}
        self.dropped &= here

    def _free(self) -> int | None:
        """Return the number of a query that was dropped and was not cut, if there is one."""
        if not self._gives_again:
            return None
        cut = {path.first_of for path in self.paths}
        return next(
            (
                unit
                for unit, path in enumerate(self.paths)
                if path.query.name in self.dropped
                and path.first_of is None
                and path.query.name not in cut
            ),
            None,
        )

    def _places(self, new: Sequence[Path]) -> list[int]:
        """Return the numbers for new paths; a query that was dropped gets those that it had.

        Raises:
            ConfigRefused: the query was cut then and is not now, or the other way round.
        """
        name = new[-1].query.name
        if name not in self.dropped:
            if len(new) == 1 and (free := self._free()) is not None:
                return [free]
            return list(range(len(self.paths), len(self.paths) + len(new)))
        old = self.units_of(name)
        if len(old) != len(new):
            raise ConfigRefused(
                path=f"query '{name}'", key="cut", value=new[-1].query.cut,
                expected="as it was before the query was dropped, until the next start",
            )  # fmt: skip
        return old
