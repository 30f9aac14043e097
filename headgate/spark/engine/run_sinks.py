"""The sinks of a run: created, resumed and closed together."""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path as File

from pyspark.sql import SparkSession

from headgate.access import PRIVATE, Access
from headgate.errors import QueryRefused
from headgate.model.network.network import Path
from headgate.model.query import Deliver
from headgate.spark.log.budget import Budget
from headgate.spark.sinks.files.file_sink import FileSink
from headgate.spark.sinks.outbox import LAST_S
from headgate.spark.sinks.query_sink import sink_of

log = logging.getLogger("headgate.spark")

LEAST_S = 0.5
"""The time that results on their way get in any case when a run ends."""


class RunSinks(dict[str, FileSink]):
    """The sinks by query. Queries that are added and dropped change them during the run.

    Args:
        state: the state directory, in which results wait for delivery.
        deliver: for queries whose sinks take a function, that function; it may grow during the run.
        budget: limits the disk space for all results together that wait for delivery.
        reached: called at every point where a crash must lose nothing; a test raises there.
        access: who may read files of results.
    """

    def __init__(
        self,
        session: SparkSession,
        state: File,
        deliver: Mapping[str, Deliver],
        budget: Budget,
        reached: Callable[[str], None],
        access: Access = PRIVATE,
    ) -> None:
        super().__init__()
        self._access = access
        self._session, self._state, self._deliver = session, state, deliver
        self._budget, self._reached = budget, reached
        self.unusable: dict[str, QueryRefused] = {}
        """The queries that do not run, as their folders cannot be written, and why."""

    def open_all(self, paths: Iterable[Path]) -> None:
        """Create the sinks of a start. A folder that cannot be written concerns its query alone.

        Raises:
            QueryRefused: a sink cannot be created, whatever the state of the disk.
        """
        for path in paths:
            name, settings = path.query.name, path.query.sink
            try:
                self[name] = self.create(path)
            except QueryRefused as refused:
                if not isinstance(refused.__cause__, OSError):
                    raise
                self[name] = sink = FileSink(settings)
                sink.access = self._access
                with suppress(OSError):
                    sink.gather(settings)
                self.unusable[name] = QueryRefused(
                    query=name, clause=refused.clause, reason=refused.reason,
                    fix="make it writable, with free space on its disk, then run"
                    f" `headgate restart {name}`",
                )  # fmt: skip
                log.warning("%s", self.unusable[name])

    def create(self, path: Path) -> FileSink:
        """Return a new sink for a query's last path; the caller adds it."""
        name = path.query.name
        sink = sink_of(
            path, self._session, self._state, self._deliver.get(name), self._reached,
            lambda: self.disk_bytes <= self._budget.outbox_bytes, self._access,
        )  # fmt: skip
        if (before := self.get(name)) is not None:
            sink.follow(before)
        return sink

    @property
    def memory_bytes(self) -> int:
        return 0

    @property
    def disk_bytes(self) -> int:
        """Bytes on disk of results that wait for delivery."""
        return sum(sink.waiting_bytes for sink in list(self.values()))

    def resume(self) -> None:
        """Deliver what the last run has left."""
        for sink in list(self.values()):
            sink.resume()

    def close(self, left_s: float) -> None:
        """Close all sinks.

        Args:
            left_s: the time that is left for results on their way.
        """
        for sink in list(self.values()):
            sink.close(max(LEAST_S, min(LAST_S, left_s)))
        for sink in list(self.values()):
            sink.join()
