"""Intents: results that the journal has committed, with the renames that make them visible."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from headgate.errors import RecoveryRefused
from headgate.spark.journal.derived_trains import Derived, DerivedTrains
from headgate.spark.journal.journal import Journal
from headgate.spark.journal.journal_rows import NewLetters


@dataclass(frozen=True)
class Result:
    """What one query computed from a range of trains; no files if there were no rows.

    Args:
        letters_to: the train before which all bad tuples have letters, where that is not the
            cursor's: the query may have failed on such tuples before.
    """

    query: str
    first_train: int
    end_train: int
    tuples_in: int
    tuples_out: int
    delivered: int
    temporary: Path | None
    final: Path | None
    late: int = 0
    letters: NewLetters | None = None
    letters_to: int | None = None
    shed: int = 0

    @property
    def dead(self) -> int:
        """The number of tuples that became dead letters."""
        return 0 if self.letters is None else self.letters.records


@dataclass(frozen=True)
class Merge:
    """Files of a query that hold the rows of older ones.

    Args:
        renames: the temporary and the final name of each.
        replaced: the older files, and when each was modified.
        remove_at_s: when these may be removed; 0 if nobody could see them.
    """

    query: str
    renames: tuple[tuple[Path, Path], ...]
    replaced: Mapping[Path, int]
    remove_at_s: float = 0.0

    @property
    def listed(self) -> tuple[Path, ...]:
        """The older files that a manifest may list."""
        return tuple(self.replaced) if self.remove_at_s else ()


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

        Cursors move, dead letters count, trains of derived streams are in their logs, and recovery
        will finish the renames.
        """
        with self._journal.transaction() as db:
            self._steps += 1
            step = self._steps
            for result in results:
                moved = db.execute(
                    "UPDATE cursors SET next_train = ?, tuples_in = tuples_in + ?,"
                    " tuples_out = tuples_out + ?, delivered = delivered + ?, late = late + ?,"
                    " shed = shed + ?, dead = dead + ?, letters_to = COALESCE(?, letters_to)"
                    " WHERE query = ? AND next_train = ?",
                    (result.end_train, result.tuples_in, result.tuples_out, result.delivered,
                     result.late, result.shed, result.dead, result.letters_to, result.query,
                     result.first_train),
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
            new_letters = [result.letters for result in results if result.letters is not None]
            self._journal.add_letters(db, new_letters)
            for addition in derived:
                self._derived.add(db, addition)
            return step

    def replace(self, merges: Sequence["Merge"]) -> int:
        """Commit that files replace others, and return the number of the step.

        Recovery will finish the renames, and the replaced files do not count any more.
        """
        with self._journal.transaction() as db:
            self._steps += 1
            for merge in merges:
                db.executemany(
                    "INSERT INTO intents VALUES (?, ?, ?, ?)",
                    [(self._steps, merge.query, str(temporary), str(final))
                     for temporary, final in merge.renames],
                )  # fmt: skip
                db.executemany(
                    "INSERT OR REPLACE INTO replaced VALUES (?, ?, ?)",
                    [(str(file), modified_ns, merge.remove_at_s)
                     for file, modified_ns in merge.replaced.items()],
                )  # fmt: skip
            return self._steps

    def replaced(self, before_s: float = inf) -> list[tuple[Path, int]]:
        """Return the replaced files that may be removed before an instant, and when each was
        modified: a later file of the same name is another one."""
        rows = self._journal.read(
            "SELECT file, modified_ns FROM replaced WHERE remove_at_s < ?", (before_s,)
        )
        return [(Path(file), modified_ns) for file, modified_ns in rows]

    def removed(self, files: Sequence[Path]) -> None:
        """Forget replaced files that are removed.

        Not durable: a file that is removed already is removed again without harm.
        """
        with self._journal.transaction(durable=False) as db:
            db.executemany("DELETE FROM replaced WHERE file = ?", [(str(file),) for file in files])

    def confirm(self, results: Sequence[tuple[int, str]]) -> None:
        """Record that results, named by step and query, have their final names."""
        with self._journal.transaction() as db:
            db.executemany("DELETE FROM intents WHERE step = ? AND query = ?", results)

    def unconfirmed(self) -> dict[tuple[int, str], tuple[tuple[Path, Path], ...]]:
        """Return the renames that a crash may have left undone, by step and query."""
        rows = self._journal.read("SELECT * FROM intents ORDER BY step, rowid", ())
        renames: dict[tuple[int, str], tuple[tuple[Path, Path], ...]] = {}
        for step, query, hidden, final in rows:
            pair = Path(hidden), Path(final)
            renames[step, query] = (*renames.get((step, query), ()), pair)
        return renames
