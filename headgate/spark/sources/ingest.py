"""The intake: brings every stream from its source to its log, by the driver or by Spark."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path as File

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import ConfigRefused, RecoveryRefused, StreamFailed
from headgate.model.stream import Rows, Stream
from headgate.spark.jvm.errors import cause_of
from headgate.spark.jvm.session import own_session
from headgate.spark.jvm.time_zone import zone_of
from headgate.spark.log.journal import Journal, Train
from headgate.spark.log.stream_log import StreamLog
from headgate.spark.sources.kafka import KafkaSource
from headgate.spark.sources.kafka_options import subscription_of
from headgate.spark.sources.poller import Line, Poller
from headgate.spark.sources.protocol import Source
from headgate.spark.sources.registry import polled_source
from headgate.spark.sources.structured_streaming import end_ingest, start_ingest


class Intake:
    """Asks sources that the driver can ask, starts a Structured Streaming query for any other.

    Args:
        rows: for streams of format `python`, what gives their tuples.
        arrived: called with a stream's number and each new train, from any thread.
        pause_s: how long sources have to wait at present.
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
        self._session, self._own = session, own_session(session)
        self._zone = zone_of(session)
        self._journal, self._state, self._rows = journal, state, rows
        self._arrived, self._pause_s, self._now_s = arrived, pause_s, now_s
        self._ingests: dict[str, tuple[StreamingQuery, threading.Event]] = {}
        self._poller = Poller([], journal, arrived, pause_s, now_s, importance)
        self._polls = self._ended = False

    def begin(self, streams: Sequence[Stream], logs: Mapping[str, StreamLog]) -> None:
        """Starts with the streams that there are.

        Raises:
            ConfigRefused: Spark cannot open a source.
            RecoveryRefused: a source was asked in another way before, and would begin anew.
        """
        for number, stream in enumerate(streams):
            if not stream.is_derived:
                self.opened(number, stream, logs[stream.name])()
        self._poller.start()

    def opened(self, number: int, stream: Stream, log: StreamLog) -> Callable[[], None]:
        """Gives what has one more stream asked; raises as `begin` does."""
        checkpoint = self._state / "checkpoints" / stream.name
        source = None
        if stream.ingest != "spark" and not checkpoint.exists():
            source = self._polled(stream, log)
        if source is not None:
            return partial(self._poll, Line(number, stream, log, source, self._zone))
        if stream.ingest == "driver":
            asked = (
                "Structured Streaming has asked it before" if checkpoint.exists() else "it cannot"
            )
            raise ConfigRefused(
                path=f"stream '{stream.name}'", key="ingest", value="driver",
                expected=f"auto or spark where the driver does not ask the source itself: {asked}",
            )  # fmt: skip
        if self._journal.positions(stream.name):
            raise RecoveryRefused(
                subject=f"stream '{stream.name}'",
                expected="a source that the driver asks by itself, as in the last run",
                found="one for Structured Streaming, which would begin anew",
                fix="restore the stream's format, options and ingest, or rename the stream",
            )
        return partial(self._ingest, number, stream, log)

    def _poll(self, line: Line) -> None:
        self._poller.add(line)
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

    def _polled(self, stream: Stream, log: StreamLog) -> Source | None:
        """Gives the source that the driver asks; None where Structured Streaming must."""
        schema = log.stream_schema
        if stream.format == "kafka":
            told = subscription_of(stream)
            return None if isinstance(told, str) else KafkaSource(told, schema)
        return polled_source(self._own, stream, schema, self._rows.get(stream.name))

    def drop(self, stream: str) -> None:
        """Asks a stream's source no more."""
        self._poller.remove(stream)
        if (found := self._ingests.pop(stream, None)) is not None:
            ingest, ended = found
            ended.set()
            end_ingest(ingest)

    def stop(self, patience_s: float | None = None) -> None:
        """Asks nobody any more; what was asked for is in the log when this returns.

        Args:
            patience_s: how long to wait for a source that does not answer; without it, as long as
                it takes.
        """
        self._ended = True  # before a source stops: that it has is no failure then
        ingests = list(self._ingests.values())
        for _, ended in ingests:
            ended.set()
        for ingest, _ in ingests:
            end_ingest(ingest)
        self._poller.stop(patience_s)

    def failures(self) -> list[StreamFailed]:
        """Gives the sources that have died since the last time."""
        found: list[StreamFailed] = []
        while self._poller.failed:
            found.append(self._poller.failed.popleft())
            self._polls = bool(self._poller.lines)
        if self._polls and self._poller.broken is not None:
            self._polls = False
            names = ", ".join(line.stream.name for line in self._poller.lines)
            found.append(StreamFailed(stream=names, cause=cause_of(self._poller.broken)))
        for name, (ingest, _) in list(self._ingests.items()):
            if not ingest.isActive and not self._ended:
                found.append(StreamFailed(stream=name, cause=cause_of(ingest.exception())))
                del self._ingests[name]
        return found

    @property
    def over(self) -> bool:
        """Whether nothing more can arrive."""
        return not self._ingests and not self._polls
