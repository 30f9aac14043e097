"""The journal: one SQLite file per application that says what has been ingested and committed."""

import fcntl
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.errors import RecoveryRefused

VERSION = 1
TABLES = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS streams (name TEXT PRIMARY KEY, schema TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS trains (
  stream TEXT, number INTEGER, source_batch INTEGER, tuples INTEGER, bytes INTEGER,
  head_arrived_at_s REAL, mean_arrived_at_s REAL, kept INTEGER DEFAULT 1,
  PRIMARY KEY (stream, number), UNIQUE (stream, source_batch));
CREATE TABLE IF NOT EXISTS cursors (
  query TEXT PRIMARY KEY, sql TEXT, stream TEXT, first_train INTEGER, next_train INTEGER,
  tuples_in INTEGER DEFAULT 0, tuples_out INTEGER DEFAULT 0);
CREATE TABLE IF NOT EXISTS intents (step INTEGER, query TEXT, temporary TEXT, final TEXT);
"""


@dataclass(frozen=True)
class Train:
    """A train's line in the journal."""

    number: int
    tuples: int
    bytes: int
    head_arrived_at_s: float
    mean_arrived_at_s: float


@dataclass(frozen=True)
class Result:
    """What one query made of a range of trains; no files where nothing came out."""

    query: str
    first_train: int
    end_train: int
    tuples_in: int
    tuples_out: int
    temporary: Path | None
    final: Path | None


class Journal:
    """Every method is one durable transaction, safe to call from any thread.

    A step becomes visible in three: `intend` (the point of no return: its results lie ready under
    temporary names and every cursor has moved), then the renames, then `confirm`. Recovery renames
    what an intent without confirmation has left, and nothing else.
    """

    def __init__(self, state: Path) -> None:
        state.mkdir(parents=True, exist_ok=True)
        self._guard = (state / "lock").open("w")
        try:
            fcntl.flock(self._guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._guard.close()
            raise RecoveryRefused(
                subject=f"state directory {state}",
                expected="nobody else at work in it",
                found="another Headgate that runs",
                fix="stop the other one, or give this one a state directory of its own",
            ) from error
        self._lock = threading.Lock()
        self._steps = 0
        self._db = sqlite3.connect(state / "journal.db", check_same_thread=False)
        self._db.isolation_level = None
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(TABLES)
        self._check_version(state)

    def close(self) -> None:
        with self._lock:
            self._db.close()
            self._guard.close()

    def remember_stream(self, name: str, schema: str) -> None:
        """Holds a stream's schema against that of the last run."""
        with self._transaction() as db:
            row = db.execute("SELECT schema FROM streams WHERE name = ?", (name,)).fetchone()
            if row is None:
                db.execute("INSERT INTO streams VALUES (?, ?)", (name, schema))
            elif row[0] != schema:
                raise RecoveryRefused(
                    subject=f"stream '{name}'",
                    expected=f"the schema of its log, {row[0]}",
                    found=schema,
                    fix="restore the schema, or use a new stream name or state directory",
                )

    def remember_query(self, query: str, sql: str, stream: str) -> int:
        """Gives the train a query goes on at; a new one begins with the oldest that is kept."""
        with self._transaction() as db:
            row = db.execute(
                "SELECT sql, stream, next_train FROM cursors WHERE query = ?", (query,)
            ).fetchone()
            if row is not None:
                if (row[0], row[1]) != (sql, stream):
                    raise RecoveryRefused(
                        subject=f"query '{query}'",
                        expected=f"the text of the last run, {row[0]!r}",
                        found=repr(sql),
                        fix="restore the text, or give the new one a new name:"
                        " its results would mix with the old ones",
                    )
                self._refuse_gap(db, query, stream, int(row[2]))
                return int(row[2])
            first = db.execute(
                "SELECT COALESCE(MIN(number), (SELECT COALESCE(MAX(number) + 1, 0) FROM trains"
                " WHERE stream = ?1)) FROM trains WHERE stream = ?1 AND kept", (stream,)
            ).fetchone()[0]  # fmt: skip
            db.execute(
                "INSERT INTO cursors (query, sql, stream, first_train, next_train)"
                " VALUES (?, ?, ?, ?, ?)", (query, sql, stream, first, first)
            )  # fmt: skip
            return int(first)

    def _refuse_gap(self, db: sqlite3.Connection, query: str, stream: str, next_train: int) -> None:
        """Refuses to go on where retention has dropped trains that a query has not seen."""
        first = db.execute(
            "SELECT COALESCE(MIN(CASE WHEN kept THEN number END), MAX(number) + 1, 0) FROM trains"
            " WHERE stream = ?", (stream,)
        ).fetchone()[0]  # fmt: skip
        if next_train < first:
            raise RecoveryRefused(
                subject=f"query '{query}'",
                expected=f"train {next_train} of stream '{stream}', where it stood",
                found=f"a log that begins with train {first}: the query was away for too long",
                fix="give it a new name, and it begins with the oldest train that is kept",
            )

    def trains(self, stream: str) -> list[Train]:
        """Gives the trains that are kept, in order."""
        rows = self._read(
            "SELECT number, tuples, bytes, head_arrived_at_s, mean_arrived_at_s FROM trains"
            " WHERE stream = ? AND kept ORDER BY number", (stream,)
        )  # fmt: skip
        return [Train(*row) for row in rows]

    def next_train(self, stream: str) -> int:
        """Gives the number of the next train."""
        rows = self._read("SELECT MAX(number) FROM trains WHERE stream = ?", (stream,))
        return 0 if rows[0][0] is None else int(rows[0][0]) + 1

    def has_batch(self, stream: str, source_batch: int) -> bool:
        """Tells whether a source's batch is in the log already, so that a replay adds nothing."""
        return bool(self._read(
            "SELECT 1 FROM trains WHERE stream = ? AND source_batch = ?", (stream, source_batch)
        ))  # fmt: skip

    def add_train(self, stream: str, train: Train, source_batch: int) -> None:
        with self._transaction() as db:
            db.execute(
                "INSERT INTO trains VALUES (?, ?, ?, ?, ?, ?, ?, 1)",
                (stream, train.number, source_batch, train.tuples, train.bytes,
                 train.head_arrived_at_s, train.mean_arrived_at_s),
            )  # fmt: skip

    def drop_trains(self, stream: str, before: int) -> None:
        """Notes that trains are gone, before their files are.

        The newest keeps its line: it says which batch of the source was the last.
        """
        with self._transaction() as db:
            db.execute(
                "UPDATE trains SET kept = 0 WHERE stream = ? AND number < ?", (stream, before)
            )
            db.execute(
                "DELETE FROM trains WHERE stream = ?1 AND NOT kept AND number <"
                " (SELECT MAX(number) FROM trains WHERE stream = ?1)", (stream,)
            )  # fmt: skip

    def intend(self, results: Sequence[Result]) -> int:
        """Makes a step's results certain: cursors move, and recovery will finish the renames."""
        with self._transaction() as db:
            self._steps += 1
            step = self._steps
            for result in results:
                moved = db.execute(
                    "UPDATE cursors SET next_train = ?, tuples_in = tuples_in + ?,"
                    " tuples_out = tuples_out + ? WHERE query = ? AND next_train = ?",
                    (result.end_train, result.tuples_in, result.tuples_out, result.query,
                     result.first_train),
                )  # fmt: skip
                if moved.rowcount != 1:
                    raise RecoveryRefused(
                        subject=f"query '{result.query}'",
                        expected=f"its cursor at train {result.first_train}",
                        found="it elsewhere",
                        fix="keep other programs out of the state directory",
                    )
                if result.final is not None:
                    db.execute(
                        "INSERT INTO intents VALUES (?, ?, ?, ?)",
                        (step, result.query, str(result.temporary), str(result.final)),
                    )
            return step

    def confirm(self, step: int) -> None:
        """Notes that every file of a step has its final name."""
        with self._transaction() as db:
            db.execute("DELETE FROM intents WHERE step = ?", (step,))

    def unconfirmed(self) -> list[tuple[Path, Path]]:
        """Gives the renames, from and to, that a crash may have left undone."""
        rows = self._read("SELECT temporary, final FROM intents ORDER BY step", ())
        return [(Path(temporary), Path(final)) for temporary, final in rows]

    def confirm_all(self) -> None:
        with self._transaction() as db:
            db.execute("DELETE FROM intents")

    def counts(self) -> dict[str, tuple[int, int]]:
        """Gives the tuples that every query has consumed and produced, over all runs."""
        rows = self._read("SELECT query, tuples_in, tuples_out FROM cursors", ())
        return {query: (tuples_in, tuples_out) for query, tuples_in, tuples_out in rows}

    def _read(self, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._db.execute(sql, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _check_version(self, state: Path) -> None:
        with self._transaction() as db:
            db.execute("INSERT OR IGNORE INTO about VALUES ('version', ?)", (str(VERSION),))
            found = db.execute("SELECT value FROM about WHERE key = 'version'").fetchone()[0]
        if found != str(VERSION):
            self.close()
            raise RecoveryRefused(
                subject=f"state directory {state}",
                expected=f"a journal of version {VERSION}",
                found=f"one of version {found}",
                fix="run the Headgate that wrote it, or begin with a new state directory",
            )
