"""Renames: results that are committed, but do not have their final names yet."""

import errno
import logging
import os
import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from headgate.access import PRIVATE, Access
from headgate.errors import ResultsHidden
from headgate.spark.journal.intents import Intents
from headgate.spark.log.files import flush_all, put
from headgate.spark.sinks.files.file_sink import FileSink

log = logging.getLogger("headgate.spark")


@dataclass(frozen=True)
class Rename:
    """Results of a query that the journal has promised to give their final names.

    Args:
        files: the temporary and the final name of each.
        replaced: listed files whose rows are in these.
    """

    step: int
    query: str
    sink: FileSink
    files: tuple[tuple[Path, Path], ...]
    replaced: Collection[Path] = ()

    @property
    def key(self) -> tuple[int, str]:
        return self.step, self.query


def finish(query: str, temporary: Path, final: Path, access: Access = PRIVATE) -> bool:
    """Give a committed result its final name; return True if it did not have it yet.

    A result that has neither name was moved or removed by somebody else. That concerns its query
    alone: it is reported, and nobody waits for it.

    Args:
        access: who may read the folder of the result, if it is a new one.

    Raises:
        OSError: the folder is away, or cannot be written.
    """
    with suppress(FileNotFoundError):  # the file or the folder: looking first takes longer
        put(temporary, final)
        return True
    if temporary.exists():
        access.folder(final.parent)
        put(temporary, final)
        return True
    folder = temporary.parent.parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    if not final.exists():
        log.warning(
            "query '%s': its result %s is gone, somebody has moved or removed it; the query goes on"
            " after it",
            query, final,
        )  # fmt: skip
    return False


class Renames:
    """The renames of committed results, retried while a directory is away or a disk is full.

    To run the step again would write its results twice, so only the rename is retried. Meanwhile
    the query computes no more results: they might land beside the directory that is away. After a
    crash, recovery does the same.

    Args:
        reached: called at every point where a crash must lose nothing; a test raises there.
    """

    def __init__(self, intents: Intents, reached: Callable[[str], None]) -> None:
        self._intents, self._reached = intents, reached
        self._late: dict[tuple[int, str], Rename] = {}

    def adopt(self, late: Sequence[Rename]) -> None:
        """Retry renames that recovery could not finish."""
        self._late |= {rename.key: rename for rename in late}

    def perform(self, renames: Sequence[Rename]) -> None:
        """Make the results of a step visible; none of its queries is in another step meanwhile."""
        done, error = self._perform(renames)
        if error is not None:
            late = {rename.key: rename for rename in renames if rename not in done}
            self._late |= late
            folders = ", ".join(sorted({str(rename.sink.folder) for rename in late.values()}))
            log.warning("results stay hidden, and are tried again: %s (%s)", error, folders)
        for rename in done:
            rename.sink.settle()

    def check(self, query: str) -> None:
        """Refuse more results of a query as long as its last ones are hidden.

        Raises:
            ResultsHidden: they are hidden.
        """
        for late in self._of(query):
            raise ResultsHidden(folder=str(late.sink.folder))

    def hides(self, query: str) -> bool:
        """Return True if results of a query are committed and hidden."""
        return bool(self._of(query))

    def hand_to(self, query: str, sink: FileSink) -> None:
        """Show results that are hidden by a new sink, which takes the place of another one.

        Only the loop does.
        """
        for late in self._of(query):
            self._late[late.key] = replace(late, sink=sink)

    def try_again(self) -> None:
        """Retry the renames that failed; only the loop does, and `close` after its end."""
        for key, late in sorted(self._late.items()):
            done, _ = self._perform([late])
            if done:
                del self._late[key]
                log.warning("query '%s' writes results again", late.query)

    def forget(self, query: str) -> None:
        """Retry the renames that failed, then give up that of a query that was dropped."""
        self.try_again()
        for late in self._of(query):
            del self._late[late.key]
            log.warning(
                "query '%s' was dropped, and its last result was never made visible: %s",
                query, late.files[0][0],
            )  # fmt: skip

    def _of(self, query: str) -> list[Rename]:
        return [late for late in list(self._late.values()) if late.query == query]

    def _perform(self, renames: Sequence[Rename]) -> tuple[list[Rename], Exception | None]:
        """Rename results; return the renames that are done, and the error of the others."""
        done: list[Rename] = []
        failure: Exception | None = None
        to_flush: set[Path] = set()
        for rename in renames:
            try:
                for temporary, final in rename.files:
                    finish(rename.query, temporary, final, rename.sink.access)
                self._reached("result visible")
                finals = [final for _, final in rename.files]
                to_flush.update(rename.sink.show(finals, rename.replaced))
                done.append(rename)
            except OSError as error:
                failure = error
        if not done:
            return [], failure
        try:
            flush_all(to_flush, missing_ok=True)
            self._intents.confirm([rename.key for rename in done])
        except (OSError, sqlite3.Error) as error:
            return [], error
        # Only after the step is confirmed: recovery looks for the files of one that is not.
        for rename in done:
            for _, final in rename.files:
                rename.sink.hand_over(final)
        return done, failure
