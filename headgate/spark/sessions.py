"""Computes queries that group by session."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.model.plan import Lane
from headgate.model.stream import ARRIVED_AT
from headgate.model.window import END, START, Stateful
from headgate.model.window_ends import NEVER
from headgate.spark.group import Output
from headgate.spark.small_query import SmallQuery
from headgate.spark.timeline import Timeline
from headgate.spark.windowed import numbers_of, visible

FEW = 100
"""Up to here it does not pay to ask which tuples are of sessions that have ended."""


class Sessions:
    """One query that groups by session, over its timeline.

    Spark has tuples in one session that lie just the gap apart. So a session has ended when the
    watermark is beyond its last tuple and the gap: whatever comes is later still, and it comes out
    at this place of the log and no other.

    Args:
        stateful: how it is computed.
        nothing: gives an empty table of a stream, as its log has it.
        query: its text, with each session's start and end.
        opened: where HAVING leaves sessions out, the text that has all.
    """

    def __init__(
        self,
        stateful: Stateful,
        timeline: Timeline,
        nothing: Callable[[str], pa.Table],
        query: SmallQuery,
        opened: SmallQuery | None,
    ) -> None:
        (self._source,) = stateful.inputs
        self._how, self._timeline, self._nothing = stateful, timeline, nothing
        self._query, self._opened = query, opened
        self._open_tuples = 0

    @property
    def lane(self) -> Lane:
        """The way that small calls take."""
        return self._query.lane

    def __call__(self, session: SparkSession, first: int, end: int, known: object = None) -> Output:
        """Gives what the timeline's trains first, ..., end − 1 bring: sessions that have ended.

        Args:
            known: what other queries have found over their tables, which are not of sessions.
        """
        before, after = self._timeline.watermark(first), self._timeline.watermark(end)
        since = self._timeline.open_sessions.since(self._how, first)
        if not self._may_end(end, before, after, since):
            return self._none(session)
        rows = self._timeline.rows(self._source.stream, first, end, "time", since)
        assert rows is not None
        # What lies at the watermark or beyond it can be in no session that has ended.
        views = self._views(rows.table.filter(pa.array(rows.place < after)))
        made = self._query(session, views)
        ends = numbers_of(made[END])
        if self._opened is None:
            self._tell(made, end, after)
        elif len(rows.place) > 2 * self._open_tuples + FEW:
            since = self._tell(self._opened(session, views), end, after)
            self._open_tuples = int((rows.place >= since).sum())
        ended = (ends >= before) & (ends < after)
        if not ended.any():
            return self._none(session)
        marks, arrived_s = self._timeline.closing(first, end, "time")
        at = np.searchsorted(np.maximum.accumulate(marks), ends[ended], side="right")
        return Output(visible(made.filter(pa.array(ended))), arrived_s[at], places=ends[ended])

    def _may_end(self, end: int, before: int, after: int, since: int) -> bool:
        """Tells whether the session of one tuple alone would end here."""
        if after <= before:
            return False
        gap = self._source.window.size
        low = since if before == NEVER else max(since, before - gap)
        return bool((self._timeline.times(end, low) + gap < after).any())

    def _tell(self, made: pa.Table, end: int, after: int) -> int:
        """Has the log keep what sessions need that are open, and no more; gives where that begins.

        Where none is open, none begins below the watermark.
        """
        starts = numbers_of(made[START])[numbers_of(made[END]) >= after]
        since = int(starts.min()) if len(starts) else after
        self._timeline.open_sessions.tell(self._how, end, since)
        return since

    def _views(self, table: pa.Table) -> dict[str, pa.Table]:
        return {self._source.view: table.drop_columns([ARRIVED_AT])}

    def _none(self, session: SparkSession) -> Output:
        """Gives no rows, of the right columns."""
        if not hasattr(self, "_no_rows"):
            made = self._query(session, self._views(self._nothing(self._source.stream)))
            self._no_rows = visible(made).slice(0, 0)
        return Output(self._no_rows, np.zeros(0))
