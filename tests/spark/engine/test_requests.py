"""Changes that other threads need are made by the loop."""

import threading
from queue import SimpleQueue

import pytest

from headgate.errors import RequestRefused
from headgate.model.events import ClockTicked, Event
from headgate.spark.engine.requests import EventQueue, Request, Requests


class Loop:
    """A loop that makes changes until it is told to end, in a thread of its own."""

    def __init__(self) -> None:
        self.events: EventQueue = SimpleQueue()
        self.requests = Requests(self.events)
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self.requests.enter()
        while isinstance(request := self.events.get(), Request):
            self.requests.make(request)

    def end(self) -> None:
        self.events.put(ClockTicked(0.0))
        self.thread.join(20)


def test_a_change_is_made_by_the_loop_and_its_events_come_first() -> None:
    loop, makers = Loop(), list[threading.Thread]()

    def change() -> list[Event]:
        makers.append(threading.current_thread())
        return [ClockTicked(1.0), ClockTicked(2.0)]

    loop.requests.ask(change)  # nobody else runs yet
    loop.requests.open()
    loop.thread.start()
    loop.requests.ask(change)
    loop.end()
    assert makers == [threading.current_thread(), loop.thread]
    assert [event.at_s for event in loop.requests.ahead] == [1.0, 2.0, 1.0, 2.0]


def test_what_a_change_raises_reaches_the_thread_that_asked_and_the_loop_goes_on() -> None:
    loop = Loop()
    loop.requests.open()
    loop.thread.start()

    def fail() -> list[Event]:
        raise ValueError("another text")

    with pytest.raises(ValueError, match="another text"):
        loop.requests.ask(fail)
    loop.requests.ask(lambda: [ClockTicked(3.0)])
    loop.end()
    assert [event.at_s for event in loop.requests.ahead] == [3.0]


def test_a_change_is_refused_once_the_loop_has_ended() -> None:
    loop = Loop()
    loop.requests.open()
    loop.thread.start()
    loop.end()
    with pytest.raises(RequestRefused, match="the run has ended"):
        loop.requests.ask(lambda: [ClockTicked(1.0)])
    assert not loop.requests.ahead


def test_the_loop_itself_may_ask() -> None:
    loop = Loop()
    loop.requests.open()
    loop.requests.enter()
    loop.requests.ask(lambda: [ClockTicked(1.0)])
    assert [event.at_s for event in loop.requests.ahead] == [1.0]
