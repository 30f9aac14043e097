"""Arrivals: new trains become events for the scheduler, and entries of the timelines over them."""

from collections.abc import Sequence

import numpy as np

from headgate.model.events import TrainArrived
from headgate.spark.clock import Clock
from headgate.spark.engine.members import Members
from headgate.spark.engine.requests import EventQueue
from headgate.spark.event_time.store import Store
from headgate.spark.journal.journal_rows import Train


class Arrivals:
    """Passes on the new trains of streams, derived streams and timelines, from any thread.

    Args:
        events: takes the events for the scheduler.
    """

    def __init__(self, members: Members, store: Store, clock: Clock, events: EventQueue) -> None:
        self._members, self._store, self._clock, self._events = members, store, clock, events

    def put(self, stream: int, *trains: Train) -> None:
        """Pass on trains of a stream, by its number."""
        name = self._members.streams[stream].name
        self._events.put(self.event_of(stream, trains))
        for timeline in self._store.timelines_of(name):
            for train in trains:
                timeline.take(name, train)

    def put_named(self, stream: str, *trains: Train) -> None:
        """Pass on trains of a stream, by its name."""
        self.put(self._members.network.stream_number(stream), *trains)

    def event_of(self, stream: int, trains: Sequence[Train]) -> TrainArrived:
        """Return the event for trains of a stream, by its number."""
        name = self._members.streams[stream].name
        timeline = self._store.timelines.get(name)
        sources = (name,) if timeline is None else timeline.streams
        return TrainArrived(
            self._clock.now_s(),
            stream,
            # A tick of the clock has no tuple, but the scheduler has to see it.
            np.array([max(1, train.tuples) for train in trains]),
            np.array([train.head_arrived_at_s for train in trains]),
            np.array([train.mean_arrived_at_s for train in trains]),
            tuple_bytes=max(self._store.logs[source].tuple_bytes for source in sources),
            bounds=tuple(place for place, train in enumerate(trains) if not train.tuples),
        )
