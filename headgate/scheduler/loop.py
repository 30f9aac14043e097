"""The one loop that serves both engines."""

from headgate.scheduler.engine import Engine
from headgate.scheduler.scheduler import Scheduler


def run(scheduler: Scheduler, engine: Engine) -> None:
    """Runs until the engine has no further event."""
    while (event := engine.next_event(scheduler.wake_at_s)) is not None:
        scheduler.hear(event)
        for call in scheduler.plan(engine.now_s()):
            engine.start(call)
