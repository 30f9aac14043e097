"""Ingest: moves tuples of every stream from its source to its log."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path as File

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import ConfigRefused, RecoveryRefused, StreamFailed
from headgate.extensions import LeftToSpark, Source
from headgate.model.lag import Lag
from headgate.model.settings import Settings
from headgate.model.stream import Rows, Stream
from headgate.model.trouble import Trouble
from headgate.spark.journal.journal import Journal
from headgate.spark.journal.journal_rows import Train
from headgate.spark.jvm.errors import cause_of
from headgate.spark.jvm.session import own_session
from headgate.spark.jvm.time_zone import zone_of
from headgate.spark.log.stream_log import StreamLog
from headgate.spark.sources.lag_watch import LagWatch
from headgate.spark.sources.line import Line
from headgate.spark.sources.poller import Poller
from headgate.spark.sources.stream_source import polled_source
from headgate.spark.sources.streaming_query import RestartedQuery
from headgate.spark.sources.structured_streaming import start_ingest

logger = logging.getLogger("headgate.spark")

PAUSE_S = 0.5
"""If a source is not polled for longer, that does not count as time without tuples."""


class StreamIngest:
    """Polls sources that the driver can poll, and starts a Structured Streaming query for others.

    Args:
        rows: for streams of format `python`, the function that returns their tuples.
        arrived: called with a stream's number and each new train, from any thread.
        pause_s: returns how long sources have to wait at present.
        watched: called with a stream, the steady time, and the longest time that may count, when
            its source had nothing.
        emptied: called with a stream and the time of a poll that has found nothing, if the next
            tuple's event time then has a lower bound.
        spent: called with a stream's number and the CPU time of its polls.
    """

    def __init__(
        self,
        session: SparkSession,
        journal: Journal,
        state: File,
        *,
        rows: Mapping[str, Rows],
        arrived: Callable[[int, Train], None],
        pause_s: Callable[[], float],
        now_s: Callable[[], float],
        importance: Callable[[str], float],
        settings: Settings,
        watched: Callable[[str, float, float], None] = lambda stream, now_s, most_s: None,
        emptied: Callable[[str, float], None] = lambda stream, at_s: None,
        spent: Callable[[int, float], None] = lambda stream, seconds: None,
    ) -> None:
        self._session, self._own_session = session, own_session(session)
        self._zone = zone_of(session)
        self._journal, self._state, self._rows = journal, state, rows
        self._settings = settings
        self._report, self._pause_s, self._now_s = arrived, pause_s, now_s
        self._importance, self._watched, self._emptied = importance, watched, emptied
        self._spent, self._lag_watch = spent, LagWatch()
        self._queries: dict[str, RestartedQuery] = {}
        self.pollers = [self._poller([])]
        self._moving = threading.Lock()
        self._stopped: dict[str, StreamFailed] = {}
        self._prepared: list[Callable[[], None]] = []
        self._polls = self._ended = False

    def prepare_all(self, streams: Sequence[Stream], logs: Mapping[str, StreamLog]) -> None:
        """Prepare ingest of the streams of a run; raise as `prepare` does."""
        self._prepared = [
            self.prepare(number, stream, logs[stream.name])
            for number, stream in enumerate(streams)
            if not stream.is_derived
        ]

    def begin(self) -> None:
        """Start ingest of the streams of a run; a source that cannot be opened is tried again."""
        for begin in self._prepared:
            begin()
        self.pollers[0].start()

    def prepare(self, number: int, stream: Stream, log: StreamLog) -> Callable[[], None]:
        """Return a function that starts ingest of a stream.

        Raises:
            ConfigRefused: the source cannot be created, or be polled by the driver.
            RecoveryRefused: the source was read in another way before, and would begin anew.
        """
        self._lag_watch.add(number, stream)
        checkpoint = self._state / "checkpoints" / stream.name
        reason = "Structured Streaming has read this source before"
        if stream.ingest != "spark" and not checkpoint.exists():
            rows = self._rows.get(stream.name)
            try:
                source = polled_source(
                    self._own_session, stream, log.stream_schema, rows, scratch=str(self._state),
                    most_record_bytes=self._settings.most_record_bytes,
                    most_file_bytes=self._settings.most_file_bytes,
                )  # fmt: skip
                in_vain = partial(self._in_vain, stream, source)
                line = Line(number, stream, log, source, self._zone, in_vain=in_vain)
                if not source.is_empty:
                    _warn_of_no_bound(stream)
                return partial(self._poll, line)
            except LeftToSpark as left:
                reason = str(left)
        if stream.ingest == "driver":
            raise ConfigRefused(
                path=f"stream '{stream.name}'", key="ingest", value="driver",
                expected=f"auto or spark: {reason}",
            )  # fmt: skip
        if self._journal.positions(stream.name):
            raise RecoveryRefused(
                subject=f"stream '{stream.name}'",
                expected="a source that the driver polls, as in the last run",
                found="one for Structured Streaming, which would begin anew",
                fix="restore the stream's format, options and ingest, or rename the stream",
            )
        if log.next_number and not (checkpoint / "metadata").exists():
            raise RecoveryRefused(
                subject=f"stream '{stream.name}'",
                expected=f"the source's position in {checkpoint}",
                found="a log, but no position to go on from",
                fix="restore the folder, or begin with a new state directory",
            )
        if stream.unwatched:
            logger.warning("%s", stream.unwatched)
        _warn_of_no_bound(stream)
        return partial(self._ingest, number, stream, log)

    def _in_vain(self, stream: Stream, source: Source, polled_at_s: float) -> None:
        most_s = max(PAUSE_S, 2 * stream.asked_every_s)
        self._watched(stream.name, time.monotonic(), most_s)
        self._lag_watch.emptied(stream.name, polled_at_s, is_certain=source.is_empty)
        if stream.bound_delay_s is not None and source.is_empty and not source.trouble:
            self._emptied(stream.name, polled_at_s)

    def watch(self) -> None:
        """Count the time of streams that Structured Streaming reads; called twice a second."""
        for name, query in list(self._queries.items()):
            if not query.trouble:
                self._watched(name, time.monotonic(), 2 * PAUSE_S)
                self._lag_watch.emptied(name, self._now_s(), is_certain=False)

    def _poll(self, line: Line) -> None:
        self._stopped.pop(line.stream.name, None)
        with self._moving:
            self.pollers[-1].add(line)
        self._polls = True

    def _ingest(self, number: int, stream: Stream, log: StreamLog) -> None:
        self._stopped.pop(stream.name, None)

        def start(ended: threading.Event) -> StreamingQuery:
            return start_ingest(
                own_session(self._session), stream, log, self._state,
                partial(self._arrived, number), self._pause_s, ended, self._now_s,
            )  # fmt: skip

        query = self._queries[stream.name] = RestartedQuery(stream.name, start)
        query.begin()

    def drop(self, stream: str) -> None:
        """Stop ingest of a stream."""
        self._stopped.pop(stream, None)
        self._lag_watch.forget(stream)
        with self._moving:
            for poller in self.pollers:
                poller.remove(stream)
        if (query := self._queries.pop(stream, None)) is not None:
            query.end()

    def finish(self, timeout_s: float | None = None) -> None:
        """Begin no other poll; what was polled is in the log once ingest is `over`.

        Args:
            timeout_s: how long to wait for that.
        """
        self._end_streaming()
        self._end_polling(timeout_s, Poller.finish)

    def stop(self, patience_s: float) -> None:
        """Stop ingest of all streams; what was polled is in the log when this returns.

        Args:
            patience_s: how long to wait for a source that does not answer, before it is abandoned.
        """
        self._end_streaming()
        self._end_polling(patience_s, Poller.stop)

    def look_after(self) -> None:
        """Restart queries that died; give streams that wait for a slow source to another poller."""
        for query in list(self._queries.values()):
            query.look_after()
        if not self._moving.acquire(blocking=False):
            return  # a stream is being added or dropped
        try:
            for poller in () if self._ended else tuple(self.pollers):
                if lines := poller.leave_slow():
                    self.pollers.append(self._poller(lines))
                    self.pollers[-1].start()
        finally:
            self._moving.release()

    def _poller(self, lines: Sequence[Line]) -> Poller:
        return Poller(
            lines,
            self._journal,
            self._arrived,
            self._pause_s,
            self._now_s,
            self._importance,
            self._spent,
        )

    def _end_polling(
        self, timeout_s: float | None, end: Callable[[Poller, float | None], None]
    ) -> None:
        """End all pollers at once, and wait for them together."""
        ends_at_s = inf if timeout_s is None else time.monotonic() + timeout_s
        with self._moving:  # from here on there are no other pollers
            for poller in self.pollers:
                poller.finish(0.0)
        for poller in self.pollers:
            left_s = ends_at_s - time.monotonic()
            end(poller, None if timeout_s is None else max(0.0, left_s))

    def _end_streaming(self) -> None:
        self._ended = True  # before the sources stop: that is no failure then
        queries = list(self._queries.values())
        for query in queries:
            query.ended.set()
        for query in queries:
            query.end()

    def failures(self) -> list[StreamFailed]:
        """Return the failures of sources that have died since the last call."""
        failures: list[StreamFailed] = []
        for poller in tuple(self.pollers):
            while poller.failed:
                failures.append(poller.failed.popleft())
            if poller.broken is not None:
                cause, lines, poller.lines = cause_of(poller.broken), poller.lines, []
                failures += [StreamFailed(stream=line.stream.name, cause=cause) for line in lines]
        self._polls = self._polls and (not failures or self._has_lines)
        self._stopped |= {failure.stream: failure for failure in failures}
        return failures

    def _arrived(self, number: int, train: Train) -> None:
        self._lag_watch.arrived(number, train, self._now_s())
        self._report(number, train)

    def lags(self) -> list[Lag]:
        """Return the streams that deliver, but lag behind their sources."""
        if self._ended:
            return []
        overdue_s: dict[str, float] = {}
        for poller in tuple(self.pollers):
            overdue_s |= poller.overdue_s()
        troubled = {trouble.stream for trouble in self.troubles()}
        lags = self._lag_watch.lags(overdue_s, self._now_s())
        return [lag for lag in lags if lag.stream not in troubled]

    def troubles(self) -> list[Trouble]:
        """Return the streams whose sources do not deliver, and why."""
        stopped = {name: failure.cause for name, failure in self._stopped.copy().items()}
        queries = list(self._queries.items())
        failing = {name: query.trouble for name, query in queries if query.trouble}
        for poller in tuple(self.pollers):
            failing |= poller.troubles()
        return [Trouble(name, "STOPPED", cause) for name, cause in stopped.items()] + [
            Trouble(name, "FAILING", cause)
            for name, cause in failing.items()
            if name not in stopped
        ]

    @property
    def _has_lines(self) -> bool:
        return any(poller.lines for poller in self.pollers)

    @property
    def over(self) -> bool:
        """Whether nothing more can arrive."""
        if self._ended:
            return not any(poller.is_polling for poller in self.pollers)
        return not self._queries and not self._polls


def _warn_of_no_bound(stream: Stream) -> None:
    if stream.max_delay_s is not None:
        cause = "its source cannot tell that it has nothing"
        logger.warning("stream '%s': max_delay_s has no effect: %s", stream.name, cause)
