"""The current network of an engine: its units by number, and which of them were dropped."""

from collections.abc import Collection

from headgate.model.network.network import Network, Path
from headgate.model.stream import Stream


class Members:
    """The network that the engine and the threads that add and drop queries share."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.dropped: set[int] = set()
        """Units that were dropped and whose numbers no other query has yet."""
        self._left: set[str] = set()

    @property
    def streams(self) -> tuple[Stream, ...]:
        return self.network.streams

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.network.paths

    def importance_of(self, stream: str) -> float:
        """Return how important the queries over a stream are; 0 if nobody reads it."""
        return self.network.importance.get(stream, 0.0)

    @property
    def alive(self) -> list[Path]:
        """The paths that were not dropped."""
        return self.alive_in(self.network)

    def alive_in(self, network: Network, new: Collection[int] = ()) -> list[Path]:
        """Return the paths that are not dropped once a network with some new units is in place."""
        dropped = self.dropped.difference(new)
        return [path for unit, path in enumerate(network.paths) if unit not in dropped]

    def change(self, network: Network, new: Collection[int]) -> None:
        """Switch to a network in which some units are new or belong to other queries."""
        self._left |= {path.known_as for path in self.replaced(network, new)}
        self._left -= {network.paths[unit].known_as for unit in new}
        self.network = network
        self.dropped -= set(new)

    def replaced(self, network: Network, new: Collection[int]) -> list[Path]:
        """Return the current paths whose unit numbers belong to other queries in a network."""
        new_names = {network.paths[unit].query.name for unit in new}
        paths = [self.paths[unit] for unit in new if unit < len(self.paths)]
        return [path for path in paths if path.query.name not in new_names]

    @property
    def left(self) -> set[str]:
        """The names under which statistics of dropped queries are kept (`Path.known_as`)."""
        return self._left | {self.paths[unit].known_as for unit in list(self.dropped)}

    def forget(self, names: set[str]) -> None:
        """Forget names of dropped queries, once their statistics are deleted."""
        self._left -= names

    def path_of(self, unit: int) -> Path:
        return self.paths[unit]

    def segments_of(self, unit: int) -> list[int]:
        """Return all units of a unit's query, in the order in which a tuple passes them."""
        segment = self.paths[unit]
        query = segment.first_of or segment.query.name
        return [
            number
            for number, path in enumerate(self.paths)
            if query in (path.query.name, path.first_of)
        ]
