"""The generation of a journal: how many durable transactions it has had, kept in two places.

The journal counts them, and a file beside it has the same number. If the file has the larger one,
the journal was set back: a copy was restored, or its `journal.db-wal` was lost. It would then read
and deliver again what it has forgotten.
"""

import os
from contextlib import suppress
from pathlib import Path

from headgate.errors import RecoveryRefused

FILE = "journal.generation"


class GenerationFile:
    """The file with the generation of a journal.

    It is written after each durable transaction, in place and without a flush: it survives the
    death of the process, and after that of the machine it is behind, which does no harm.
    """

    def __init__(self, state: Path) -> None:
        self._state = state
        self._file = os.open(state / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def refuse_set_back(self, generation: int) -> None:
        """Compare the file with the generation of the journal, at the start.

        Raises:
            RecoveryRefused: the journal was set back.
        """
        text = os.pread(self._file, 32, 0).strip()
        newest = int(text) if text.isdigit() else 0
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
            os.pwrite(self._file, b"%020d\n" % generation, 0)

    def close(self) -> None:
        os.close(self._file)


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
