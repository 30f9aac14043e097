"""The event times of a stream's tuples, train by train, and which tuples are late."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headgate.model.stream import Stream
from headgate.model.window_ends import NEVER, Times
from headgate.spark.event_time.timeline_entries import Entry
from headgate.spark.log.stream_log import StreamLog


@dataclass(frozen=True)
class Rows:
    """Tuples of one stream that are not late, with their places.

    Args:
        place: time in microseconds or number, depending on the axis of the window.
        new: whether they belong to the trains that the call takes now.
    """

    table: pa.Table
    place: Times
    new: NDArray[np.bool_]


def times_in(table: pa.Table, column: str) -> Times:
    """Return a column of instants in microseconds since 1970; NEVER where it is NULL."""
    name = next(name for name in table.column_names if name.lower() == column.lower())
    instants: Any = table[name]
    microseconds = instants.cast(pa.timestamp("us", tz=instants.type.tz)).cast(pa.int64())
    times: Times = microseconds.fill_null(NEVER).to_numpy()
    return times


class TrainTimes:
    """The times of a stream's tuples, read from its log and kept in memory while needed."""

    def __init__(self, stream: Stream, log: StreamLog) -> None:
        self._column, self._log = stream.event_time, log
        self._lateness = round(stream.lateness_s * 1e6)
        self._derived = stream.is_derived
        self._times: dict[int, Times] = {}
        self._marks: dict[int, Times] = {}

    @property
    def has_times(self) -> bool:
        """Whether the stream has an event time."""
        return self._column is not None

    @property
    def type(self) -> pa.DataType:
        """The type of the times, without a zone if the stream's column has none."""
        schema = self._log.arrow_schema
        kind: pa.DataType = schema.field(self._name(schema.names)).type
        return kind

    def _name(self, names: Sequence[str]) -> str:
        return next(name for name in names if name.lower() == str(self._column).lower())

    def times_of(self, train: int) -> Times:
        """Return the times of a train's tuples, in microseconds since 1970."""
        if train in self._times:
            return self._times[train]
        table = self._log.table(train, train + 1)
        if self._column is None:
            return np.full(table.num_rows, NEVER)
        self._times[train] = times_in(table, self._column)
        return self._times[train]

    def mark(self, top: int) -> int:
        """Return the watermark that follows from the greatest time so far."""
        return NEVER if top == NEVER else top - self._lateness

    def top_of(self, mark: int) -> int:
        """Return the greatest time from which a watermark follows."""
        return mark + self._lateness

    @property
    def has_zone(self) -> bool:
        """Whether the times are instants, and not those of a wall clock."""
        return self.has_times and getattr(self.type, "tz", None) is not None

    def not_late(self, entry: Entry) -> tuple[NDArray[np.bool_], Times]:
        """Return which tuples of a train are not late, and the times of all."""
        times = self.times_of(entry.train)
        if not self.has_times:
            return np.ones(entry.tuples, dtype=np.bool_), times
        if self._derived:
            tops = np.maximum(self._carried(entry.train), entry.before)
        else:
            tops = np.maximum.accumulate(np.concatenate([[entry.before], times[:-1]]))
        marks = np.where(tops == NEVER, NEVER, tops - self._lateness)
        return (times != NEVER) & (times >= marks), times

    def _carried(self, train: int) -> Times:
        """Return the watermarks that the tuples of a derived stream's train carry."""
        if train not in self._marks:
            self._marks[train] = self._log.marks(train)
        return self._marks[train]

    def forget(self, train: int) -> None:
        """Drop the times of a train from memory."""
        self._times.pop(train, None)
        self._marks.pop(train, None)


def least_mark(times: Mapping[str, TrainTimes], tops: Mapping[str, int]) -> int:
    """Return the watermark of several streams, the least of theirs.

    Args:
        tops: the greatest time of each stream so far.
    """
    return min(times[name].mark(top) for name, top in tops.items())
