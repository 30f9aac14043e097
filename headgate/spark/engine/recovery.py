"""Recovery at a start: finish journaled steps, remove leftovers, find where queries resume."""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path as File

from pyspark.sql import SparkSession

from headgate.access import PRIVATE
from headgate.errors import RecoveryRefused
from headgate.model.network.network import FIRST, REST, Network, Path
from headgate.model.query import Sink
from headgate.result_files import visible
from headgate.spark.event_time.store import Store
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.cut_cursors import CutCursors
from headgate.spark.journal.intents import Intents
from headgate.spark.journal.journal import Journal
from headgate.spark.jvm.time_zone import SESSION_ZONE, same_zone, zone_of
from headgate.spark.log.files import HIDDEN, flush_all, remove
from headgate.spark.sinks.files.file_sink import FileSink
from headgate.spark.sinks.files.renames import Rename, finish
from headgate.spark.sinks.files.result_collection import COLLECTED

log = logging.getLogger("headgate.spark")

RESULT = re.compile(r"\d{12}-(\d{12})(\.\w+)+")
"""The name of a result: its first and its last train."""


def refuse_other_zone(session: SparkSession, journal: Journal, state: File) -> None:
    """Record the session's time zone at the first start, and refuse another at a later one.

    Raises:
        RecoveryRefused: the zones differ; results in two zones would not fit together.
    """
    zone = zone_of(session)
    first_zone = journal.remember_zone(zone)
    if first_zone != zone and not same_zone(session, first_zone, zone):
        raise RecoveryRefused(
            subject=f"state directory {state}",
            expected=f"the time zone in which its queries began, {first_zone}",
            found=f"a Spark session in {zone}",
            fix=f"set {SESSION_ZONE} to {first_zone}, in the session that you pass in or under"
            " spark.config of the pipeline file, or begin with a new state directory",
        )


def recover(
    journal: Journal,
    sinks: Mapping[str, FileSink],
    reached: Callable[[str], None] = lambda point: None,
) -> tuple[int, list[Rename]]:
    """Give every result of a journaled step its final name.

    Return how many did not have it yet, and the renames that are not possible now: the query of
    such a result waits for it, and the others begin.

    Args:
        sinks: by query.
        reached: called at every point where a crash must lose nothing; a test raises there.
    """
    undone, intents = 0, Intents(journal)
    late: list[Rename] = []
    done: list[tuple[int, str]] = []
    replaced = [file for file, _ in intents.replaced()]
    for (step, query), files in intents.unconfirmed().items():
        sink = sinks.get(query)
        if sink is not None and sink.folder.absolute() != files[0][0].parent.parent.absolute():
            sink = None  # of another version: nothing writes to this folder in this run
        try:
            for temporary, final in files:
                undone += finish(query, temporary, final, sink.access if sink else PRIVATE)
            _list(files, replaced, sink)
        except OSError as error:
            log.warning("query '%s': its result %s stays hidden: %s", query, files[0][1], error)
            if sink is not None:
                late.append(Rename(step, query, sink, files, replaced))
            continue
        reached("result recovered")
        done.append((step, query))
    intents.confirm(done)
    hidden_results = {temporary for rename in late for temporary, _ in rename.files}
    for sink in sinks.values():
        hidden = sink.folder / HIDDEN
        with suppress(OSError):  # read-only, for example: leftovers do no harm
            for path in set(hidden.iterdir()) - hidden_results if hidden.is_dir() else ():
                remove(path)
    return undone, late


def _list(
    files: Sequence[tuple[File, File]], replaced: Sequence[File], sink: FileSink | None
) -> None:
    """List results that have their final names now, if their folder has a manifest.

    Args:
        replaced: all files that were replaced; those of this folder are not listed any more.
        sink: None if nothing writes to the folder in this run.
    """
    folder = files[0][0].parent.parent
    if sink is None:
        sink = FileSink(Sink(path=str(folder)))
        sink.gather(sink.settings)
    in_folder = [file for file in replaced if file.is_relative_to(folder)]
    flush_all(sink.show([final for _, final in files], in_folder), missing_ok=True)


