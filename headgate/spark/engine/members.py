"""The network of an engine at present: its units by number, and which of them were dropped."""

from collections.abc import Collection

from headgate.model.network import Network, Path
from headgate.model.stream import Stream


class Members:
    """Who is there; the engine's thread and those that add and drop all see the same."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.dropped: set[int] = set()
        """Units that were dropped, and whose numbers nobody else has yet."""
        self._left: set[str] = set()

    @property
    def streams(self) -> tuple[Stream, ...]:
        return self.network.streams

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.network.paths

    @property
    def alive(self) -> list[Path]:
        """The paths that were not dropped."""
        return [path for unit, path in enumerate(self.paths) if unit not in self.dropped]

    def change(self, network: Network, new: Collection[int]) -> None:
        """Goes over to a network in which some units are new, or others than they were."""
        self._left |= {path.known_as for path in self.replaced(network, new)}
        self._left -= {network.paths[unit].known_as for unit in new}
        self.network = network
        self.dropped -= set(new)

    def replaced(self, network: Network, new: Collection[int]) -> list[Path]:
        """Gives the paths whose numbers others have in a network."""
        here = {network.paths[unit].query.name for unit in new}
        paths = [self.paths[unit] for unit in new if unit < len(self.paths)]
        return [path for path in paths if path.query.name not in here]

    @property
    def left(self) -> set[str]:
        """What the statistics of queries that were dropped are known by."""
        return self._left | {self.paths[unit].known_as for unit in list(self.dropped)}

    def forget(self, names: set[str]) -> None:
        """Hears that nothing is kept of queries whose numbers others have."""
        self._left -= names

    def path_of(self, unit: int) -> Path:
        return self.paths[unit]

    def segments_of(self, unit: int) -> list[int]:
        """Gives all units of a unit's query, in the order of the way of a tuple."""
        path = self.paths[unit]
        query = path.first_of or path.query.name
        return [
            number
            for number, each in enumerate(self.paths)
            if query in (each.query.name, each.first_of)
        ]
