"""The journal: one SQLite file per application that records what is ingested and committed."""

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from headgate.access import PRIVATE
from headgate.errors import RecoveryRefused
from headgate.spark.clock import Stopwatch
from headgate.spark.journal.generation import GenerationFile, refuse_missing_journal
from headgate.spark.journal.journal_rows import NewLetters, NewTrain, Train
from headgate.spark.journal.journal_schema import (
    VERSION,
    create_tables,
    generation_of,
    next_generation,
    upgrade,
)

CHECKPOINT_EVERY = 100
"""After so many transactions, SQLite copies them from `journal.db-wal` to `journal.db`."""


class Journal:
    """The journal of a state directory, safe to use from any thread.

    Every method is one transaction, durable unless its docstring says otherwise. Methods that take
    `db` run within the caller's transaction instead. The caller has locked the directory.
    """

    def __init__(self, state: Path) -> None:
        PRIVATE.folder(state)
        refuse_missing_journal(state)
        self.state = state
        self._lock = threading.Lock()
        self.storage = Stopwatch()
        """Runs while trains and results are written, flushed and journalled."""
        with suppress(OSError):  # SQLite says why it cannot be written
            PRIVATE.touch(state / "journal.db")  # its other files get the same permissions
        self._generation = GenerationFile(state)
        try:
            self._generation.refuse_older_copy()
        except RecoveryRefused:
            self._generation.close()
            raise
        self._db = sqlite3.connect(state / "journal.db", check_same_thread=False)
        self._db.isolation_level = None
        self._to_copy = 0
        """How many transactions `journal.db-wal` has since it was copied."""
        try:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA wal_autocheckpoint = 0")  # `_copy` notes what was copied
            create_tables(self._db)
            # Before the first transaction: each counts, also one of a start that is refused.
            self._generation.refuse_set_back(generation_of(self._db))
            self._copy()
            self._check_version(state)
        except RecoveryRefused:
            self.close()
            raise
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
            self._generation.close()

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

    def beginning(self, db: sqlite3.Connection, stream: str, since_s: float) -> tuple[int, int]:
        """Return the numbers of the first train since an instant, and of its first tuple.

        If there is none, they are those of the next train.
        """
        row = db.execute(
            "SELECT number, first_tuple FROM trains WHERE stream = ? AND kept"
            " AND head_arrived_at_s >= ? ORDER BY number LIMIT 1", (stream, since_s)
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
            "SELECT number, tuples, bytes, head_arrived_at_s, mean_arrived_at_s, top, checksum"
            " FROM trains WHERE stream = ? AND number < ? AND kept ORDER BY number", (stream, end)
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
                self.add_train(db, new_train)
            self.add_letters(db, letters)
            db.executemany("INSERT OR REPLACE INTO positions VALUES (?, ?, ?)", positions)

    def add_letters(self, db: sqlite3.Connection, letters: Sequence[NewLetters]) -> None:
        """Count dead letters that are written."""
        db.executemany(
            "INSERT INTO letters VALUES (?, ?, ?, ?) ON CONFLICT (stream) DO UPDATE SET"
            " records = records + excluded.records, bytes = excluded.bytes,"
            " source_batch = excluded.source_batch",
            [astuple(new_letters) for new_letters in letters],
        )  # fmt: skip

    def add_train(self, db: sqlite3.Connection, new: NewTrain) -> None:
        """Add a train to the log of its stream."""
        train = new.train
        db.execute(
            "INSERT INTO trains (stream, number, source_batch, tuples, bytes, head_arrived_at_s,"
            " mean_arrived_at_s, first_tuple, first_letter, top, origin, checksum)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (new.stream, train.number, new.source_batch, train.tuples, train.bytes,
             train.head_arrived_at_s, train.mean_arrived_at_s, self.end(db, new.stream)[1],
             self.letters_of(db, new.stream), train.top, new.origin, train.checksum),
        )  # fmt: skip

    def first_tuple(self, stream: str, train: int) -> int:
        """Return the number of a train's first tuple in its stream."""
        rows = self.read(
            "SELECT first_tuple FROM trains WHERE stream = ? AND number = ?", (stream, train)
        )
        return int(rows[0][0])

    def checksum(self, stream: str, train: int) -> int | None:
        """Return the checksum of a train's files; None if an older release has written it."""
        rows = self.read(
            "SELECT checksum FROM trains WHERE stream = ? AND number = ?", (stream, train)
        )
        return int(rows[0][0]) if rows and rows[0][0] is not None else None

    def arrived_at_s(self, stream: str, train: int) -> float:
        """Return when the tuples of a train arrived on average."""
        rows = self.read(
            "SELECT mean_arrived_at_s FROM trains WHERE stream = ? AND number = ?", (stream, train)
        )
        return float(rows[0][0])

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
                generation = next_generation(self._db) if durable else None
                self._db.execute("COMMIT")  # a full disk may be noticed only here
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            if generation is not None:
                self._generation.write(generation)
            self._to_copy += 1
            if self._to_copy >= CHECKPOINT_EVERY:
                self._copy()

    def _copy(self) -> None:
        """Copy `journal.db-wal` to `journal.db`, and note the generation that this has now.

        Nothing may fail here: what is committed stays in `journal.db-wal` until it is copied.
        """
        with suppress(sqlite3.Error):  # a full disk, for example
            self._to_copy = 0
            sql = "PRAGMA wal_checkpoint(PASSIVE)"
            busy, pages, copied = self._db.execute(sql).fetchone()
            if not busy and pages == copied:  # nobody else reads an old state of the journal
                self._generation.write_copied(generation_of(self._db))

    def _check_version(self, state: Path) -> None:
        with self.transaction() as db:
            version = upgrade(db)
        if version != str(VERSION):
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
