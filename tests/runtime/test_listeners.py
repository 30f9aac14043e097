"""Listeners are called with every event; one that raises is logged and called no more."""

import pytest

from headgate.model.events import ClockTicked, Event
from headgate.runtime.listeners import Guarded


def test_a_listener_that_raises_hears_no_more(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[float] = []

    def hear(event: Event) -> None:
        heard.append(event.at_s)
        if event.at_s >= 2:
            raise ValueError("a slip of the pen")

    listener = Guarded(hear)
    for second in range(5):
        listener(ClockTicked(float(second)))
    assert heard == [0.0, 1.0, 2.0]
    assert caplog.text.count("raised an exception and is no longer called") == 1
    assert "a slip of the pen" in caplog.text
