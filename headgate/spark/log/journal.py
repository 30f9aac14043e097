"""The journal: one SQLite file per application that records what is ingested and committed."""

import fcntl
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from headgate.errors import RecoveryRefused

VERSION = 4
TIME = "time"
"""The key, among a derived stream's positions, of the time that its query has reached."""

TABLES = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS streams (name TEXT PRIMARY KEY, schema TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS trains (
  stream TEXT, number INTEGER, source_batch INTEGER, tuples INTEGER, bytes INTEGER,
  head_arrived_at_s REAL, mean_arrived_at_s REAL, first_tuple INTEGER, kept INTEGER DEFAULT 1,
  first_letter INTEGER DEFAULT 0, top INTEGER, origin INTEGER,
  PRIMARY KEY (stream, number), UNIQUE (stream, source_batch));
CREATE TABLE IF NOT EXISTS cursors (
  query TEXT PRIMARY KEY, sql TEXT, stream TEXT, first_train INTEGER, next_train INTEGER,
  first_tuple INTEGER, tuples_in INTEGER DEFAULT 0, tuples_out INTEGER DEFAULT 0,
  delivered INTEGER DEFAULT 0, shed INTEGER DEFAULT 0, missed INTEGER DEFAULT 0,
  late INTEGER DEFAULT 0);
CREATE TABLE IF NOT EXISTS entries (
  timeline TEXT, number INTEGER, stream TEXT, train INTEGER, tuples INTEGER, first_tuple INTEGER,
  before INTEGER, top INTEGER, arrived_at_s REAL, reach INTEGER,
  PRIMARY KEY (timeline, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS positions (
  stream TEXT, key TEXT, value TEXT, PRIMARY KEY (stream, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS letters (
  stream TEXT PRIMARY KEY, records INTEGER DEFAULT 0, bytes INTEGER, source_batch INTEGER);
CREATE TABLE IF NOT EXISTS beginnings (
  query TEXT, stream TEXT, first_letter INTEGER, PRIMARY KEY (query, stream)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS intents (step INTEGER, query TEXT, temporary TEXT, final TEXT);
"""


@dataclass(frozen=True)
class Train:
    """A train's row in the journal.

    Args:
        top: for a derived stream, the time that its producer had reached with the train.
    """

    number: int
    tuples: int
    bytes: int
    head_arrived_at_s: float
    mean_arrived_at_s: float
    top: int | None = None


@dataclass(frozen=True)
class NewTrain:
    """A train to add to the log, and the number of its batch in the source.

    Args:
        origin: for a derived stream, the first train of its producer's input that it comes from.
    """

    stream: str
    train: Train
    source_batch: int
    origin: int | None = None


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


@dataclass(frozen=True)
class NewLetters:
    """Dead letters to add to the journal: how many, and the size of their file with them.

    Args:
        source_batch: the source's batch that they were in, if Structured Streaming numbers batches.
    """

    stream: str
    records: int
    end_bytes: int
    source_batch: int | None = None


@dataclass(frozen=True)
class Result:
    """What one query computed from a range of trains; no files if there were no rows."""

    query: str
    first_train: int
    end_train: int
    tuples_in: int
    tuples_out: int
    delivered: int
    temporary: Path | None
    final: Path | None
    late: int = 0


class Journal:
    """The journal of a state directory, safe to use from any thread.

    Every method is one transaction, durable unless its docstring says otherwise. Methods that take
    `db` run within the caller's transaction instead.

    A step becomes visible in three parts: `intend` (the point of no return: its results lie ready
    under temporary names, and every cursor has moved), then the renames, then `confirm`. Recovery
    finishes the renames of intents that were not confirmed, and does nothing else.
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
                expected="no other Headgate that uses it",
                found="another Headgate that is running",
                fix="stop the other one, or give this one a different state directory",
            ) from error
        self._lock = threading.Lock()
        self._steps = 0
        self._db = sqlite3.connect(state / "journal.db", check_same_thread=False)
        self._db.isolation_level = None
        try:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.executescript(TABLES)
            self._add_columns()
            self._check_version(state)
        except sqlite3.DatabaseError as error:
            self.close()
            raise RecoveryRefused(
                subject=f"state directory {state}",
                expected="a journal.db that SQLite can read and write",
                found=str(error),
                fix="if its disk is full, make room; otherwise restore the log and journal.db from"
                " the same copy, or begin with a new state directory",
            ) from error

    def close(self) -> None:
        with self._lock:
            self._db.close()
            self._guard.close()

    def remember_zone(self, zone: str) -> str:
        """Record the time zone of the first start; return the one on record."""
        with self.transaction() as db:
            db.execute("INSERT OR IGNORE INTO about VALUES ('zone', ?)", (zone,))
            row = db.execute("SELECT value FROM about WHERE key = 'zone'").fetchone()
            return str(row[0])

    def remember_stream(self, name: str, schema: str) -> None:
        """Record a stream's schema, or compare it with that of the last run.

        Raises:
            RecoveryRefused: the schemas differ.
        """
        with self.transaction() as db:
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

    def beginning(self, db: sqlite3.Connection, stream: str) -> tuple[int, int]:
        """Return the numbers of the oldest train in the log and of its first tuple.

        If the log is empty, they are those of the next train.
        """
        row = db.execute(
            "SELECT number, first_tuple FROM trains WHERE stream = ? AND kept"
            " ORDER BY number LIMIT 1", (stream,)
        ).fetchone()  # fmt: skip
        return (int(row[0]), int(row[1])) if row else self.end(db, stream)

    def letters_of(self, db: sqlite3.Connection, stream: str) -> int:
        """Return how many dead letters a stream has."""
        row = db.execute("SELECT records FROM letters WHERE stream = ?", (stream,)).fetchone()
        return int(row[0]) if row else 0

    def end(self, db: sqlite3.Connection, stream: str) -> tuple[int, int]:
        """Return the numbers of the next train and of its first tuple."""
        row = db.execute(
            "SELECT number + 1, first_tuple + tuples FROM trains WHERE stream = ?"
            " ORDER BY number DESC LIMIT 1", (stream,)
        ).fetchone()  # fmt: skip
        return (int(row[0]), int(row[1])) if row else (0, 0)

    def trains(self, stream: str, before: int | None = None) -> list[Train]:
        """Return the trains in the log, in order; with `before`, only those below that number."""
        end = self.next_train(stream) if before is None else before
        rows = self.read(
            "SELECT number, tuples, bytes, head_arrived_at_s, mean_arrived_at_s, top FROM trains"
            " WHERE stream = ? AND number < ? AND kept ORDER BY number", (stream, end)
        )  # fmt: skip
        return [Train(*row) for row in rows]

    def first_younger(self, stream: str, passed: int, before_s: float) -> int:
        """Return the first train in the log that is not both passed and older than an instant."""
        rows = self.read(
            "SELECT number FROM trains WHERE stream = ?1 AND kept"
            " AND (number >= ?2 OR mean_arrived_at_s > ?3) ORDER BY number LIMIT 1",
            (stream, passed, before_s),
        )
        return int(rows[0][0]) if rows else passed

    def next_train(self, stream: str) -> int:
        """Return the number of the next train."""
        rows = self.read("SELECT MAX(number) FROM trains WHERE stream = ?", (stream,))
        return 0 if rows[0][0] is None else int(rows[0][0]) + 1

    def has_batch(self, stream: str, source_batch: int) -> bool:
        """Return True if a source's batch is in the log already, so that a replay adds nothing."""
        return bool(self.read(
            "SELECT 1 FROM trains WHERE stream = ?1 AND source_batch = ?2 UNION ALL"
            " SELECT 1 FROM letters WHERE stream = ?1 AND source_batch = ?2", (stream, source_batch)
        ))  # fmt: skip

    def add_trains(
        self,
        new: Sequence[NewTrain],
        positions: Sequence[tuple[str, str, str]] = (),
        letters: Sequence[NewLetters] = (),
    ) -> None:
        """Add trains to the log together with the positions of their sources.

        Args:
            positions: stream, key and value; a source reads them again after a restart.
            letters: records of the same polls or batches that could not be parsed.
        """
        with self.transaction() as db:
            for new_train in new:
                self._add_train(db, new_train)
            db.executemany(
                "INSERT INTO letters VALUES (?, ?, ?, ?) ON CONFLICT (stream) DO UPDATE SET"
                " records = records + excluded.records, bytes = excluded.bytes,"
                " source_batch = excluded.source_batch",
                [astuple(new_letters) for new_letters in letters],
            )  # fmt: skip
            db.executemany("INSERT OR REPLACE INTO positions VALUES (?, ?, ?)", positions)

    def _add_train(self, db: sqlite3.Connection, new: NewTrain) -> None:
        train = new.train
        db.execute(
            "INSERT INTO trains (stream, number, source_batch, tuples, bytes, head_arrived_at_s,"
            " mean_arrived_at_s, first_tuple, first_letter, top, origin)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (new.stream, train.number, new.source_batch, train.tuples, train.bytes,
             train.head_arrived_at_s, train.mean_arrived_at_s, self.end(db, new.stream)[1],
             self.letters_of(db, new.stream), train.top, new.origin),
        )  # fmt: skip

    def first_tuple(self, stream: str, train: int) -> int:
        """Return the number of a train's first tuple in its stream."""
        rows = self.read(
            "SELECT first_tuple FROM trains WHERE stream = ? AND number = ?", (stream, train)
        )
        return int(rows[0][0])

    def arrived_at_s(self, stream: str, train: int) -> float:
        """Return when the tuples of a train arrived on average."""
        rows = self.read(
            "SELECT mean_arrived_at_s FROM trains WHERE stream = ? AND number = ?", (stream, train)
        )
        return float(rows[0][0])

    def top_of(self, stream: str, train: int) -> int | None:
        """Return the time that the producer of a derived stream had reached with a train."""
        rows = self.read("SELECT top FROM trains WHERE stream = ? AND number = ?", (stream, train))
        return None if rows[0][0] is None else int(rows[0][0])

    def origins(self, stream: str, first: int, end: int) -> tuple[int, int]:
        """Return the range of input trains that trains first, ..., end − 1 of a derived stream
        begin with: the first, and the one after the last.
        """
        rows = self.read(
            "SELECT MIN(origin), MAX(origin) + 1 FROM trains"
            " WHERE stream = ? AND number >= ? AND number < ?", (stream, first, end)
        )  # fmt: skip
        return int(rows[0][0]), int(rows[0][1])

    def tuples_of(self, stream: str, first: int, end: int) -> list[int]:
        """Return how many tuples each of the trains first, ..., end − 1 has."""
        rows = self.read(
            "SELECT tuples FROM trains WHERE stream = ? AND number >= ? AND number < ?"
            " ORDER BY number", (stream, first, end)
        )  # fmt: skip
        return [int(tuples) for (tuples,) in rows]

    def positions(self, stream: str) -> "Positions":
        """Return the positions that a stream's source has reported."""
        return Positions(self, stream)

    def letter_bytes(self, stream: str) -> int | None:
        """Return how many bytes of a stream's dead letters are valid; None if it never had any."""
        rows = self.read("SELECT bytes FROM letters WHERE stream = ?", (stream,))
        return int(rows[0][0]) if rows else None

    def letters_end(self, stream: str, end_bytes: int) -> None:
        """Record the size of a stream's file of dead letters, whoever has written or cut it."""
        with self.transaction() as db:
            db.execute(
                "INSERT INTO letters (stream, bytes) VALUES (?, ?)"
                " ON CONFLICT (stream) DO UPDATE SET bytes = excluded.bytes", (stream, end_bytes)
            )  # fmt: skip

    def letters(self) -> dict[str, int]:
        """Return the dead letters, over all runs, of each stream that has some."""
        return dict(self.read("SELECT stream, records FROM letters WHERE records", ()))

    def drop_trains(self, stream: str, before: int) -> None:
        """Record that trains are dropped, before their files are removed."""
        with self.transaction() as db:
            self.drop_lines(db, stream, before)

    def drop_lines(self, db: sqlite3.Connection, stream: str, before: int) -> None:
        """Record that trains are dropped.

        The newest keeps its row, which says which batch of the source was the last.
        """
        db.execute("UPDATE trains SET kept = 0 WHERE stream = ? AND number < ?", (stream, before))
        db.execute(
            "DELETE FROM trains WHERE stream = ?1 AND NOT kept AND number <"
            " (SELECT MAX(number) FROM trains WHERE stream = ?1)", (stream,)
        )  # fmt: skip

    def intend(self, results: Sequence[Result], derived: Sequence[Derived] = ()) -> int:
        """Commit a step's results, and return the number of the step.

        Cursors move, trains of derived streams are in their logs, and recovery will finish the
        renames.
        """
        with self.transaction() as db:
            self._steps += 1
            step = self._steps
            for result in results:
                moved = db.execute(
                    "UPDATE cursors SET next_train = ?, tuples_in = tuples_in + ?,"
                    " tuples_out = tuples_out + ?, delivered = delivered + ?, late = late + ?"
                    " WHERE query = ? AND next_train = ?",
                    (result.end_train, result.tuples_in, result.tuples_out, result.delivered,
                     result.late, result.query, result.first_train),
                )  # fmt: skip
                if moved.rowcount != 1:
                    raise RecoveryRefused(
                        subject=f"query '{result.query}'",
                        expected=f"its cursor at train {result.first_train}",
                        found="it at another train",
                        fix="keep other programs out of the state directory",
                    )
                if result.final is not None:
                    db.execute(
                        "INSERT INTO intents VALUES (?, ?, ?, ?)",
                        (step, result.query, str(result.temporary), str(result.final)),
                    )
            for addition in derived:
                if addition.new is not None:
                    self._add_train(db, addition.new)
                if addition.top is not None:
                    self._put_time(db, addition)
            return step

    def add_time(self, derived: Derived) -> None:
        """Record the time that the query of a derived stream has reached without a step.

        This need not be durable: after a crash the time is computed again.
        """
        with self.transaction(durable=False) as db:
            self._put_time(db, derived)

    def _put_time(self, db: sqlite3.Connection, derived: Derived) -> None:
        value = json.dumps([derived.top, derived.arrived_at_s])
        db.execute(
            "INSERT OR REPLACE INTO positions VALUES (?, ?, ?)", (derived.stream, TIME, value)
        )

    def derived_end(self, stream: str) -> tuple[int, int | None, float]:
        """Return where a derived stream ends: its next train, the time that its query has reached
        since the last train, and when the input for that arrived.
        """
        ((end, value),) = self.read(
            "SELECT (SELECT COALESCE(MAX(number) + 1, 0) FROM trains WHERE stream = ?1),"
            " (SELECT value FROM positions WHERE stream = ?1 AND key = ?2)", (stream, TIME)
        )  # fmt: skip
        top, arrived_at_s = (None, 0.0) if value is None else json.loads(value)
        return int(end), top, arrived_at_s

    def forget_derived(self, streams: Sequence[str]) -> None:
        """Delete derived streams and timelines, except their next number: others have seen it."""
        with self.transaction() as db:
            for stream in streams:
                self.drop_lines(db, stream, self.end(db, stream)[0])
                db.execute("DELETE FROM entries WHERE timeline = ?", (stream,))
                db.execute("DELETE FROM positions WHERE stream = ?", (stream,))
                db.execute("DELETE FROM streams WHERE name = ?", (stream,))

    def confirm(self, step: int, queries: Sequence[str]) -> None:
        """Record that the files of some queries of a step have their final names."""
        with self.transaction() as db:
            db.executemany(
                "DELETE FROM intents WHERE step = ? AND query = ?",
                [(step, query) for query in queries],
            )

    def unconfirmed(self) -> list[tuple[Path, Path]]:
        """Return the renames, from and to, that a crash may have left undone."""
        rows = self.read("SELECT temporary, final FROM intents ORDER BY step", ())
        return [(Path(temporary), Path(final)) for temporary, final in rows]

    def confirm_all(self) -> None:
        with self.transaction() as db:
            db.execute("DELETE FROM intents")

    def read(self, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT."""
        with self._lock:
            return self._db.execute(sql, values).fetchall()

    @contextmanager
    def transaction(self, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Run the block as one transaction.

        One that is not durable survives a crash of the process. It survives a crash of the machine
        once a later, durable one is committed.
        """
        with self._lock:
            self._db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")  # a full disk may be noticed only here
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _add_columns(self) -> None:
        """Add the columns that a journal of an older release does not have."""
        for table, column, kind in (
            ("trains", "first_letter", "INTEGER DEFAULT 0"),
            ("trains", "top", "INTEGER"),
            ("trains", "origin", "INTEGER"),
            ("entries", "reach", "INTEGER"),
        ):
            columns = {row[1] for row in self._db.execute(f"PRAGMA table_info({table})")}
            if column not in columns:
                self._db.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")

    def _check_version(self, state: Path) -> None:
        with self.transaction() as db:
            db.execute("INSERT OR IGNORE INTO about VALUES ('version', ?)", (str(VERSION),))
            version = db.execute("SELECT value FROM about WHERE key = 'version'").fetchone()[0]
            if version == "3":
                # Until version 4 all queries ran in UTC, whatever the session's zone was.
                version = str(VERSION)
                db.execute("INSERT OR IGNORE INTO about VALUES ('zone', 'UTC')")
                db.execute("UPDATE about SET value = ? WHERE key = 'version'", (version,))
        if version != str(VERSION):
            self.close()
            raise RecoveryRefused(
                subject=f"state directory {state}",
                expected=f"a journal of version {VERSION}",
                found=f"one of version {version}",
                fix="run the Headgate that wrote it, or begin with a new state directory",
            )


@dataclass(frozen=True)
class Positions(Mapping[str, str]):
    """A source's positions, read from the journal: a directory may have had millions of files."""

    journal: Journal
    stream: str

    def __getitem__(self, key: str) -> str:
        rows = self.journal.read(
            "SELECT value FROM positions WHERE stream = ? AND key = ?", (self.stream, key)
        )
        if not rows:
            raise KeyError(key)
        return str(rows[0][0])

    def __iter__(self) -> Iterator[str]:
        keys = self.journal.read("SELECT key FROM positions WHERE stream = ?", (self.stream,))
        return iter([key for (key,) in keys])

    def __len__(self) -> int:
        rows = self.journal.read("SELECT COUNT(*) FROM positions WHERE stream = ?", (self.stream,))
        return int(rows[0][0])
