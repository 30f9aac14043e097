"""Intents: results that the journal has committed, with the renames that make them visible."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import RecoveryRefused
from headgate.spark.log.derived_trains import Derived, DerivedTrains
from headgate.spark.log.journal import Journal


@dataclass(frozen=True)
class Result:
    """What one query computed from a range of trains; no files if there were no rows."""

    query: str
    first_train: int
    end_train: int
    tuples_in: int
    tuples_out: int
    delivered: int
    temporary: Path | None
    final: Path | None
    late: int = 0


class Intents:
    """The steps of a run in the journal, which one object has to number.

    A step becomes visible in three parts: `intend` (the point of no return: its results lie ready
    under temporary names, and every cursor has moved), then the renames, then `confirm`. Recovery
    finishes the renames of intents that were not confirmed, and does nothing else.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal, self._derived = journal, DerivedTrains(journal)
        ((last,),) = journal.read("SELECT max(step) FROM intents", ())
        self._steps = last or 0  # above those that the last run could not confirm

    def intend(self, results: Sequence[Result], derived: Sequence[Derived] = ()) -> int:
        """Commit a step's results, and return the number of the step.

        Cursors move, trains of derived streams are in their logs, and recovery will finish the
        renames.
        """
        with self._journal.transaction() as db:
            self._steps += 1
            step = self._steps
            for result in results:
                moved = db.execute(
                    "UPDATE cursors SET next_train = ?, tuples_in = tuples_in + ?,"
                    " tuples_out = tuples_out + ?, delivered = delivered + ?, late = late + ?"
                    " WHERE query = ? AND next_train = ?",
                    (result.end_train, result.tuples_in, result.tuples_out, result.delivered,
                     result.late, result.query, result.first_train),
                )  # fmt: skip
                if moved.rowcount != 1:
                    raise RecoveryRefused(
                        subject=f"query '{result.query}'",
                        expected=f"its cursor at train {result.first_train}",
                        found="it at another train",
                        fix="keep other programs out of the state directory",
                    )
                if result.final is not None:
                    db.execute(
                        "INSERT INTO intents VALUES (?, ?, ?, ?)",
                        (step, result.query, str(result.temporary), str(result.final)),
                    )
            for addition in derived:
                self._derived.add(db, addition)
            return step

    def confirm(self, results: Sequence[tuple[int, str]]) -> None:
        """Record that results, named by step and query, have their final names."""
        with self._journal.transaction() as db:
            db.executemany("DELETE FROM intents WHERE step = ? AND query = ?", results)

    def unconfirmed(self) -> list[tuple[int, str, Path, Path]]:
        """Return the renames that a crash may have left undone: step, query, from and to."""
        rows = self._journal.read("SELECT * FROM intents ORDER BY step", ())
        return [(step, query, Path(hidden), Path(final)) for step, query, hidden, final in rows]
