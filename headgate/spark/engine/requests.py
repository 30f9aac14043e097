"""Requests to the loop: changes that other threads need and that only the loop makes."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from queue import SimpleQueue

from headgate.errors import RequestRefused
from headgate.model.events import Event

LOOK_EVERY_S = 0.2
"""How often a thread that waits for the loop checks that the loop still runs."""

Change = Callable[[], Sequence[Event]]
"""A change that the loop makes, and returns as events for the scheduler."""


@dataclass(frozen=True, eq=False)
class Request:
    """A change that another thread waits for."""

    change: Change
    done: Future[None] = field(default_factory=Future)


EventQueue = SimpleQueue[Event | Request]
"""What reaches the loop from other threads."""


class Requests:
    """Passes changes to the loop. The scheduler receives their events before all others.

    Args:
        events: the queue that the loop reads.
    """

    def __init__(self, events: EventQueue) -> None:
        self._events = events
        self._loop: threading.Thread | None = None
        self._is_open = False
        self.ahead: deque[Event] = deque()
        """Events of changes that were made and that the scheduler does not have yet."""

    def open(self) -> None:
        """Leave changes to the loop from here on. Before it runs, callers make them themselves."""
        self._is_open = True

    def tell(self, change: Change) -> Request:
        """Have the loop make a change, and do not wait for it."""
        request = Request(change)
        if not self._is_open or threading.current_thread() is self._loop:
            self.make(request)
        else:
            self._events.put(request)
        return request

    def ask(self, change: Change) -> None:
        """Have the loop make a change; return when it is made, or raise what it raises.

        Raises:
            RequestRefused: the run has ended.
        """
        request = self.tell(change)
        while not wait([request.done], LOOK_EVERY_S).done:
            if self._loop is not None and not self._loop.is_alive():
                raise RequestRefused(message="the run has ended; nothing can be changed any more")
        request.done.result()

    def enter(self) -> None:
        """Note that the current thread is the loop."""
        self._loop = threading.current_thread()

    def make(self, request: Request) -> None:
        """Make a change in the loop, and report its outcome to the thread that waits."""
        try:
            self.ahead.extend(request.change())
        except BaseException as error:
            request.done.set_exception(error)
        else:
            request.done.set_result(None)
