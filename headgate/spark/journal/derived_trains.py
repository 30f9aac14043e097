"""Derived streams in the journal: their trains, and the time that the query behind one reached."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from headgate.spark.journal.journal import Journal
from headgate.spark.journal.journal_rows import NewTrain

TIME = "time"
"""The key, among a derived stream's positions, of the time that its query has reached."""


@dataclass(frozen=True)
class Derived:
    """What a step adds to the stream that a query fills.

    Args:
        new: the train; None if the step had no results.
        top: the time that the query has reached with the step; None if the stream has no time.
        arrived_at_s: when the input of the step arrived.
    """

    stream: str
    new: NewTrain | None
    top: int | None
    arrived_at_s: float


class DerivedTrains:
    """The journal's rows about derived streams. `Intents.intend` adds them together with results.

    A method that takes `db` runs within the caller's transaction.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def end(self, stream: str) -> tuple[int, int | None, float]:
        """Return where a derived stream ends: its next train, the time that its query has reached
        since the last train, and when the input for that arrived.
        """
        ((end, value),) = self._journal.read(
            "SELECT (SELECT COALESCE(MAX(number) + 1, 0) FROM trains WHERE stream = ?1),"
            " (SELECT value FROM positions WHERE stream = ?1 AND key = ?2)", (stream, TIME)
        )  # fmt: skip
        top, arrived_at_s = (None, 0.0) if value is None else json.loads(value)
        return int(end), top, arrived_at_s

    def top_of(self, stream: str, train: int) -> int | None:
        """Return the time that the producer of a derived stream had reached with a train."""
        rows = self._journal.read(
            "SELECT top FROM trains WHERE stream = ? AND number = ?", (stream, train)
        )
        return None if rows[0][0] is None else int(rows[0][0])

    def origins(self, stream: str, first: int, end: int) -> tuple[int, int]:
        """Return the range of input trains that trains first, ..., end − 1 of a derived stream
        begin with: the first, and the one after the last.
        """
        rows = self._journal.read(
            "SELECT MIN(origin), MAX(origin) + 1 FROM trains"
            " WHERE stream = ? AND number >= ? AND number < ?", (stream, first, end)
        )  # fmt: skip
        return int(rows[0][0]), int(rows[0][1])

    def add(self, db: sqlite3.Connection, derived: Derived) -> None:
        """Add the train of a step, if it has one, and the time that the query has reached."""
        if derived.new is not None:
            self._journal.add_train(db, derived.new)
        if derived.top is not None:
            self._put_time(db, derived)

    def add_time(self, derived: Derived) -> None:
        """Record the time that the query of a derived stream has reached without a step.

        This need not be durable: after a crash the time is computed again.
        """
        with self._journal.transaction(durable=False) as db:
            self._put_time(db, derived)

    def _put_time(self, db: sqlite3.Connection, derived: Derived) -> None:
        value = json.dumps([derived.top, derived.arrived_at_s])
        db.execute(
            "INSERT OR REPLACE INTO positions VALUES (?, ?, ?)", (derived.stream, TIME, value)
        )

    def forget(self, streams: Sequence[str]) -> None:
        """Delete derived streams and timelines, except their next number: others have seen it."""
        with self._journal.transaction() as db:
            for stream in streams:
                self._journal.drop_lines(db, stream, self._journal.end(db, stream)[0])
                db.execute("DELETE FROM entries WHERE timeline = ?", (stream,))
                db.execute("DELETE FROM positions WHERE stream = ?", (stream,))
                db.execute("DELETE FROM streams WHERE name = ?", (stream,))
