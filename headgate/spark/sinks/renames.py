"""Promises: results that the journal has made certain, on the way to their final names."""

import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import ResultsHidden
from headgate.spark.log.files import flush_all, put
from headgate.spark.log.journal import Journal
from headgate.spark.sinks.files import FileSink

log = logging.getLogger("headgate.spark")


@dataclass(frozen=True)
class Promise:
    """A result under its temporary name, which the journal says will be visible."""

    step: int
    query: str
    sink: FileSink
    temporary: Path
    final: Path


class Promises:
    """Keeps promises at once or, where a directory is away or a disk is full, as soon as it can.

    To run such a step again would write it twice, so it is only the rename that is tried again.
    Meanwhile the query makes no more results: they might land beside the directory that is away.
    After a crash, recovery does the same.

    Args:
        reached: called at every point where a crash must lose nothing; a test raises there.
    """

    def __init__(self, journal: Journal, reached: Callable[[str], None]) -> None:
        self._journal, self._reached = journal, reached
        self._late: dict[str, Promise] = {}
        self._turn = threading.Lock()

    def keep(self, promises: Sequence[Promise]) -> None:
        """Makes the results of a step visible; none of its queries is in another meanwhile."""
        kept, error = self._keep(promises)
        if error is not None:
            late = {each.query: each for each in promises if each not in kept}
            self._late |= late
            folders = ", ".join(sorted({str(each.sink.folder) for each in late.values()}))
            log.warning("results stay hidden, and are tried again: %s (%s)", error, folders)
        for each in kept:
            each.sink.settle()

    def check(self, query: str) -> None:
        """Refuses more results of a query as long as the last ones are hidden.

        Raises:
            ResultsHidden: they are.
        """
        if (late := self._late.get(query)) is not None:
            raise ResultsHidden(folder=str(late.sink.folder))

    def try_again(self) -> None:
        """Keeps promises that are late, as far as that is possible now."""
        with self._turn:
            for query, late in list(self._late.items()):
                kept, _ = self._keep([late])
                if kept:
                    del self._late[query]
                    log.warning("query '%s': its results are visible again", query)

    def forget(self, query: str) -> None:
        """Gives up what is late of a query that was dropped."""
        self.try_again()
        if (late := self._late.pop(query, None)) is not None:
            log.warning(
                "query '%s' is dropped, and its last result never got its name: %s",
                query, late.temporary,
            )  # fmt: skip

    def _keep(self, promises: Sequence[Promise]) -> tuple[list[Promise], Exception | None]:
        """Gives the promises that are kept now, and what is wrong with others."""
        kept: list[Promise] = []
        wrong: Exception | None = None
        for each in promises:
            try:
                if each.temporary.exists() or not each.final.exists():
                    put(each.temporary, each.final)
                self._reached("result visible")
                kept.append(each)
            except OSError as error:
                wrong = error
        if not kept:
            return [], wrong
        try:
            flush_all({each.sink.folder for each in kept})
            self._journal.confirm(kept[0].step, [each.query for each in kept])
        except (OSError, sqlite3.Error) as error:
            return [], error
        # Not before the step is confirmed: recovery looks for the files of one that is not.
        for each in kept:
            each.sink.hand_over(each.final)
        return kept, wrong
