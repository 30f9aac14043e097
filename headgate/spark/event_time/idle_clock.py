"""Watched time: for how long the sources of streams were polled without a tuple."""

from collections.abc import Callable, Sequence


class IdleClock:
    """A clock for each stream that runs only while its source is polled and has nothing.

    It stands still while the process is stopped, the source is away or waits for room in the
    budgets: tuples may wait there, and are not late because of that. One thread at a time advances
    the clock of a stream; any thread may read it.

    Args:
        feeds: returns the streams that a derived stream is computed from; none for other streams.
    """

    def __init__(self, feeds: Callable[[str], Sequence[str]]) -> None:
        self._feeds = feeds
        self._clocks: dict[str, tuple[float, float]] = {}

    def add(self, stream: str, now_s: float, most_s: float) -> None:
        """Advance the clock of a stream whose source was polled in vain.

        Args:
            now_s: the time of the poll, on any steady clock.
            most_s: the longest time between two polls; a longer one was a pause.
        """
        seconds, last_s = self._clocks.get(stream, (0.0, now_s))
        self._clocks[stream] = seconds + min(now_s - last_s, most_s), now_s

    def seconds(self, stream: str) -> float:
        """Return the time of a stream's clock."""
        if feeds := self._feeds(stream):
            return min(map(self.seconds, feeds))
        seconds, _ = self._clocks.get(stream, (0.0, 0.0))
        return seconds
