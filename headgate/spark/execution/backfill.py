"""The backfill of a query: tuples that were in the log before it was added."""

from headgate.model.network.network import FIRST, Path
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal


class Backfill:
    """Says which calls take backfill. Its tuples waited for their query, not for the scheduler."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._ends: dict[int, int] = {}
        """By unit, the train before which everything is backfill; 0 once it is past that."""

    def has(self, unit: int, path: Path, first_train: int) -> bool:
        """Return True if a call of a unit that begins with this train takes backfill."""
        if unit not in self._ends:
            name = path.query.name + (FIRST if path.is_rest else "")
            self._ends[unit] = Cursors(self._journal).backfill_end(name)
        if not self._ends[unit]:
            return False
        if path.is_rest:  # its trains are named by those of the source
            rows = self._journal.read(
                "SELECT MIN(origin) FROM trains WHERE stream = ? AND number >= ?",
                (path.stream, first_train),
            )
            first_train = rows[0][0] or 0
        if first_train >= self._ends[unit]:
            self._ends[unit] = 0
        return first_train < self._ends[unit]
