"""The stream of updates that a page reads: all that a page shows first, then what has changed."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from fastapi import HTTPException

from headgate.server.patches import difference

EVERY_S = 0.5
"""The shortest time between two updates."""

SHARE = 0.015
"""The share of a core that updates may take, however many queries there are and pages watch."""

WATCHERS = 16
"""Most pages that watch at a time."""

DIGITS = 4


class Updates:
    """Updates of an overview, computed once for all that watch, and only while somebody does.

    Every line is JSON: first the whole overview, then merge patches (RFC 7386), in which null
    removes a key. A line comes at most every EVERY_S seconds, later if it takes long to compute.
    """

    def __init__(self, overview: Callable[[], dict[str, Any]]) -> None:
        self._overview = overview
        self._number = 0
        self._state: dict[str, Any] = {}
        self._patch = b""
        self._due_s = 0.0
        self._watchers = 0
        self._turn = asyncio.Lock()
        self._ended = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def watch(self) -> AsyncIterator[bytes]:
        """Return the lines for one page.

        Raises:
            HTTPException: too many pages watch.
        """
        if self._watchers >= WATCHERS:
            raise HTTPException(503, f"{WATCHERS} pages watch this run already: close one of them")
        return self._lines()

    def end(self) -> None:
        """End all streams, from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ended.set)

    async def _lines(self) -> AsyncIterator[bytes]:
        self._loop = asyncio.get_running_loop()
        self._watchers += 1
        try:
            await self._next(self._number if self._is_fresh() else self._number + 1)
            number, state = self._number, self._state
            yield _line(state)
            while await self._next(number + 1):
                patch = self._patch if self._number == number + 1 else None
                if patch is None:  # this page was slow and has missed one
                    patch = _line(difference(state, self._state))
                number, state = self._number, self._state
                yield patch
        finally:
            self._watchers -= 1

    def _is_fresh(self) -> bool:
        return self._number > 0 and time.monotonic() < self._due_s

    async def _next(self, number: int) -> bool:
        """Wait until the state has this number; return False if the streams end."""
        async with self._turn:
            if self._number >= number:
                return not self._ended.is_set()
            try:
                wait_s = max(0.0, self._due_s - time.monotonic())
                async with asyncio.timeout(wait_s):
                    await self._ended.wait()
                return False
            except TimeoutError:
                pass
            state, patch, cost_s = await asyncio.to_thread(self._computed, self._state)
            self._state, self._patch, self._number = state, patch, self._number + 1
            self._due_s = time.monotonic() + max(EVERY_S, cost_s / SHARE)
            return True

    def _computed(self, before: dict[str, Any]) -> tuple[dict[str, Any], bytes, float]:
        """Return the new state, the patch that leads to it, and the CPU time that both took."""
        began_s = time.thread_time()
        state = {**rounded(self._overview()), "at_s": round(time.time(), 1)}
        patch = _line(difference(before, state))
        return state, patch, time.thread_time() - began_s


def rounded(value: Any) -> Any:
    """Return plain data with the digits that a page shows, and without keys that have no value.

    >>> rounded({"a": 1.23456, "b": None, "c": [2.0, 123456.7]})
    {'a': 1.235, 'c': [2.0, 123457.0]}
    """
    if isinstance(value, float):
        if 1 <= value < 1000:  # `round` is several times as fast as a text
            return round(value, DIGITS - 1)
        return float(f"{value:.{DIGITS if abs(value) < 1000 else DIGITS + 2}g}")
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items() if part is not None}
    if isinstance(value, (list, tuple)):
        return [rounded(part) for part in value]
    return value


def _line(state: Mapping[str, Any]) -> bytes:
    return json.dumps(state, separators=(",", ":")).encode() + b"\n"
