"""A crash at a point where nothing may be lost."""

import threading


class Crash(Exception):
    """The process is gone: from here on nothing of it happens any more."""


class CrashAt:
    """Raises at the n-th time a point is reached, and at every point ever after."""

    def __init__(self, point: str | None, after: int) -> None:
        self._point, self._left = point, after
        self.dead = threading.Event()

    def __call__(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
        if self.dead.is_set() or (point == self._point and self._left < 0):
            self.dead.set()
            raise Crash(point)
