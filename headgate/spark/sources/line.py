"""A line of the poller: a stream with its source and its log."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headgate.extensions import Polled, Source
from headgate.model.stream import Stream
from headgate.spark.log.stream_log import StreamLog


@dataclass(eq=False)
class Line:
    """A stream with its source and its log.

    Args:
        zone: the session's time zone, for arrival times without a zone.
        in_vain: called when the source had nothing, with the time at which it was asked.
    """

    number: int
    stream: Stream
    log: StreamLog
    source: Source
    zone: str = "UTC"
    due_at_s: float = 0.0
    failures: int = 0
    """How often the source has failed in a row."""
    trouble: str = ""
    """Why the source, or a part of it, cannot be read at present."""
    in_vain: Callable[[float], None] = lambda polled_at_s: None
    spent_s: float = 0.0
    """The CPU time of its polls since its last train."""
    is_resumed: bool = False
    """Whether the source knows where to continue."""
    untaken: Polled | None = None
    """What the journal has, and the source does not know yet: it would return it again."""

    def make_ready(self, position: Mapping[str, str]) -> None:
        """Tell the source what it does not know yet; raise what it raises."""
        if not self.is_resumed:
            self.source.resume(position)
            self.is_resumed = True
        if self.untaken is not None:
            self.source.taken(self.untaken)
            self.untaken = None
