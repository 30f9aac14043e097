"""Arrival times of the tuples that wait at the consumers of a stream."""

import numpy as np

from headgate.model.arrays import Floats, Ints

FEW, MOST = 64, 8192
"""So many trains are kept in any case, and so many at most: then pairs of neighbors become one."""


class ArrivalTimes:
    """The newest trains of a stream: their tuples, and when these arrived.

    A consumer takes the trains of a stream in order, so what waits for it are the newest ones.

    >>> trains = ArrivalTimes()
    >>> trains.add(np.array([3, 2]), np.array([1.0, 4.0]), longest=5)
    >>> trains.newest(4)
    (array([2, 2]), array([1., 4.]))
    """

    def __init__(self) -> None:
        self._tuples: Ints = np.zeros(0, dtype=np.int64)
        self._arrived_at_s: Floats = np.zeros(0)

    def add(self, tuples: Ints, arrived_at_s: Floats, longest: int) -> None:
        """Add trains, and forget those that no consumer waits for.

        Args:
            longest: how many tuples wait for the slowest consumer.
        """
        self._tuples = np.concatenate([self._tuples, tuples])
        self._arrived_at_s = np.concatenate([self._arrived_at_s, arrived_at_s])
        passed = len(self._tuples) - len(self.newest(longest)[0])
        if passed > FEW:
            self._tuples = self._tuples[passed:]
            self._arrived_at_s = self._arrived_at_s[passed:]
        while len(self._tuples) > MOST:  # all of them wait for a query that is paused
            self._join()

    def _join(self) -> None:
        """Make one train of each pair of neighbors, with their mean arrival."""
        first = len(self._tuples) % 2
        tuples = self._tuples[first:].reshape(-1, 2)
        arrived_at_s = self._arrived_at_s[first:].reshape(-1, 2)
        sums, apart_s = tuples.sum(axis=1), np.diff(arrived_at_s)[:, 0]
        means_s = arrived_at_s[:, 0] + apart_s * tuples[:, 1] / np.maximum(sums, 1)
        self._tuples = np.append(self._tuples[:first], sums)
        self._arrived_at_s = np.append(self._arrived_at_s[:first], means_s)

    def newest(self, tuples: int) -> tuple[Ints, Floats]:
        """Return the newest tuples, by train, and when these arrived."""
        upto: Ints = self._tuples[::-1].cumsum()
        trains = min(len(upto), int(np.searchsorted(upto, tuples)) + 1)
        counts: Ints = self._tuples[len(upto) - trains :].copy()
        if trains:
            counts[0] -= max(0, int(upto[trains - 1]) - tuples)
        return counts, self._arrived_at_s[len(upto) - trains :]
