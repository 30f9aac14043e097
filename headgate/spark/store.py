"""Where tuples are kept: logs of streams, queues between segments, timelines of streams."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path as File
from typing import Any

from pyspark.sql.types import StructType

from headgate.model.network import Path
from headgate.model.stream import Stream
from headgate.spark.journal import Journal
from headgate.spark.late_tuples import LateTuples
from headgate.spark.segment_queue import SegmentQueue
from headgate.spark.stream_log import ARRIVED, StreamLog
from headgate.spark.timeline import Timeline
from headgate.spark.train_cache import TrainCache


class Store:
    """What an engine keeps, by the names of the streams, and what it takes.

    Args:
        schemas: what Spark says each stream's tuples look like.
        train_room_bytes: gives what trains of the logs may take in memory.
        reached: called at every point where a crash must lose nothing.
    """

    def __init__(
        self,
        state: File,
        journal: Journal,
        schemas: Mapping[str, StructType],
        train_room_bytes: Callable[[], int],
        reached: Callable[[str], None],
    ) -> None:
        self._state, self._journal, self._reached = state, journal, reached
        self._cache = TrainCache(train_room_bytes)
        self.schemas = dict(schemas)
        self.logs: dict[str, StreamLog] = {}
        self.queues: dict[str, SegmentQueue] = {}
        self.timelines: dict[str, Timeline] = {}
        self._streams: dict[str, Stream] = {}
        self._late: dict[str, LateTuples] = {}

    @property
    def cached_bytes(self) -> int:
        """What trains of the logs take in memory."""
        return self._cache.bytes

    @property
    def queued_bytes(self) -> int:
        """What waits between segments, in memory."""
        return sum(each.bytes for each in list(self.queues.values()))

    @property
    def disk_bytes(self) -> int:
        """What trains of the logs take on disk, and what was spilled."""
        spilled = sum(each.spilled_bytes for each in list(self.queues.values()))
        return sum(each.bytes for each in list(self.logs.values())) + spilled

    def open(self, stream: Stream, put: Callable[..., None]) -> None:
        """Makes a stream's log or, where a segment or other streams fill it, what it needs.

        Args:
            put: takes the trains of a timeline.
        """
        self._streams[stream.name] = stream
        if stream.of:
            sources = {name: (self._streams[name], self.logs[name]) for name in stream.of}
            timeline = Timeline(stream.name, self._journal, sources, put, self._set_aside)
            self.timelines[stream.name] = timeline
            timeline.catch_up()
        elif stream.is_derived:
            schema = StructType([*self.schemas[stream.name].fields, ARRIVED])
            folder = self._state / "queues" / stream.name
            self.queues[stream.name] = SegmentQueue(stream.name, schema, folder)
        else:
            self.logs[stream.name] = self.log_of(stream)

    def close(self, stream: str) -> None:
        """Forgets a queue or a timeline that nobody has read yet."""
        self._streams.pop(stream, None)
        self.timelines.pop(stream, None)
        self.queues.pop(stream, None)

    def keep_for(self, path: Path) -> None:
        """Has tuples kept as long as a query's windows need them."""
        if path.stateful is not None:
            self.timelines[path.stream].reads(path.query.name, path.stateful)

    def timelines_of(self, stream: str) -> list[Timeline]:
        """Gives the timelines that have a stream's trains."""
        return [each for each in list(self.timelines.values()) if stream in each.streams]

    def log_of(self, stream: Stream) -> StreamLog:
        """Gives a stream's log, which is not among the others yet."""
        self._streams[stream.name] = stream
        schema = self.schemas[stream.name]
        self._journal.remember_stream(stream.name, schema.simpleString())
        log = StreamLog(self._state, stream.name, self._journal, schema, self._cache, self._reached)
        if stream.late_path is not None:
            self._late[stream.name] = LateTuples(stream.late_path, log)
        return log

    def _set_aside(self, stream: str, *late: Any) -> bool:
        if stream not in self._late:
            return True
        done = self._late[stream].put(*late)
        self._reached("late tuples put aside")
        return done

    def first_train(self, stream: str) -> int:
        """Gives where a stream's kept log begins."""
        trains = self._journal.trains(stream)
        return trains[0].number if trains else self._journal.next_train(stream)

    def spare_memory(self) -> None:
        """Keeps no train in memory that is on disk, and writes down what waits."""
        self._cache.clear()
        for each in list(self.queues.values()):
            each.spill()

    def drop(self, stream: str, passed: int, before_s: float, into: Iterable[str | None]) -> None:
        """Drops trains that every consumer has passed and that are old enough.

        Args:
            passed: the first train that a consumer still needs.
            before_s: trains that arrived later stay.
            into: the queues that its consumers fill.
        """
        if stream in self.queues:
            return
        if stream in self.timelines:
            self.timelines[stream].drop(passed, before_s)
            return
        for timeline in self.timelines_of(stream):
            passed = min(passed, timeline.held(stream))
        for queue in into:
            # What waits between segments is made again after a crash, from what it came from.
            held = None if queue is None else self.queues[queue].held_from
            passed = passed if held is None else min(passed, held)
        self.logs[stream].drop(self._journal.first_younger(stream, passed, before_s))
