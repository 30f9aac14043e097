"""Which streams lag behind their sources, how far, and since when."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from headgate.model.lag import Lag
from headgate.model.stream import Stream
from headgate.spark.journal.journal_rows import Train

LAG_S = 2.0
"""A stream that is no more than this behind does not lag."""

QUIET_S = 5.0
"""A source that cannot tell that it has nothing has caught up after so long without a tuple."""


@dataclass
class _Stand:
    """How far a stream is behind its source.

    Args:
        usual_s: how long a tuple waits at the source anyway, until the next poll.
        behind_s: 0 as long as it does not lag.
    """

    usual_s: float
    behind_s: float = 0.0
    since_s: float | None = None
    heard_at_s: float = -inf

    def note(self, behind_s: float, at_s: float) -> None:
        if behind_s > self.usual_s + LAG_S:
            self.behind_s, self.since_s = behind_s, at_s if self.since_s is None else self.since_s
        else:
            self.behind_s, self.since_s = 0.0, None


class LagWatch:
    """Watches how old tuples are when the logs get them; called from any thread.

    >>> watch, hour_old = LagWatch(), Train(0, 5, 0, 100.0, 200.0)
    >>> watch.add(0, Stream(name="orders", format="json"))
    >>> watch.arrived(0, hour_old, 3700.0)
    >>> watch.lags({}, 3701.0)
    [Lag(stream='orders', behind_s=3600.0, since_s=3700.0)]
    >>> watch.emptied("orders", 3702.0)
    >>> watch.lags({}, 3702.0)
    []
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._stands: dict[str, _Stand] = {}

    def add(self, number: int, stream: Stream) -> None:
        """Watch a stream that has a source."""
        self._names[number] = stream.name
        self._stands[stream.name] = _Stand(stream.asked_every_s)

    def forget(self, stream: str) -> None:
        """Watch a stream no more."""
        self._stands.pop(stream, None)

    def arrived(self, number: int, train: Train, at_s: float) -> None:
        """Note that the log of a stream has got a train."""
        stand = self._stands.get(self._names[number])
        if stand is not None:
            stand.heard_at_s = at_s
            stand.note(at_s - train.head_arrived_at_s, at_s)

    def emptied(self, stream: str, at_s: float, *, is_certain: bool = True) -> None:
        """Note that a source had nothing.

        Args:
            is_certain: whether nothing was left there, and nothing is on its way.
        """
        stand = self._stands.get(stream)
        if stand is not None and (is_certain or at_s - stand.heard_at_s >= QUIET_S):
            stand.note(0.0, at_s)

    def lags(self, overdue_s: Mapping[str, float], now_s: float) -> list[Lag]:
        """Return the streams that lag.

        Args:
            overdue_s: by stream, for how long its source should have been polled.
        """
        lags = []
        for stream, stand in list(self._stands.items()):
            since_s, behind_s = stand.since_s, stand.behind_s
            late_s = overdue_s.get(stream, 0.0)
            if late_s > LAG_S:
                since_s = now_s - late_s if since_s is None else since_s
                behind_s = max(behind_s, late_s)
            if since_s is not None and behind_s:
                lags.append(Lag(stream, behind_s, since_s))
        return lags
