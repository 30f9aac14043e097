"""After a crash: finish exactly the steps that were begun, clear away what never was."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path as File

from headgate.errors import RecoveryRefused
from headgate.model.network import Path
from headgate.spark.files import put, remove
from headgate.spark.journal import Journal
from headgate.spark.sinks import HIDDEN, FileSink


def recover(
    journal: Journal,
    sinks: Iterable[FileSink],
    reached: Callable[[str], None] = lambda point: None,
) -> int:
    """Gives every result of a journalled step its final name; gives how many were left undone.

    Args:
        reached: called at every point where a crash must lose nothing; a test raises there.
    """
    undone = 0
    for temporary, final in journal.unconfirmed():
        if temporary.exists():
            _finish(temporary, final)
            undone += 1
        elif not final.exists():
            raise RecoveryRefused(
                subject=f"results {final}",
                expected="the file of a journalled step, under its temporary or final name",
                found="neither",
                fix="restore the results folder from a copy, or begin with a new state directory",
            )
        reached("result recovered")
    journal.confirm_all()
    for sink in sinks:
        for path in (sink.folder / HIDDEN).iterdir():
            with suppress(OSError):  # read-only, say: it is in nobody's way
                remove(path)
    return undone


def _finish(temporary: File, final: File) -> None:
    try:
        put(temporary, final)
    except OSError as error:
        raise RecoveryRefused(
            subject=f"results {final}",
            expected="a directory in which the rename of a journalled step can be finished",
            found=error.strerror or str(error),
            fix=f"make {final.parent} writable, with room on its disk, and start again",
        ) from error


def refuse_old_results(journal: Journal, paths: Iterable[Path]) -> None:
    """Refuses a query that is new, or was dropped, and whose results folder has files.

    It begins with the oldest train that is kept, so its results would stand beside others of the
    same tuples, and nobody could tell them apart.
    """
    for path in paths:
        name, sink = path.query.name, path.query.sink
        if not sink.has_files or journal.knows_query(name) or not File(sink.path).is_dir():
            continue
        old = sorted(
            each.name for each in File(sink.path).iterdir() if not each.name.startswith((".", "_"))
        )
        if old:
            raise RecoveryRefused(
                subject=f"query '{name}'",
                expected=f"an empty results folder {sink.path} for a query that is new or was"
                " dropped",
                found=f"{len(old)} files there, {old[0]} the first",
                fix="move or remove the folder, or give the query another name or `sink.path`:"
                " its results would mix with the old ones",
            )
