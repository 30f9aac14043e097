"""What became of a stream's tuples for one query."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Account:
    """What has become of a stream's tuples for one query, over all runs.

    `delivered` are consumed tuples with a result, `filtered` those without; `queued` wait in the
    log; `shed` were dropped in overload, `missed` by retention while the query was away. Of a query
    with windows, `delivered` are those that windows have taken in; `late` came too late for it.
    `dead_lettered` are records that nobody could read, since the query's first tuple.
    """

    arrived: int
    delivered: int
    filtered: int
    queued: int
    shed: int
    missed: int
    late: int = 0
    dead_lettered: int = 0
