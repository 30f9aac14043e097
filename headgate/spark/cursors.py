"""Where every query stands in the log, and what has become of its tuples."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from headgate.errors import RecoveryRefused
from headgate.model.account import Account
from headgate.spark.journal import Journal


@dataclass(frozen=True)
class Cursor:
    """Where a query goes on, and how many tuples it has missed because retention dropped them."""

    train: int
    missed: int = 0


class Cursors:
    """The journal's lines about queries; they move with `Journal.intend`, when results do."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def remember(self, query: str, sql: str, stream: str, sources: Sequence[str] = ()) -> Cursor:
        """Gives where a query goes on; a new one begins with the oldest train that is kept.

        Args:
            sources: of a timeline, the streams whose trains it has.
        """
        with self._journal.transaction() as db:
            row = db.execute(
                "SELECT sql, stream, next_train FROM cursors WHERE query = ?", (query,)
            ).fetchone()
            if row is not None:
                if (row[0], row[1]) != (sql, stream):
                    raise _other_text(query, row[0], sql)
                self._count_letters(db, query, dict.fromkeys(sources or (stream,), 0))
                return self._after_gap(db, query, stream, int(row[2]))
            first, first_tuple = self._journal.beginning(db, stream)
            db.execute(
                "INSERT INTO cursors (query, sql, stream, first_train, next_train, first_tuple)"
                " VALUES (?, ?, ?, ?, ?, ?)", (query, sql, stream, first, first, first_tuple)
            )  # fmt: skip
            before = {each: self._first_letter(db, each) for each in sources or (stream,)}
            self._count_letters(db, query, before)
            return Cursor(first)

    def refuse_other_text(self, query: str, sql: str) -> None:
        """Refuses another text under the name of a query that has been here."""
        rows = self._journal.read("SELECT sql FROM cursors WHERE query = ?", (query,))
        if rows and rows[0][0] != sql:
            raise _other_text(query, rows[0][0], sql)

    def knows(self, query: str) -> bool:
        """Tells whether a query has been here, and was not dropped since."""
        return bool(self._journal.read("SELECT 1 FROM cursors WHERE query = ?", (query,)))

    def forget(self, query: str) -> None:
        """Forgets a query that was dropped; its results stay where they are."""
        with self._journal.transaction() as db:
            db.execute("DELETE FROM cursors WHERE query = ?", (query,))
            db.execute("DELETE FROM intents WHERE query = ?", (query,))
            db.execute("DELETE FROM beginnings WHERE query = ?", (query,))

    def _after_gap(
        self, db: sqlite3.Connection, query: str, stream: str, next_train: int
    ) -> Cursor:
        """Gives where a query goes on; behind the trains that retention has dropped meanwhile."""
        first, first_tuple = self._journal.beginning(db, stream)
        if next_train >= first:
            return Cursor(next_train)
        began, used = db.execute(
            "SELECT first_tuple, tuples_in + shed + missed FROM cursors WHERE query = ?", (query,)
        ).fetchone()
        missed = first_tuple - began - used
        db.execute(
            "UPDATE cursors SET next_train = ?, missed = missed + ? WHERE query = ?",
            (first, missed, query),
        )
        return Cursor(first, missed)

    def _first_letter(self, db: sqlite3.Connection, stream: str) -> int:
        """Gives how many dead letters came before the oldest train that is kept."""
        row = db.execute(
            "SELECT first_letter FROM trains WHERE stream = ? AND kept ORDER BY number LIMIT 1",
            (stream,),
        ).fetchone()
        return int(row[0]) if row else self._journal.letters_of(db, stream)

    def _count_letters(self, db: sqlite3.Connection, query: str, before: dict[str, int]) -> None:
        """Notes how many letters streams had before a query began, unless that is known.

        One that began before letters were counted has none before it.
        """
        db.executemany(
            "INSERT OR IGNORE INTO beginnings VALUES (?, ?, ?)",
            [(query, stream, letters) for stream, letters in before.items()],
        )

    def counts(self) -> dict[str, tuple[int, int]]:
        """Gives the tuples that every query has consumed and produced, over all runs."""
        rows = self._journal.read("SELECT query, tuples_in, tuples_out FROM cursors", ())
        return {query: (tuples_in, tuples_out) for query, tuples_in, tuples_out in rows}

    def shed(self, query: str, first_train: int, end_train: int, tuples: int) -> None:
        """Lets a query pass over trains that it does not see."""
        with self._journal.transaction() as db:
            db.execute(
                "UPDATE cursors SET next_train = ?, shed = shed + ?"
                " WHERE query = ? AND next_train = ?", (end_train, tuples, query, first_train)
            )  # fmt: skip

    def accounts(self) -> dict[str, Account]:
        """Gives every query's account: what arrived is delivered, filtered, late, queued and so on.

        Each term is counted by itself, so that a sum that is not right tells of a mistake.
        """
        rows = self._journal.read(
            "SELECT query, first_tuple, delivered, tuples_in - delivered - late, shed, missed,"
            " late,"
            " (SELECT COALESCE(MAX(t.first_tuple + t.tuples), 0) FROM trains t"
            "   WHERE t.stream = c.stream),"
            " (SELECT COALESCE(SUM(t.tuples), 0) FROM trains t"
            "   WHERE t.stream = c.stream AND t.number >= c.next_train),"
            " (SELECT COALESCE(SUM(l.records - b.first_letter), 0) FROM beginnings b"
            "   JOIN letters l ON l.stream = b.stream WHERE b.query = c.query)"
            " FROM cursors c", ()
        )  # fmt: skip
        return {
            query: Account(
                end - first + dead, delivered, filtered, queued, shed, missed, late, dead
            )
            for query, first, delivered, filtered, shed, missed, late, end, queued, dead in rows
        }


def _other_text(query: str, old: str, new: str) -> RecoveryRefused:
    return RecoveryRefused(
        subject=f"query '{query}'",
        expected=f"the text of the last run, {old!r}",
        found=repr(new),
        fix="restore the text, or give the new one a new name: its results would mix with the old"
        " ones",
    )
