"""The scheduling loop, the same for both engines."""

from typing import Protocol

from headgate.model.events import Event
from headgate.model.plan import BoxCall
from headgate.scheduler.engine import Engine


class Decides(Protocol):
    """What takes events and returns the calls to start, as `Scheduler` does."""

    @property
    def wake_at_s(self) -> float: ...

    def hear(self, event: Event) -> None: ...

    def plan(self, now_s: float) -> list[BoxCall]: ...


def run(scheduler: Decides, engine: Engine) -> None:
    """Run until the engine has no more events."""
    while (event := engine.next_event(scheduler.wake_at_s)) is not None:
        scheduler.hear(event)
        for call in scheduler.plan(engine.now_s()):
            engine.start(call)
