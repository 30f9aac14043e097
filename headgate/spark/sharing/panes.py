"""Panes: pieces of windows, aggregated once per train and merged when a window closes.

All windows begin and end at multiples of the greatest length that divides their sizes and slides.
The piece between two such points is a pane. The tuples of a train are aggregated by pane when they
are first needed, once for all queries that aggregate alike. A window is the sum of its panes. Spark
computes the partial aggregates and merges them.
"""

import threading
from functools import partial
from math import gcd

import pyarrow as pa

from headgate.model.drop import Drop
from headgate.model.stream import ARRIVED_AT
from headgate.model.window import WINDOW, Axis, Window
from headgate.model.window_ends import windows_of
from headgate.spark.event_time.timeline_reader import TimelineReader
from headgate.spark.jvm.lane.plan_runner import PARTIAL, SplitPlan
from headgate.spark.log.byte_cache import ByteCache
from headgate.spark.log.shedding_rules import QueryDrops
from headgate.spark.sharing.window_columns import window_bound, window_column


class Panes:
    """The partial results of each train of a timeline, for queries that aggregate one stream alike.

    They are computed from the log and can be computed again, so none is kept beyond the run.
    """

    def __init__(self, timeline: TimelineReader, stream: str, view: str, axis: Axis) -> None:
        self._timeline, self._stream, self._view, self._axis = timeline, stream, view, axis
        self._kind = timeline.place_type(stream, axis)
        self.width = 0
        self._partials: ByteCache[tuple[int, Drop | None]] = ByteCache()
        """By train, and by what the queries that need it drop of it."""
        self._turn = threading.Lock()

    def fit(self, window: Window) -> None:
        """Make panes so small that a window consists of whole panes."""
        with self._turn:
            slide = window.slide or window.size
            width = gcd(self.width, window.size, slide, window.offset)
            if width != self.width:
                self.width = width
                self._partials.clear()

    @property
    def bytes(self) -> int:
        """The memory that partial results take."""
        return self._partials.bytes

    def spare_memory(self) -> None:
        """Drop all partial results, unless a call uses them now; they can be computed again.

        The engine's loop calls this: it must not wait for a worker.
        """
        if self._turn.acquire(blocking=False):
            try:
                self._partials.clear()
            finally:
                self._turn.release()

    def closed(
        self, split: SplitPlan, window: Window, end: int, before: int, after: int,
        drops: QueryDrops,
    ) -> pa.Table | None:  # fmt: skip
        """Return the results of windows that end in (before, after]; None if there are none.

        Args:
            split: the query's plan, split into partial aggregates and their merge.
            end: the number of the train before which all trains of the timeline are read.
            drops: which tuples the query drops in overload.
        """
        parts = self._parts(split, end, before - window.size, drops)
        if not parts:
            return None
        pieces = pa.concat_tables(parts)
        starts = window_bound(pieces.column(split.windows[0]), "start")
        panes, ends = windows_of(window, starts, before, after)
        if not len(panes):
            return None
        windows = window_column(ends, window.size, self._kind)
        rows = pieces.take(panes)
        for place in split.windows:
            rows = rows.set_column(place, pieces.column_names[place], windows)
        return split.final({PARTIAL: rows})

    def _parts(self, split: SplitPlan, end: int, low: int, drops: QueryDrops) -> list[pa.Table]:
        """Return the partial results of all trains before `end` that may have tuples from `low` on.

        Missing partial results are computed. Those that no window needs any more are dropped.
        """
        with self._turn:
            first = self._timeline.needed_from
            self._partials.drop(lambda key: key[0] < first)
            numbers = self._timeline.reaching(self._stream, end, self._axis, low)
            parts = [
                self._partials.get(
                    (number, drops.of(number)), partial(self._partial, split, number, drops)
                )
                for number in numbers
            ]
            return [part for part in parts if part.num_rows]

    def _partial(self, split: SplitPlan, number: int, drops: QueryDrops) -> pa.Table:
        """Aggregate the tuples of one train by pane; return an empty table if there are none."""
        rows = self._timeline.rows_of(self._stream, number, self._axis, drops)
        if rows is None:
            return pa.table({})
        ends = (rows.place // self.width + 1) * self.width
        table = rows.table.drop_columns([ARRIVED_AT])
        table = table.append_column(WINDOW, window_column(ends, self.width, self._kind))
        return split.partial({self._view: table})
