"""The utility of results by the QoS graphs of their queries (Aurora §2.1)."""

import numpy as np

from headgate.model.arrays import Floats
from headgate.model.network.network import Network, Path
from headgate.model.qos_graph import QoSGraph

ALWAYS = np.array([0.0]), np.array([1.0])
"""The latency graph of a query that has a loss graph only."""


class Utility:
    """The QoS graphs of a network, by unit: of latency and of loss (Aurora §2.1).

    A query with one of them is judged. A unit whose results fill a stream is not.
    """

    def __init__(self, network: Network) -> None:
        self._graphs = [latency_graph(path) for path in network.paths]
        self._losses = [path.query.loss for path in network.paths]
        self.applies = any(self._graphs)

    def has(self, unit: int) -> bool:
        """Return True if the unit has a QoS graph."""
        return self._graphs[unit] is not None

    def of(self, unit: int, latencies_s: Floats) -> Floats | None:
        """Return the utility of results by their latency; None without a graph."""
        graph = self._graphs[unit]
        return None if graph is None else np.interp(latencies_s, *graph)

    def of_shed(self, unit: int, fraction: float) -> float:
        """Return the utility that counts for each result of a tuple that was shed.

        Args:
            fraction: the share of the unit's tuples that was shed.
        """
        return utility_of_shed(self._losses[unit], fraction)


def latency_graph(path: Path) -> tuple[Floats, Floats] | None:
    """Return latencies and utilities by which results are judged; None if they are not."""
    query = path.query
    if path.into is not None or (query.qos is None and query.loss is None):
        return None
    return ALWAYS if query.qos is None else (query.qos.latencies_s, query.qos.utilities)


def utility_of_shed(loss: QoSGraph | None, fraction: float) -> float:
    """Return the utility that counts for each result of a tuple that was shed (Aurora §2.1).

    Where a share f is shed and all others are in time, the QoS is L(f), so that a tuple that was
    shed counts (L(f) − (1 − f)) / f, and never less than 0. Without a loss graph, L(f) = 1 − f.

    >>> utility_of_shed(QoSGraph(((0.0, 1.0), (0.5, 0.9), (1.0, 0.0))), 0.5)
    0.8
    >>> utility_of_shed(None, 0.5)
    0.0
    """
    if loss is None or fraction <= 0:
        return 0.0
    return max(0.0, (loss.utility(fraction) - (1.0 - fraction)) / fraction)
