"""Arrival times: a steady rate with regular bursts, computed for any tuple by a formula."""

from dataclasses import dataclass
from math import inf

import numpy as np

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats


@dataclass(frozen=True, kw_only=True)
class Bursts:
    """Tuples at a steady rate that rises by a factor for some seconds of every cycle.

    A cycle begins quiet and ends with its burst. Tuples are evenly spaced, so tuple i's time and
    the number of tuples by time t are closed formulas, and a source can resume anywhere.

    >>> Bursts(rate_per_s=100, burst_factor=4, burst_every_s=10, burst_for_s=2).count_by(10.0)
    1600
    """

    rate_per_s: float
    burst_factor: float = 1.0
    burst_every_s: float = 20.0
    burst_for_s: float = 0.0

    def __post_init__(self) -> None:
        for key in ("rate_per_s", "burst_factor", "burst_every_s"):
            if not 0 < getattr(self, key) < inf:
                self._refuse(key, "above 0 and finite")
        if not 0 <= self.burst_for_s < self.burst_every_s:
            self._refuse("burst_for_s", "from 0 to below burst_every_s")

    def count_by(self, at_s: float) -> int:
        """Count the tuples that have arrived within `at_s` seconds from the start."""
        cycles, rest_s = divmod(max(0.0, at_s), self.burst_every_s)
        quiet_s = self.burst_every_s - self.burst_for_s
        burst_s = max(0.0, rest_s - quiet_s)
        in_cycle = self.rate_per_s * (min(rest_s, quiet_s) + burst_s * self.burst_factor)
        return int(cycles * self._a_cycle + in_cycle + 1e-9)

    def times_s(self, first: int, end: int) -> Floats:
        """Return the arrival times of tuples first, ..., end − 1, in seconds from the start."""
        cycles, rest = np.divmod(np.arange(first + 1, end + 1, dtype=np.float64), self._a_cycle)
        quiet_s = self.burst_every_s - self.burst_for_s
        quiet = self.rate_per_s * quiet_s
        in_burst_s = quiet_s + (rest - quiet) / (self.rate_per_s * self.burst_factor)
        in_cycle_s = np.where(rest <= quiet, rest / self.rate_per_s, in_burst_s)
        times_s: Floats = cycles * self.burst_every_s + in_cycle_s
        return times_s

    @property
    def _a_cycle(self) -> float:
        quiet_s = self.burst_every_s - self.burst_for_s
        return self.rate_per_s * (quiet_s + self.burst_for_s * self.burst_factor)

    def _refuse(self, key: str, expected: str) -> None:
        raise ConfigRefused(path="arrivals", key=key, value=getattr(self, key), expected=expected)
