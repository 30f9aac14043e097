"""Queries that group by session: sessions come out when they have ended."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.model.plan import Lane
from headgate.model.stream import ARRIVED_AT
from headgate.model.window import Stateful
from headgate.model.window_ends import NEVER, Times
from headgate.spark.event_time.timeline import Timeline
from headgate.spark.jvm.lane.small_query import SmallQuery
from headgate.spark.output import Output
from headgate.spark.sharing.window_columns import window_bound
from headgate.spark.windows.results import Results

FEW = 100
"""Up to here it does not pay to ask which tuples are of sessions that have ended."""


class Sessions:
    """One query that groups by session, over its timeline.

    Spark has tuples in one session that lie just the gap apart. So a session has ended when the
    watermark is beyond its last tuple and the gap: whatever comes is later still, and it comes out
    at this place of the log and no other.

    Args:
        stateful: how it is computed.
        nothing: returns an empty table of a stream, as its log has it.
        query: the query, with each session as its last column.
        every: all sessions, whatever HAVING leaves of them.
    """

    def __init__(
        self,
        stateful: Stateful,
        timeline: Timeline,
        nothing: Callable[[str], pa.Table],
        results: Results,
        query: SmallQuery,
        every: SmallQuery,
    ) -> None:
        (self._source,) = stateful.inputs
        self._how, self._timeline, self._nothing = stateful, timeline, nothing
        self._results, self._query, self._every = results, query, every
        self._open_tuples = 0

    @property
    def needs_job(self) -> bool:
        """Whether the query cannot run in the driver, as far as is known."""
        return self._query.needs_job

    def __call__(
        self, session: SparkSession, lane: Lane, first: int, end: int, known: object = None
    ) -> Output:
        """Return what the timeline's trains first, ..., end − 1 bring: sessions that have ended."""
        before, after = self._timeline.watermark(first), self._timeline.watermark(end)
        since = self._timeline.open_sessions.since(self._how, first)
        if not self._may_end(end, before, after, since):
            return self._none()
        rows = self._timeline.rows(self._source.stream, first, end, "time", since)
        assert rows is not None
        # What lies at the watermark or beyond it can be in no session that has ended.
        views = self._views(rows.table.filter(pa.array(rows.place < after)))
        table = self._query(session, lane, views)
        sessions = table.column(table.num_columns - 1)
        ends = window_bound(sessions, "end")
        if len(rows.place) > 2 * self._open_tuples + FEW:
            every = self._every(session, lane, views).column(0)
            starts, lasts = window_bound(every, "start"), window_bound(every, "end")
            since = self._tell(starts[lasts >= after], end, after)
            self._open_tuples = int((rows.place >= since).sum())
        ended = (ends >= before) & (ends < after)
        if not ended.any():
            return self._none()
        marks, arrived_s = self._timeline.closing(first, end, "time")
        at = np.searchsorted(np.maximum.accumulate(marks), ends[ended], side="right")
        visible = self._results.visible(table.filter(pa.array(ended)))
        return Output(visible, arrived_s[at], places=ends[ended])

    def _may_end(self, end: int, before: int, after: int, since: int) -> bool:
        """Return True if the session of one tuple alone would end here."""
        if after <= before:
            return False
        gap = self._source.window.size
        low = since if before == NEVER else max(since, before - gap)
        return bool((self._timeline.times(end, low) + gap < after).any())

    def _tell(self, starts: Times, end: int, after: int) -> int:
        """Have the log keep what open sessions need, and no more; return where that begins.

        Where none is open, none begins below the watermark.
        """
        since = int(starts.min()) if len(starts) else after
        self._timeline.open_sessions.tell(self._how, end, since)
        return since

    def _views(self, table: pa.Table) -> dict[str, pa.Table]:
        return {self._source.view: table.drop_columns([ARRIVED_AT])}

    def _none(self) -> Output:
        """Return no rows, of the right columns."""
        return Output(self._results.visible(self._query.no_rows), np.zeros(0))
