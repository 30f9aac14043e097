"""The most recently used tables in memory, within a budget of bytes."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from math import inf
from typing import Generic, TypeVar

import pyarrow as pa

K = TypeVar("K", bound=Hashable)


class ByteCache(Generic[K]):
    """A cache of tables that can be read or computed again, safe to use from any thread.

    It drops the least recently used tables first, and never keeps one above the whole budget.

    Args:
        budget_bytes: returns what the tables may take; less while others need the memory.
    """

    def __init__(self, budget_bytes: Callable[[], float] = lambda: inf) -> None:
        self._budget_bytes = budget_bytes
        self._tables: OrderedDict[K, pa.Table] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._tables.clear()
            self.bytes = 0

    def put(self, key: K, table: pa.Table) -> None:
        size, budget_bytes = table.nbytes, self._budget_bytes()
        with self._lock:
            # A train that could not be journaled returns under the same number, perhaps longer.
            if (old := self._tables.pop(key, None)) is not None:
                self.bytes -= old.nbytes
            if size <= budget_bytes:
                self._tables[key] = table
                self.bytes += size
            while self.bytes > budget_bytes:
                self.bytes -= self._tables.popitem(last=False)[1].nbytes

    def find(self, key: K) -> pa.Table | None:
        """Return a table if it is in memory."""
        with self._lock:
            table = self._tables.get(key)
            if table is not None:
                self._tables.move_to_end(key)
            return table

    def get(self, key: K, read: Callable[[], pa.Table]) -> pa.Table:
        """Return a table; read or compute it, and keep it, if it is not in memory."""
        if (table := self.find(key)) is not None:
            return table
        table = read()
        self.put(key, table)
        return table

    def drop(self, useless: Callable[[K], bool]) -> None:
        """Drop the tables whose key is useless."""
        with self._lock:
            for key in [key for key in self._tables if useless(key)]:
                self.bytes -= self._tables.pop(key).nbytes
