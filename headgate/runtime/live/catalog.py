"""The streams and queries of a Headgate, with their numbers."""

from collections.abc import Sequence
from typing import Any

from headgate.errors import ConfigRefused, UnknownName
from headgate.model.derived import lifted, readers_of
from headgate.model.network import Network, Path
from headgate.model.query import QueryClass
from headgate.model.stream import Stream
from headgate.runtime.views import refuse_filled


class Catalogue:
    """What is there, in the order it came; what was dropped keeps its number and may come back.

    Args:
        gives_again: whether another query may get the number of one that was dropped. A recording
            knows queries by their numbers, so none is given twice while one is made.
    """

    def __init__(self, classes: Sequence[QueryClass], gives_again: bool = True) -> None:
        self.classes, self._gives_again = tuple(classes), gives_again
        self.streams: list[Stream] = []
        self.paths: list[Path] = []
        self.schemas: dict[str, Any] = {}
        self.dropped: set[str] = set()
        """Names of paths that were dropped while others ran."""
        self.gone: set[str] = set()
        """Names of streams that were."""

    @property
    def network(self) -> Network:
        return self.network_of(self.streams, self.paths)

    def network_of(self, streams: Sequence[Stream], paths: Sequence[Path]) -> Network:
        """Return the network of streams and paths, producers in the class of their readers."""
        # One that comes back has another path, and is not dropped any more.
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
            each.name: each.format
            for each in self.streams
            if not each.of and each.name not in hidden | self.gone
        }

    def with_stream(self, stream: Stream) -> tuple[int, list[Stream]]:
        """Gives the number of a stream that comes, and all streams with it.

        Raises:
            ConfigRefused: another has its name.
        """
        names = [known.name for known in self.streams]
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
        """Refuses to drop a stream that is not there, or that a query reads."""
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
        """Gives the numbers of a query's paths, and all streams and paths with it.

        Args:
            queues: the timeline that it reads, and the streams that it fills.

        Raises:
            ConfigRefused: another stream has the name of one of them.
        """
        streams = list(self.streams)
        for queue in queues:
            names = [each.name.lower() for each in streams]
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
        """Refuse a query that needs a stream whose name another has."""
        name = path.query.name
        if {*stream.of} != {*queue.of}:
            needs = f"the time of {' and '.join(queue.of)}" if queue.of else "its results"
            raise ConfigRefused(
                path="streams", key="name", value=stream.name,
                expected=f"another: query '{name}' needs it for {needs}",
            )  # fmt: skip
        hidden = {each.into for each in self.paths if each.first_of == name}
        free = stream.is_derived and stream.name in self.gone | hidden
        if not queue.of and not free:
            raise ConfigRefused(
                path=f"query '{name}'", key="sink.options.stream", value=queue.name,
                expected="unique: another stream has it",
            )  # fmt: skip

    def units_of(self, query: str) -> list[int]:
        """Gives the numbers of a query's paths, in the order of the way of a tuple.

        Raises:
            UnknownName: it was dropped, and another has its number.
        """
        paths = self.paths
        last = next((path for path in paths if path.query.name == query), None)
        if last is None:
            names = [path.query.name for path in self.alive]
            raise UnknownName(kind="query", name=query, known=names)
        return [unit for unit, path in enumerate(paths) if path is last or path.first_of == query]

    def segments_of(self, query: str) -> list[Path]:
        """Gives a query's paths, in the order of the way of a tuple."""
        return [self.paths[unit] for unit in self.units_of(query)]

    def class_of(self, query: str) -> str:
        """Return the class that a query runs in; of a producer, with what its readers give it."""
        path = self.paths[self.units_of(query)[-1]]
        if path.into is not None:
            raised = lifted(self.alive, self.streams, self.classes)
            path = next(each for each in raised if each.query.name == query)
        return path.query.query_class

    def forget(self, units: Sequence[int]) -> None:
        """Removes the paths of a query that has never run."""
        filled = {self.paths[unit].into for unit in units}
        del self.paths[units[0] : units[-1] + 1]
        read = {path.stream for path in self.paths}
        self.streams = [
            each
            for each in self.streams
            if each.name not in filled and (not each.of or each.name in read)
        ]

    def came(self, streams: list[Stream], paths: list[Path], new: Sequence[Path]) -> None:
        """Takes in a query, with what `with_query` gave for it."""
        self.streams, self.paths = streams, paths
        self.gone -= {path.into for path in new}
        here = {path.query.name for path in paths} - {path.query.name for path in new}
        self.dropped &= here

    def _free(self) -> int | None:
        """Gives the number of a query that was dropped and is not cut, if there is one."""
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
        """Gives a number that is free, or new ones; of a query that was dropped, those it had.

        Raises:
            ConfigRefused: it was cut then and is not now, or the other way round.
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
