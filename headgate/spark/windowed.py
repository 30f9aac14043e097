"""Computes queries with windows: what closes, and what tuples in each other's windows make."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from headgate.model.plan import Lane
from headgate.model.stream import ARRIVED_AT
from headgate.model.window import (
    ARRIVED,
    END,
    HIDDEN,
    Axis,
    Input,
    Stateful,
    arrival_column,
    has_column,
    place_columns,
    time_column,
)
from headgate.model.window_ends import NEVER, Times, windows_of
from headgate.spark.group import Output
from headgate.spark.local_plan import Aggregation
from headgate.spark.panes import Panes, Passed, places_of, window_column
from headgate.spark.plan_expressions import WINDOW
from headgate.spark.small_query import SmallQuery
from headgate.spark.timeline import Timeline
from headgate.spark.train_times import Rows

log = logging.getLogger("headgate.spark")

_OUTER = {
    "LeftOuter": (0,),
    "RightOuter": (1,),
    "FullOuter": (0, 1),
    "LeftSemi": (0,),
    "LeftAnti": (0,),
}
"""Whose tuples come out when no more partners can come, by the kind of join."""


class Windowed:
    """One query with windows over its timeline.

    Args:
        stateful: how it is computed.
        nothing: gives an empty table of a stream, as its log has it.
        query: its text over the views.
        share: gives the panes for what is aggregated, or makes them.
        alone: the text of one window, where it has an answer even if WHERE leaves no row.
    """

    def __init__(
        self,
        stateful: Stateful,
        timeline: Timeline,
        nothing: Callable[[str], pa.Table],
        query: SmallQuery,
        share: Callable[[tuple[str, ...], Callable[[Passed], Panes]], Panes],
        alone: SmallQuery | None = None,
    ) -> None:
        self._how, self._timeline = stateful, timeline
        self._nothing, self._query, self._share = nothing, query, share
        self._alone = alone
        self._axis: Axis = stateful.inputs[0].window.axis
        self._empties: dict[Input, pa.Table] = {}

    @property
    def lane(self) -> Lane:
        """The way that small calls take."""
        return self._query.lane

    def __call__(
        self, session: SparkSession, first: int, end: int, known: dict[Any, Any] | None = None
    ) -> Output:
        """Gives what the timeline's trains first, ..., end − 1 bring.

        Args:
            known: what other queries of the timeline have found over these trains.
        """
        if self._how.mode == "pairs":
            return self._pairs(session, first, end, {} if known is None else known)
        before = self._timeline.watermark(first, self._axis)
        after = self._timeline.watermark(end, self._axis)
        if after <= before:
            return self._none(session)
        if self._how.mode == "union":
            return self._union(session, first, end, before, after)
        if self._how.mode == "windows":
            return self._at_once(session, first, end, before, after)
        return self._each(session, first, end, before, after)

    def _at_once(
        self, session: SparkSession, first: int, end: int, before: int, after: int
    ) -> Output:
        """Computes all windows that have closed at once, from panes or from their tuples.

        A tuple is there for each window that has it.
        """
        source = self._how.inputs[0]
        how = self._query.aggregation(session, {source.view: self._empty(source)})
        if how is not None and self._how.alone is None:
            try:
                known = self._panes(how).closed(how, source.window, end, before, after)
                if known is None:
                    return self._none(session)
                return self._closed(self._query.of_aggregates(known), first, end)
            except Exception as error:
                # A tuple at fault must fail the windows that have it, and no other of its train.
                log.debug("windows are computed from their tuples: %s", error)
        rows = self._rows(source, first, end, before)
        if rows is None:
            return self._none(session)
        tuples, ends = windows_of(source.window, rows.place, before, after)
        if not len(tuples):
            return self._none(session)
        table = rows.table.drop_columns([ARRIVED_AT]).take(tuples)
        table = table.append_column(WINDOW, window_column(ends, source.window.size, self._axis))
        made = self._run(session, {source.view: table})
        if self._how.alone is not None:
            made = self._with_left_out(session, made, ends)
        return self._closed(made, first, end)

    def _panes(self, how: Aggregation) -> Panes:
        """Gives the panes that it shares with queries that aggregate alike."""
        source = self._how.inputs[0]
        found = self._share(
            (source.stream, self._axis, how.signature),
            lambda passed: Panes(self._timeline, source.stream, self._axis, passed),
        )
        found.fit(source.window)
        return found

    def _with_left_out(self, session: SparkSession, made: pa.Table, ends: Times) -> pa.Table:
        """Adds what comes of windows of which WHERE has left no row."""
        missing = np.setdiff1d(ends, numbers_of(made[END]))
        if not len(missing):
            return made
        assert self._alone is not None
        if not hasattr(self, "_of_no_rows"):
            views = {each.view: self._empty(each) for each in self._how.inputs}
            self._of_no_rows = self._alone(session, views)
        count = self._of_no_rows.num_rows
        added = self._of_no_rows.take(np.tile(np.arange(count), len(missing)))
        added = added.append_column(END, places_of(np.repeat(missing, count), self._axis))
        return pa.concat_tables([made, added.cast(made.schema)])

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
            made.append(result.append_column(END, places_of(places, self._axis)))
        return self._closed(pa.concat_tables(made), first, end) if made else self._none(session)

    def _union(
        self, session: SparkSession, first: int, end: int, before: int, after: int
    ) -> Output:
        """Gives the tuples that the watermark has passed, in the order of their time."""
        views, some = {}, False
        for each in self._how.inputs:
            rows = self._timeline.rows(each.stream, first, end, "time", before)
            views[each.view] = self._timed(self._nothing(each.stream), np.zeros(0, np.int64))
            if rows is not None:
                # What is at the watermark may still get company, and waits for it.
                passed = rows.place < after
                some |= bool(passed.any())
                views[each.view] = self._timed(rows.table, rows.place).filter(pa.array(passed))
        if not some:
            return self._none(session)
        made = self._run(session, views).sort_by(END)
        return self._closed(made, first, end)

    def _timed(self, table: pa.Table, place: Times) -> pa.Table:
        return table.drop_columns([ARRIVED_AT]).append_column(time_column(0), pa.array(place))

    def _pairs(self, session: SparkSession, first: int, end: int, known: dict[Any, Any]) -> Output:
        """Joins what is new with what is there: each combination counts where its last is new.

        A tuple that comes out because it has no partner, or has one, does when the watermark says
        that none can come any more.
        """
        inputs, axis = self._how.inputs, self._axis
        before, after = self._timeline.watermark(first), self._timeline.watermark(end)
        rows = []
        for each in inputs:
            mark = self._timeline.came(each.stream, first) if axis == "rows" else before
            low = NEVER if mark == NEVER else mark - self._how.reach
            if (each.stream, axis, low) not in known:
                found = self._timeline.rows(each.stream, first, end, axis, low)
                known[each.stream, axis, low] = found or self._no_tuples(each)
            rows.append(known[each.stream, axis, low])
        made: list[pa.Table] = []
        for turn, each in enumerate(rows):
            if self._how.join in ("LeftSemi", "LeftAnti") or not each.new.any():
                continue
            # Those before it in the text are old, it is new, those behind it are either.
            chosen = [
                ("old", ~found.new) if number < turn
                else ("new", found.new) if number == turn
                else ("all", found.new | True)
                for number, found in enumerate(rows)
            ]  # fmt: skip
            if all(some.any() for _, some in chosen):
                joined = self._joined(session, rows, chosen, known)
                made.append(self._with_last(self._with(joined, range(len(inputs)))))
        for side in _OUTER.get(self._how.join, ()):
            # The last partner of a tuple is at most its own window away from it.
            close = rows[side].place + inputs[side].window.size + 1
            closes = (close > before) & (close <= after)
            if closes.any():
                chosen = [("all", found.new | True) for found in rows]
                chosen[side] = f"closes {inputs[side].window.size}", closes
                joined = self._with(self._joined(session, rows, chosen, known), [side])
                made.append(self._with_last(joined, inputs[side].window.size))
        if not sum(each.num_rows for each in made):
            return self._none(session)
        table = pa.concat_tables(made)
        return Output(visible(table), table[ARRIVED].to_numpy(), places=table[END].to_numpy())

    def _joined(
        self,
        session: SparkSession,
        rows: Sequence[Rows],
        chosen: Sequence[tuple[str, NDArray[np.bool_]]],
        known: dict[Any, Any],
    ) -> pa.Table:
        views = {}
        for number, (each, found, (which, wanted)) in enumerate(
            zip(self._how.inputs, rows, chosen, strict=True)
        ):
            # The same table for every query that has these rows: what is found over it is known.
            key = number, id(found), which, self._others(number)
            if key not in known:
                table = self._placed(found.table, number, found.place)
                known[key] = _renamed(table, arrival_column(number)).filter(pa.array(wanted))
            views[each.view] = known[key]
        return self._query(session, views, known)

    def _others(self, number: int) -> tuple[str, ...]:
        """Gives the streams of whose tuples is told, beside those of a view, how many had come."""
        if self._axis == "time":
            return ()
        return tuple(each.stream for n, each in enumerate(self._how.inputs) if n != number)

    def _placed(self, table: pa.Table, number: int, place: Times) -> pa.Table:
        """Adds where the tuples of a view lie."""
        stream = self._how.inputs[number].stream
        seen = [self._timeline.seen(stream, place, other) for other in self._others(number)]
        columns = place_columns(number, self._how.windows)
        for name, values in zip(columns, (place, *seen), strict=True):
            table = table.append_column(name, pa.array(values))
        return table

    def _with(self, made: pa.Table, sides: Iterable[int]) -> pa.Table:
        """Gives the rows of a join that have a tuple of these sides, and of no other."""
        wanted = set(sides)
        for number in range(len(self._how.inputs)):
            if has_column(number) in made.column_names:
                has = made[has_column(number)].is_valid()
                made = made.filter(has if number in wanted else pc.invert(has))
        return made

    def _with_last(self, made: pa.Table, later: int = 0) -> pa.Table:
        """Add to the rows of a join the latest place of their tuples, or so much later."""
        names = [has_column(number) for number in range(len(self._how.inputs))]
        last: Any = pc.max_element_wise(
            *(made[name] for name in names if name in made.schema.names)
        )
        return made.append_column(END, pc.add(last.cast(pa.int64()), later))

    def _no_tuples(self, source: Input) -> Rows:
        return Rows(self._nothing(source.stream), np.zeros(0, np.int64), np.zeros(0, np.bool_))

    def _rows(self, source: Input, first: int, end: int, before: int) -> Rows | None:
        low = NEVER if before == NEVER else before - source.window.size
        return self._timeline.rows(source.stream, first, end, self._axis, low)

    def _run(self, session: SparkSession, views: dict[str, pa.Table]) -> pa.Table:
        return self._query(session, views)

    def _closed(self, made: pa.Table, first: int, end: int) -> Output:
        """Gives results that arrived with the train that has closed their window."""
        ends = numbers_of(made[END])
        marks, arrived_s = self._timeline.closing(first, end, self._axis)
        at = np.searchsorted(np.maximum.accumulate(marks), ends)
        closed = None if self._how.mode == "union" else len(np.unique(ends))
        arrived_at_s = arrived_s[np.minimum(at, len(arrived_s) - 1)]
        return Output(visible(made), arrived_at_s, closed, places=ends)

    def _none(self, session: SparkSession) -> Output:
        """Gives no rows, of the right columns."""
        if self._query.no_rows is None:
            views = {each.view: self._empty(each) for each in self._how.inputs}
            if self._how.mode == "union":
                views = {
                    each.view: self._timed(self._nothing(each.stream), np.zeros(0, np.int64))
                    for each in self._how.inputs
                }
            elif self._how.mode == "pairs":
                views = {
                    each.view: _renamed(
                        self._placed(self._nothing(each.stream), number, np.zeros(0, np.int64)),
                        arrival_column(number),
                    )
                    for number, each in enumerate(self._how.inputs)
                }
            self._query.no_rows = visible(self._query(session, views)).slice(0, 0)
        return Output(self._query.no_rows, np.zeros(0))

    def _empty(self, source: Input) -> pa.Table:
        if source not in self._empties:
            self._empties[source] = self._shown(self._nothing(source.stream), source, 0)
        return self._empties[source]

    def _shown(self, table: pa.Table, source: Input, close: int) -> pa.Table:
        table = table.drop_columns([ARRIVED_AT])
        if not self._how.shows_window:
            return table
        ends = np.full(table.num_rows, close, dtype=np.int64)
        return table.append_column(WINDOW, window_column(ends, source.window.size, self._axis))


def _renamed(table: pa.Table, arrival: str) -> pa.Table:
    return table.rename_columns(
        [arrival if name == ARRIVED_AT else name for name in table.column_names]
    )


def visible(table: pa.Table) -> pa.Table:
    """Gives rows without the columns that no user sees."""
    return table.select([name for name in table.column_names if not name.startswith(HIDDEN)])


def numbers_of(column: Any) -> Times:
    """Gives instants in microseconds since 1970, and numbers as they are."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", tz=column.type.tz))
    numbers: Times = column.cast(pa.int64()).to_numpy()
    return numbers
