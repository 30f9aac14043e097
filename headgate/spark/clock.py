"""The clock of a run, wall-clock time without its jumps, and a stopwatch for several threads."""

import threading
import time
from collections.abc import Callable

JUMP_S = 1.0
"""A larger difference from the steady clock means that somebody has set the wall clock. A smaller
one means that the wall clock runs fast or slow; the run's clock follows it."""


class Clock:
    """Seconds since 1970 that never go backward; safe to read from any thread.

    When somebody sets the wall clock, retries, wake-ups and response times must not notice. Time
    then continues from where it was, by the steady clock.

    >>> wall, steady = iter([100.0, 101.0, 7.0, 8.0]), iter([0.0, 1.0, 2.0, 3.0])
    >>> clock = Clock(lambda: next(wall), lambda: next(steady))
    >>> clock.now_s(), clock.now_s(), clock.now_s()
    (101.0, 102.0, 103.0)
    """

    def __init__(
        self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall, self._steady = wall, steady
        self._lock = threading.Lock()
        self._at_s, self._read_at_s = wall(), steady()
        self._last_s = self._at_s

    def now_s(self) -> float:
        with self._lock:
            wall_s, steady_s = self._wall(), self._steady()
            expected_s = self._at_s + steady_s - self._read_at_s
            near = abs(wall_s - expected_s) <= JUMP_S
            self._at_s, self._read_at_s = (wall_s if near else expected_s), steady_s
            self._last_s = max(self._last_s, self._at_s)
            return self._last_s


class Stopwatch:
    """The seconds that all threads together have spent on one purpose.

    >>> watch = Stopwatch()
    >>> with watch:
    ...     pass
    >>> 0.0 <= watch.seconds < 1.0
    True
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lock = threading.Lock()
        self._began = threading.local()

    def __enter__(self) -> None:
        self._began.at_s = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        spent_s = time.perf_counter() - self._began.at_s
        with self._lock:
            self.seconds += spent_s
