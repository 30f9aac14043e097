"""An engine with listeners: metrics, handles and users hear every event."""

from collections.abc import Callable, Sequence

from headgate.model.events import Event, StepStarted
from headgate.model.plan import BoxCall
from headgate.scheduler.engine import Engine

Listener = Callable[[Event], None]


class Observed:
    """An engine whose events are also told to listeners, starts included."""

    def __init__(self, engine: Engine, listeners: Sequence[Listener]) -> None:
        self._engine, self._listeners = engine, listeners

    def now_s(self) -> float:
        return self._engine.now_s()

    def start(self, call: BoxCall) -> None:
        self._tell(StepStarted(self.now_s(), call))
        self._engine.start(call)

    def next_event(self, wake_at_s: float) -> Event | None:
        event = self._engine.next_event(wake_at_s)
        if event is not None:
            self._tell(event)
        return event

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)
