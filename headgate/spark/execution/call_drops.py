"""The tuples of a call that its queries drop in overload."""

from typing import Any

import numpy as np

from headgate.model.drop import Drop
from headgate.model.network.network import Path
from headgate.spark.journal.journal import Journal
from headgate.spark.log.shedding_rules import SheddingRules, covered_by, pieces_of
from headgate.spark.log.trains import RowsOfTrains, TimelineTrains, Trains, numbers_in

Dropped = tuple[Any, ...]
"""What a query drops of a call; equal for queries that drop the same. Empty if it drops nothing."""


class CallDrops:
    """Applies the rules to the tuples of calls over streams; windows apply them by themselves."""

    def __init__(self, journal: Journal, rules: SheddingRules) -> None:
        self._journal, self._rules = journal, rules

    def of(self, path: Path, trains: Trains) -> Dropped:
        """Return what a query drops of some trains."""
        name, stream = path.query.name, path.stream
        if isinstance(trains, TimelineTrains):
            return tuple((rule.train, rule.drop) for rule in self._rules.of(name, stream))
        segments = self._rules.segments(name, stream, trains.first, trains.end)
        return (stream, segments) if segments else ()

    def without_dropped(self, trains: Trains, dropped: Dropped) -> Trains:
        """Return the tuples of trains that are not dropped."""
        if not dropped:
            return trains
        stream: str = dropped[0]
        segments: tuple[tuple[int, int, Drop], ...] = dropped[1]
        counts = self._journal.tuples_of(stream, trains.first, trains.end)
        first_tuple = self._journal.first_tuple(stream, trains.first)
        remaining = np.ones(sum(counts), dtype=np.bool_)
        for begin, end, drop in pieces_of(segments, trains.first, counts):

            def column(name: str, begin: int = begin, end: int = end) -> Any:
                table = trains.table()
                return numbers_in(table, name)[begin:end]

            remaining[begin:end] = ~covered_by(
                drop, stream, first_tuple + begin, end - begin, column
            )
        places = np.flatnonzero(remaining)
        return RowsOfTrains.of(trains, trains.table().take(places), places)
