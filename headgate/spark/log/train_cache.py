"""Trains in memory, the latest used ones, within a budget of bytes."""

import threading
from collections import OrderedDict
from collections.abc import Callable

import pyarrow as pa


class TrainCache:
    """Safe to use from any thread. A train above the whole budget is never kept.

    Args:
        budget_bytes: gives what trains may take; less while others need the memory.
    """

    def __init__(self, budget_bytes: Callable[[], int]) -> None:
        self._budget_bytes = budget_bytes
        self._tables: OrderedDict[tuple[str, int], pa.Table] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0

    def clear(self) -> None:
        """Forgets everything; whoever needs a train reads it again."""
        with self._lock:
            self._tables.clear()
            self.bytes = 0

    def put(self, stream: str, number: int, table: pa.Table) -> None:
        size, budget_bytes = table.nbytes, self._budget_bytes()
        with self._lock:
            # A train that could not be journalled comes again under its number, perhaps longer.
            if (old := self._tables.pop((stream, number), None)) is not None:
                self.bytes -= old.nbytes
            if size <= budget_bytes:
                self._tables[stream, number] = table
                self.bytes += size
            while self.bytes > budget_bytes:
                self.bytes -= self._tables.popitem(last=False)[1].nbytes

    def find(self, stream: str, number: int) -> pa.Table | None:
        """Return a train if it is here."""
        with self._lock:
            table = self._tables.get((stream, number))
            if table is not None:
                self._tables.move_to_end((stream, number))
            return table

    def get(self, stream: str, number: int, read: Callable[[], pa.Table]) -> pa.Table:
        """Gives a train, read and kept if it is not here."""
        if (table := self.find(stream, number)) is not None:
            return table
        table = read()
        self.put(stream, number, table)
        return table

    def drop(self, stream: str, before: int) -> None:
        """Forgets the trains of a stream below a number."""
        with self._lock:
            for key in [key for key in self._tables if key[0] == stream and key[1] < before]:
                self.bytes -= self._tables.pop(key).nbytes
