"""Collected results: committed, on disk, and not visible yet."""

import threading
import time
from collections.abc import Callable, Collection, Iterable
from math import inf
from pathlib import Path

from headgate.model.query import Sink
from headgate.spark.log.files import size_of

COLLECTED = "_collected"
"""The folder of collected results; the underscore makes readers of a results folder skip it."""


class ResultCollection:
    """The results of a query that wait until they become visible together, as one file.

    Each is committed like a visible result: its file is durable, and the journal has the cursor.
    Safe to use from several threads.
    """

    def __init__(self, folder: Path, sink: Sink) -> None:
        self.folder = folder
        self.wake: Callable[[], None] = lambda: None
        """Called when results become due earlier than `due_at_s` said before."""
        self.retry_at_s = 0.0
        """When results that could not be merged are tried again; 0 if none are."""
        self._every_s, self._target_bytes = sink.commit_every_s or 0.0, sink.target_bytes
        self._lock = threading.Lock()
        self._waiting: dict[Path, tuple[int, float]] = {}
        """The bytes of each result, and when it was committed; 0 if that was in another run."""
        self._bytes = 0
        self._most_delay_s = 0.0

    def add(self, file: Path) -> None:
        """Add a result that was committed now."""
        self._add(file, time.monotonic())
        if len(self._waiting) == 1 or self._bytes >= self._target_bytes:
            self.wake()

    def resume(self, replaced: Collection[Path]) -> None:
        """Add what the last run has left, except for files that are in a merged one already."""
        for file in sorted(self.folder.iterdir()) if self.folder.is_dir() else ():
            if file not in replaced:
                self._add(file, 0.0)

    @property
    def due_at_s(self) -> float:
        """When the results become visible; infinity if none waits."""
        with self._lock:
            if not self._waiting:
                return inf
            since_s = self._oldest_s
            is_large = self._bytes >= self._target_bytes
            return max(self.retry_at_s, since_s + (0.0 if is_large else self._every_s))

    def waiting(self) -> list[Path]:
        """Return the results that wait, in the order of their trains."""
        with self._lock:
            return list(self._waiting)

    def remove(self, files: Iterable[Path]) -> None:
        """Remove results: they are visible now, or somebody has removed them."""
        now_s = time.monotonic()
        with self._lock:
            for file in files:
                count, since_s = self._waiting.pop(file)
                self._bytes -= count
                if since_s:
                    self._most_delay_s = max(self._most_delay_s, now_s - since_s)

    @property
    def most_delay_s(self) -> float:
        """The longest time in this run between a commit and the instant it became visible."""
        with self._lock:
            waits_s = time.monotonic() - self._oldest_s if self._waiting else 0.0
            return max(self._most_delay_s, waits_s if self._oldest_s else 0.0)

    @property
    def _oldest_s(self) -> float:
        return next(iter(self._waiting.values()), (0, 0.0))[1]

    def _add(self, file: Path, since_s: float) -> None:
        try:
            count = size_of(file)
        except FileNotFoundError:
            return  # somebody has removed it, which the rename has reported
        with self._lock:
            self._waiting[file] = count, since_s
            self._bytes += count
