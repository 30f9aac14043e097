"""A scheduler whose running time is measured, for an engine in real time."""

import time

from headgate.model.events import Event
from headgate.model.plan import BoxCall
from headgate.scheduler.scheduler import Scheduler


class Timed:
    """A scheduler that counts the `seconds` that its methods have taken."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.seconds = 0.0

    @property
    def wake_at_s(self) -> float:
        return self._scheduler.wake_at_s

    def hear(self, event: Event) -> None:
        began_s = time.perf_counter()
        self._scheduler.hear(event)
        self.seconds += time.perf_counter() - began_s

    def plan(self, now_s: float) -> list[BoxCall]:
        began_s = time.perf_counter()
        calls = self._scheduler.plan(now_s)
        self.seconds += time.perf_counter() - began_s
        return calls
