"""The publisher: collected results become visible files, and small files become large ones.

Both are the same step. The rows of some files are written to a new, hidden one. The journal then
records its final name together with the files that it replaces, the point of no return. After that
come the rename and the manifest, and in the end the replaced files are removed: collected ones,
which nobody could see, at once, visible ones after an hour.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path

from headgate.spark.journal.intents import Intents, Merge
from headgate.spark.jvm.errors import cause_of
from headgate.spark.log.files import discard, unflushed
from headgate.spark.sinks.files import compaction
from headgate.spark.sinks.files.file_sink import FileSink
from headgate.spark.sinks.files.merging import (
    UNLIKE,
    discarded_on_failure,
    merged,
    partitioned,
)
from headgate.spark.sinks.files.renames import Rename, Renames
from headgate.spark.sinks.files.result_collection import ResultCollection

log = logging.getLogger("headgate.spark")

KEEP_S = 3600.0
"""How long files that a compaction has replaced stay where they are, for readers that have them."""

RETRY_S = 1.0
"""After so long, results that could not be merged are tried again."""

LOOK_EVERY_S = 1.0
"""How often the publisher looks for small files, and for replaced ones that are due."""

IDLE_SHARE = 3.0
"""After a compaction, the publisher pauses for this many times the compaction's duration."""


