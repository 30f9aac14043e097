"""Queries that group by session; a session is output once it has ended."""

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.model.plan import Lane
from headgate.model.stream import ARRIVED_AT
from headgate.model.window_ends import NEVER, Times
from headgate.spark.jvm.query.window_plans import SessionPlans
from headgate.spark.output import Output
from headgate.spark.sharing.window_columns import window_bound
from headgate.spark.windows.computation import Material

FEW = 100
"""Up to this many tuples, it is not worth computing which sessions are still open."""


class Sessions:
    """One query that groups by session, over its timeline.

    Spark puts two tuples into one session even if they lie exactly the gap apart. So a session has
    ended once the watermark is beyond its last tuple plus the gap, because every later tuple lies
    beyond that. The session is output at this place of the log and no other.

    """

    def __init__(self, material: Material) -> None:
        self._kind, self._timeline = material.kind, material.timeline
        (self._source,) = self._kind.inputs
        plans = self._kind.plans
        assert isinstance(plans, SessionPlans)
        self._results, self._query = material.results(plans.ended)
        self._every = material.query(plans.every)
        self._open_tuples = 0

    @property
    def needs_job(self) -> bool:
        """Whether the query is known to be unable to run in the driver."""
        return self._query.needs_job

    def __call__(
        self, session: SparkSession, lane: Lane, first: int, end: int, shared_reads: object = None
    ) -> Output:
        """Return the sessions that end with the timeline's trains first, ..., end − 1."""
        before, after = self._timeline.watermark(first), self._timeline.watermark(end)
        since = self._timeline.open_sessions.since(self._kind, first)
        if not self._may_end(end, before, after, since):
            return self._none()
        rows = self._timeline.rows(self._source.stream, first, end, "time", since)
        assert rows is not None
        # A tuple at or beyond the watermark cannot be in a session that has ended.
        views = self._views(rows.table.filter(pa.array(rows.place < after)))
        table = self._query(session, lane, views)
        sessions = table.column(table.num_columns - 1)
        ends = window_bound(sessions, "end")
        if len(rows.place) > 2 * self._open_tuples + FEW:
            every = self._every(session, lane, views).column(0)
            starts, lasts = window_bound(every, "start"), window_bound(every, "end")
            since = self._record_open(starts[lasts >= after], end, after)
            self._open_tuples = int((rows.place >= since).sum())
        ended = (ends >= before) & (ends < after)
        if not ended.any():
            return self._none()
        marks, arrived_s = self._timeline.watermarks(first, end, "time")
        trains = np.searchsorted(np.maximum.accumulate(marks), ends[ended], side="right")
        visible = self._results.visible(table.filter(pa.array(ended)))
        due_at_s = ends[ended] / 1e6 if self._timeline.is_on_arrival_clock else arrived_s[trains]
        return Output(visible, arrived_s[trains], places=ends[ended], due_at_s=due_at_s)

    def _may_end(self, end: int, before: int, after: int, since: int) -> bool:
        """Return True if a session of a single tuple would end with these trains."""
        if after <= before:
            return False
        gap = self._source.window.size
        low = since if before == NEVER else max(since, before - gap)
        return bool((self._timeline.times(end, low) + gap < after).any())

    def _record_open(self, starts: Times, end: int, after: int) -> int:
        """Record from which time on open sessions need tuples, and return that time.

        The log keeps tuples from then on. If no session is open, that time is the watermark.
        """
        since = int(starts.min()) if len(starts) else after
        self._timeline.open_sessions.tell(self._kind, end, since)
        return since

    def _views(self, table: pa.Table) -> dict[str, pa.Table]:
        return {self._source.view: table.drop_columns([ARRIVED_AT])}

    def _none(self) -> Output:
        """Return an output without rows, with the right columns."""
        return Output(self._results.visible(self._query.no_rows), np.zeros(0))
