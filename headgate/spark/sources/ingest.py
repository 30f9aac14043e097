"""Ingest: moves tuples of every stream from its source to its log."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path as File

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import ConfigRefused, RecoveryRefused, StreamFailed
from headgate.extensions import LeftToSpark
from headgate.model.stream import Rows, Stream
from headgate.spark.jvm.errors import cause_of
from headgate.spark.jvm.session import own_session
from headgate.spark.jvm.time_zone import zone_of
from headgate.spark.log.journal import Journal
from headgate.spark.log.journal_rows import Train
from headgate.spark.log.stream_log import StreamLog
from headgate.spark.sources.opening import polled_source
from headgate.spark.sources.poller import Line, Poller
from headgate.spark.sources.structured_streaming import end_ingest, start_ingest


class StreamIngest:
    """Polls sources that the driver can poll, and starts a Structured Streaming query for others.

    Args:
        rows: for streams of format `python`, the function that returns their tuples.
        arrived: called with a stream's number and each new train, from any thread.
        pause_s: returns how long sources have to wait at present.
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
    ) -> None:
        self._session, self._own_session = session, own_session(session)
        self._zone = zone_of(session)
        self._journal, self._state, self._rows = journal, state, rows
        self._arrived, self._pause_s, self._now_s = arrived, pause_s, now_s
        self._ingests: dict[str, tuple[StreamingQuery, threading.Event]] = {}
        self.poller = Poller([], journal, arrived, pause_s, now_s, importance)
        self._polls = self._ended = False

    def begin(self, streams: Sequence[Stream], logs: Mapping[str, StreamLog]) -> None:
        """Start ingest of the streams of a run.

        Raises:
            ConfigRefused: Spark cannot open a source.
            RecoveryRefused: a source was read in another way before, and would begin anew.
        """
        for number, stream in enumerate(streams):
            if not stream.is_derived:
                self.prepare(number, stream, logs[stream.name])()
        self.poller.start()

    def prepare(self, number: int, stream: Stream, log: StreamLog) -> Callable[[], None]:
        """Return a function that starts ingest of a stream; raise as `begin` does."""
        checkpoint = self._state / "checkpoints" / stream.name
        reason = "Structured Streaming has read this source before"
        if stream.ingest != "spark" and not checkpoint.exists():
            rows = self._rows.get(stream.name)
            try:
                source = polled_source(self._own_session, stream, log.stream_schema, rows)
                return partial(self._poll, Line(number, stream, log, source, self._zone))
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
        return partial(self._ingest, number, stream, log)

    def _poll(self, line: Line) -> None:
        self.poller.add(line)
        self._polls = True

    def _ingest(self, number: int, stream: Stream, log: StreamLog) -> None:
        ended = threading.Event()
        ingest = start_ingest(
            own_session(self._session),
            stream,
            log,
            self._state,
            partial(self._arrived, number),
            self._pause_s,
            ended,
            self._now_s,
        )
        self._ingests[stream.name] = ingest, ended

    def drop(self, stream: str) -> None:
        """Stop ingest of a stream."""
        self.poller.remove(stream)
        if (running := self._ingests.pop(stream, None)) is not None:
            ingest, ended = running
            ended.set()
            end_ingest(ingest)

    def finish(self, timeout_s: float | None = None) -> None:
        """Begin no other poll; what was polled is in the log once ingest is `over`.

        Args:
            timeout_s: how long to wait for that.
        """
        self._end_streaming()
        self.poller.finish(timeout_s)

    def stop(self, patience_s: float) -> None:
        """Stop ingest of all streams; what was polled is in the log when this returns.

        Args:
            patience_s: how long to wait for a source that does not answer, before it is abandoned.
        """
        self._end_streaming()
        self.poller.stop(patience_s)

    def _end_streaming(self) -> None:
        self._ended = True  # before the sources stop: that is no failure then
        ingests = list(self._ingests.values())
        for _, ended in ingests:
            ended.set()
        for ingest, _ in ingests:
            end_ingest(ingest)

    def failures(self) -> list[StreamFailed]:
        """Return the failures of sources that have died since the last call."""
        failures: list[StreamFailed] = []
        while self.poller.failed:
            failures.append(self.poller.failed.popleft())
            self._polls = bool(self.poller.lines)
        if self._polls and self.poller.broken is not None:
            self._polls = False
            names = ", ".join(line.stream.name for line in self.poller.lines)
            failures.append(StreamFailed(stream=names, cause=cause_of(self.poller.broken)))
        for name, (ingest, _) in list(self._ingests.items()):
            if not ingest.isActive and not self._ended:
                failures.append(StreamFailed(stream=name, cause=cause_of(ingest.exception())))
                self._ingests.pop(name, None)  # `drop` may have removed it meanwhile
        return failures

    @property
    def over(self) -> bool:
        """Whether nothing more can arrive."""
        if self._ended:
            return not self.poller.is_polling
        return not self._ingests and not self._polls
