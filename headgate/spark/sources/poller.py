"""One thread that asks all polled sources and puts what they have into the log."""

import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.errors import StreamFailed
from headgate.model.stream import ARRIVED_AT, Stream
from headgate.spark.log.files import flush_all
from headgate.spark.log.journal import Journal, NewLetters, NewTrain, Train
from headgate.spark.log.stream_log import StreamLog
from headgate.spark.sources.protocol import Polled, Source
from headgate.spark.sources.wall_clock import instants_of

log = logging.getLogger("headgate.spark")

PAUSE_S = 1.0
"""How long a source that failed is left alone; its tuples wait there."""

PATIENCE_S = 0.1
"""How long a source waits for more important ones at the most."""


@dataclass(eq=False)
class Line:
    """A stream on its way from its source to its log.

    Args:
        zone: the session's, for arrivals that are without one.
    """

    number: int
    stream: Stream
    log: StreamLog
    source: Source
    zone: str = "UTC"
    due_at_s: float = 0.0
    failing: bool = False


@dataclass(frozen=True)
class Taken:
    """What was polled for a line, and what it has become; the journal does not have it yet."""

    line: Line
    polled: Polled
    train: NewTrain | None
    letters: NewLetters | None


class Poller:
    """Asks every source when its time has come; one transaction for all that are asked together.

    A source that fails (a directory that is gone, a full disk) is asked again later; nothing is
    lost, since its position is journalled with its train. One that raises StreamFailed itself is
    asked no more.

    Args:
        arrived: called with the stream's number and the new train.
        pause_s: how long to wait, on top, before sources are asked again; 1 or more is until later.
        importance: of a stream; of those that are due the most important are asked, and their
            trains told of, before others are; as long as these do not wait too long.
    """

    def __init__(
        self,
        lines: Sequence[Line],
        journal: Journal,
        arrived: Callable[[int, Train], None],
        pause_s: Callable[[], float] = lambda: 0.0,
        now_s: Callable[[], float] = time.time,
        importance: Callable[[str], float] = lambda stream: 0.0,
    ) -> None:
        self.lines, self._journal = list(lines), journal
        self._arrived, self._pause_s, self._now_s = arrived, pause_s, now_s
        self._importance = importance
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.broken: Exception | None = None
        self.failed: deque[StreamFailed] = deque()
        self._left: list[Line] = []
        self._asked = ""
        self._thread = threading.Thread(target=self._work, name="headgate-poller", daemon=True)

    def start(self) -> None:
        for line in self.lines:
            self._resume(line)
        self._thread.start()

    def add(self, line: Line) -> None:
        """Asks one more source from now on."""
        with self._lock:
            self._resume(line)
            self.lines.append(line)

    def _resume(self, line: Line) -> None:
        line.source.resume(self._journal.positions(line.stream.name))
        line.due_at_s = time.monotonic()

    def remove(self, stream: str) -> None:
        """Asks a stream's source no more; what the round under way still has of it is not taken."""
        with self._lock:
            self._left += [line for line in self.lines if line.stream.name == stream]
            self.lines = [line for line in self.lines if line.stream.name != stream]

    def stop(self, patience_s: float | None = None) -> None:
        """Asks no more, and returns when the round under way is journalled, or patience ends.

        What is polled after that is not journalled: the next start asks for it again.
        """
        self._ended.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(patience_s)
            if self._thread.is_alive():
                with self._lock:
                    self._left, self.lines = [*self._left, *self.lines], []
                log.warning("the source of stream '%s' does not answer, and is left", self._asked)

    def _work(self) -> None:
        try:
            self._ask()
        except Exception as error:  # the engine ends the run: nothing more would arrive
            self.broken = error
        for line in (*self._left, *self.lines):
            line.source.close()

    def _ask(self) -> None:
        while not self._ended.is_set():
            if (pause_s := self._pause_s()) > 0:
                self._ended.wait(min(pause_s, 0.1) if pause_s >= 1 else pause_s)
                if pause_s >= 1:
                    continue
            with self._lock:
                lines, left = list(self.lines), self._left
                self._left = []
            for line in left:
                line.source.close()
            self._round(self._first(lines))
            now_s = time.monotonic()
            due_at_s = min((line.due_at_s for line in lines), default=now_s + 0.1)
            self._ended.wait(max(0.0, due_at_s - now_s))

    def _first(self, lines: Sequence[Line]) -> list[Line]:
        """Gives the most important of those that are due, or what has waited too long for them."""
        now_s = time.monotonic()
        late = [line for line in lines if now_s - line.due_at_s > PATIENCE_S]
        if late:
            return sorted(late, key=self._rank)
        due = [line for line in lines if line.due_at_s <= now_s]
        first = min(map(self._rank, due), default=0.0)
        return [line for line in due if self._rank(line) == first]

    def _rank(self, line: Line) -> float:
        return -self._importance(line.stream.name)

    def _round(self, lines: Sequence[Line]) -> None:
        taken: list[Taken] = []
        for line in lines:
            line.due_at_s = time.monotonic() + line.stream.asked_every_s
            self._asked = line.stream.name
            try:
                polled = line.source.poll()
                with self._lock:  # whoever stops us may have left meanwhile, and another be at work
                    if polled is not None and line in self.lines:
                        letters = line.log.letters.write(polled.letters)
                        taken.append(Taken(line, polled, self._staged(line, polled), letters))
                if line.failing:
                    line.failing = False
                    log.warning("stream '%s' is back", line.stream.name)
            except StreamFailed as failure:
                self.remove(line.stream.name)
                self.failed.append(failure)
            except Exception as error:  # whatever a source or a disk may raise
                self._fail(line, error)
        with self._lock:
            self._take([each for each in taken if each.line in self.lines])

    def _take(self, taken: Sequence[Taken]) -> None:
        if not taken:
            return
        positions = [
            (each.line.stream.name, key, value)
            for each in taken
            for key, value in each.polled.position.items()
        ]
        trains = [(each.line, each.train) for each in taken if each.train is not None]
        letters = [each.letters for each in taken if each.letters is not None]
        try:
            flush_all([path for line, new in trains for path in line.log.staged(new)])
            self._journal.add_trains([new for _, new in trains], positions, letters)
        except (sqlite3.Error, OSError) as error:
            for each in taken:
                self._fail(each.line, error)
            return
        for each in taken:
            line = each.line
            line.source.taken(each.polled)
            if each.letters is not None:
                line.log.letters.added(each.letters)
            if each.train is not None:
                line.log.added(each.train)
                self._arrived(line.number, each.train.train)

    def _staged(self, line: Line, polled: Polled) -> NewTrain | None:
        if not polled.table.num_rows:
            return None
        arrived_s = np.full(polled.table.num_rows, self._now_s())
        if line.stream.arrival_time is not None:
            instants = instants_of(polled.table[line.stream.arrival_time], line.zone)
            seconds = pc.cast(instants, pa.int64()).to_numpy().astype(np.float64) / 1e6
            arrived_s = np.where(np.isnan(seconds), arrived_s, seconds)
        table = polled.table.append_column(ARRIVED_AT, pa.array(arrived_s))
        return line.log.stage(table, line.log.next_number)

    def _fail(self, line: Line, error: Exception) -> None:
        line.due_at_s = time.monotonic() + PAUSE_S
        if not line.failing:
            line.failing = True
            failure = StreamFailed(stream=line.stream.name, cause=str(error))
            log.warning("%s; it is asked again every %g s", failure, PAUSE_S)
