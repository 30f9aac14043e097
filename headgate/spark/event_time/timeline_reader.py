"""What workers read of a timeline: its watermarks, and the tuples that windows need."""

import threading
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.types import StructType

from headgate.model.stream import Stream
from headgate.model.window import Axis
from headgate.model.window_ends import NEVER, Times
from headgate.spark.event_time.open_sessions import OpenSessions
from headgate.spark.event_time.timeline_entries import Entry
from headgate.spark.event_time.train_order import TrainOrder
from headgate.spark.event_time.train_times import Rows, TrainTimes
from headgate.spark.event_time.tuple_axes import PLACES
from headgate.spark.journal.journal import Journal
from headgate.spark.log.shedding_rules import QueryDrops
from headgate.spark.log.stream_log import StreamLog
from headgate.spark.log.trains import TimelineTrains, numbers_in

IsGood = Callable[[Entry, pa.Table], NDArray[np.bool_]]
"""A function of a train and its tuples that says which of them a query takes."""


class TimelineReader:
    """The trains of some streams in one order, with the watermark after each and their tuples.

    A tuple is late if its time is below its stream's watermark just before it: the greatest time so
    far, minus the lateness that the stream allows. The watermark of a timeline is the least of its
    streams'. So the log alone decides which tuples are late and when a window closes, not the
    trains that a call happens to take together. A derived stream carries its own watermarks: one
    before each tuple and one after each train (`derived_streams`).

    Args:
        sources: the streams, with their logs.
    """

    def __init__(
        self, name: str, journal: Journal, sources: Mapping[str, tuple[Stream, StreamLog]]
    ) -> None:
        self.name, self._sources = name, dict(sources)
        self._lock = threading.RLock()
        self._order = TrainOrder(journal, name, tuple(sources))
        self._times = {name: TrainTimes(*source) for name, source in sources.items()}
        self.open_sessions = OpenSessions()
        self._is_good: IsGood | None = None

    def checked(self, is_good: IsGood) -> "TimelineReader":
        """Return a reader of the same timeline that leaves the other tuples out of `rows`."""
        reader = object.__new__(TimelineReader)
        reader.name, reader._sources, reader._lock = self.name, self._sources, self._lock
        reader._order, reader._times = self._order, self._times
        reader.open_sessions, reader._is_good = self.open_sessions, is_good
        return reader

    def trains_between(self, first: int, end: int) -> list[Entry]:
        """Return its trains first, ..., end − 1 that have tuples in the log."""
        return [
            entry
            for entry in self._between(first, end)
            if entry.train >= 0 and entry.tuples and entry.number not in self._order.lost
        ]

    def table(self, entry: Entry) -> pa.Table:
        """Return the tuples of a train."""
        return self._sources[entry.stream][1].table(entry.train, entry.train + 1)

    def in_time(self, entry: Entry, axis: Axis) -> NDArray[np.bool_]:
        """Return which tuples of a train are not late."""
        return PLACES[axis].of(self._times[entry.stream], entry)[0]

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(self._sources)

    @property
    def is_on_arrival_clock(self) -> bool:
        """Whether the event time of every stream is the time at which its tuples arrive."""
        streams = [stream for stream, _ in self._sources.values()]
        return all(stream.is_stamped_at_arrival for stream in streams)

    @property
    def next_number(self) -> int:
        return self._order.next_number

    @property
    def entries(self) -> Sequence[Entry]:
        """The trains of all streams, in the order of the timeline."""
        return self._order.entries

    def trains(self, first: int, end: int, tuples: int) -> "TimelineTrains":
        """Return the trains first, ..., end − 1."""
        return TimelineTrains(StructType(), (), tuples, lambda: pa.table({}), first=first, end=end)

    def place_type(self, stream: str, axis: Axis) -> pa.DataType:
        """Return the type of places in a stream: that of its event times, or of numbers."""
        return PLACES[axis].type(self._times[stream])

    def tuples(self, first: int, end: int) -> int:
        """Count the tuples of its trains first, ..., end − 1."""
        return sum(entry.tuples for entry in self._between(first, end))

    def watermark(self, end: int, axis: Axis = "time") -> int:
        """Return the watermark after train end − 1; by time, NEVER if there is none yet.

        By number, it is the number of the next tuple: the timeline then has one stream.
        """
        with self._lock:
            return PLACES[axis].watermark(self._order, self._times, end)

    def marks(self, end: int, axis: Axis) -> dict[str, int]:
        """Return, by stream, the place that it has reached before train `end`.

        By time, this is the watermark; by number, the number of its tuples so far.
        """
        with self._lock:
            return PLACES[axis].marks(self._order, self._times, end)

    def seen(self, stream: str, numbers: Times, other: str) -> Times:
        """Return how many tuples of `other` had arrived when each tuple of a stream arrived.

        Args:
            numbers: of the tuples in their stream.
        """
        with self._lock:
            return self._order.seen(stream, numbers, other)

    def _between(self, first: int, end: int) -> list[Entry]:
        with self._lock:
            return self._order.between(first, end)

    def watermarks(self, first: int, end: int, axis: Axis) -> tuple[Times, NDArray[np.float64]]:
        """Return the watermark after each of some trains, and when they arrived."""
        entries = self._between(first, end)
        marks = [self.watermark(entry.number + 1, axis) for entry in entries]
        arrived_s = [entry.arrived_at_s for entry in entries]
        return np.array(marks, dtype=np.int64), np.array(arrived_s)

    @property
    def needed_from(self) -> int:
        """The first train that a window may need; earlier ones are kept for new queries."""
        return self._order.needed

    def reaching(self, stream: str, end: int, axis: Axis, low: int) -> list[int]:
        """Return the numbers of a stream's trains before `end` that may have tuples from `low` on.

        Args:
            low: a time or a number, depending on the axis.
        """
        return [entry.number for entry in self._reaching(stream, end, axis, low)]

    def _reaching(self, stream: str, end: int, axis: Axis, low: int) -> list[Entry]:
        entries: list[Entry] = []
        with self._lock:
            for entry in self._order.backwards(end):
                if entry.stream != stream or entry.train < 0:
                    continue
                if not PLACES[axis].reaches(self._times[stream], entry, low):
                    break  # nor do earlier ones: the greatest time so far never falls
                if entry.number not in self._order.lost:
                    entries.append(entry)
        return entries[::-1]

    def times(self, end: int, low: int) -> Times:
        """Return the times from `low` on of tuples before train `end` that are not late.

        The timeline must have one stream.
        """
        (stream,) = self._sources
        times_by_train = [
            times[in_time & (times >= low)]
            for entry in self._reaching(stream, end, "time", low)
            for in_time, times in [self._times[stream].not_late(entry)]
        ]
        return np.concatenate(times_by_train) if times_by_train else np.zeros(0, np.int64)

    def rows_of(
        self, stream: str, number: int, axis: Axis, drops: QueryDrops | None = None
    ) -> Rows | None:
        """Return a stream's tuples in one train; None if there are none."""
        return self._rows(stream, self._between(number, number + 1), number, axis, NEVER, drops)

    def rows(
        self, stream: str, first: int, end: int, axis: Axis, low: int,
        drops: QueryDrops | None = None,
    ) -> Rows | None:  # fmt: skip
        """Return a stream's tuples before train `end`, from a place on; None if there are none.

        By time, late tuples are left out; by number, all are included.

        Args:
            first: tuples of this train and of later ones are new.
            low: time or number below which nothing is wanted.
            drops: which tuples the query drops in overload.
        """
        return self._rows(stream, self._reaching(stream, end, axis, low), first, axis, low, drops)

    def _rows(
        self, stream: str, entries: Sequence[Entry], first: int, axis: Axis, low: int,
        drops: QueryDrops | None,
    ) -> Rows | None:  # fmt: skip
        tables = []
        places: list[Times] = []
        news: list[NDArray[np.bool_]] = []
        for entry in entries:
            in_time, place = PLACES[axis].of(self._times[entry.stream], entry)
            wanted = in_time & (place >= low)
            if (dropped := self._dropped(entry, drops)) is not None:
                wanted &= ~dropped
            if wanted.any():
                table = self.table(entry)
                if self._is_good is not None:
                    wanted = wanted & self._is_good(entry, table)
                tables.append(table if wanted.all() else table.filter(pa.array(wanted)))
                places.append(place[wanted])
                news.append(np.full(int(wanted.sum()), entry.number >= first))
        if not tables:
            return None
        return Rows(pa.concat_tables(tables), np.concatenate(places), np.concatenate(news))

    def _dropped(self, entry: Entry, drops: QueryDrops | None) -> NDArray[np.bool_] | None:
        """Return which tuples of a train a query drops; None if it drops none."""
        if drops is None or entry.train < 0:
            return None
        return drops.covered(
            entry.number, entry.stream, entry.first_tuple, entry.tuples,
            lambda name: numbers_in(self.table(entry), name),
        )  # fmt: skip

    def shed(self, first: int, end: int, drops: QueryDrops) -> int:
        """Count the tuples of some trains that a query drops and that are not late."""
        count = 0
        for entry in self._between(first, end):
            dropped = self._dropped(entry, drops)
            if dropped is not None and entry.number not in self._order.lost:
                in_time, _ = self._times[entry.stream].not_late(entry)
                count += int((dropped & in_time).sum())
        return count

    def late(self, first: int, end: int) -> tuple[int, int]:
        """Count the late tuples and those without a time, in some trains.

        Tuples of lost trains count as late.
        """
        late = timeless = 0
        for entry in self._between(first, end):
            if entry.number in self._order.lost:
                late += entry.tuples
            elif entry.train >= 0:
                in_time, times = self._times[entry.stream].not_late(entry)
                none = int((times == NEVER).sum()) if self._times[entry.stream].has_times else 0
                timeless += none
                late += int((~in_time).sum()) - none
        return late, timeless
