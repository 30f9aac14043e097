"""Dead letters: records that a source had and nobody could read."""

import json
import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from headgate.spark.log.files import flush_all
from headgate.spark.log.journal import Journal, NewLetters

log = logging.getLogger("headgate.spark")


@dataclass(frozen=True)
class Letter:
    """A record that could not be read: where it was, what it was, why."""

    place: str
    record: str
    reason: str


class LetterFile:
    """A stream's dead letters, a line of JSON each; the journal says how far the file counts.

    What lies behind that is of a poll or a batch that a crash has kept out of the journal. It is
    cut off: its source brings it again.
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
        with suppress(OSError):  # not there, or read-only: whoever writes the next tells
            if self.path.stat().st_size:
                self._cut()

    def write(
        self, letters: Iterable[Letter], source_batch: int | None = None
    ) -> NewLetters | None:
        """Writes letters down, to count once the journal has them; None where there are none."""
        lines = (f"{json.dumps(asdict(letter))}\n" for letter in letters)
        first = next(lines, None)
        if first is None:
            return None
        folder = self.path.parent
        folder.mkdir(parents=True, exist_ok=True)
        self._cut()
        records = 0
        with self.path.open("a", encoding="ascii") as out:
            for line in chain([first], lines):
                out.write(line)
                records += 1
        flush_all([self.path, folder, folder.parent])
        self._reached("letters written")
        return NewLetters(self._stream, records, self.path.stat().st_size, source_batch)

    def added(self, new: NewLetters) -> None:
        """Tells of letters that the journal has."""
        log.warning("stream '%s': %s dead letters more in %s", new.stream, new.records, self.path)
        self._reached("letters journalled")

    def _cut(self) -> None:
        found = self.path.stat().st_size if self.path.exists() else 0
        counted = self._journal.letter_bytes(self._stream)
        if counted is None or found < counted:
            # Of a run that did not count them yet; or somebody has taken letters away.
            self._journal.letters_end(self._stream, found)
        elif found > counted:
            os.truncate(self.path, counted)
