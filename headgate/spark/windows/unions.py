"""Unions of streams: tuples that the watermark has passed, in the order of their time."""

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.model.plan import Lane
from headgate.model.stream import ARRIVED_AT
from headgate.model.window import TIME
from headgate.model.window_ends import Times
from headgate.spark.output import Output
from headgate.spark.sharing.window_columns import numbers_of
from headgate.spark.windows.computation import Material


class Unions:
    """One union of streams, over its timeline."""

    def __init__(self, material: Material) -> None:
        self._kind, self._timeline = material.kind, material.timeline
        self._nothing, self._drops = material.nothing, material.drops
        self._results, self._query = material.results(self._kind.plans)

    @property
    def needs_job(self) -> bool:
        """Whether the query is known to be unable to run in the driver."""
        return self._query.needs_job

    def __call__(
        self, session: SparkSession, lane: Lane, first: int, end: int, shared_reads: object = None
    ) -> Output:
        """Return the results of the timeline's trains first, ..., end − 1.

        A result arrives when its tuple does. Until the watermark has passed its time, it waits for
        the other streams, which no schedule can change (idle waiting, BZ §4.1).
        """
        before, after = self._timeline.watermark(first), self._timeline.watermark(end)
        views, has_rows = {}, False
        for source in self._kind.inputs if after > before else ():
            rows = self._timeline.rows(source.stream, first, end, "time", before, self._drops)
            views[source.view] = _timed(self._nothing(source.stream), np.zeros(0, np.int64))
            if rows is not None:
                # Tuples at the watermark wait: others with the same time may still arrive.
                passed = rows.place < after
                has_rows |= bool(passed.any())
                views[source.view] = _timed(rows.table, rows.place).filter(pa.array(passed))
        if not has_rows:
            return Output(self._results.visible(self._query.no_rows), np.zeros(0))
        table = self._query(session, lane, views)
        times = numbers_of(self._results.hidden(table, TIME))
        order = np.argsort(times, kind="stable")
        marks, arrived_s = self._timeline.watermarks(first, end, "time")
        trains = np.searchsorted(np.maximum.accumulate(marks), times[order])
        visible = self._results.visible(table).take(order)
        passed_at_s = arrived_s[np.minimum(trains, len(arrived_s) - 1)]
        arrived_at_s = self._results.hidden(table, ARRIVED_AT).to_numpy()[order]
        idle_s = np.maximum(0.0, passed_at_s - arrived_at_s)
        return Output(visible, arrived_at_s, places=times[order], idle_s=idle_s)


def _timed(table: pa.Table, place: Times) -> pa.Table:
    return table.append_column(TIME, pa.array(place))
