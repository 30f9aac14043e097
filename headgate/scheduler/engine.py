"""The engine protocol: who owns time and workers. Simulation and Spark both fit it."""

from typing import Protocol

from headgate.model.events import Event
from headgate.model.plan import BoxCall


class Engine(Protocol):
    """Starts calls and tells what happened."""

    def now_s(self) -> float:
        """Gives the present instant, virtual or real."""

    def start(self, call: BoxCall) -> None:
        """Gives a call to a worker; its outcome comes back as an event."""

    def next_event(self, wake_at_s: float) -> Event | None:
        """Waits for the next event, at most until `wake_at_s`; None when the run is over."""
