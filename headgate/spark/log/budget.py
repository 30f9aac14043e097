"""Two budgets, memory and bytes of log: what is in use, and what is still allowed."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf

from headgate.model.settings import Settings

SLOW_DOWN, SPARE, FULL = 0.7, 0.9, 1.0
"""Shares of a budget. Above the first, sources wait. From the second on, no train stays in memory.
From the third on, no source is polled, and tuples are shed where queries allow it."""


class Budget:
    """What is in use of `memory_bytes` and `log_bytes`; safe to use from any thread.

    The budget counts what calls hold in memory and asks the callbacks for the rest.

    Args:
        cached: returns the bytes of trains in memory, which are dropped when others need the room.
        windowed: returns the bytes of what windows hold in memory: panes.
        logged: returns the bytes of what waits on disk: trains, results to be delivered.
    """

    def __init__(
        self,
        settings: Settings,
        cached: Callable[[], int] = lambda: 0,
        windowed: Callable[[], int] = lambda: 0,
        logged: Callable[[], int] = lambda: 0,
    ) -> None:
        self.settings = settings
        self._cached, self._windowed, self._logged = cached, windowed, logged
        self._lock = threading.Lock()
        self._in_flight = 0
        self.most_memory_bytes = 0

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
        return (self._held_bytes + self._cached()) / self.settings.memory_bytes

    @property
    def log(self) -> float:
        """The share of the log budget that is in use."""
        return self._logged() / self.settings.log_bytes

    @property
    def held(self) -> float:
        """The share in use of the memory that is not reserved for trains.

        >>> round(Budget(Settings(memory_bytes=100), windowed=lambda: 40).held, 3)
        0.8
        """
        return self._held_bytes / (self.settings.memory_bytes - self.cache_bytes)

    @property
    def pressure(self) -> float:
        return max(self.held, self.log)

    def train_room_bytes(self) -> int:
        """Return what trains may take in memory: half, or what all else leaves of nine tenths.

        >>> Budget(Settings(memory_bytes=100), windowed=lambda: 60).train_room_bytes()
        30
        >>> Budget(Settings(memory_bytes=100), windowed=lambda: 95).train_room_bytes()
        0
        """
        left = int(SPARE * self.settings.memory_bytes) - self._held_bytes
        return max(0, min(self.cache_bytes, left))

    def derived_bytes(self) -> float:
        """Return what the log of a derived stream may take.

        It has no limit of its own until the log is full, then as much as all outboxes together: the
        readers of the stream come first, and sources wait anyway.

        >>> Budget(Settings(log_bytes=100), logged=lambda: 100).derived_bytes()
        10
        """
        return self.outbox_bytes if self.log >= FULL else inf

    def pause_s(self) -> float:
        """Return how long a source waits before its next poll, from 0 to 1 second.

        The pause grows with the pressure, from SLOW_DOWN to FULL.

        >>> budget = Budget(Settings(log_bytes=100), logged=lambda: 85)
        >>> round(budget.pause_s(), 3)
        0.5
        """
        above = (self.pressure - SLOW_DOWN) / (FULL - SLOW_DOWN)
        return 0.0 if above <= 0 else min(1.0, above)

    @property
    def _held_bytes(self) -> int:
        return self._in_flight + self._windowed()

    def _add(self, count: int) -> None:
        with self._lock:
            self._in_flight += count
        used = self._held_bytes + self._cached()
        self.most_memory_bytes = max(self.most_memory_bytes, used)
