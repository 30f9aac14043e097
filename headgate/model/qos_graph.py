"""QoS graphs: the utility of a result by its latency (Aurora §2, §6)."""

from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite

import numpy as np

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats


@dataclass(frozen=True)
class QoSGraph:
    """A piecewise linear graph from latency in seconds to utility; it never rises.

    The points are (latency, utility), in ascending latency. Utilities are divided by the largest
    one, so that graphs of different queries are comparable (Aurora §2.1). Before the first point
    the utility is that of the first, after the last that of the last. Points where the slope
    changes are the critical points.

    >>> tight = QoSGraph(((0.0, 1.0), (0.001, 1.0), (1.0, 0.0)))
    >>> round(tight.utility(0.5005), 3), tight.utility(2.0)
    (0.5, 0.0)
    """

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        points = tuple((float(latency), float(utility)) for latency, utility in self.points)
        if not points or not all(isfinite(value) for point in points for value in point):
            self._refuse("at least one point of two finite numbers, latency and utility")
        latencies, utilities = zip(*points, strict=True)
        if latencies[0] < 0 or any(a >= b for a, b in pairwise(latencies)):
            self._refuse("in strictly ascending latency, from 0 seconds on")
        if any(a < b for a, b in pairwise(utilities)):
            self._refuse("falling or level: a later result is never worth more")
        if not utilities[0] > 0 or utilities[-1] < 0:
            self._refuse("from a utility above 0 down to 0 or more")
        scaled = tuple((latency, utility / utilities[0]) for latency, utility in points)
        object.__setattr__(self, "points", scaled)

    def utility(self, latency_s: float) -> float:
        """Return the utility of a result of that latency, from 1 down to 0."""
        return float(np.interp(latency_s, self.latencies_s, self.utilities))

    @property
    def latencies_s(self) -> Floats:
        return np.array([latency for latency, _ in self.points])

    @property
    def utilities(self) -> Floats:
        return np.array([utility for _, utility in self.points])

    @property
    def gradients(self) -> Floats:
        """Utility lost per second, −dQoS/dlatency, by piece; 0 before and after the points."""
        return np.array([0.0, *(-np.diff(self.utilities) / np.diff(self.latencies_s)), 0.0])

    def gradient(self, latency_s: float) -> float:
        """Return the utility lost per second; at a point, that of the piece that begins there."""
        return float(self.gradients[np.searchsorted(self.latencies_s, latency_s, side="right")])

    def slack_s(self, latency_s: float) -> float:
        """Return the time to the next critical point; ∞ after the last."""
        bends = self.critical_s
        ahead = bends[bends > latency_s]
        return float(ahead[0] - latency_s) if len(ahead) else inf

    @property
    def critical_s(self) -> Floats:
        """The latencies at which the slope changes."""
        steepest = float(self.gradients.max())
        # Points on one line have slopes that differ by a rounding only.
        bends: Floats = self.latencies_s[np.abs(np.diff(self.gradients)) > 1e-9 * steepest]
        return bends

    def _refuse(self, expected: str) -> None:
        raise ConfigRefused(path="QoS graph", key="points", value=self.points, expected=expected)
