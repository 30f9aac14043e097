"""Queries over windows that close: all closed windows at once, or one after the other."""

import logging
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.model.plan import Lane
from headgate.model.stream import ARRIVED_AT
from headgate.model.window import GIVEN, MARK, WINDOW, Axis, Input
from headgate.model.window_ends import NEVER, Times, windows_of
from headgate.spark.event_time.train_times import Rows
from headgate.spark.jvm.lane.small_query import SmallQuery
from headgate.spark.jvm.query.window_plans import WindowPlans
from headgate.spark.output import Output
from headgate.spark.sharing.panes import Panes
from headgate.spark.sharing.window_columns import window_bound, window_column
from headgate.spark.windows.computation import Material
from headgate.spark.windows.results import Results

log = logging.getLogger("headgate.spark")


class ClosingWindows:
    """One query over windows of one stream, or over windows of several that end together."""

    def __init__(self, material: Material) -> None:
        self._kind, self._timeline = material.kind, material.timeline
        self._nothing, self._panes = material.nothing, material.panes
        self._drops = material.drops
        plans = self._kind.plans
        assert isinstance(plans, WindowPlans)
        self._one, self._always = material.results(plans.one), plans.always
        self._at_once = None if plans.at_once is None else material.results(plans.at_once)
        self._axis: Axis = self._kind.inputs[0].window.axis

    @property
    def needs_job(self) -> bool:
        """Whether the query is known to be unable to run in the driver."""
        return (self._at_once or self._one)[1].needs_job

    def __call__(
        self, session: SparkSession, lane: Lane, first: int, end: int, shared_reads: object = None
    ) -> Output:
        """Return the results of windows that the timeline's trains first, ..., end − 1 close."""
        before = self._timeline.watermark(first, self._axis)
        after = self._timeline.watermark(end, self._axis)
        if after <= before:
            return self._none()
        if self._at_once is not None:
            return self._all(session, lane, self._at_once, first, end, before, after)
        return self._one_by_one(session, lane, first, end, before, after)

    def _all(
        self,
        session: SparkSession,
        lane: Lane,
        way: tuple[Results, SmallQuery],
        first: int,
        end: int,
        before: int,
        after: int,
    ) -> Output:
        """Compute all closed windows at once, from panes or from their tuples."""
        results, query = way
        (source,) = self._kind.inputs
        split = query.split() if lane == "driver" and not self._always else None
        if split is not None:
            panes = self._panes(
                split.key,
                lambda: Panes(self._timeline, source.stream, source.view, self._axis),
            )
            panes.fit(source.window)
            try:
                rows = panes.closed(split, source.window, end, before, after, self._drops)
                return self._none() if rows is None else self._closed(results, rows, first, end)
            except Exception as error:
                # If a tuple causes the error, only the windows that contain it may fail, and not
                # every window that needs its train.
                log.debug("windows are computed from their tuples: %s", error)
        rows_of = self._rows(source, first, end, before)
        if rows_of is None:
            return self._none()
        tuples, ends = windows_of(source.window, rows_of.place, before, after)
        if not len(tuples):
            return self._none()
        table = rows_of.table.drop_columns([ARRIVED_AT]).take(tuples)
        table = table.append_column(
            WINDOW, window_column(ends, source.window.size, self._bound_type(source))
        )
        rows = query(session, lane, {source.view: table})
        output = self._closed(results, rows, first, end)
        if not self._always:
            return output
        return self._with_left_out(session, lane, results, rows, output, ends, first, end)

    def _with_left_out(
        self,
        session: SparkSession,
        lane: Lane,
        results: Results,
        rows: pa.Table,
        output: Output,
        ends: Times,
        first: int,
        end: int,
    ) -> Output:
        """Add the results of windows in which no row passes WHERE."""
        closed = np.unique(ends)
        missing = np.setdiff1d(closed, window_bound(results.hidden(rows, WINDOW), "end"))
        if not len(missing):
            return output
        outputs = [output]
        one, query = self._one
        for close in missing.tolist():
            rows = query(session, lane, self._tables({}, close))
            outputs.append(
                self._arrived(one.visible(rows), np.full(rows.num_rows, close), first, end)
            )
        table = pa.concat_tables(
            [output.table, *(other.table.cast(output.table.schema) for other in outputs[1:])]
        )
        arrived_s = np.concatenate([part.arrived_at_s for part in outputs])
        places = np.concatenate([part.places for part in outputs if part.places is not None])
        dues_s = [part.due_at_s for part in outputs if part.due_at_s is not None]
        due_at_s = np.concatenate(dues_s) if dues_s else None
        return Output(table, arrived_s, len(closed), places, due_at_s)

    def _one_by_one(
        self, session: SparkSession, lane: Lane, first: int, end: int, before: int, after: int
    ) -> Output:
        """Compute the closed windows one after the other."""
        results, query = self._one
        sources = [
            (source, rows, *windows_of(source.window, rows.place, before, after))
            for source in self._kind.inputs
            if (rows := self._rows(source, first, end, before)) is not None
        ]
        closed = sorted({int(close) for *_, ends in sources for close in ends})
        tables, closes = [], []
        for close in closed:
            views = {
                source.view: rows.table.take(tuples[ends == close])
                for source, rows, tuples, ends in sources
            }
            table = query(session, lane, self._tables(views, close))
            tables.append(results.visible(table))
            closes.append(np.full(table.num_rows, close))
        if not tables:
            return self._none()
        output = self._arrived(pa.concat_tables(tables), np.concatenate(closes), first, end)
        return replace(output, closed=len(closed))

    def _tables(self, rows: dict[str, pa.Table], close: int) -> dict[str, pa.Table]:
        """Return the relations of one window: the rows of each input, and the window itself."""
        tables = {}
        for number, source in enumerate(self._kind.inputs):
            table = rows.get(source.view)
            table = (self._nothing(source.stream) if table is None else table).drop_columns(
                [ARRIVED_AT]
            )
            ends = np.full(table.num_rows, close, dtype=np.int64)
            size = source.window.size
            kind = self._bound_type(source)
            tables[source.view] = table.append_column(WINDOW, window_column(ends, size, kind))
            if source.view.startswith(MARK):
                window = window_column(np.array([close]), size, kind)
                tables[f"{GIVEN}{number}"] = pa.table({WINDOW: window})
        return tables

    def _bound_type(self, source: Input) -> pa.DataType:
        """Return the type of the start and end of an input's windows."""
        return self._timeline.place_type(source.stream, self._axis)

    def _rows(self, source: Input, first: int, end: int, before: int) -> Rows | None:
        low = NEVER if before == NEVER else before - source.window.size
        return self._timeline.rows(source.stream, first, end, self._axis, low, self._drops)

    def _closed(self, results: Results, rows: pa.Table, first: int, end: int) -> Output:
        ends = window_bound(results.hidden(rows, WINDOW), "end")
        return self._arrived(results.visible(rows), ends, first, end)

    def _arrived(self, table: pa.Table, ends: Times, first: int, end: int) -> Output:
        """Return results with the arrival times of the trains that closed their windows."""
        marks, arrived_s = self._timeline.watermarks(first, end, self._axis)
        trains = np.searchsorted(np.maximum.accumulate(marks), ends)
        arrived_at_s = arrived_s[np.minimum(trains, len(arrived_s) - 1)]
        due_at_s = None
        if self._axis == "time":
            due_at_s = ends / 1e6 if self._timeline.is_on_arrival_clock else arrived_at_s
        return Output(table, arrived_at_s, len(np.unique(ends)), ends, due_at_s)

    def _none(self) -> Output:
        """Return an output without rows, with the right columns."""
        results, query = self._at_once or self._one
        return Output(results.visible(query.no_rows), np.zeros(0))
