"""The recorder: an engine that writes down what passes between it and the loop."""

import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path as File

from headgate.access import PRIVATE
from headgate.model.events import Event
from headgate.model.plan import BoxCall
from headgate.model.query import QueryStatistics
from headgate.runtime.recording.recordings import (
    FOLDER,
    Settings,
    footer_of,
    header_of,
    line_of,
)
from headgate.runtime.recording.turns import Turn
from headgate.scheduler.engine import Engine
from headgate.scheduler.scheduler import Scheduler

log = logging.getLogger("headgate")

EVERY_S = 0.5
MOST_WAITING = 10_000
"""Most turns held in memory; once there are so many, the loop waits for the disk."""


class Recorder:
    """An engine that records. The loop's thread only queues turns; another thread writes them.

    Args:
        scheduler: the scheduler of the run, before its first event.
        statistics: of the queries, as the scheduler starts with them.
    """

    def __init__(
        self,
        engine: Engine,
        state: File,
        scheduler: Scheduler,
        statistics: Mapping[str, QueryStatistics],
    ) -> None:
        self._engine, self._scheduler = engine, scheduler
        folder = state / FOLDER
        PRIVATE.folder(folder)
        numbers = [int(file.stem) for file in folder.glob("*.jsonl") if file.stem.isdecimal()]
        self.file = folder / f"{max(numbers, default=-1) + 1:04d}.jsonl"
        policy = scheduler.policy
        settings = Settings(
            policy=policy.spelled or policy.name,
            workers=scheduler.workers,
            train_tuples=scheduler.train_tuples,
            most_fused=scheduler.most_fused,
            call_bytes=scheduler.call_bytes,
            first_trains=tuple(buffer.end for buffer in scheduler.buffers),
            cursors=tuple(scheduler.cursors.tolist()),
            known=statistics,
            groups=() if scheduler.groups is None else tuple(scheduler.groups.tolist()),
            shared_priority=scheduler.shared_priority,
            lane=scheduler.lane,
            call_s=scheduler.call_s,
            ids=scheduler.network.ids,
        )
        PRIVATE.write(self.file, header_of(scheduler.network, settings).encode())
        self._turn: Turn | None = None
        self._turns: queue.Queue[Turn] = queue.Queue(MOST_WAITING)
        self._closed, self._broken = threading.Event(), False
        self._writer = threading.Thread(target=self._write, name="headgate-recorder", daemon=True)
        self._writer.start()

    def now_s(self) -> float:
        """Return the present instant. The loop asks once a turn, for the plan."""
        at_s = self._engine.now_s()
        if self._turn is not None:
            self._turn.planned_at_s = at_s
        return at_s

    def start(self, call: BoxCall) -> None:
        if self._turn is not None:
            self._turn.calls.append((call, self._engine.now_s()))
        self._engine.start(call)

    def next_event(self, wake_at_s: float) -> Event | None:
        self._hand_over()
        event = self._engine.next_event(wake_at_s)
        if event is not None:
            exact = self._scheduler.policy.wake_at_s < inf  # it looks at all response times
            self._turn = Turn(event, exact=exact)
        return event

    def close(self, learned: Mapping[str, QueryStatistics]) -> None:
        """Write the remaining turns and the statistics at the end, after the loop has ended."""
        self._hand_over()
        self._closed.set()
        self._writer.join()
        self._append(partial(footer_of, learned))

    def _hand_over(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            self._turns.put(turn)

    def _write(self) -> None:
        closed = False
        while not closed:
            closed = self._closed.wait(EVERY_S)
            turns = []
            while not self._turns.empty():
                turns.append(self._turns.get())
            if turns:
                self._append(partial(_text, turns))

    def _append(self, text: Callable[[], str]) -> None:
        """Append to the file, unless a write has failed: after a gap nothing can be replayed."""
        if self._broken:
            return
        try:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(text())
        except Exception as error:  # whatever it is, the run goes on
            self._broken = True
            log.warning("the recording ends here: %s", error)


def _text(turns: Sequence[Turn]) -> str:
    return "".join(map(line_of, turns))
