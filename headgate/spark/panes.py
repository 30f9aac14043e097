"""Panes: parts of windows that are aggregated once, train by train, and put together at the close.

Windows of one size or of many begin and end at multiples of the greatest length that divides all
their sizes and slides. What lies between two of these is a pane. A train's tuples are aggregated by
pane when they are first needed, for all queries that aggregate alike; a window is the sum of its
panes.
"""

import threading
from math import gcd
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.model.stream import ARRIVED_AT
from headgate.model.window import Axis, Window
from headgate.model.window_ends import Times, windows_of
from headgate.spark.local_plan import Aggregation
from headgate.spark.local_rows import Groups, grouped, merged
from headgate.spark.plan_expressions import WINDOW
from headgate.spark.timeline import Timeline

TRAINS_KNOWN = 8
"""So many trains are remembered with the rows that conditions leave of them."""


def window_column(ends: Times, size: int, kind: pa.DataType) -> Any:
    """Gives the windows with some ends, as a column of `start` and `end`."""
    arrays = [places_of(ends - size, kind), places_of(ends, kind)]
    return pa.StructArray.from_arrays(arrays, ["start", "end"])


def places_of(places: Times, kind: pa.DataType) -> Any:
    """Gives places as a column: times of the type that the stream's have, or numbers of tuples."""
    return pa.array(places.astype(np.int64)).cast(kind)


class Passed:
    """Which rows of a train conditions have been found to leave, for all that read its stream.

    Kept of the last trains alone: those are what one query after the other aggregates.
    """

    def __init__(self) -> None:
        self._known: dict[int, dict[Any, Any]] = {}

    def __getitem__(self, train: int) -> dict[Any, Any]:
        known = self._known.setdefault(train, {})
        for each in sorted(self._known)[: max(0, len(self._known) - TRAINS_KNOWN)]:
            self._known.pop(each, None)
        return known

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return sum(
            rows.nbytes for known in list(self._known.values()) for rows in [*known.values()]
        )

    def spare_memory(self) -> None:
        """Forgets everything; it is asked for again."""
        self._known.clear()


class Panes:
    """Partial results by train of a timeline, for queries over one stream that aggregate alike.

    What is here was computed from the log and can be again; nothing of it outlives the run.

    Args:
        passed: what conditions leave, shared with queries over the stream that aggregate otherwise.
    """

    def __init__(self, timeline: Timeline, stream: str, axis: Axis, passed: Passed) -> None:
        self._timeline, self._stream, self._axis = timeline, stream, axis
        self._passed, self._kind = passed, timeline.place_type(stream, axis)
        self._width = 0
        self._made: dict[int, pa.Table | None] = {}
        self.nbytes = 0
        self._turn = threading.Lock()

    def fit(self, window: Window) -> None:
        """Makes panes so small that a window consists of whole ones."""
        with self._turn:
            slide = window.slide or window.size
            width = gcd(self._width, window.size, slide, window.offset)
            if width != self._width:
                self._width = width
                self._clear()

    def spare_memory(self) -> None:
        """Forgets what can be computed again."""
        with self._turn:
            self._clear()

    def _clear(self) -> None:
        self._made.clear()
        self.nbytes = 0

    def closed(
        self, how: Aggregation, window: Window, end: int, before: int, after: int
    ) -> pa.Table | None:
        """Gives the aggregates of windows that end in (before, after]; None where there are none.

        Args:
            how: how the query aggregates.
            end: the train of the timeline before which all is taken in.
        """
        parts = self._parts(how, end, before - window.size)
        if not parts:
            return None
        partial = pa.concat_tables(parts)
        starts = _starts(partial.column(how.window))
        panes, ends = windows_of(window, starts, before, after)
        if not len(panes):
            return None
        taken = partial.take(panes)
        columns = list(taken.columns)
        columns[how.window] = pa.chunked_array([window_column(ends, window.size, self._kind)])
        groups = grouped(columns[: how.keys], len(panes))
        made = [column.take(groups.first) for column in columns[: how.keys]]
        at = how.keys
        for number, kind in enumerate(how.kinds):
            width = merged.width(kind)
            result = how.schema.field(how.keys + number).type
            made.append(merged(kind, columns[at : at + width], groups, result))
            at += width
        return pa.Table.from_arrays(made, schema=how.schema)

    def _parts(self, how: Aggregation, end: int, low: int) -> list[pa.Table]:
        """Gives the partial results of all trains that reach up to a place, made where needed."""
        with self._turn:
            first = self._timeline.needed_from
            for number in [each for each in self._made if each < first]:
                self.nbytes -= _size(self._made.pop(number))
            numbers = self._timeline.reaching(self._stream, end, self._axis, low)
            for number in numbers:
                if number not in self._made:
                    self._made[number] = self._partial(how, number)
                    self.nbytes += _size(self._made[number])
            return [each for number in numbers if (each := self._made[number]) is not None]

    def _partial(self, how: Aggregation, number: int) -> pa.Table | None:
        """Aggregates the tuples of one train by pane."""
        rows = self._timeline.rows_of(self._stream, number, self._axis)
        if rows is None:
            return None
        ends = (rows.place // self._width + 1) * self._width
        table = rows.table.drop_columns([ARRIVED_AT])
        table = table.append_column(WINDOW, window_column(ends, self._width, self._kind))
        given = how.rows(table, self._passed[number])
        if not given.num_rows:
            return None
        groups: Groups = grouped([given.column(n) for n in range(how.keys)], given.num_rows)
        columns = [given.column(n).take(groups.first) for n in range(how.keys)]
        for kind, at in zip(how.kinds, how.arguments, strict=True):
            columns += merged.partial(kind, given.column(at), groups)
        return pa.Table.from_arrays(columns, names=[f"c{n}" for n in range(len(columns))])


def _size(table: pa.Table | None) -> int:
    return 0 if table is None else table.nbytes


def _starts(windows: Any) -> Times:
    starts = pa.concat_arrays([each.field("start") for each in windows.chunks])
    numbers: Times = starts.cast(pa.int64()).to_numpy()
    return numbers
