"""Cursors of a query that was whole in the last run and is cut now, or the other way round.

A cut query has two cursors: that of its first segment, over the source, and its own, over the
hidden stream between the two segments. Every train of the hidden stream records the source train
that it begins with, and the source keeps its trains until the query has passed what they became. So
a query can always continue uncut from the source, with exactly the tuples it has not committed.
"""

import sqlite3

from headgate.model.network.network import FIRST, REST
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal


class CutCursors:
    """The cursors of cut queries, changed before the queries continue."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def is_cut(self, query: str) -> bool:
        """Return True if a query was cut in its last run."""
        rows = self._journal.read("SELECT stream FROM cursors WHERE query = ?", (query,))
        return bool(rows) and rows[0][0] == query + REST

    def cut(self, query: str, first: str) -> bool:
        """Give a query that has run before a cursor for its first segment.

        Return False if the query was cut at another place. What waits between its segments must
        then be removed first (`rejoin`).

        Args:
            first: the text of the first segment.
        """
        if self.is_cut(query):
            rows = self._journal.read("SELECT sql FROM cursors WHERE query = ?", (query + FIRST,))
            return bool(rows) and rows[0][0] == first
        if Cursors(self._journal).knows(query):
            with self._journal.transaction() as db:
                self._cut(db, query, first)
        return True

    def _cut(self, db: sqlite3.Connection, query: str, first: str) -> None:
        train, first_tuple = self._journal.end(db, query + REST)
        # What the query has filtered so far counts as filtered by the first segment.
        # It has the version of the query: as a new version it would begin anew, and deliver twice.
        db.execute(
            "INSERT INTO cursors (query, sql, stream, first_train, next_train, first_tuple,"
            " tuples_in, tuples_out, delivered, shed, missed, dead, version, backfill_end)"
            " SELECT ?, ?, stream, first_train, next_train, first_tuple, tuples_in, delivered,"
            " delivered, shed, missed, dead, version, backfill_end FROM cursors WHERE query = ?",
            (query + FIRST, first, query),
        )
        db.execute(
            "UPDATE cursors SET stream = ?2, first_train = ?3, next_train = ?3,"
            " first_tuple = ?4 - delivered, tuples_in = delivered, shed = 0, missed = 0, dead = 0"
            " WHERE query = ?1",
            (query, query + REST, train, first_tuple),
        )
        db.execute("UPDATE beginnings SET query = ? WHERE query = ?", (query + FIRST, query))

    def rejoin(self, query: str) -> None:
        """Make a cut query continue uncut from the source; it reads again what waits in between."""
        with self._journal.transaction() as db:
            first = db.execute(
                "SELECT stream, first_train, next_train, first_tuple, tuples_in, shed, missed, dead"
                " FROM cursors WHERE query = ?", (query + FIRST,)
            ).fetchone()  # fmt: skip
            stream, first_train, passed, first_tuple, tuples_in, shed, missed, dead = first
            (origin,) = db.execute(
                "SELECT MIN(t.origin) FROM trains t JOIN cursors c ON c.query = ?1"
                " WHERE t.stream = ?1 || ?2 AND t.number >= c.next_train AND t.kept", (query, REST)
            ).fetchone()  # fmt: skip
            train = passed if origin is None else int(origin)
            (reread,) = db.execute(
                "SELECT COALESCE(SUM(tuples), 0) FROM trains WHERE stream = ? AND number >= ?"
                " AND number < ?", (stream, train, passed)
            ).fetchone()  # fmt: skip
            db.execute(
                "UPDATE cursors SET stream = ?2, first_train = ?3, next_train = ?4,"
                " first_tuple = ?5, tuples_in = ?6 - shed - missed, shed = shed + ?7,"
                " missed = missed + ?8, dead = dead + ?9 WHERE query = ?1",
                (query, stream, first_train, train, first_tuple, tuples_in - reread, shed, missed,
                 dead),
            )  # fmt: skip
            self._journal.drop_lines(db, query + REST, self._journal.end(db, query + REST)[0])
            db.execute("DELETE FROM cursors WHERE query = ?", (query + FIRST,))
            db.execute("DELETE FROM beginnings WHERE query = ?", (query,))
            db.execute("UPDATE beginnings SET query = ? WHERE query = ?", (query, query + FIRST))
