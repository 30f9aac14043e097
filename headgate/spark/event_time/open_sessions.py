"""Open sessions: from which time on the log must keep tuples for them."""

import threading
from collections.abc import Mapping

from headgate.model.kind import Kind
from headgate.model.window_ends import NEVER


class OpenSessions:
    """The start of the oldest session that is open at a train, for each computation.

    This depends on a query's keys, so whoever computes the query reports it here (`tell`); equal
    queries share it. Until the first report of a run, all tuples are kept and all are read, so it
    need not be durable. Safe to use from several workers.
    """

    def __init__(self) -> None:
        self.queries: dict[str, Kind] = {}
        self._starts: dict[Kind, dict[int, int]] = {}
        """For each computation: the start of its oldest open session, by train."""
        self._lock = threading.Lock()

    @property
    def gaps(self) -> set[int]:
        """The gaps after which sessions end, in microseconds."""
        with self._lock:
            return {kind.inputs[0].window.size for kind in self._starts}

    def add(self, query: str, kind: Kind) -> None:
        """Keep tuples for the open sessions of a query."""
        with self._lock:
            self.queries[query] = kind
            self._starts.setdefault(kind, {})

    def forget(self, query: str) -> None:
        """Keep no more tuples for a query."""
        with self._lock:
            kind = self.queries.pop(query, None)
            if kind is not None and kind not in self.queries.values():
                del self._starts[kind]

    def tell(self, kind: Kind, end: int, since: int) -> None:
        """Record when the oldest session begins that is open before train `end`."""
        with self._lock:
            if kind in self._starts:
                self._starts[kind][end] = since

    def since(self, kind: Kind, first: int) -> int:
        """Return the time from which a call that begins with train `first` has to read."""
        with self._lock:
            return _start_at(self._starts.get(kind, {}), first)

    def kept_since(self, passed: int) -> int | None:
        """Return the time from which tuples are needed once all queries have passed a train.

        Return None if no query has sessions.
        """
        with self._lock:
            for starts in self._starts.values():
                for end in sorted(end for end in starts if end <= passed)[:-1]:
                    del starts[end]
            all_starts = self._starts.values()
            return min((_start_at(starts, passed) for starts in all_starts), default=None)


def _start_at(starts: Mapping[int, int], first: int) -> int:
    last = max((end for end in starts if end <= first), default=None)
    return NEVER if last is None else starts[last]
