"""The most recently used trains in memory, within a budget of bytes."""

import threading
from collections import OrderedDict
from collections.abc import Callable

import pyarrow as pa


class TrainCache:
    """A cache of trains, safe to use from any thread.

    It drops the least recently used trains first, and never keeps one above the whole budget.

    Args:
        budget_bytes: returns what trains may take; less while others need the memory.
    """

    def __init__(self, budget_bytes: Callable[[], int]) -> None:
        self._budget_bytes = budget_bytes
        self._tables: OrderedDict[tuple[str, int], pa.Table] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0

    def clear(self) -> None:
        """Drop everything; a train that is needed is read again."""
        with self._lock:
            self._tables.clear()
            self.bytes = 0

    def put(self, stream: str, number: int, table: pa.Table) -> None:
        size, budget_bytes = table.nbytes, self._budget_bytes()
        with self._lock:
            # A train that could not be journaled returns under the same number, perhaps longer.
            if (old := self._tables.pop((stream, number), None)) is not None:
                self.bytes -= old.nbytes
            if size <= budget_bytes:
                self._tables[stream, number] = table
                self.bytes += size
            while self.bytes > budget_bytes:
                self.bytes -= self._tables.popitem(last=False)[1].nbytes

    def find(self, stream: str, number: int) -> pa.Table | None:
        """Return a train if it is in memory."""
        with self._lock:
            table = self._tables.get((stream, number))
            if table is not None:
                self._tables.move_to_end((stream, number))
            return table

    def get(self, stream: str, number: int, read: Callable[[], pa.Table]) -> pa.Table:
        """Return a train; read and keep it if it is not in memory."""
        if (table := self.find(stream, number)) is not None:
            return table
        table = read()
        self.put(stream, number, table)
        return table

    def drop(self, stream: str, before: int) -> None:
        """Drop the trains of a stream below a number."""
        with self._lock:
            for key in [key for key in self._tables if key[0] == stream and key[1] < before]:
                self.bytes -= self._tables.pop(key).nbytes
