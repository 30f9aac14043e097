"""The commit of what a call computed: all of it or nothing, exactly once."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as File

import pyarrow as pa

from headgate.errors import (
    LogUnwritable,
    ResultsHidden,
    SinkBehind,
    SinkUnwritable,
    TrainUnreadable,
)
from headgate.model.network.network import Path
from headgate.spark.journal.derived_trains import Derived, DerivedTrains
from headgate.spark.journal.intents import Intents, Result
from headgate.spark.journal.journal import Journal
from headgate.spark.log.dead_letters import LetterFile, query_letters
from headgate.spark.log.files import discard, unflushed
from headgate.spark.output import Output
from headgate.spark.sinks.derived_streams import DerivedStreams
from headgate.spark.sinks.files.file_sink import FileSink
from headgate.spark.sinks.files.renames import Rename, Renames
from headgate.spark.work import Work

Written = tuple[str, FileSink, tuple[tuple[File, File], ...]]
"""A query, its sink, and the temporary and the final name of its result."""


class Commits:
    """The commits of calls, to sinks and the journal; safe to use from several workers.

    Args:
        reached: called at every point where a crash must lose nothing; a test raises there.
        streams: receives what queries write to streams.
    """

    def __init__(
        self,
        journal: Journal,
        sinks: Mapping[str, FileSink],
        reached: Callable[[str], None],
        streams: DerivedStreams | None = None,
    ) -> None:
        self._journal, self._sinks = journal, sinks
        self._reached, self._streams = reached, streams
        self.intents, self._derived_trains = Intents(journal), DerivedTrains(journal)
        self.renames = Renames(self.intents, reached)

    def __call__(
        self,
        work: Work,
        outputs: Sequence[tuple[Path, Output]],
        late: tuple[int, int] = (0, 0),
    ) -> Mapping[str, Exception]:
        """Make the results visible, exactly once, and hand over those that are to be delivered.

        Return why some could not be written, by query.

        Results are written under temporary names, then journaled, then renamed: a reader of the
        folder sees a file whole or not at all, and a crash between any two lines loses nothing.

        Args:
            late: how many tuples came too late for windows by time, and how many have no time.
        """
        results: list[Result] = []
        written: list[Written] = []
        derived: list[Derived] = []
        unwritten: dict[str, Exception] = {}
        letter_files: dict[str, LetterFile] = {}
        for path, output in outputs:
            count = output.table.num_rows
            file = letter_files[path.query.name] = query_letters(
                self._journal, path.query.name, path.version, self._reached
            )
            try:
                new_letters = file.write(output.letters)
            except OSError as error:
                unwritten[path.query.name] = SinkUnwritable(
                    folder=str(file.path.parent), cause=error.strerror or str(error)
                )
                continue
            names: tuple[File | None, File | None] = (None, None)
            if path.into is not None:
                assert self._streams is not None
                try:
                    derived.append(self._streams.stage(path, output, work))
                except OSError as error:
                    cause = error.strerror or str(error)
                    unwritten[path.query.name] = LogUnwritable(stream=path.into, cause=cause)
                    continue
                except (pa.ArrowException, LogUnwritable, TrainUnreadable) as error:
                    unwritten[path.query.name] = error
                    continue
            elif count:
                sink = self._sinks[path.query.name]
                trains = work.first_train, work.end_train
                if path.is_rest:  # named by trains of the source, as the next run may not cut it
                    trains = self._derived_trains.origins(path.stream, *trains)
                names = temporary, final = sink.names(*trains)
                try:
                    self.renames.check(path.query.name)
                    sink.write(output.table, temporary)
                except OSError as error:  # concerns this query's directory alone
                    discard([temporary])
                    unwritten[path.query.name] = _unwritable(sink, error)
                    continue
                except (pa.ArrowException, ResultsHidden, SinkBehind) as error:
                    unwritten[path.query.name] = error
                    continue
                self._reached("result written")
                written.append((path.query.name, sink, ((temporary, final),)))
            late_counts = late if path.kind.by_time else (0, 0)
            in_time = work.tuples - sum(late_counts) - len(output.letters) - output.shed
            results.append(
                Result(
                    path.query.name,
                    work.first_train,
                    work.end_train,
                    work.tuples - output.shed,
                    count,
                    path.kind.delivered(count, in_time),
                    *names,
                    late_counts[0],
                    new_letters,
                    None if path.query.on_error == "fail" else work.end_train,
                    output.shed,
                )
            )
        files = [temporary for *_, ((temporary, _),) in written]
        try:
            unwritten |= self._unflushed(written, derived)
            results = [result for result in results if result.query not in unwritten]
            if not results:
                return unwritten
            self._reached("results written")
            step = self.intents.intend(results, derived)
        except (OSError, sqlite3.Error, LogUnwritable):
            discard(files)  # the next attempt writes others
            raise
        self._reached("step journalled")
        for result in results:
            if result.letters is not None:
                letter_files[result.query].added(result.letters)
        if self._streams is not None:
            self._streams.added(derived)
        journaled = [result for result in written if result[0] not in unwritten]
        self.renames.perform([Rename(step, *result) for result in journaled])
        return unwritten

    def _unflushed(
        self, written: Sequence[Written], derived: Sequence[Derived]
    ) -> dict[str, Exception]:
        """Flush results to disk; return why those of some queries could not be, by query.

        Raises:
            LogUnwritable: the disk of the state directory fails.
        """
        trains: dict[File, str] = {}
        if self._streams is not None:
            for addition in derived:
                files = self._streams.staged([addition])
                trains |= dict.fromkeys(files, addition.stream)
        errors = unflushed([*(temporary for *_, ((temporary, _),) in written), *trains])
        for file in trains.keys() & errors.keys():
            cause = errors[file].strerror or str(errors[file])
            raise LogUnwritable(stream=trains[file], cause=cause)
        failures: dict[str, Exception] = {}
        for query, sink, ((temporary, _),) in written:
            if temporary in errors:
                discard([temporary])
                failures[query] = _unwritable(sink, errors[temporary])
        return failures


def _unwritable(sink: FileSink, error: OSError) -> SinkUnwritable:
    return SinkUnwritable(folder=str(sink.folder), cause=error.strerror or str(error))
