"""Worker threads: each runs one turn after the other, and is replaced if a turn never ends."""

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from headgate.errors import CallTimedOut
from headgate.model.events import ConditionSample
from headgate.model.plan import BoxCall


@dataclass(eq=False)
class Task:
    """A call in progress: the units that have still to run, and the outcomes of the others."""

    call: BoxCall
    left: list[tuple[int, ...]]
    turns: int = 0
    """The turns of the call that are under way."""
    outcomes: dict[int, Any] = field(default_factory=dict)
    lane: str = ""
    seconds: float = 0.0
    cpu_s: float | None = None
    committed_at_s: float | None = None
    samples: list[ConditionSample] = field(default_factory=list)
    commit_s: float = 0.0


@dataclass(eq=False)
class Turn:
    """Some units of a call that one worker runs together.

    A turn runs, then commits, then is over. A turn that takes too long is abandoned: its jobs are
    cancelled, and what it still produces is not committed.

    Args:
        is_apart: whether it has a thread of its own.
    """

    task: Task
    units: tuple[int, ...]
    limit_s: float
    is_apart: bool = False
    tag: str = ""
    since_s: float = 0.0
    waited_s: float = 0.0
    """How long its jobs have waited for a core, which does not count as its time."""
    commits_since_s: float | None = None
    """Since when it commits, by `time.perf_counter`."""
    _phase: Literal["waits", "runs", "commits", "over", "abandoned"] = "waits"
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, tag: str) -> None:
        with self._lock:
            self.tag, self.since_s, self._phase = tag, time.monotonic(), "runs"

    def check(self) -> None:
        """Raise if the time of the turn is up, so that it begins nothing more."""
        if self._phase == "abandoned":
            raise CallTimedOut(limit_s=self.limit_s)

    def commits(self) -> None:
        """Begin to commit, after which nobody can abandon the turn; raise if its time is up."""
        with self._lock:
            self.check()
            self._phase, self.commits_since_s = "commits", time.perf_counter()

    def end(self) -> bool:
        """End the turn; return True if its outcome still counts."""
        with self._lock:
            if self._phase == "abandoned":
                return False
            self._phase = "over"
            return True

    @property
    def is_abandoned(self) -> bool:
        return self._phase == "abandoned"

    def abandon(self, cancel_jobs: Callable[[str], None] = lambda tag: None) -> bool:
        """Abandon the turn and cancel its jobs, if it runs; return True if it did.

        The lock keeps the jobs of the thread's next turn safe.
        """
        with self._lock:
            if self._phase != "runs":
                return False
            self._phase = "abandoned"
            cancel_jobs(self.tag)
            return True


class Workers:
    """Threads that run one turn after the other; the process does not wait for them when it exits.

    Args:
        work: runs a turn; never raises.
        tag: the prefix of the job tag of each thread.
    """

    def __init__(self, count: int, work: Callable[[Turn], None], tag: str) -> None:
        self._work, self._tag = work, tag
        self._turns: queue.SimpleQueue[Turn | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._busy: dict[threading.Thread, Turn | None] = {}
        self._started = 0
        for _ in range(count):
            self.add()

    def add(self) -> None:
        """Start one more thread."""
        self._start(None)

    def submit(self, turn: Turn) -> None:
        """Have a thread run a turn: the next that is free, or a new one if the turn is apart."""
        if turn.is_apart:
            self._start(turn)
        else:
            self._turns.put(turn)

    def _start(self, only: Turn | None) -> None:
        """Start a thread.

        Args:
            only: the turn that it runs before it ends; None if it takes one after the other.
        """
        with self._lock:
            tag = f"{self._tag}-{self._started}"
            self._started += 1
            work = (
                partial(self._take_turns, tag) if only is None else partial(self._take, tag, only)
            )
            thread = threading.Thread(target=work, name=f"headgate-worker-{tag}", daemon=True)
            self._busy[thread] = None
        thread.start()

    def running(self) -> list[Turn]:
        """Return the turns in progress."""
        with self._lock:
            return [turn for turn in self._busy.values() if turn is not None]

    def replace(self, turn: Turn) -> None:
        """Replace the thread of an abandoned turn; the old thread ends when the turn does."""
        with self._lock:
            for thread in [worker for worker, busy in self._busy.items() if busy is turn]:
                del self._busy[thread]
        if not turn.is_apart:
            self.add()

    def close(self, patience_s: float) -> None:
        """Let the turns in progress end; abandon those that do not end in time."""
        while True:  # turns that have not begun never will
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
                thread.join()  # it is committing

    def _take_turns(self, tag: str) -> None:
        while (turn := self._turns.get()) is not None:
            self._take(tag, turn)
            if turn.is_abandoned:  # another thread takes, or has taken, this one's place
                return

    def _take(self, tag: str, turn: Turn) -> None:
        thread = threading.current_thread()
        with self._lock:
            self._busy[thread] = turn
        turn.begin(tag)
        self._work(turn)
        with self._lock:
            if turn.is_abandoned or turn.is_apart:
                self._busy.pop(thread, None)
            else:
                self._busy[thread] = None
