"""Two budgets, memory and bytes of log: what is in use, and what is still allowed."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Protocol

from headgate.model.settings import Settings

SLOW_DOWN, SPARE, FULL = 0.7, 0.9, 1.0
"""Shares of a budget. Above the first, sources wait. From the second on, no train stays in memory.
From the third on, no source is polled, and tuples are shed where queries allow it."""


class Usage(Protocol):
    """Something that takes memory or space on disk."""

    @property
    def memory_bytes(self) -> int: ...

    @property
    def disk_bytes(self) -> int: ...


@dataclass
class FixedUsage:
    """A constant amount of memory and space on disk."""

    memory_bytes: int = 0
    disk_bytes: int = 0


class Budget:
    """What is in use of `memory_bytes` and `log_bytes`; safe to use from any thread.

    The budget counts what calls hold in memory, and asks those that hold the rest.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._trains: Usage = FixedUsage()
        self._panes: Usage = FixedUsage()
        self._results: Usage = FixedUsage()
        self._lock = threading.Lock()
        self._in_flight = 0
        self.most_memory_bytes = 0

    def measure(
        self, *, trains: Usage | None = None, panes: Usage | None = None,
        results: Usage | None = None,
    ) -> None:  # fmt: skip
        """Set who reports the bytes in use.

        Args:
            trains: the log. What it has in memory is dropped when others need the room.
            panes: what windows hold in memory.
            results: those that wait for delivery.
        """
        self._trains = trains or self._trains
        self._panes = panes or self._panes
        self._results = results or self._results

    @contextmanager
    def holding(self, count: int) -> Iterator[None]:
        """Count some bytes as in use while the block runs."""
        self._add(count)
        try:
            yield
        finally:
            self._add(-count)

    @property
    def cache_bytes(self) -> int:
        """Half of the memory is for trains that may be read again, the rest for running calls."""
        return self.settings.memory_bytes // 2

    @property
    def outbox_bytes(self) -> int:
        """Disk space for all results together that wait for external sinks."""
        return self.settings.log_bytes // 10

    @property
    def memory(self) -> float:
        """The share of the memory budget that is in use."""
        return (self._held_bytes + self._trains.memory_bytes) / self.settings.memory_bytes

    @property
    def log(self) -> float:
        """The share of the log budget that is in use."""
        used = self._trains.disk_bytes + self._results.disk_bytes
        return used / self.settings.log_bytes

    @property
    def held(self) -> float:
        """The share in use of the memory that is not reserved for trains.

        >>> budget = Budget(Settings(memory_bytes=100))
        >>> budget.measure(panes=FixedUsage(memory_bytes=40))
        >>> round(budget.held, 3)
        0.8
        """
        return self._held_bytes / (self.settings.memory_bytes - self.cache_bytes)

    @property
    def pressure(self) -> float:
        return max(self.held, self.log)

    def train_room_bytes(self) -> int:
        """Return what trains may take in memory: half, or what all else leaves of nine tenths.

        >>> budget = Budget(Settings(memory_bytes=100))
        >>> budget.measure(panes=FixedUsage(memory_bytes=60))
        >>> budget.train_room_bytes()
        30
        >>> budget.measure(panes=FixedUsage(memory_bytes=95))
        >>> budget.train_room_bytes()
        0
        """
        left = int(SPARE * self.settings.memory_bytes) - self._held_bytes
        return max(0, min(self.cache_bytes, left))

    def derived_bytes(self) -> float:
        """Return what the log of a derived stream may take.

        It has no limit of its own until the log is full, then as much as all outboxes together: the
        readers of the stream come first, and sources wait anyway.

        >>> budget = Budget(Settings(log_bytes=100))
        >>> budget.measure(trains=FixedUsage(disk_bytes=100))
        >>> budget.derived_bytes()
        10
        """
        return self.outbox_bytes if self.log >= FULL else inf

    def pause_s(self) -> float:
        """Return how long a source waits before its next poll, from 0 to 1 second.

        The pause grows with the pressure, from SLOW_DOWN to FULL.

        >>> budget = Budget(Settings(log_bytes=100))
        >>> budget.measure(trains=FixedUsage(disk_bytes=70), results=FixedUsage(disk_bytes=15))
        >>> round(budget.pause_s(), 3)
        0.5
        """
        above = (self.pressure - SLOW_DOWN) / (FULL - SLOW_DOWN)
        return 0.0 if above <= 0 else min(1.0, above)

    @property
    def _held_bytes(self) -> int:
        return self._in_flight + self._panes.memory_bytes

    def _add(self, count: int) -> None:
        """Count bytes that calls take or, below 0, release; remember the most memory in use."""
        with self._lock:
            self._in_flight += count
        used = self._held_bytes + self._trains.memory_bytes
        self.most_memory_bytes = max(self.most_memory_bytes, used)
