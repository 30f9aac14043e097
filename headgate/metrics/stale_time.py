"""How long an output stream was stale: a tuple that was output later waited (Sharaf §4.1)."""

from bisect import bisect_left
from math import inf

MOST_OPEN = 1024
"""So many periods may still join with later ones; older ones are only added up."""


class StaleTime:
    """The union of the periods [arrival, visible] of the tuples of an output stream.

    Calls of one query end in any order, so a period may begin before others that are known.
    Periods are added in the order of their ends.

    Args:
        since_s: what was before does not count: the stream did not exist yet.

    >>> stale = StaleTime()
    >>> for period in ((2.0, 3.0), (5.0, 6.0), (2.5, 7.0)):
    ...     stale.add(*period)
    >>> stale.seconds, stale.before(4.0)
    (5.0, 2.0)
    """

    def __init__(self, since_s: float = -inf) -> None:
        self._since_s, self._closed_s = since_s, 0.0
        self._begins_s: list[float] = []
        self._ends_s: list[float] = []

    @property
    def seconds(self) -> float:
        """The seconds in which the stream was stale, as far as the outputs so far show."""
        return self._closed_s + sum(self._ends_s) - sum(self._begins_s)

    def add(self, arrived_at_s: float, visible_at_s: float) -> None:
        """Add the period in which a tuple waited that was output."""
        begin_s, end_s = max(arrived_at_s, self._since_s), visible_at_s
        while self._ends_s and self._ends_s[-1] >= begin_s:
            begin_s, end_s = min(begin_s, self._begins_s.pop()), max(end_s, self._ends_s.pop())
        if end_s > begin_s:
            self._begins_s.append(begin_s)
            self._ends_s.append(end_s)
        if len(self._ends_s) > MOST_OPEN:
            self._close(len(self._ends_s) // 2)

    def before(self, at_s: float) -> float:
        """Return the stale seconds before an instant."""
        count = bisect_left(self._begins_s, at_s)
        ends_s = (min(end_s, at_s) for end_s in self._ends_s[:count])
        return self._closed_s + sum(ends_s) - sum(self._begins_s[:count])

    def _close(self, count: int) -> None:
        self._closed_s += sum(self._ends_s[:count]) - sum(self._begins_s[:count])
        del self._begins_s[:count], self._ends_s[:count]
