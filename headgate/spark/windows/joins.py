"""Joins of tuples as they arrive: tuples join if they lie in each other's windows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from headgate.model.plan import Lane
from headgate.model.stream import ARRIVED_AT
from headgate.model.window import (
    Axis,
    Input,
    Join,
    arrival_column,
    counted,
    place_columns,
    time_column,
)
from headgate.model.window_ends import NEVER, Times
from headgate.spark.event_time.train_times import Rows
from headgate.spark.output import Output
from headgate.spark.windows.computation import Material


class Joins:
    """One join of tuples as they arrive, over its timeline."""

    def __init__(self, material: Material) -> None:
        self._kind, self._timeline = material.kind, material.timeline
        self._nothing, self._drops = material.nothing, material.drops
        self._results, self._query = material.results(self._kind.plans)
        self._axis: Axis = self._kind.inputs[0].window.axis
        self._join: Join = self._kind.join
        times = {time_column(number) for number in range(len(self._kind.inputs))}
        self._times = [name for name in self._results.hidden_names if name in times]
        """The time columns of the inputs whose tuples are in the rows, from left to right."""

    @property
    def needs_job(self) -> bool:
        """Whether the query is known to be unable to run in the driver."""
        return self._query.needs_job

    def __call__(
        self, session: SparkSession, lane: Lane, first: int, end: int, shared_reads: dict[Any, Any]
    ) -> Output:
        """Return the results of the timeline's trains first, ..., end − 1.

        A combination of tuples is output when its last tuple is new. A row that lacks a tuple, or
        that only needs to know whether a partner exists, is output when the watermark shows that no
        partner can arrive any more.

        Args:
            shared_reads: what other queries of the timeline have read from these trains; this query
                adds what it reads.
        """
        inputs, axis = self._kind.inputs, self._axis
        before, after = self._timeline.watermark(first), self._timeline.watermark(end)
        marks, rows = self._timeline.marks(first, axis), []
        for source in inputs:
            mark = marks[source.stream]
            low = NEVER if mark == NEVER else mark - self._kind.reach
            key = source.stream, axis, low, self._drops.key
            if key not in shared_reads:
                read = self._timeline.rows(source.stream, first, end, axis, low, self._drops)
                shared_reads[key] = read or self._no_tuples(source)
            rows.append(shared_reads[key])
        tables: list[pa.Table] = []
        places: list[Times] = []
        for turn, turn_rows in enumerate(rows):
            if not self._join.complete or not turn_rows.new.any():
                continue
            # Join the new tuples of this input with the old tuples of inputs before it in the text,
            # and with all tuples of inputs after it: so every combination is computed once.
            chosen = [
                ("old", ~read.new) if number < turn
                else ("new", read.new) if number == turn
                else ("all", read.new | True)
                for number, read in enumerate(rows)
            ]  # fmt: skip
            if all(some.any() for _, some in chosen):
                joined = self._joined(session, lane, rows, chosen, shared_reads)
                tables.append(self._complete(joined, True))
                places.append(self._last(tables[-1]))
        for leader in self._join.firsts:
            wait = self._join.waits[leader]
            close = rows[leader].place + wait + 1
            closes = (close > before) & (close <= after)
            if closes.any():
                chosen = [("all", read.new | True) for read in rows]
                chosen[leader] = f"closes {wait}", closes
                joined = self._joined(session, lane, rows, chosen, shared_reads)
                table = self._led_by(leader, joined)
                tables.append(self._complete(table, False) if self._join.complete else table)
                times = self._results.hidden(tables[-1], time_column(leader)).to_numpy()
                places.append(times + wait)
        if not sum(table.num_rows for table in tables):
            return Output(self._results.visible(self._query.no_rows), np.zeros(0))
        table = pa.concat_tables(tables)
        visible = self._results.visible(table)
        return Output(visible, self._arrivals_s(table), places=np.concatenate(places))

    def _joined(
        self,
        session: SparkSession,
        lane: Lane,
        rows: Sequence[Rows],
        chosen: Sequence[tuple[str, NDArray[np.bool_]]],
        shared_reads: dict[Any, Any],
    ) -> pa.Table:
        views = {}
        for number, (source, read, (selection, wanted)) in enumerate(
            zip(self._kind.inputs, rows, chosen, strict=True)
        ):
            key = number, id(read), selection, self._others(number)
            if key not in shared_reads:
                table = self._placed(read.table, number, read.place)
                shared_reads[key] = table.filter(pa.array(wanted))
            views[source.view] = shared_reads[key]
        return self._query(session, lane, views)

    def _others(self, number: int) -> tuple[str, ...]:
        """Return the other streams whose tuple counts an input needs."""
        inputs = self._kind.inputs
        return tuple(inputs[other].stream for other in counted(number, len(inputs), self._axis))

    def _placed(self, table: pa.Table, number: int, place: Times) -> pa.Table:
        """Add the hidden columns of an input: places of tuples, and their arrival times."""
        stream = self._kind.inputs[number].stream
        seen = [self._timeline.seen(stream, place, other) for other in self._others(number)]
        columns = place_columns(number, self._kind.windows)
        for name, values in zip(columns, (place, *seen), strict=True):
            table = table.append_column(name, pa.array(values))
        return table.rename_columns(
            [arrival_column(number) if n == ARRIVED_AT else n for n in table.column_names]
        )

    def _complete(self, table: pa.Table, wanted: bool) -> pa.Table:
        """Return the rows that have a tuple of every input or, if not `wanted`, the other rows."""
        complete = pa.array(np.ones(table.num_rows, dtype=np.bool_))
        for name in self._times:
            complete = pc.and_(complete, self._results.hidden(table, name).is_valid())
        return table.filter(complete if wanted else pc.invert(complete))

    def _led_by(self, leader: int, table: pa.Table) -> pa.Table:
        """Return the rows of a join that have a tuple of this input, and of no input before it.

        In rows of an outer join, tuples of some inputs are missing.
        """
        name = time_column(leader)
        for before in self._times[: self._times.index(name)]:
            table = table.filter(self._results.hidden(table, before).is_null())
        return table.filter(self._results.hidden(table, name).is_valid())

    def _last(self, table: pa.Table) -> Times:
        """Return the latest place of the tuples that make each row."""
        places = [
            self._results.hidden(table, name).fill_null(NEVER).to_numpy() for name in self._times
        ]
        last: Times = np.maximum.reduce(places)
        return last

    def _arrivals_s(self, table: pa.Table) -> Any:
        """Return when the last of the tuples that make each row arrived."""
        arrivals_s = [
            self._results.hidden(table, name).fill_null(-np.inf).to_numpy()
            for number in range(len(self._kind.inputs))
            if (name := arrival_column(number)) in self._results.hidden_names
        ]
        return np.maximum.reduce(arrivals_s)

    def _no_tuples(self, source: Input) -> Rows:
        return Rows(self._nothing(source.stream), np.zeros(0, np.int64), np.zeros(0, np.bool_))
