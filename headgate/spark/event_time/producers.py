"""Producers: the queries that fill derived streams."""

from collections.abc import Iterable, Sequence

from headgate.model.network.derived_streams import producers, streams_of
from headgate.model.network.network import Path
from headgate.model.stream import Stream
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal


class Producers:
    """Which query fills which derived stream, and whether it has read all its input."""

    def __init__(self, journal: Journal) -> None:
        self._journal, self._cursors = journal, Cursors(journal)
        self._streams: dict[str, Stream] = {}
        self.by_stream: dict[str, Path] = {}

    def connect(self, paths: Iterable[Path], streams: Iterable[Stream]) -> None:
        """Set which path fills which stream."""
        self._streams = {stream.name: stream for stream in streams}
        self.by_stream = producers(paths)

    def feeds(self, stream: str) -> Sequence[str]:
        """Return the streams that a derived stream is computed from; none for other streams."""
        path = self.by_stream.get(stream)
        return () if path is None else streams_of(path, self._streams)

    def are_idle(self, stream: str) -> bool:
        """Return True if the producer of a stream, and those before it, have read all input."""
        path = self.by_stream.get(stream)
        if path is None:
            return False
        source = self._streams[path.stream]
        behind = source.is_derived and not source.of and not self.are_idle(path.stream)
        return not behind and self.cursor(path) == self._journal.next_train(path.stream)

    def cursor(self, path: Path) -> int | None:
        """Return the train that a producer continues with; None if it has no cursor."""
        return self._cursors.train_of(path.query.name)
