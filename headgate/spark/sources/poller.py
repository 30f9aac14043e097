"""One thread that polls all sources of the driver and appends their tuples to the log."""

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
from headgate.extensions import Polled
from headgate.model.stream import ARRIVED_AT
from headgate.spark.journal.journal import Journal
from headgate.spark.journal.journal_rows import NewLetters, NewTrain, Train
from headgate.spark.jvm.errors import cause_of
from headgate.spark.log.files import flush_all
from headgate.spark.sources.line import Line
from headgate.spark.sources.wall_clock import instants_of

log = logging.getLogger("headgate.spark")

PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
"""How long a source that failed is not polled; its tuples wait there. The pause doubles with every
further failure, up to the longest."""

REST_S = 0.005
"""How long a source that had nothing is left alone at least."""

PATIENCE_S = 0.1
"""The longest that a source waits for more important ones."""

LOOK_S = 0.5
"""How often the poller looks for streams that were added or removed, even if none is due."""

SLOW_S = 2.0
"""A poll that takes longer may delay its own stream, but no others any more."""


def pause_after(failures: int) -> float:
    """Return for how many seconds a source is left alone that has failed once more."""
    return min(PAUSE_S * 2.0 ** min(failures, 10), LONGEST_PAUSE_S)


@dataclass(frozen=True)
class StagedPoll:
    """The result of a poll, with the files written for it; the journal does not have it yet."""

    line: Line
    polled: Polled
    train: NewTrain | None
    letters: NewLetters | None


