"""The utility of results by the QoS graphs of their queries (Aurora §2.1)."""

import numpy as np

from headgate.model.arrays import Floats
from headgate.model.network.network import Network


class Utility:
    """The QoS graphs of a network, by unit. A unit whose results fill a stream has none."""

    def __init__(self, network: Network) -> None:
        self._graphs = [
            None
            if path.query.qos is None or path.into is not None
            else (path.query.qos.latencies_s, path.query.qos.utilities)
            for path in network.paths
        ]
        self.applies = any(self._graphs)

    def has(self, unit: int) -> bool:
        """Return True if the unit has a QoS graph."""
        return self._graphs[unit] is not None

    def of(self, unit: int, latencies_s: Floats) -> Floats | None:
        """Return the utility of results by their latency; None without a graph."""
        graph = self._graphs[unit]
        return None if graph is None else np.interp(latencies_s, *graph)
