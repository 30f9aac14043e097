"""After a crash: finish exactly the steps that were begun, clear away what never was."""

from collections.abc import Iterable

from headgate.errors import RecoveryRefused
from headgate.spark.files import put, remove
from headgate.spark.journal import Journal
from headgate.spark.sinks import HIDDEN, FileSink


def recover(journal: Journal, sinks: Iterable[FileSink]) -> int:
    """Gives every result of a journalled step its final name; gives how many were left undone."""
    undone = 0
    for temporary, final in journal.unconfirmed():
        if temporary.exists():
            put(temporary, final)
            undone += 1
        elif not final.exists():
            raise RecoveryRefused(
                subject=f"results {final}",
                expected="the file of a journalled step, under its temporary or final name",
                found="neither",
                fix="restore the results folder from a copy, or begin with a new state directory",
            )
    journal.confirm_all()
    for sink in sinks:
        for path in (sink.folder / HIDDEN).iterdir():
            remove(path)
    return undone
