"""A simulated crash at a named point of the engine; nothing may be lost there."""

import threading
from collections.abc import Callable
from typing import Any

from headgate import Headgate


class Crash(Exception):
    """The simulated death of the process: after it, the run must have no further effect."""


class CrashAt:
    """A callback that raises `Crash` when a point is reached for the n-th time, and ever after.

    Args:
        after: how many times the point is passed before the crash.
    """

    def __init__(self, point: str | None, after: int) -> None:
        self._point, self._left = point, after
        self.dead = threading.Event()

    def __call__(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
        if self.dead.is_set() or (point == self._point and self._left < 0):
            self.dead.set()
            raise Crash(point)


class CrashingHeadgate(Headgate):
    """A Headgate that calls `reached` at every point where a crash must lose nothing."""

    def __init__(
        self, *arguments: Any, reached: Callable[[str], None] = lambda point: None, **settings: Any
    ) -> None:
        super().__init__(*arguments, **settings)
        self._call = reached

    def _reached(self, point: str) -> None:
        self._call(point)
