"""Waiting for what another thread or process does."""

import threading
import time
from collections.abc import Callable
from typing import Any

NEVER = threading.Event()


def until(
    holds: Callable[[], Any],
    ended: Callable[[float], bool] = NEVER.wait,
    timeout_s: float = 120.0,
) -> Any:
    """Poll `holds` and return its first true answer.

    Args:
        ended: waits for at most so many seconds for the end of what makes it hold, and returns True
            if it has ended.
    """
    ends_at_s = time.monotonic() + timeout_s
    while time.monotonic() < ends_at_s:
        if answer := holds():
            return answer
        if ended(0.05):
            break
    answer = holds()
    assert answer, "the condition did not become true"
    return answer
