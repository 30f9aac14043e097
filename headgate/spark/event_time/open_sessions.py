"""Sessions that are open: from where on the log has to keep tuples for them."""

import threading
from collections.abc import Mapping

from headgate.model.window import Stateful
from headgate.model.window_ends import NEVER


class OpenSessions:
    """What was found in the log: where the oldest session begins that is open at a train.

    How old that is depends on a query's keys, so whoever computes it tells; equal queries have the
    same. Until somebody has, in a run, all is kept and all is read: what is here can be found
    again. Safe to use from several workers.
    """

    def __init__(self) -> None:
        self._queries: dict[str, Stateful] = {}
        self._found: dict[Stateful, dict[int, int]] = {}
        self._lock = threading.Lock()

    @property
    def gaps(self) -> set[int]:
        """The gaps after which sessions end, in microseconds."""
        with self._lock:
            return {how.inputs[0].window.size for how in self._found}

    def add(self, query: str, how: Stateful) -> None:
        """Has a query's sessions kept."""
        with self._lock:
            self._queries[query] = how
            self._found.setdefault(how, {})

    def forget(self, query: str) -> None:
        """Keeps nothing for a query any more."""
        with self._lock:
            how = self._queries.pop(query, None)
            if how is not None and how not in self._queries.values():
                del self._found[how]

    def tell(self, how: Stateful, end: int, since: int) -> None:
        """Says when the oldest session begins that is open before a train of the timeline."""
        with self._lock:
            if how in self._found:
                self._found[how][end] = since

    def since(self, how: Stateful, first: int) -> int:
        """Gives the time from which on a call that begins with a train has to read."""
        with self._lock:
            return _known(self._found.get(how, {}), first)

    def kept_since(self, passed: int) -> int | None:
        """Gives the time from which on tuples are needed where all queries have passed a train.

        None: for no session.
        """
        with self._lock:
            for found in self._found.values():
                for end in sorted(end for end in found if end <= passed)[:-1]:
                    del found[end]
            return min((_known(found, passed) for found in self._found.values()), default=None)


def _known(found: Mapping[int, int], first: int) -> int:
    last = max((end for end in found if end <= first), default=None)
    return NEVER if last is None else found[last]
