"""The account of a query: how many tuples of its stream it has consumed, shed and so on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Account:
    """Counts of a stream's tuples by what became of them for one query, over all runs.

    `delivered` tuples were consumed and gave a result, `filtered` ones were consumed and gave none.
    `queued` tuples wait in the log. `shed` tuples were dropped in overload, `missed` ones by
    retention while the query was away. For a query with windows, `delivered` counts the tuples that
    entered its windows and `late` those that arrived too late for them. `dead_lettered` counts the
    records since the query's first tuple that could not be parsed, and the tuples at which an
    expression of the query failed.
    """

    arrived: int
    delivered: int
    filtered: int
    queued: int
    shed: int
    missed: int
    late: int = 0
    dead_lettered: int = 0
