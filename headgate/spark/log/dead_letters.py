"""Dead letters: records of a source that could not be parsed, and rows that broke a query."""

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
from headgate.spark.output import RowLetter

FOLDER = "dead-letters"
OF_QUERIES = "queries/"
"""Begins the names of the files of queries, in the folder and in the journal."""

log = logging.getLogger("headgate.spark")


class LetterFile:
    """A file of dead letters, a line of JSON each; the journal says how many bytes are valid.

    What follows these bytes is from a poll or batch that a crash kept out of the journal. It is cut
    off, because its source delivers it again.

    Args:
        name: of the stream, or that of a query's file (`query_letters`).
    """

    def __init__(
        self,
        state: Path,
        name: str,
        journal: Journal,
        reached: Callable[[str], None] = lambda point: None,
    ) -> None:
        self.path = state / FOLDER / f"{name}.jsonl"
        self._name, self._journal, self._reached = name, journal, reached

    def sweep(self) -> None:
        """Cut off what a crash has left."""
        with suppress(OSError):  # missing or read-only: the next write reports it
            if self.path.stat().st_size:
                self._cut()

    def write(
        self, letters: Iterable[Letter | RowLetter], source_batch: int | None = None
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
        return NewLetters(self._name, records, self.path.stat().st_size, source_batch)

    def added(self, new: NewLetters) -> None:
        """Log letters that are now in the journal."""
        subject = "query" if self._name.startswith(OF_QUERIES) else "stream"
        name = self.path.stem
        log.warning("%s '%s': %s more dead letters in %s", subject, name, new.records, self.path)
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
        rows = self._journal.read("SELECT bytes FROM letters WHERE stream = ?", (self._name,))
        return int(rows[0][0]) if rows else None

    def _set_valid_bytes(self, size_bytes: int) -> None:
        """Record the size of the file, whoever has written or cut it."""
        with self._journal.transaction() as db:
            db.execute(
                "INSERT INTO letters (stream, bytes) VALUES (?, ?)"
                " ON CONFLICT (stream) DO UPDATE SET bytes = excluded.bytes",
                (self._name, size_bytes),
            )


def letter_counts(journal: Journal) -> dict[str, int]:
    """Return the number of dead letters, over all runs, of each stream that has any."""
    rows = journal.read("SELECT stream, records FROM letters WHERE records", ())
    return {name: records for name, records in rows if not name.startswith(OF_QUERIES)}


def query_letters(
    journal: Journal, query: str, version: int, reached: Callable[[str], None]
) -> LetterFile:
    """Return the file with the dead letters of a query; each version has one of its own."""
    name = query if version < 2 else f"{query}.v{version}"
    return LetterFile(journal.state, OF_QUERIES + name, journal, reached)


def sweep_query_letters(journal: Journal) -> None:
    """Cut off what a crash has left in the files of queries."""
    for file in (journal.state / FOLDER / OF_QUERIES).glob("*.jsonl"):
        LetterFile(journal.state, OF_QUERIES + file.stem, journal).sweep()