def resumed(path: Path, network: Network, journal: Journal, store: Store) -> int:
    """Return the train that a unit resumes at; warn if its query has missed tuples."""
    query = path.query
    _fit_cut(path, network, journal, store)
    timeline = store.timelines.get(path.stream)
    sources = (path.stream,) if timeline is None else timeline.streams
    cursor = Cursors(journal).remember(
        query.name, query.sql, path.stream, sources, path.version, path.since_s
    )
    if cursor.missed:
        log.warning(
            "query '%s' was away too long: retention has dropped %s tuples of stream '%s' that"
            " it has not seen; it goes on with train %s",
            query.name, cursor.missed, path.stream, cursor.train,
        )  # fmt: skip
    return cursor.train


def _fit_cut(path: Path, network: Network, journal: Journal, store: Store) -> None:
    """Convert the cursors of a query that is cut now but was not in its last run, or vice versa."""
    cuts, name = CutCursors(journal), path.query.name
    if path.first_of is not None:
        query = next(rest.query for rest in network.paths if rest.query.name == path.first_of)
        Cursors(journal).refuse_other_text(query.name, query.sql)
        if not cuts.cut(query.name, path.query.sql):
            cuts.rejoin(query.name)
            store.reopen(query.name + REST)
            cuts.cut(query.name, path.query.sql)
    elif path.stream != name + REST and cuts.is_cut(name):
        cuts.rejoin(name)
        store.remove(name + REST)


def refuse_old_results(journal: Journal, paths: Iterable[Path]) -> None:
    """Refuse queries whose results folder has files that the journal does not know.

    A query that is new, or was dropped, begins with the oldest train in the log. Its results would
    stand beside older results for the same tuples, and nobody could tell them apart. The same holds
    for results of trains that a query has not read yet, according to a journal that was set back.
    """
    cursors = Cursors(journal)
    for path in paths:
        name, sink = path.query.name, path.query.sink
        _refuse_undelivered(path, journal.state / "outbox" / name)
        if not sink.has_files or not File(sink.path).is_dir():
            continue
        try:
            old = sorted(visible(File(sink.path)))
        except OSError:
            continue  # it cannot be written either: the query fails, and is asked again
        collected = File(sink.path) / COLLECTED
        old += [str(file) for file in sorted(collected.glob("*"))]
        # Results of a cut query are named by the trains of its source.
        end = cursors.train_of(name + FIRST)
        end = cursors.train_of(name) if end is None else end
        end = None if path.version > cursors.version(name) else end
        if end is not None:
            _refuse_newer_results(path, old, end)
        elif old:
            raise RecoveryRefused(
                subject=f"query '{name}'",
                expected=f"an empty results folder {sink.path} for a query that is new or was"
                " dropped",
                found=f"{len(old)} files there, {old[0]} the first",
                fix="move or remove the folder, or give the query another name or `sink.path`:"
                " its results would mix with the old ones",
            )


def _refuse_undelivered(path: Path, outbox: File) -> None:
    """Refuse a query that delivers nothing, but has results that wait for delivery."""
    if not path.query.sink.has_files and path.into is None:
        return  # its sink takes them
    if waiting := list(outbox.glob("*.parquet")):
        raise RecoveryRefused(
            subject=f"query '{path.query.name}'",
            expected="a sink that takes the results of the last run that have not arrived",
            found=f"{len(waiting)} of them in {outbox}, and a sink that delivers nothing",
            fix="restore the sink until they have arrived, or move them away to give them up",
        )


def _refuse_newer_results(path: Path, files: Iterable[str], end: int) -> None:
    """Refuse a query that has results of train `end` or later, which it is about to read."""
    name, folder = path.query.name, path.query.sink.path
    matches = [(file, RESULT.fullmatch(File(file).name)) for file in files]
    newer = [file for file, match in matches if match and int(match[1]) >= end]
    if newer:
        raise RecoveryRefused(
            subject=f"query '{name}'",
            expected=f"no results in {folder} of train {end} or later, which it has not read,"
            " as the journal says",
            found=f"{len(newer)} files of such trains, {newer[0]} the first: the journal was set"
            " back",
            fix="restore the state directory and the results from the same copy, or begin with a"
            " new state directory. To continue with this journal, move these files away: their rows"
            " are delivered again",
        )
