"""Where tuples are kept: a log for every stream, a queue for what waits between segments."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from pyspark.sql.types import StructType

from headgate.model.stream import Stream
from headgate.spark.journal import Journal
from headgate.spark.segment_queue import SegmentQueue
from headgate.spark.stream_log import ARRIVED, StreamLog
from headgate.spark.train_cache import TrainCache


class Store:
    """The logs and queues of an engine by the names of their streams, and what they take.

    Args:
        schemas: what Spark says each stream's tuples look like.
        cache_bytes: what trains of the logs may take in memory.
        reached: called at every point where a crash must lose nothing.
    """

    def __init__(
        self,
        state: Path,
        journal: Journal,
        schemas: Mapping[str, StructType],
        cache_bytes: int,
        reached: Callable[[str], None],
    ) -> None:
        self._state, self._journal, self._reached = state, journal, reached
        self._cache = TrainCache(cache_bytes)
        self.schemas = dict(schemas)
        self.logs: dict[str, StreamLog] = {}
        self.queues: dict[str, SegmentQueue] = {}

    @property
    def memory_bytes(self) -> int:
        return self._cache.bytes + sum(each.bytes for each in list(self.queues.values()))

    @property
    def log_bytes(self) -> int:
        return sum(each.bytes for each in list(self.logs.values()))

    def open(self, stream: Stream) -> None:
        """Makes a stream's log or, where a segment fills it, its queue."""
        if stream.is_derived:
            schema = StructType([*self.schemas[stream.name].fields, ARRIVED])
            folder = self._state / "queues" / stream.name
            self.queues[stream.name] = SegmentQueue(stream.name, schema, folder)
        else:
            self.logs[stream.name] = self.log_of(stream)

    def log_of(self, stream: Stream) -> StreamLog:
        """Gives a stream's log, which is not among the others yet."""
        schema = self.schemas[stream.name]
        self._journal.remember_stream(stream.name, schema.simpleString())
        return StreamLog(
            self._state, stream.name, self._journal, schema, self._cache, self._reached
        )

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
        for queue in into:
            # What waits between segments is made again after a crash, from what it came from.
            held = None if queue is None else self.queues[queue].held_from
            passed = passed if held is None else min(passed, held)
        self.logs[stream].drop(self._journal.first_younger(stream, passed, before_s))
