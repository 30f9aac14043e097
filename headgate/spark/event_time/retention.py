"""Retention in a timeline: trains stay as long as windows and open sessions need their tuples."""

from collections.abc import Mapping

from headgate.model.kind import Kind
from headgate.model.window import Axis, Window
from headgate.model.window_ends import NEVER
from headgate.spark.event_time.open_sessions import OpenSessions
from headgate.spark.event_time.train_order import TrainOrder
from headgate.spark.event_time.train_times import TrainTimes
from headgate.spark.event_time.tuple_axes import PLACES


class Retention:
    """The queries that read a timeline, and what it keeps for them; the caller must hold a lock.

    Args:
        times: those of each stream's tuples.
        open_sessions: those of the queries that group by session.
    """

    def __init__(
        self, order: TrainOrder, times: Mapping[str, TrainTimes], open_sessions: OpenSessions
    ) -> None:
        self._order, self._times, self._open_sessions = order, times, open_sessions
        self.readers: dict[str, Kind] = {}
        self._sizes: dict[Axis, int] = {}
        self.windows: set[Window] = set()
        """The windows by time that close, of all queries."""

    def reads(self, query: str, kind: Kind) -> None:
        """Keep tuples as long as a query needs them."""
        if kind.reach is None:
            self._open_sessions.add(query, kind)
        else:
            self.readers[query] = kind
            self._measure()
        self._order.needed = self._order.first  # the query may begin with the oldest train

    def forget(self, query: str) -> None:
        """Keep nothing for a query that was dropped."""
        self._open_sessions.forget(query)
        self.readers.pop(query, None)
        self._measure()

    def keeps(self, kind: Kind, cursor: int) -> bool:
        """Return True if no tuple was dropped that a query's windows need, open at a train."""
        order, axis = self._order, kind.inputs[0].window.axis
        if not order.first or kind.reach is None:
            return not order.first  # a session may reach back to any tuple
        marks = PLACES[axis].marks(order, self._times, cursor)
        lows = {name: NEVER if mark == NEVER else mark - kind.reach for name, mark in marks.items()}
        return all(order.dropped_to(name, axis) < lows[name] for name in kind.streams)

    def _measure(self) -> None:
        """Compute how far back windows reach, and where they end."""
        ends = {reader.closes for reader in self.readers.values()}
        self._sizes, self.windows = {}, {window for window in ends if window is not None}
        for reader in self.readers.values():
            axis = reader.inputs[0].window.axis
            self._sizes[axis] = max(self._sizes.get(axis, 0), reader.reach or 0)

    def drop(self, passed: int, before_s: float) -> None:
        """Drop trains below a number that no window needs any more.

        Args:
            before_s: trains that arrived later stay: a new query begins with them.
        """
        order, lows = self._order, self._lows(passed)
        for entry in order.between(order.needed, passed):
            times = self._times[entry.stream]
            if entry.train >= 0 and any(
                PLACES[axis].reaches(times, entry, low[entry.stream]) for axis, low in lows
            ):
                break
            times.forget(entry.train)
            order.needed = entry.number + 1
        before = order.first
        for entry in order.entries:
            if entry.number >= order.needed or entry.arrived_at_s > before_s:
                break
            before = entry.number + 1
        order.drop(before)

    def _lows(self, passed: int) -> list[tuple[Axis, dict[str, int]]]:
        """Return from which places on windows need tuples, by axis and stream, once all queries
        have passed a train.
        """
        lows: list[tuple[Axis, dict[str, int]]] = []
        for axis, size in self._sizes.items():
            marks = PLACES[axis].marks(self._order, self._times, passed)
            low = {name: NEVER if mark == NEVER else mark - size for name, mark in marks.items()}
            lows.append((axis, low))
        since = self._open_sessions.kept_since(passed)
        return lows if since is None else [*lows, ("time", dict.fromkeys(self._times, since))]
