"""The engine protocol: an engine owns time and workers. Simulation and Spark implement it."""

from typing import Protocol

from headgate.model.events import Event
from headgate.model.plan import BoxCall


class Engine(Protocol):
    """What starts box calls and reports events to the scheduler."""

    def now_s(self) -> float:
        """Return the current time, virtual or real."""

    def start(self, call: BoxCall) -> None:
        """Start a call on a worker; its outcome arrives later as an event."""

    def next_event(self, wake_at_s: float) -> Event | None:
        """Wait for the next event, at most until `wake_at_s`; return None when the run is over."""
