"""Chart partitioning: the lower envelope of a progress chart, steepest line first (BZ §4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from headgate.model.arrays import Floats


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive pieces of a chart that one line of the envelope spans; `end` is not included."""

    first: int
    end: int
    time_s: float
    drop: float

    @property
    def slope(self) -> float:
        return slope_of(self.time_s, self.drop)


def slope_of(time_s: float, drop: float) -> float:
    """Return how fast a chart falls; a piece that takes no time has slope ∞, or −∞ if it rises."""
    if time_s == 0:
        return inf if drop >= 0 else -inf
    return drop / time_s


def lower_envelope(pieces: Sequence[tuple[float, float]]) -> list[Segment]:
    """Return the segments of a chart whose pieces are (time, how far it falls), in their order.

    From the beginning of a segment, lines are drawn to the end of every later piece. The steepest
    line is the segment, the longest among equals, and the next segment begins at its end (BZ §4,
    §5). So slopes fall from segment to segment. A piece without figures, NaN, stays a segment of
    its own.

    >>> [(part.first, part.end, part.slope) for part in lower_envelope([(3, 0), (1, 2), (2, 1)])]
    [(0, 3, 0.5)]
    >>> [(part.first, part.end, part.slope) for part in lower_envelope([(3, 0), (1, 4), (2, 1)])]
    [(0, 2, 1.0), (2, 3, 0.5)]
    """
    segments: list[Segment] = []
    for position, (time_s, drop) in enumerate(pieces):
        last = Segment(position, position + 1, time_s, drop)
        # Joining from the back gives the same lines as drawing all of them, in one pass.
        while segments and last.slope >= segments[-1].slope:
            before = segments.pop()
            last = Segment(
                before.first, last.end, before.time_s + last.time_s, before.drop + last.drop
            )
        segments.append(last)
    return segments


def steepest_line(times_s: Floats, drops: Floats) -> tuple[int, float]:
    """Return how many pieces the first segment of a chart has, and its slope (BZ §5).

    >>> steepest_line(np.array([10.0, 1.0, 9.0]), np.ones(3))
    (2, 0.18181818181818182)
    """
    elapsed_s, fallen = np.cumsum(times_s), np.cumsum(drops)
    slopes = np.where(fallen >= 0, np.inf, -np.inf)
    np.divide(fallen, elapsed_s, out=slopes, where=elapsed_s > 0)
    best = slopes.max()
    return int(np.flatnonzero(slopes == best)[-1]) + 1, float(best)
