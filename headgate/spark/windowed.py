"""Computes queries with windows: what closes, and what tuples in each other's windows make."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from headgate.model.stream import ARRIVED_AT
from headgate.model.window import (
    ARRIVED,
    END,
    HIDDEN,
    Axis,
    Input,
    Stateful,
    arrival_column,
    time_column,
)
from headgate.spark.group import Output
from headgate.spark.timeline import NEVER, Rows, Timeline, Times, windows_of

WINDOW = "window"


class Windowed:
    """One query with windows over its timeline.

    Args:
        stateful: how it is computed.
        nothing: gives an empty table of a stream, as its log has it.
        columns: the names of what comes out.
        text: the SQL of what a sink of text puts out instead of them.
    """

    def __init__(
        self,
        stateful: Stateful,
        timeline: Timeline,
        nothing: Callable[[str], pa.Table],
        columns: Sequence[str],
        text: str | None = None,
    ) -> None:
        self._how, self._timeline = stateful, timeline
        self._nothing, self._columns, self._text = nothing, tuple(columns), text
        self._axis: Axis = stateful.inputs[0].window.axis

    def __call__(self, session: SparkSession, first: int, end: int) -> Output:
        """Gives what the timeline's trains first, ..., end − 1 bring."""
        if self._how.mode == "pairs":
            return self._pairs(session, first, end)
        before = self._timeline.watermark(first, self._axis)
        after = self._timeline.watermark(end, self._axis)
        if after <= before:
            return self._none(session)
        if self._how.mode == "windows":
            return self._at_once(session, first, end, before, after)
        return self._each(session, first, end, before, after)

    def _at_once(
        self, session: SparkSession, first: int, end: int, before: int, after: int
    ) -> Output:
        """Computes all windows that have closed by one job: each tuple is there for each of its."""
        source = self._how.inputs[0]
        rows = self._rows(source, first, end, before)
        if rows is None:
            return self._none(session)
        tuples, ends = windows_of(source.window, rows.place, before, after)
        if not len(tuples):
            return self._none(session)
        table = rows.table.drop_columns([ARRIVED_AT]).take(tuples)
        table = table.append_column(WINDOW, self._window(ends, source))
        made = self._run(session, {source.view: table})
        return self._closed(made, first, end)

    def _each(self, session: SparkSession, first: int, end: int, before: int, after: int) -> Output:
        """Computes the windows that have closed one after the other."""
        found = [
            (each, rows, *windows_of(each.window, rows.place, before, after))
            for each in self._how.inputs
            if (rows := self._rows(each, first, end, before)) is not None
        ]
        closed = sorted({int(close) for *_, ends in found for close in ends})
        made = []
        for close in closed:
            views = {each.view: self._empty(each) for each in self._how.inputs}
            for each, rows, tuples, ends in found:
                table = rows.table.take(tuples[ends == close])
                views[each.view] = self._shown(table, each, close)
            result = self._run(session, views)
            places = np.full(result.num_rows, close)
            made.append(result.append_column(END, self._places(places)))
        return self._closed(pa.concat_tables(made), first, end) if made else self._none(session)

    def _pairs(self, session: SparkSession, first: int, end: int) -> Output:
        """Joins what is new with what is there: each combination counts where its last is new."""
        inputs, widest = self._how.inputs, max(each.window.size for each in self._how.inputs)
        before = self._timeline.watermark(first)
        low = NEVER if before == NEVER else before - widest
        rows = [self._timeline.rows(each.stream, first, end, "time", low) for each in inputs]
        if not all(rows):
            return self._none(session)
        made = []
        for turn, each in enumerate(rows):
            if each is None or not each.new.any():
                continue
            # Those before it in the text are old, it is new, those behind it are either.
            views = {
                source.view: self._part(number, found, number - turn)
                for number, (source, found) in enumerate(zip(inputs, rows, strict=True))
                if found is not None
            }
            if all(view.num_rows for view in views.values()):
                made.append(self._run(session, views))
        if not made:
            return self._none(session)
        table = pa.concat_tables(made)
        return Output(self._visible(table), table[ARRIVED].to_numpy())

    def _part(self, number: int, rows: Rows, order: int) -> pa.Table:
        chosen = ~rows.new if order < 0 else rows.new if order == 0 else np.ones_like(rows.new)
        table = rows.table.append_column(time_column(number), pa.array(rows.place))
        return _renamed(table, arrival_column(number)).filter(pa.array(chosen))

    def _rows(self, source: Input, first: int, end: int, before: int) -> Rows | None:
        low = NEVER if before == NEVER else before - source.window.size
        return self._timeline.rows(source.stream, first, end, self._axis, low)

    def _run(self, session: SparkSession, views: dict[str, pa.Table]) -> pa.Table:
        for name, table in views.items():
            session.createDataFrame(table).coalesce(1).createOrReplaceTempView(name)
        return self._frame(session).toArrow()

    def _frame(self, session: SparkSession) -> DataFrame:
        """Gives the query over the views that there are now."""
        frame = session.sql(self._how.text)
        hidden = [name for name in frame.columns if name.startswith(HIDDEN)]
        frame = frame.toDF(*self._columns_with(frame.columns))
        return frame.selectExpr(self._text, *hidden) if self._text else frame

    def _columns_with(self, found: Sequence[str]) -> list[str]:
        """Gives the query's names for what it puts out, and hidden ones as they are."""
        names = iter(self._columns)
        return [name if name.startswith(HIDDEN) else next(names) for name in found]

    def _closed(self, made: pa.Table, first: int, end: int) -> Output:
        """Gives results that arrived with the train that has closed their window."""
        ends = _numbers(made[END])
        marks, arrived_s = self._timeline.closing(first, end, self._axis)
        at = np.searchsorted(np.maximum.accumulate(marks), ends)
        return Output(self._visible(made), arrived_s[np.minimum(at, len(arrived_s) - 1)])

    def _none(self, session: SparkSession) -> Output:
        """Gives no rows, of the right columns."""
        if not hasattr(self, "_no_rows"):
            views = {each.view: self._empty(each) for each in self._how.inputs}
            if self._how.mode == "pairs":
                views = {
                    each.view: _renamed(
                        self._nothing(each.stream).append_column(
                            time_column(number), pa.array([], pa.int64())
                        ),
                        arrival_column(number),
                    )
                    for number, each in enumerate(self._how.inputs)
                }
            for name, table in views.items():
                session.createDataFrame(table).createOrReplaceTempView(name)
            self._no_rows = self._visible(self._frame(session).limit(0).toArrow())
        return Output(self._no_rows, np.zeros(0))

    def _empty(self, source: Input) -> pa.Table:
        return self._shown(self._nothing(source.stream), source, 0)

    def _shown(self, table: pa.Table, source: Input, close: int) -> pa.Table:
        table = table.drop_columns([ARRIVED_AT])
        if not self._how.shows_window:
            return table
        ends = np.full(table.num_rows, close, dtype=np.int64)
        return table.append_column(WINDOW, self._window(ends, source))

    def _window(self, ends: Times, source: Input) -> Any:
        arrays = [self._places(ends - source.window.size), self._places(ends)]
        return pa.StructArray.from_arrays(arrays, ["start", "end"])

    def _places(self, places: NDArray[np.int64]) -> Any:
        found = pa.array(places.astype(np.int64))
        return found if self._axis == "rows" else found.cast(pa.timestamp("us", tz="UTC"))

    def _visible(self, table: pa.Table) -> pa.Table:
        keep = [name for name in table.column_names if not name.startswith(HIDDEN)]
        return table.select(keep)


def _renamed(table: pa.Table, arrival: str) -> pa.Table:
    return table.rename_columns(
        [arrival if name == ARRIVED_AT else name for name in table.column_names]
    )


def _numbers(column: Any) -> Times:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", tz=column.type.tz))
    numbers: Times = column.cast(pa.int64()).to_numpy()
    return numbers
