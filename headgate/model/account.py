"""What became of a stream's tuples for one query."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Account:
    """What has become of a stream's tuples for one query, over all runs.

    `delivered` are consumed tuples with a result, `filtered` those without; `queued` wait in the
    log; `shed` were dropped in overload, `missed` by retention while the query was away.
    """

    arrived: int
    delivered: int
    filtered: int
    queued: int
    shed: int
    missed: int
