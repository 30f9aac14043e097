"""The generation of a journal: how many durable transactions it has had, kept in two places.

The journal counts them, and a file beside it has the same number. If the file has the larger one,
the journal was set back: a copy was restored, or its `journal.db-wal` was lost. It would then read
and deliver again what it has forgotten.

SQLite first writes transactions to `journal.db-wal` and later copies them to `journal.db`. An older
`journal.db` beside the newest `journal.db-wal` lacks the transactions in between, which SQLite does
not notice. So the file beside it also has the generation that `journal.db` itself has reached.
"""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from headgate.errors import RecoveryRefused
from headgate.spark.journal.journal_schema import generation_of

FILE = "journal.generation"


class GenerationFile:
    """The file with the generation of a journal.

    It is written after each durable transaction, in place and without a flush: it survives the
    death of the process, and after that of the machine it is behind, which does no harm.
    """

    def __init__(self, state: Path) -> None:
        self._state = state
        self._file = os.open(state / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        numbers = [int(word) for word in os.pread(self._file, 64, 0).split() if word.isdigit()]
        self._newest, self._copied = (*numbers, 0, 0)[:2]  # an older release wrote the first alone

    def refuse_older_copy(self) -> None:
        """Compare the file with `journal.db` alone, before SQLite mixes it with `journal.db-wal`.

        Raises:
            RecoveryRefused: `journal.db` is older than its `journal.db-wal`.
        """
        copied = _generation_without_wal(self._state / "journal.db")
        if copied is not None and copied < self._copied:
            raise RecoveryRefused(
                subject=f"state directory {self._state}",
                expected=f"a journal.db with {self._copied} transactions in the file itself, as"
                f" {FILE} says",
                found=f"one with {copied}: it was set back, and a newer journal.db-wal may be"
                " beside it",
                fix="put the newest journal.db and journal.db-wal back; or restore the whole"
                " directory from one copy; or begin with a new state directory. To continue with"
                " this journal.db and deliver rows again, remove journal.db-wal, journal.db-shm and"
                f" {FILE}",
            )

    def refuse_set_back(self, generation: int) -> None:
        """Compare the file with the generation of the journal, at the start.

        Raises:
            RecoveryRefused: the journal was set back.
        """
        newest = self._newest
        if newest > generation:
            raise RecoveryRefused(
                subject=f"state directory {self._state}",
                expected=f"a journal.db with {newest} transactions, as {FILE} says",
                found=f"one with {generation}: it was set back, by a copy or without its"
                " journal.db-wal",
                fix="put the newest journal.db and journal.db-wal back; or restore the whole"
                " directory from one copy; or begin with a new state directory. To continue with"
                f" this journal and deliver rows again, remove {FILE}",
            )
        self.write(generation)
        os.fsync(self._file)

    def write(self, generation: int) -> None:
        """Write the generation of a transaction that is committed, so nothing may fail here."""
        with suppress(OSError):
            os.pwrite(self._file, b"%020d %020d\n" % (generation, self._copied), 0)

    def write_copied(self, generation: int) -> None:
        """Write that `journal.db` has all transactions up to a generation."""
        self._copied = generation
        self.write(generation)

    def close(self) -> None:
        os.close(self._file)


def _generation_without_wal(file: Path) -> int | None:
    """Return the generation in `journal.db` itself; None if it has none or cannot be read."""
    uri = f"{file.absolute().as_uri()}?mode=ro&immutable=1"  # immutable: the -wal is ignored
    try:
        with closing(sqlite3.connect(uri, uri=True)) as db:
            return generation_of(db)
    except (sqlite3.Error, TypeError):  # a new journal, or one that SQLite refuses later
        return None


def refuse_missing_journal(state: Path) -> None:
    """Refuse to begin a new journal beside what an older one has described.

    Raises:
        RecoveryRefused: there are trains, or the generation of a journal, and no journal.
    """
    if (state / "journal.db").exists():
        return
    trains = (state / "log").glob("*/[0-9]*.parquet")
    leftover = state / FILE if (state / FILE).exists() else next(trains, None)
    if leftover is not None:
        raise RecoveryRefused(
            subject=f"state directory {state}",
            expected=f"a journal.db, which belongs to {leftover.relative_to(state)}",
            found="none",
            fix="restore the whole directory from one copy, or begin with a new state directory",
        )
