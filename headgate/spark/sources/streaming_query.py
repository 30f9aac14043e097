"""The Structured Streaming query of a stream, which is started again whenever it dies."""

import logging
import threading
import time
from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import ConfigRefused
from headgate.spark.jvm.errors import cause_of
from headgate.spark.sources.poller import pause_after
from headgate.spark.sources.structured_streaming import STOP_S, end_ingest

log = logging.getLogger("headgate.spark")


class RestartedQuery:
    """A streaming query that is started again, less and less often, after it has died.

    Nothing is lost and nothing comes twice: the query continues at its checkpoint, and the journal
    knows the batches that are in the log.

    Args:
        start: starts the query. A batch that waits is given up once the event is set.
    """

    def __init__(self, stream: str, start: Callable[[threading.Event], StreamingQuery]) -> None:
        self._stream, self._start = stream, start
        self._query: StreamingQuery | None = None
        self.ended, self._turn = threading.Event(), threading.Lock()
        self._failures, self._due_at_s = 0, 0.0
        self.trouble = ""
        """Why the query does not run, or has not yet run well since it died."""

    def begin(self) -> None:
        """Start the query; if Spark cannot start it now, it is tried again."""
        with self._turn:
            if self.ended.is_set():
                return
            try:
                self._query = self._start(self.ended)
            except Exception as error:  # whatever Spark raises about the outside world
                self._fail(error.expected if isinstance(error, ConfigRefused) else cause_of(error))
            if self.ended.is_set():  # `end` has not waited so long
                self._end()

    def look_after(self) -> None:
        """Notice that the query has died or runs again; start it when that is due."""
        if self.ended.is_set() or self._turn.locked():
            return  # it is being started
        if (query := self._query) is None:
            if time.monotonic() >= self._due_at_s:
                name = f"headgate-ingest-{self._stream}"
                threading.Thread(target=self.begin, name=name, daemon=True).start()
        elif not query.isActive:
            self._query = None
            self._fail(cause_of(query.exception()))
        elif self.trouble and _has_triggered(query):
            self._failures, self.trouble = 0, ""
            log.warning("stream '%s' is back", self._stream)

    def end(self) -> None:
        """End the query for good. A source that does not stop in time is abandoned."""
        self.ended.set()
        if not self._turn.acquire(timeout=STOP_S):
            return  # it is being started, and Spark does not answer
        try:
            self._end()
        finally:
            self._turn.release()

    def _end(self) -> None:
        """End the query and let go of it.

        The JVM's query keeps the function of its batches, and so all of this run. Each would keep
        the other for as long as the JVM lives.
        """
        query, self._query = self._query, None
        if query is not None:
            end_ingest(query)

    def _fail(self, cause: str) -> None:
        self._due_at_s = time.monotonic() + pause_after(self._failures)
        self._failures += 1
        if cause != self.trouble:
            log.warning("stream '%s' stopped: %s; it is tried again", self._stream, cause)
        self.trouble = cause


def _has_triggered(query: StreamingQuery) -> bool:
    """Return True if a query has come to the end of a trigger since it was started."""
    return query.status["message"].startswith("Waiting") or query.lastProgress is not None
