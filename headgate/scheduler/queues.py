"""One shared buffer per stream, a cursor per consumer (BZ §2)."""

import numpy as np

from headgate.model.arrays import Floats, Ints
from headgate.model.events import TrainArrived


class StreamBuffer:
    """Where each train of a stream begins, and when its tuples arrived.

    The arrays grow as trains arrive. Trains that every cursor has passed are forgotten; the
    numbers of later trains stay the same.

    >>> buffer = StreamBuffer()
    >>> one = np.array([3]), np.array([0.5]), np.array([0.6])
    >>> buffer.append(TrainArrived(1.0, 0, *one))
    >>> buffer.pending(np.array([0, 1])).tolist(), buffer.head_arrived_at_s(np.array([0])).tolist()
    ([3, 0], [0.5])
    """

    def __init__(self, first_train: int = 0) -> None:
        self.end = first_train
        self._dropped = first_train
        self._start = np.zeros(2, dtype=np.int64)
        self._head_at_s = np.zeros(1)
        # Sums are relative to the first arrival: sums of seconds since 1970 would lose precision.
        self._base_s: float | None = None
        self._arrived_sum_s = np.zeros(2)

    def append(self, event: TrainArrived) -> None:
        count, used = len(event.tuples), self.end - self._dropped
        while len(self._head_at_s) < used + count:
            self._grow()
        starts = self._start[used] + np.cumsum(event.tuples)
        if self._base_s is None:
            self._base_s = float(event.mean_arrived_at_s[0])
        since_s = event.mean_arrived_at_s - self._base_s
        sums = self._arrived_sum_s[used] + np.cumsum(event.tuples * since_s)
        self._start[used + 1 : used + count + 1] = starts
        self._arrived_sum_s[used + 1 : used + count + 1] = sums
        self._head_at_s[used : used + count] = event.head_arrived_at_s
        self.end += count

    def tuples(self, first: int, end: int) -> int:
        """Count the tuples of the trains first, ..., end − 1."""
        return int(self._start[end - self._dropped] - self._start[first - self._dropped])

    def pending(self, cursors: Ints) -> Ints:
        """Count the tuples from each cursor to the end."""
        waiting: Ints = self._start[self.end - self._dropped] - self._start[self._place(cursors)]
        return waiting

    def head_arrived_at_s(self, cursors: Ints) -> Floats:
        """Return when the oldest tuple at each cursor arrived; ∞ if none waits."""
        places = np.minimum(self._place(cursors), len(self._head_at_s) - 1)
        return np.where(cursors < self.end, self._head_at_s[places], np.inf)

    def mean_arrived_at_s(self, cursors: Ints) -> Floats:
        """Return the mean arrival time of the tuples at each cursor; ∞ if none waits."""
        total_s = self._arrived_sum_s[self.end - self._dropped]
        sums_s = total_s - self._arrived_sum_s[self._place(cursors)]
        means_s = sums_s / np.maximum(1, self.pending(cursors)) + (self._base_s or 0.0)
        return np.where(cursors < self.end, means_s, np.inf)

    def arrived_before(self, cursors: Ints, instants_s: Floats) -> Ints:
        """Count the tuples from each cursor on, in trains that began before an instant."""
        heads_s = self._head_at_s[: self.end - self._dropped]
        places, begins = np.searchsorted(heads_s, instants_s, side="left"), self._place(cursors)
        counts: Ints = self._start[np.maximum(places, begins)] - self._start[begins]
        return counts

    def train_after(self, cursor: int, tuples: int) -> int:
        """Return the end of the longest run of trains with at most `tuples`; at least one train."""
        used: Ints = self._start[: self.end - self._dropped + 1]
        limit = int(self._start[cursor - self._dropped]) + tuples
        last = int(np.searchsorted(used, limit, side="right")) - 1
        return min(self.end, max(cursor + 1, last + self._dropped))

    def drop(self, before: int) -> None:
        """Forget trains that every cursor has passed, in bulk: only once half are passed."""
        passed = before - self._dropped
        if passed > 1024 and passed * 2 > self.end - self._dropped:
            self._start = self._start[passed:] - self._start[passed]
            self._arrived_sum_s = self._arrived_sum_s[passed:] - self._arrived_sum_s[passed]
            self._head_at_s = self._head_at_s[passed:].copy()
            self._dropped = before
            if not len(self._head_at_s):
                self._grow()

    def recall(self, first: int, event: TrainArrived) -> None:
        """Restore forgotten trains for a new cursor that stands before them.

        Args:
            first: the first train to restore.
            event: the trains from `first` on.
        """
        count = self._dropped - first
        if count <= 0:
            return
        tuples = event.tuples[:count]
        if self._base_s is None:
            self._base_s = float(event.mean_arrived_at_s[0])
        since_s = event.mean_arrived_at_s[:count] - self._base_s
        starts, sums = np.cumsum([0, *tuples]), np.cumsum([0.0, *(tuples * since_s)])
        self._start = np.concatenate([starts[:-1], self._start + starts[-1]])
        self._arrived_sum_s = np.concatenate([sums[:-1], self._arrived_sum_s + sums[-1]])
        self._head_at_s = np.concatenate([event.head_arrived_at_s[:count], self._head_at_s])
        self._dropped = first

    def _place(self, cursors: Ints) -> Ints:
        """Return the array positions of cursors; 0 for a cursor before the first stored train."""
        return np.maximum(cursors - self._dropped, 0)

    def _grow(self) -> None:
        room = max(1024, len(self._head_at_s))
        self._start = np.concatenate([self._start, np.zeros(room, dtype=np.int64)])
        self._arrived_sum_s = np.concatenate([self._arrived_sum_s, np.zeros(room)])
        self._head_at_s = np.concatenate([self._head_at_s, np.zeros(room)])
