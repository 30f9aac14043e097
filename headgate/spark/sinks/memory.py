"""Memory as a sink, for Python."""

import threading
from collections import deque

import pyarrow as pa

from headgate.extensions import Receiver, SinkContext

MOST_ROWS = 100_000
"""Rows that are kept by default."""


class Memory(Receiver):
    """A sink that keeps the newest rows of this run."""

    def __init__(self, context: SinkContext) -> None:
        self.dropped = 0
        self._most, self._count = context.options.whole("rows", MOST_ROWS), 0
        self._tables: deque[pa.Table] = deque()
        self._lock = threading.Lock()

    def deliver(self, rows: pa.Table, key: str) -> None:
        with self._lock:
            self._tables.append(rows)
            self._count += rows.num_rows
            while (over := self._count - self._most) > 0:
                oldest = self._tables.popleft()
                gone = min(over, oldest.num_rows)
                if gone < oldest.num_rows:
                    self._tables.appendleft(oldest.slice(gone))
                self._count -= gone
                self.dropped += gone

    def rows(self) -> pa.Table:
        """Return the rows, oldest first; a table without columns before the first result."""
        with self._lock:
            return pa.concat_tables(self._tables) if self._tables else pa.table({})
