"""Derived streams in a network: who fills and reads them, and how readers affect a producer.

A producer is a path that writes to a stream (`Path.into`). It works for its readers. So it runs in
the highest class among its own and theirs, and its input is shed only if it and all readers allow
that. A view has the lowest class and allows shedding, so its readers alone decide.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from headgate.model.network.network import Path
from headgate.model.query import QueryClass
from headgate.model.stream import Stream


class MayFill(Protocol):
    """A query or path that may fill a derived stream."""

    @property
    def into(self) -> str | None:
        """The name of the stream, or None."""


Producer = TypeVar("Producer", bound=MayFill)


def producers(items: Iterable[Producer]) -> dict[str, Producer]:
    """Return the queries or paths that fill a stream, by the name of the stream."""
    return {item.into: item for item in items if item.into is not None}


def streams_of(path: Path, streams: Mapping[str, Stream]) -> tuple[str, ...]:
    """Return the names of the streams that a path reads; for a timeline, those it consists of."""
    stream = streams.get(path.stream)
    return stream.of if stream is not None and stream.of else path.reads


def readers_of(
    stream: str, paths: Iterable[Path], streams: Mapping[str, Stream] | None = None
) -> list[Path]:
    """Return the paths that read a stream."""
    return [path for path in paths if stream in streams_of(path, streams or {})]


def lifted(
    paths: Sequence[Path],
    streams: Iterable[Stream],
    classes: Iterable[QueryClass],
) -> tuple[Path, ...]:
    """Return the paths, with the class and `allows_shedding` of producers taken from readers."""
    priorities = {query_class.name: query_class.priority for query_class in classes}
    stream_by_name = {stream.name: stream for stream in streams}
    readers: dict[str, list[Path]] = {}
    for path in paths:
        for stream in streams_of(path, stream_by_name):
            readers.setdefault(stream, []).append(path)

    def lift(path: Path) -> Path:
        if path.into is None:
            return path
        queries = [path.query, *(lift(reader).query for reader in readers.get(path.into, ()))]
        # The network refuses an unknown class when it is checked.
        highest = max(queries, key=lambda query: priorities.get(query.query_class, 0.0))
        query = replace(
            path.query,
            query_class=highest.query_class,
            allows_shedding=all(query.allows_shedding for query in queries),
        )
        return path if query == path.query else replace(path, query=query)

    return tuple(map(lift, paths))
