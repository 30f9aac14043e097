"""The current network of an engine: its units by id."""

from collections.abc import Collection

from headgate.model.network.network import Network, Path
from headgate.model.stream import Stream


class Members:
    """The network that the engine and the threads that add and drop queries share."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.dropped_names: set[str] = set()
        """The names under which statistics of dropped queries are kept (`Path.known_as`)."""

    @property
    def streams(self) -> tuple[Stream, ...]:
        return self.network.streams

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.network.paths

    def importance_of(self, stream: str) -> float:
        """Return how important the queries over a stream are; 0 if nobody reads it."""
        return self.network.importance.get(stream, 0.0)

    def present(self, network: Network, new: Collection[int] = ()) -> Network:
        """Return a network without queries that were dropped since it was made.

        Args:
            new: the ids of units that are about to be added.
        """
        return network.only({*self.network.places, *new})

    def change(self, network: Network) -> tuple[str, ...]:
        """Switch to a network; return the names of the queries that it no longer has."""
        dropped = tuple(
            path.query.name
            for number, path in zip(self.network.places, self.paths, strict=True)
            if number not in network.places
        )
        self.dropped_names |= {path.known_as for path in self.paths}
        self.dropped_names -= {path.known_as for path in network.paths}
        self.network = network
        return dropped

    def forget(self, names: set[str]) -> None:
        """Forget names of dropped queries, once their statistics are deleted."""
        self.dropped_names = self.dropped_names - names

    def path_of(self, unit: int) -> Path:
        return self.network.path_of(unit)

    def segments_of(self, unit: int) -> list[int]:
        """Return all units of a unit's query, in the order in which a tuple passes them.

        There are none if the query was dropped.
        """
        network = self.network
        if unit not in network.places:
            return []
        segment = network.path_of(unit)
        query = segment.first_of or segment.query.name
        return [
            number
            for number, path in zip(network.places, network.paths, strict=True)
            if query in (path.query.name, path.first_of)
        ]