class Publisher:
    """Makes collected results visible at their rhythm, and compacts, in a thread of its own.

    Args:
        reached: called at every point where a crash must lose nothing; a test raises there.
        gone: called after an attempt to publish the last results of queries that end.
    """

    def __init__(
        self,
        intents: Intents,
        renames: Renames,
        sinks: Mapping[str, FileSink],
        reached: Callable[[str], None],
        gone: Callable[[], None] = lambda: None,
    ) -> None:
        self._intents, self._renames, self._sinks = intents, renames, sinks
        self._reached, self._gone = reached, gone
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = self._woken = False
        self._ending: dict[str, bool] = {}
        """Queries that end, and whether the publisher has tried to publish their last results."""

    def begin(self) -> None:
        """Remove what earlier merges have replaced, and take up what waits."""
        self.remove_replaced()
        self.adopt(*self._sinks)

    def adopt(self, *queries: str) -> None:
        """Take up the sinks of queries, with what an earlier run has left."""
        replaced = {file for file, _ in self._intents.replaced()}
        for query in queries:
            self._adopt(self._sinks[query], replaced)

    def _adopt(self, sink: FileSink, replaced: Collection[Path]) -> None:
        if sink.collected is None:
            return
        sink.collected.wake = self._wake
        sink.collected.resume(replaced)
        if sink.collects or sink.settings.compact or sink.collected.waiting():
            with self._changed:
                if self._thread is None and not self._closing:
                    self._thread = threading.Thread(
                        target=self._run, name="headgate-publisher", daemon=True
                    )
                    self._thread.start()

    def has_ended(self, query: str) -> bool:
        """Return True once no result of a query that ends waits to become visible.

        Until then, its results become visible at once, whatever the rhythm. If that fails, they
        stay hidden, the log says how many they are, and the answer is True all the same.
        """
        collected = self._sinks[query].collected
        left = [] if collected is None else collected.waiting()
        with self._changed:
            if not left or self._ending.setdefault(query, False):
                self._ending.pop(query, None)
                if left:
                    log.warning(
                        "query '%s' leaves, and its last results were not made visible: %s of"
                        " them, %s the first", query, len(left), left[0],
                    )  # fmt: skip
                return True
        self._wake()
        return False

    def close(self, patience_s: float) -> None:
        """Make visible what waits, for at most so long; the rest waits for the next start."""
        self._closing = True
        self._wake()
        if self._thread is not None:
            self._thread.join(max(0.0, patience_s))

    def publish(self, queries: Iterable[str]) -> None:
        """Make the collected results of queries visible, in one step."""
        sinks = {query: sink for query in queries if (sink := self._sinks.get(query)) is not None}
        merges = [merge for query, sink in sinks.items()
                  if (merge := self._of_collected(query, sink)) is not None]  # fmt: skip
        for merge in self._replace(merges, sinks):
            collected = _collected(sinks[merge.query])
            collected.remove(merge.replaced)
            collected.retry_at_s = 0.0

    def compact(self) -> None:
        """Merge small visible files where there are many."""
        sinks = {query: sink for query, sink in list(self._sinks.items()) if sink.settings.compact}
        merges: list[Merge] = []
        for query, sink in sinks.items():
            try:
                if (merge := self._of_small(query, sink)) is not None:
                    merges.append(merge)
            except OSError as error:  # its folder is away, for example
                log.warning("query '%s': its files are not compacted now: %s", query, error)
        self._replace(merges, sinks)

    def remove_replaced(self) -> None:
        """Remove the replaced files that are due."""
        removed: list[Path] = []
        for file, modified_ns in self._intents.replaced(time.time()):
            try:
                if file.stat().st_mtime_ns == modified_ns:
                    file.unlink()
            except FileNotFoundError:  # somebody else has removed it, unless its folder is away
                if not file.parent.is_dir():
                    continue
            except OSError as error:
                log.info("the replaced file %s stays: %s", file, error)
                continue
            self._reached("replaced file removed")
            removed.append(file)
        if removed:
            self._intents.removed(removed)

    def _run(self) -> None:
        look_at_s = 0.0
        while True:
            closing = self._wait()
            try:
                self._publish_due(closing)
                if closing:
                    return
                began_s = time.monotonic()
                if began_s >= look_at_s:
                    self.remove_replaced()
                    self.compact()
                    now_s = time.monotonic()
                    look_at_s = now_s + max(LOOK_EVERY_S, IDLE_SHARE * (now_s - began_s))
            except Exception as error:  # results must not stay hidden because one merge has failed
                if closing:
                    return  # the next start goes on
                log.warning("results are not merged, and it is tried again: %s", cause_of(error))
                self._wait(RETRY_S)

    def _wait(self, pause_s: float = 0.0) -> bool:
        """Wait until something is due, or for a pause; return True if the run ends."""
        with self._changed:
            waiting = [sink.collected for sink in list(self._sinks.values()) if sink.collected]
            due_at_s = min((collected.due_at_s for collected in waiting), default=inf)
            left_s = max(pause_s, min(due_at_s - time.monotonic(), LOOK_EVERY_S))
            if left_s > 0 and not self._closing and not (self._woken and not pause_s):
                self._changed.wait(left_s)
            self._woken = False
            return self._closing

    def _wake(self) -> None:
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def _publish_due(self, closing: bool) -> None:
        """Make visible what is due, and everything of queries and runs that end."""
        now_s, ending = time.monotonic(), list(self._ending)
        due = [
            query
            for query, sink in list(self._sinks.items())
            if sink.collected is not None
            and (sink.collected.due_at_s <= now_s or closing or query in ending)
        ]
        try:
            self.publish(due)
        finally:
            if ending:
                with self._changed:
                    self._ending.update(dict.fromkeys(self._ending.keys() & ending, True))
                self._gone()

    def _of_collected(self, query: str, sink: FileSink) -> Merge | None:
        """Write the collected results of a query to hidden files; return None if none waits."""
        collected = _collected(sink)
        inputs = collected.waiting()
        if not inputs:
            return None
        try:
            collected.folder.stat()  # what is away is not removed
            replaced = _modified(inputs)
            collected.remove([file for file in inputs if file not in replaced])
            # A sink of another format may have left the first ones.
            files = [file for file in replaced if file.suffixes == inputs[0].suffixes]
            renames = self._visible(sink, files) if files else []
        except Exception as error:  # whatever it is, other queries' results become visible
            _note_failure(query, collected, error)
            return None
        if not renames:
            return None
        return Merge(query, tuple(renames), {file: replaced[file] for file in files})

    def _visible(self, sink: FileSink, files: Sequence[Path]) -> list[tuple[Path, Path]]:
        """Write collected results to hidden files; return their names and their final ones."""
        by_partition = sink.settings.partition_by and files[0].suffixes[0] == f".{sink.format}"

        def renames_of(files: Sequence[Path]) -> list[tuple[Path, Path]]:
            if by_partition:
                return partitioned(sink, files, _go_on)
            return [merged(sink, files, sink.folder, _go_on)]

        try:
            return renames_of(files)
        except UNLIKE:  # the columns of a table that is joined may have changed
            with discarded_on_failure() as renames:
                for file in files:
                    renames += renames_of([file])
            return renames

    def _of_small(self, query: str, sink: FileSink) -> Merge | None:
        """Merge small files of a query into hidden ones; return None if there are few."""
        if sink.manifest is None or not sink.manifest.path.exists():
            return None
        replaced: dict[Path, int] = {}
        with discarded_on_failure() as renames:
            for folder in sink.manifest.grown(compaction.FEW):
                names = [(file, count) for file, count in sink.manifest.files_in(folder)
                         if file.suffix == f".{sink.format}"]  # fmt: skip
                files = compaction.chosen(names, sink.settings.target_bytes)
                modified_ns = _modified(files)
                if missing := [file for file in files if file not in modified_ns]:
                    log.warning(
                        "query '%s': %s of its results were removed by somebody, %s the first",
                        query, len(missing), missing[0],
                    )  # fmt: skip
                    sink.manifest.replace(missing, [])
                if len(modified_ns) < 2:
                    continue
                try:
                    renames.append(merged(sink, list(modified_ns), folder, self._go_on))
                except _Closing:
                    break
                except UNLIKE as error:
                    log.warning("query '%s': files of %s are not merged: %s", query, folder, error)
                else:
                    replaced |= modified_ns
        return Merge(query, tuple(renames), replaced, time.time() + KEEP_S) if renames else None

    def _replace(self, merges: Sequence[Merge], sinks: Mapping[str, FileSink]) -> Sequence[Merge]:
        """Make hidden files visible in place of those that they replace.

        Return the merges that the journal has; files that cannot be flushed concern theirs alone.
        """
        merges = self._flushed(merges, sinks)
        if not merges:
            return []
        try:
            self._reached("files merged")
            step = self._intents.replace(merges)
        except (OSError, sqlite3.Error):
            discard(temporary for merge in merges for temporary, _ in merge.renames)
            raise
        self._reached("merge journalled")
        self._renames.perform([
            Rename(step, merge.query, sinks[merge.query], merge.renames, merge.listed)
            for merge in merges
        ])  # fmt: skip
        self.remove_replaced()
        return merges

    def _flushed(self, merges: Sequence[Merge], sinks: Mapping[str, FileSink]) -> list[Merge]:
        """Flush hidden files to disk; return the merges for which that was possible."""
        errors = unflushed([temporary for merge in merges for temporary, _ in merge.renames])
        durable: list[Merge] = []
        for merge in merges:
            files = [temporary for temporary, _ in merge.renames]
            if causes := [errors[file] for file in files if file in errors]:
                discard(files)
                _note_failure(merge.query, _collected(sinks[merge.query]), causes[0])
            else:
                durable.append(merge)
        return durable

    def _go_on(self) -> None:
        if self._closing:
            raise _Closing


class _Closing(Exception):
    """The run ends, and a compaction that has begun does not matter."""


def _go_on() -> None:
    """Finish what has begun: results become visible when a run ends."""


def _collected(sink: FileSink) -> ResultCollection:
    assert sink.collected is not None
    return sink.collected


def _note_failure(query: str, collected: ResultCollection, error: Exception) -> None:
    """Have the results of a query be merged again later; warn of the first failure."""
    if not collected.retry_at_s:
        log.warning(
            "query '%s': its results cannot become visible, and it is tried again: %s",
            query, cause_of(error),
        )  # fmt: skip
    collected.retry_at_s = time.monotonic() + RETRY_S


def _modified(files: Iterable[Path]) -> dict[Path, int]:
    """Return when files were modified, without those that somebody has removed."""
    modified_ns: dict[Path, int] = {}
    for file in files:
        with suppress(FileNotFoundError):
            modified_ns[file] = file.stat().st_mtime_ns
    return modified_ns
