"""The two ways to place tuples on an axis: by their time, and by their number in the stream."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headgate.model.window import Axis
from headgate.model.window_ends import Times
from headgate.spark.event_time.timeline_entries import Entry
from headgate.spark.event_time.train_order import TrainOrder
from headgate.spark.event_time.train_times import TrainTimes, least_mark


class Places(Protocol):
    """A way to place tuples."""

    def type(self, times: TrainTimes) -> pa.DataType:
        """Return the type of places in a stream."""

    def of(self, times: TrainTimes, entry: Entry) -> tuple[NDArray[np.bool_], Times]:
        """Return which tuples of a train are not late, and the places of all."""

    def reaches(self, times: TrainTimes, entry: Entry, low: int) -> bool:
        """Return True if a train, or an earlier one, may have tuples from a place on."""

    def watermark(self, order: TrainOrder, times: Mapping[str, TrainTimes], end: int) -> int:
        """Return the watermark of a timeline before train `end`; NEVER if there is none yet."""

    def marks(self, order: TrainOrder, times: Mapping[str, TrainTimes], end: int) -> dict[str, int]:
        """Return, by stream, the place that it has reached before train `end`."""


class ByTime:
    """Tuples by their time in microseconds; all streams of a timeline share one watermark."""

    def type(self, times: TrainTimes) -> pa.DataType:
        """Return the type of the stream's event times."""
        return times.type

    def of(self, times: TrainTimes, entry: Entry) -> tuple[NDArray[np.bool_], Times]:
        """Return which tuples of a train are not late, and the times of all."""
        return times.not_late(entry)

    def reaches(self, times: TrainTimes, entry: Entry, low: int) -> bool:
        """Return True if a train, or an earlier one, may have tuples from a time on."""
        return entry.reach >= low or not times.has_times

    def watermark(self, order: TrainOrder, times: Mapping[str, TrainTimes], end: int) -> int:
        """Return the least watermark of the streams."""
        return least_mark(times, order.tops(end))

    def marks(self, order: TrainOrder, times: Mapping[str, TrainTimes], end: int) -> dict[str, int]:
        """Return the watermark of the timeline for every stream."""
        return dict.fromkeys(times, self.watermark(order, times, end))


class ByNumber:
    """Tuples by their number in their stream. None is late."""

    def type(self, times: TrainTimes) -> pa.DataType:
        """Return the type of numbers."""
        return pa.int64()

    def of(self, times: TrainTimes, entry: Entry) -> tuple[NDArray[np.bool_], Times]:
        """Return the numbers of a train's tuples."""
        numbers = np.arange(entry.first_tuple, entry.first_tuple + entry.tuples)
        return np.ones(entry.tuples, dtype=np.bool_), numbers

    def reaches(self, times: TrainTimes, entry: Entry, low: int) -> bool:
        """Return True if a train has tuples from a number on."""
        return entry.first_tuple + entry.tuples > low

    def watermark(self, order: TrainOrder, times: Mapping[str, TrainTimes], end: int) -> int:
        """Return the number of the next tuple: the timeline has one stream."""
        (stream,) = times
        return order.tuples_before(stream, end)

    def marks(self, order: TrainOrder, times: Mapping[str, TrainTimes], end: int) -> dict[str, int]:
        """Return how many tuples of each stream arrived before."""
        return {stream: order.tuples_before(stream, end) for stream in times}


PLACES: dict[Axis, Places] = {"time": ByTime(), "rows": ByNumber()}
