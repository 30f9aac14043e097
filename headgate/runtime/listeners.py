"""An engine that passes every event to listeners: metrics, query handles, users' functions."""

import logging
from collections.abc import Callable, Sequence

from headgate.model.events import Event, StepStarted
from headgate.model.plan import BoxCall
from headgate.scheduler.engine import Engine

log = logging.getLogger("headgate")

Listener = Callable[[Event], None]


class Guarded:
    """A user's listener. Once it raises, it is no longer called, and the run goes on."""

    def __init__(self, listener: Listener) -> None:
        self._listener: Listener | None = listener

    def __call__(self, event: Event) -> None:
        if self._listener is None:
            return
        try:
            self._listener(event)
        except Exception:  # whatever a user's code may raise
            log.exception("listener %r raised an exception and is no longer called", self._listener)
            self._listener = None


class Observed:
    """An engine that also passes its events, and the start of every call, to listeners."""

    def __init__(self, engine: Engine, listeners: Sequence[Listener]) -> None:
        self._engine, self._listeners = engine, listeners

    def now_s(self) -> float:
        return self._engine.now_s()

    def start(self, call: BoxCall) -> None:
        self._notify(StepStarted(self.now_s(), call))
        self._engine.start(call)

    def next_event(self, wake_at_s: float) -> Event | None:
        event = self._engine.next_event(wake_at_s)
        if event is not None:
            self._notify(event)
        return event

    def _notify(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)