class Poller:
    """Polls each source when it is due, with one transaction for all that are polled together.

    While a poll takes long, another poller may take over the other lines (`leave_slow`).

    A source that fails (a directory that is gone, a full disk) is polled again later, less and less
    often. Nothing is lost, since its position is journaled with its train. A source that raises
    StreamFailed itself is not polled again.

    Args:
        arrived: called with the stream's number and the new train.
        pause_s: returns the extra wait before sources are polled. While it is 1 or more, none is.
        importance: returns the importance of a stream. Of the sources that are due, the most
            important are polled, and their trains reported, before the others, as long as those do
            not wait too long.
        spent: called after each train with the stream's number and the CPU time of its polls.
    """

    def __init__(
        self,
        lines: Sequence[Line],
        journal: Journal,
        arrived: Callable[[int, Train], None],
        pause_s: Callable[[], float] = lambda: 0.0,
        now_s: Callable[[], float] = time.time,
        importance: Callable[[str], float] = lambda stream: 0.0,
        spent: Callable[[int, float], None] = lambda stream, seconds: None,
    ) -> None:
        self.lines, self._journal = list(lines), journal
        self._arrived, self._pause_s, self._now_s = arrived, pause_s, now_s
        self._importance, self._spent = importance, spent
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.broken: Exception | None = None
        self.failed: deque[StreamFailed] = deque()
        self._removed: list[Line] = []
        self._polled: tuple[Line, float] | None = None
        """The line whose source is being polled, and since when."""
        self._thread = threading.Thread(target=self._work, name="headgate-poller", daemon=True)

    def start(self) -> None:
        for line in self.lines:
            line.due_at_s = line.due_at_s or time.monotonic()
        self._thread.start()

    def add(self, line: Line) -> None:
        """Poll one more source from now on."""
        with self._lock:
            line.due_at_s = time.monotonic()
            self.lines.append(line)

    def remove(self, stream: str) -> None:
        """Stop polling a stream's source; discard what the round under way has polled of it."""
        with self._lock:
            self._removed += [line for line in self.lines if line.stream.name == stream]
            self.lines = [line for line in self.lines if line.stream.name != stream]

    def leave_slow(self) -> list[Line]:
        """Leave all lines but the one whose poll takes too long, and return them.

        What this round has polled of them is discarded; it comes again.
        """
        if self.slow_for_s() < SLOW_S or not self._lock.acquire(timeout=REST_S):
            return []
        try:
            slow = None if self._polled is None else self._polled[0]
            others = [line for line in self.lines if line is not slow]
            if slow is None or not others:
                return []
            self.lines = [line for line in self.lines if line is slow]
            return others
        finally:
            self._lock.release()

    def slow_for_s(self) -> float:
        """Return how long the poll under way has taken so far."""
        polled = self._polled
        return 0.0 if polled is None else time.monotonic() - polled[1]

    def overdue_s(self) -> dict[str, float]:
        """Return, by stream, for how long its source should have been polled."""
        now_s = time.monotonic()
        return {line.stream.name: now_s - line.due_at_s for line in self.lines if line.due_at_s}

    def troubles(self) -> dict[str, str]:
        """Return why streams do not deliver at present, or only in part."""
        troubles = {line.stream.name: line.trouble for line in self.lines if line.trouble}
        if (polled := self._polled) is not None and self.slow_for_s() > SLOW_S:
            cause = f"its source has not answered for {self.slow_for_s():.0f} s"
            troubles.setdefault(polled[0].stream.name, cause)
        return troubles

    @property
    def is_polling(self) -> bool:
        """Whether a train may still arrive."""
        return self._thread.is_alive()

    def finish(self, timeout_s: float | None = None) -> None:
        """Begin no other round; return when the one under way is journaled, or time runs out."""
        self._ended.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def stop(self, patience_s: float | None = None) -> None:
        """Stop polling; return when the round under way is journaled, or when patience ends.

        What is polled after that is not journaled: the next start polls it again.
        """
        self.finish(patience_s)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            with self._lock:
                self._removed, self.lines = [*self._removed, *self.lines], []
            stream = "" if self._polled is None else self._polled[0].stream.name
            log.warning("the source of stream '%s' does not answer and is abandoned", stream)

    def _work(self) -> None:
        try:
            self._poll_until_stopped()
        except Exception as error:  # the engine ends the run: nothing more would arrive
            self.broken = error
        for line in (*self._removed, *self.lines):
            _close(line)

    def _poll_until_stopped(self) -> None:
        while not self._ended.is_set():
            if (pause_s := self._pause_s()) > 0:
                self._ended.wait(min(pause_s, 0.1) if pause_s >= 1 else pause_s)
                if pause_s >= 1:
                    continue
            with self._lock:
                lines, removed = list(self.lines), self._removed
                self._removed = []
            for line in removed:
                _close(line)
            self._round(self._lines_to_poll(lines))
            now_s = time.monotonic()
            due_at_s = min((line.due_at_s for line in lines), default=now_s + 0.1)
            self._ended.wait(min(max(0.0, due_at_s - now_s), LOOK_S))

    def _lines_to_poll(self, lines: Sequence[Line]) -> list[Line]:
        """Return the most important lines that are due, or those that have waited too long."""
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
        polls: list[StagedPoll] = []
        for line in lines:
            with self._lock:
                if line not in self.lines:
                    continue  # removed, or taken over by another poller
                self._polled = line, time.monotonic()
            line.due_at_s = time.monotonic() + line.stream.asked_every_s
            try:
                line.make_ready(self._journal.positions(line.stream.name))
                polled_at_s, began_s = self._now_s(), time.thread_time()
                polled = _checked(line.source.poll())
                line.spent_s += time.thread_time() - began_s
                if polled is None:  # with trigger_s: 0, the thread would never rest
                    line.in_vain(polled_at_s)
                    line.due_at_s = max(line.due_at_s, time.monotonic() + REST_S)
                with self._lock:  # `stop` may have given up on this thread, and another be at work
                    if polled is not None and line in self.lines:
                        letters = line.log.letters.write(polled.letters)
                        train = self._stage(line, polled)
                        polls.append(StagedPoll(line, polled, train, letters))
                if polled is None:
                    self._note_success(line)
            except StreamFailed as failure:
                self.remove(line.stream.name)
                self.failed.append(failure)
            except Exception as error:  # whatever a source or a disk may raise
                self._fail(line, error)
        self._polled = None
        with self._lock:
            self._commit([poll for poll in polls if poll.line in self.lines])

    def _commit(self, polls: Sequence[StagedPoll]) -> None:
        if not polls:
            return
        positions = [
            (poll.line.stream.name, key, value)
            for poll in polls
            for key, value in poll.polled.position.items()
        ]
        trains = [(poll.line, poll.train) for poll in polls if poll.train is not None]
        letters = [poll.letters for poll in polls if poll.letters is not None]
        try:
            with self._journal.storage:
                flush_all([path for line, new in trains for path in line.log.staged(new)])
                self._journal.add_trains([new for _, new in trains], positions, letters)
        except (sqlite3.Error, OSError) as error:
            for poll in polls:
                self._fail(poll.line, error)
            return
        for poll in polls:
            line = poll.line
            line.untaken = poll.polled
            try:
                line.make_ready({})
                self._note_success(line)
            except Exception as error:  # before it is polled again, it is told again
                self._fail(line, error)
            if poll.letters is not None:
                line.log.letters.added(poll.letters)
            if poll.train is not None:
                line.log.added(poll.train)
                self._arrived(line.number, poll.train.train)
                self._spent(line.number, line.spent_s)
                line.spent_s = 0.0

    def _stage(self, line: Line, polled: Polled) -> NewTrain | None:
        if not polled.table.num_rows:
            return None
        arrived_s = np.full(polled.table.num_rows, self._now_s())
        if line.stream.arrival_time is not None:
            instants = instants_of(polled.table[line.stream.arrival_time], line.zone)
            seconds = pc.cast(instants, pa.int64()).to_numpy().astype(np.float64) / 1e6
            arrived_s = np.where(np.isnan(seconds), arrived_s, seconds)
        table = polled.table.append_column(ARRIVED_AT, pa.array(arrived_s))
        with self._journal.storage:
            return line.log.stage(table, line.log.next_number)

    def _fail(self, line: Line, error: Exception) -> None:
        line.due_at_s = time.monotonic() + pause_after(line.failures)
        line.failures += 1
        cause = str(error) if isinstance(error, OSError) else cause_of(error)
        self._note_trouble(line, cause or type(error).__name__)

    def _note_success(self, line: Line) -> None:
        line.failures = 0
        self._note_trouble(line, line.source.trouble)

    def _note_trouble(self, line: Line, cause: str) -> None:
        cause = " ".join(cause.splitlines()[:1])
        if cause and cause != line.trouble:
            log.warning("stream '%s' stopped: %s; it is tried again", line.stream.name, cause)
        elif line.trouble and not cause:
            log.warning("stream '%s' is back", line.stream.name)
        line.trouble = cause


def _checked(polled: Polled | None) -> Polled | None:
    """Return what a source has polled; raise TypeError if the journal cannot have its position."""
    if polled is None:
        return None
    if not isinstance(polled, Polled):
        raise TypeError(f"poll returned {type(polled).__name__}, not Polled or None")
    for word in (word for item in polled.position.items() for word in item):
        if not isinstance(word, str):
            raise TypeError(f"poll returned a position with {word!r}, which is not a text")
    return polled


def _close(line: Line) -> None:
    try:
        line.source.close()
    except Exception as error:  # whatever a source of another package raises
        log.warning("stream '%s': its source cannot be closed: %s", line.stream.name, error)
