"""Where tuples are stored: the logs of streams, and timelines over them."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path as File
from typing import Any

from pyspark.sql.types import StructType

from headgate.access import PRIVATE, Access
from headgate.errors import RecoveryRefused
from headgate.model.network.network import Path
from headgate.model.stream import Stream
from headgate.spark.event_time.timeline import Timeline
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.derived_trains import DerivedTrains
from headgate.spark.journal.journal import Journal
from headgate.spark.log.byte_cache import ByteCache
from headgate.spark.log.files import remove
from headgate.spark.log.late_tuples import LateTuples
from headgate.spark.log.stream_log import StreamLog


class Store:
    """The logs and timelines of an engine, by stream, and the bytes they take.

    Args:
        schemas: Spark's schema of each stream's tuples.
        train_room_bytes: returns what trains of the logs may take in memory.
        reached: called at every point where a crash must lose nothing.
        idle: returns True if the producer of a derived stream has read all its input.
        watched_s: returns the time of a stream's clock (`IdleClock`); None: that of the run.
        access: who may read the trains and the late tuples.
    """

    def __init__(
        self,
        state: File,
        journal: Journal,
        schemas: Mapping[str, StructType],
        train_room_bytes: Callable[[], int],
        reached: Callable[[str], None],
        idle: Callable[[str], bool] = lambda stream: True,
        watched_s: Callable[[str], float] | None = None,
        access: Access = PRIVATE,
    ) -> None:
        self._state, self._journal, self._reached, self._idle = state, journal, reached, idle
        self._watched_s, self._access = watched_s, access
        self._cache: ByteCache[tuple[str, int]] = ByteCache(train_room_bytes)
        self.schemas = dict(schemas)
        self.logs: dict[str, StreamLog] = {}
        self.timelines: dict[str, Timeline] = {}
        self.streams: dict[str, Stream] = {}
        self._late: dict[str, LateTuples] = {}
        self._unswept: dict[str, StreamLog | None] = {}

    @property
    def memory_bytes(self) -> int:
        """Bytes of trains in memory."""
        return self._cache.bytes

    @property
    def disk_bytes(self) -> int:
        """Bytes of trains on disk."""
        return sum(stream_log.bytes for stream_log in list(self.logs.values()))

    def open(self, stream: Stream, put: Callable[..., None]) -> None:
        """Open a stream's log, or a timeline over other streams.

        Args:
            put: receives the trains of a timeline.
        """
        self.streams[stream.name] = stream
        if stream.of:
            sources = {name: (self.streams[name], self.logs[name]) for name in stream.of}
            timeline = Timeline(
                stream.name, self._journal, sources, put, self._set_aside, self._idle,
                self._watched_s,
            )  # fmt: skip
            self.timelines[stream.name] = timeline
            timeline.catch_up()
        else:
            self.logs[stream.name] = self.log_of(stream)

    def has(self, stream: str) -> bool:
        """Return True if a stream is open."""
        return stream in self.logs or stream in self.timelines

    def close(self, stream: str) -> None:
        """Close a derived stream or a timeline that nobody has read yet."""
        self.streams.pop(stream, None)
        self.timelines.pop(stream, None)
        self.logs.pop(stream, None)
        self._unswept.pop(stream, None)

    def sweep(self) -> None:
        """Remove the files that opened and removed logs have no use for.

        Nothing is removed before this call, since an opened log may belong to a start, or to a
        query, that is refused.
        """
        # At once: another thread may open a log while the loop removes that of a dropped query.
        for stream, stream_log in list(self._unswept.items()):
            if stream_log is None:
                remove(self._state / "log" / stream)
            else:
                stream_log.sweep()
            self._unswept.pop(stream, None)

    def reopen(self, stream: str) -> None:
        """Reopen the log of a stream whose trains the journal has dropped."""
        self._cache.drop(lambda key: key[0] == stream)
        self.logs[stream] = self.log_of(self.streams[stream])

    def remove(self, stream: str) -> None:
        """Remove a derived stream that was dropped, with its timelines; `sweep` removes its log."""
        timelines = [timeline.name for timeline in self.timelines_of(stream)]
        DerivedTrains(self._journal).forget([stream, *timelines])
        for name in (stream, *timelines):
            self.close(name)
        self._cache.drop(lambda key: key[0] == stream)
        self._unswept[stream] = None

    def keep_for(self, path: Path) -> None:
        """Keep tuples as long as a query's windows need them."""
        if path.stream in self.timelines:
            self.timelines[path.stream].reads(path.query.name, path.kind)

    def release_sessions(self, path: Path) -> None:
        """Stop keeping tuples for open sessions of a query that runs no more."""
        if path.stream in self.timelines:
            self.timelines[path.stream].open_sessions.forget(path.query.name)

    def forget(self, path: Path) -> None:
        """Keep nothing for a query that was dropped."""
        if path.stream in self.timelines:
            self.timelines[path.stream].forget(path.query.name)

    def timelines_of(self, stream: str) -> list[Timeline]:
        """Return the timelines that have a stream's trains."""
        timelines = list(self.timelines.values())
        return [timeline for timeline in timelines if stream in timeline.streams]

    def emptied(self, stream: str, at_s: float) -> None:
        """Tell the timelines of a stream that its source had nothing at an instant."""
        for timeline in self.timelines_of(stream):
            timeline.emptied(stream, at_s)

    def log_of(self, stream: Stream) -> StreamLog:
        """Open and return a stream's log; the caller adds it to `logs`."""
        self.streams[stream.name] = stream
        schema = self.schemas[stream.name]
        self._refuse_other(stream)
        self._journal.remember_stream(stream.name, schema.simpleString())
        log = StreamLog(
            self._state, stream.name, self._journal, schema, self._cache, self._reached,
            self._access,
        )  # fmt: skip
        self._unswept[stream.name] = log
        if stream.late_path is not None:
            self._late[stream.name] = LateTuples(stream.late_path, log, self._access)
        return log

    def _refuse_other(self, stream: Stream) -> None:
        """Refuse to fill a source's log by a query, or a query's log by a source."""
        rows = self._journal.read(
            "SELECT DISTINCT origin IS NULL FROM trains WHERE stream = ? AND kept", (stream.name,)
        )
        if any(bool(by_source) == stream.is_derived for (by_source,) in rows):
            fillers = ("a query", "a source")
            raise RecoveryRefused(
                subject=f"stream '{stream.name}'",
                expected=f"a log that {fillers[not stream.is_derived]} has filled",
                found=f"one that {fillers[stream.is_derived]} has filled",
                fix="use a new stream name or state directory",
            )

    def _set_aside(self, stream: str, *late: Any) -> bool:
        if stream not in self._late:
            return True
        done = self._late[stream].put(*late)
        self._reached("late tuples put aside")
        return done

    def first_train(self, stream: str) -> int:
        """Return the first train in a stream's log."""
        trains = self._journal.trains(stream)
        return trains[0].number if trains else self._journal.next_train(stream)

    def spare_memory(self) -> None:
        """Drop all trains from memory; they stay on disk."""
        self._cache.clear()

    def drop(
        self,
        stream: str,
        passed: int,
        before_s: float,
        first_of: str | None = None,
        hidden: Iterable[str] = (),
    ) -> None:
        """Drop trains that every consumer has passed and that are old enough.

        Args:
            passed: the first train that a consumer still needs.
            before_s: trains that arrived later stay.
            first_of: for the hidden stream of a cut query, that query. Nobody else reads the
                stream, so it keeps nothing that the query has passed.
            hidden: hidden streams that consumers of this stream fill. The trains that their waiting
                tuples come from stay: a query that is cut elsewhere, or no longer, continues there.
        """
        if stream not in self.logs and stream not in self.timelines:
            return
        if stream in self.timelines:
            self.timelines[stream].drop(passed, before_s)
            return
        for timeline in self.timelines_of(stream):
            passed = min(passed, timeline.held(stream))
        cursors = Cursors(self._journal)
        for name in hidden:
            origin = cursors.origin(name)
            passed = passed if origin is None else min(passed, origin)
        first = self._journal.first_younger(stream, passed, before_s)
        if first_of is not None:
            first = max(first, cursors.train_of(first_of) or 0)
        self.logs[stream].drop(first)
