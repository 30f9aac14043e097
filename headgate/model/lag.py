"""Lag of a stream: how far its log lies behind its source."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Lag:
    """A stream that lags behind its source.

    Args:
        behind_s: the age of the oldest tuple of its last train when the log got it or, if that is
            more, for how long its source should have been polled.
        since_s: since when it lags, in seconds since 1970.
    """

    stream: str
    behind_s: float
    since_s: float
