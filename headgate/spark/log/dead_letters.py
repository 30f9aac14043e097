"""Dead letters: records of a source that could not be parsed."""

import json
import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from headgate.access import PRIVATE
from headgate.extensions import Letter
from headgate.spark.journal.journal import Journal
from headgate.spark.journal.journal_rows import NewLetters
from headgate.spark.log.files import flush_all

log = logging.getLogger("headgate.spark")


class LetterFile:
    """A stream's dead letters, a line of JSON each; the journal says how many bytes are valid.

    What follows these bytes is from a poll or batch that a crash kept out of the journal. It is cut
    off, because its source delivers it again.
    """

    def __init__(
        self,
        state: Path,
        stream: str,
        journal: Journal,
        reached: Callable[[str], None] = lambda point: None,
    ) -> None:
        self.path = state / "dead-letters" / f"{stream}.jsonl"
        self._stream, self._journal, self._reached = stream, journal, reached

    def sweep(self) -> None:
        """Cut off what a crash has left."""
        with suppress(OSError):  # missing or read-only: the next write reports it
            if self.path.stat().st_size:
                self._cut()

    def write(
        self, letters: Iterable[Letter], source_batch: int | None = None
    ) -> NewLetters | None:
        """Append letters, which count once the journal has them; return None if there are none."""
        lines = (f"{json.dumps(asdict(letter))}\n" for letter in letters)
        first = next(lines, None)
        if first is None:
            return None
        folder = self.path.parent
        PRIVATE.folder(folder)
        self._cut()
        records = 0
        with open(self.path, "a", encoding="ascii", opener=PRIVATE.opener) as out:
            for line in chain([first], lines):
                out.write(line)
                records += 1
        flush_all([self.path, folder, folder.parent])
        self._reached("letters written")
        return NewLetters(self._stream, records, self.path.stat().st_size, source_batch)

    def added(self, new: NewLetters) -> None:
        """Log letters that are now in the journal."""
        log.warning("stream '%s': %s more dead letters in %s", new.stream, new.records, self.path)
        self._reached("letters journalled")

    def _cut(self) -> None:
        size_bytes = self.path.stat().st_size if self.path.exists() else 0
        valid_bytes = self._valid_bytes()
        if valid_bytes is None or size_bytes < valid_bytes:
            # An earlier run did not count letters yet, or somebody has removed some.
            self._set_valid_bytes(size_bytes)
        elif size_bytes > valid_bytes:
            os.truncate(self.path, valid_bytes)

    def _valid_bytes(self) -> int | None:
        """Return how many bytes of the file are valid; None if it never had any."""
        rows = self._journal.read("SELECT bytes FROM letters WHERE stream = ?", (self._stream,))
        return int(rows[0][0]) if rows else None

    def _set_valid_bytes(self, size_bytes: int) -> None:
        """Record the size of the file, whoever has written or cut it."""
        with self._journal.transaction() as db:
            db.execute(
                "INSERT INTO letters (stream, bytes) VALUES (?, ?)"
                " ON CONFLICT (stream) DO UPDATE SET bytes = excluded.bytes",
                (self._stream, size_bytes),
            )


def letter_counts(journal: Journal) -> dict[str, int]:
    """Return the number of dead letters, over all runs, of each stream that has any."""
    return dict(journal.read("SELECT stream, records FROM letters WHERE records", ()))
