"""The workers: threads that take turns, and can be given up when a turn never ends."""

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from headgate.errors import CallTimedOut
from headgate.model.events import ConditionSample
from headgate.model.plan import BoxCall


@dataclass(eq=False)
class Task:
    """A call on its way: which of its units are still to run, what the others have made."""

    call: BoxCall
    left: list[tuple[int, ...]]
    outcomes: dict[int, Any] = field(default_factory=dict)
    lane: str = ""
    seconds: float = 0.0
    committed_at_s: float | None = None
    samples: list[ConditionSample] = field(default_factory=list)


@dataclass(eq=False)
class Turn:
    """Some units of a call, together in the hands of one worker.

    It runs, then commits, then is over. Who finds it too long cancels it and, should that not
    help, abandons it; what it makes then is not committed.
    """

    task: Task
    units: tuple[int, ...]
    limit_s: float
    tag: str = ""
    since_s: float = 0.0
    cancelled: bool = False
    _phase: Literal["waits", "runs", "commits", "over", "abandoned"] = "waits"
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, tag: str) -> None:
        with self._lock:
            self.tag, self.since_s, self._phase = tag, time.monotonic(), "runs"

    def check(self) -> None:
        """Lets a turn whose time is up begin nothing more."""
        if self.cancelled or self._phase == "abandoned":
            raise CallTimedOut(limit_s=self.limit_s)

    def commits(self) -> None:
        """From here on nobody abandons it; raises where somebody has."""
        with self._lock:
            self.check()
            self._phase = "commits"

    def end(self) -> bool:
        """Ends the turn; tells whether its outcome still counts."""
        with self._lock:
            if self._phase == "abandoned":
                return False
            self._phase = "over"
            return True

    def cancel(self, jobs: Callable[[str], None]) -> None:
        """Has its jobs cancelled, if it runs; no job of the next turn can be hit."""
        with self._lock:
            if self._phase == "runs":
                self.cancelled = True
                jobs(self.tag)

    def abandon(self) -> bool:
        """Tells whether it ran, and so is abandoned now."""
        with self._lock:
            if self._phase != "runs":
                return False
            self._phase = "abandoned"
            return True


class Workers:
    """Threads that do one turn after the other; the process does not wait for them at its end.

    Args:
        work: does a turn; never raises.
        tag: the beginning of what the jobs of a thread are tagged with.
    """

    def __init__(self, count: int, work: Callable[[Turn], None], tag: str) -> None:
        self._work, self._tag = work, tag
        self._turns: queue.SimpleQueue[Turn | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._busy: dict[threading.Thread, Turn | None] = {}
        self._made = 0
        for _ in range(count):
            self.add()

    def add(self) -> None:
        """Starts one more thread."""
        with self._lock:
            tag = f"{self._tag}-{self._made}"
            self._made += 1
            thread = threading.Thread(
                target=self._take_turns, args=(tag,), name=f"headgate-worker-{tag}", daemon=True
            )
            self._busy[thread] = None
        thread.start()

    def submit(self, turn: Turn) -> None:
        self._turns.put(turn)

    def running(self) -> list[Turn]:
        """Gives the turns under way."""
        with self._lock:
            return [turn for turn in self._busy.values() if turn is not None]

    def replace(self, turn: Turn) -> None:
        """Starts a new thread for that of an abandoned turn, which ends when the turn does."""
        with self._lock:
            for thread in [each for each, busy in self._busy.items() if busy is turn]:
                del self._busy[thread]
        self.add()

    def close(self, patience_s: float) -> None:
        """Lets the turns under way end; abandons those that do not in time."""
        while True:  # what has not begun never will
            try:
                self._turns.get_nowait()
            except queue.Empty:
                break
        with self._lock:
            threads = dict(self._busy)
        for _ in threads:
            self._turns.put(None)
        ends_at_s = time.monotonic() + patience_s
        for thread in threads:
            thread.join(max(0.0, ends_at_s - time.monotonic()))
            turn = self._busy.get(thread)
            if thread.is_alive() and turn is not None and not turn.abandon():
                thread.join()  # it commits

    def _take_turns(self, tag: str) -> None:
        this = threading.current_thread()
        while (turn := self._turns.get()) is not None:
            with self._lock:
                self._busy[this] = turn
            turn.begin(tag)
            self._work(turn)
            with self._lock:
                if this not in self._busy:
                    return  # replaced
                self._busy[this] = None
