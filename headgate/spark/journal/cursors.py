"""The position of every query in the log, and what has become of its tuples."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from headgate.errors import RecoveryRefused
from headgate.model.account import Account
from headgate.model.network.network import FIRST, REST
from headgate.spark.journal.journal import Journal


@dataclass(frozen=True)
class Cursor:
    """The train a query continues with, and the tuples it missed because retention dropped them."""

    train: int
    missed: int = 0


class Cursors:
    """The journal's rows about queries. `Intents.intend` moves them together with results."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def remember(
        self,
        query: str,
        sql: str,
        stream: str,
        sources: Sequence[str] = (),
        version: int = 1,
        since_s: float | None = -inf,
    ) -> Cursor:
        """Return where a query continues; add a new query, or a new version of one.

        Args:
            sources: for a timeline, the streams whose trains it has.
            version, since_s: as in `Path`.

        Raises:
            RecoveryRefused: the query had another text or stream in the last run.
        """
        with self._journal.transaction() as db:
            row = db.execute(
                "SELECT sql, stream, next_train, version, paused FROM cursors WHERE query = ?",
                (query,),
            ).fetchone()
            is_paused = row is not None and bool(row[4])
            if row is not None and version > row[3] and since_s is None:
                db.execute(
                    "UPDATE cursors SET sql = ?, version = ?, letters_to = NULL WHERE query = ?",
                    (sql, version, query),
                )
                row = sql, stream, row[2]
            elif row is not None and version > row[3]:
                db.execute("DELETE FROM cursors WHERE query = ?", (query,))
                db.execute("DELETE FROM beginnings WHERE query = ?", (query,))
                db.execute("DELETE FROM shedding WHERE query = ?", (query,))
                row = None
            if row is not None:
                if (row[0], row[1]) != (sql, stream):
                    raise other_text(query, row[0], sql)
                self._count_letters(db, query, dict.fromkeys(sources or (stream,), 0))
                return self._after_gap(db, query, stream, int(row[2]))
            first, first_tuple = self._journal.beginning(db, stream, since_s or -inf)
            db.execute(
                "INSERT INTO cursors (query, sql, stream, first_train, next_train, first_tuple,"
                " version, backfill_end, paused) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    query,
                    sql,
                    stream,
                    first,
                    first,
                    first_tuple,
                    version,
                    self._journal.end(db, stream)[0],
                    is_paused,
                ),
            )
            before = {
                source: self._letters_before(db, source, stream, first)
                for source in sources or (stream,)
            }
            self._count_letters(db, query, before)
            return Cursor(first)

    def version(self, query: str) -> int:
        """Return how many texts a query has had; 0 if it has never run."""
        rows = self._journal.read("SELECT version FROM cursors WHERE query = ?", (query,))
        return int(rows[0][0]) if rows else 0

    def backfill_end(self, query: str) -> int:
        """Return the train before which all were in the log when a query was added."""
        rows = self._journal.read("SELECT backfill_end FROM cursors WHERE query = ?", (query,))
        return int(rows[0][0]) if rows else 0

    def pause(self, query: str, paused: bool) -> None:
        """Record whether a query is paused, in this run and in later ones."""
        with self._journal.transaction() as db:
            db.execute("UPDATE cursors SET paused = ? WHERE query = ?", (paused, query))

    @property
    def paused(self) -> list[str]:
        """The queries that are paused."""
        rows = self._journal.read("SELECT query FROM cursors WHERE paused", ())
        return [query for (query,) in rows]

    def ids(self, queries: Sequence[str]) -> dict[str, int]:
        """Return the ids of queries, by name; a query without one gets the next number.

        SQLite never gives a number again, not even that of a query that was dropped.
        """
        with self._journal.transaction() as db:
            names = [(query,) for query in queries]
            db.executemany("INSERT OR IGNORE INTO ids (query) VALUES (?)", names)
            ids = dict(db.execute("SELECT query, id FROM ids"))
        return {query: int(ids[query]) for query in queries}

    def renew_ids(self, query: str) -> None:
        """Give up the ids of a query; its next version gets new ones."""
        with self._journal.transaction() as db:
            db.executemany("DELETE FROM ids WHERE query = ?", [(query,), (query + FIRST,)])

    def train_of(self, query: str) -> int | None:
        """Return the train that a query continues with; None if it has no cursor."""
        rows = self._journal.read("SELECT next_train FROM cursors WHERE query = ?", (query,))
        return int(rows[0][0]) if rows else None

    def origin(self, stream: str) -> int | None:
        """Return the oldest source train of what waits in a hidden stream; None if nothing does."""
        rows = self._journal.read(
            "SELECT MIN(t.origin) FROM trains t JOIN cursors c ON c.stream = t.stream"
            " WHERE t.stream = ? AND t.number >= c.next_train AND t.kept", (stream,)
        )  # fmt: skip
        return None if rows[0][0] is None else int(rows[0][0])

    def refuse_other_text(self, query: str, sql: str) -> None:
        """Raise RecoveryRefused if a query of this name has run before with another text."""
        self.refuse_other_texts({query: sql})

    def refuse_other_texts(self, texts: Mapping[str, str]) -> None:
        """Raise RecoveryRefused if queries have run before with other texts; name all of them."""
        old_texts = dict(self._journal.read("SELECT query, sql FROM cursors", ()))
        others = [name for name, sql in texts.items() if old_texts.get(name, sql) != sql]
        if others:
            name = others[0]
            raise other_text(name, old_texts[name], texts[name], others[1:])

    def knows(self, query: str) -> bool:
        """Return True if a query has run before and was not dropped since."""
        return bool(self._journal.read("SELECT 1 FROM cursors WHERE query = ?", (query,)))

    def forget(self, query: str) -> None:
        """Delete the rows of a query that was dropped; its results stay where they are."""
        with self._journal.transaction() as db:
            for name in (query, query + FIRST):
                db.execute("DELETE FROM cursors WHERE query = ?", (name,))
                db.execute("DELETE FROM ids WHERE query = ?", (name,))
                db.execute("DELETE FROM intents WHERE query = ?", (name,))
                db.execute("DELETE FROM beginnings WHERE query = ?", (name,))

    def _after_gap(
        self, db: sqlite3.Connection, query: str, stream: str, next_train: int
    ) -> Cursor:
        """Return where a query continues: after the trains that retention has dropped meanwhile."""
        first, first_tuple = self._journal.beginning(db, stream, -inf)
        if next_train >= first:
            return Cursor(next_train)
        began, used = db.execute(
            "SELECT first_tuple, tuples_in + shed + missed FROM cursors WHERE query = ?", (query,)
        ).fetchone()
        missed = first_tuple - began - used
        db.execute(
            "UPDATE cursors SET next_train = ?, missed = missed + ? WHERE query = ?",
            (first, missed, query),
        )
        return Cursor(first, missed)

    def _letters_before(self, db: sqlite3.Connection, source: str, stream: str, first: int) -> int:
        """Return how many dead letters of a source came before a train.

        Args:
            stream: the stream of the train: the source itself, or a timeline that has its trains.
        """
        if stream != source:
            (first,) = db.execute(
                "SELECT MIN(train) FROM entries WHERE timeline = ? AND stream = ? AND number >= ?"
                " AND train >= 0", (stream, source, first)
            ).fetchone()  # fmt: skip
        row = db.execute(
            "SELECT first_letter FROM trains WHERE stream = ? AND number >= ? AND kept"
            " ORDER BY number LIMIT 1", (source, first)
        ).fetchone()  # fmt: skip
        return int(row[0]) if row else self._journal.letters_of(db, source)

    def _count_letters(self, db: sqlite3.Connection, query: str, before: dict[str, int]) -> None:
        """Record how many dead letters streams had before a query began, unless it is on record.

        A query that began before letters were counted has none before it.
        """
        db.executemany(
            "INSERT OR IGNORE INTO beginnings VALUES (?, ?, ?)",
            [(query, stream, letters) for stream, letters in before.items()],
        )

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return the tuples that every query has consumed and produced, over all runs.

        A cut query has consumed what its first segment has, minus what waits between its segments.
        """
        rows = self._journal.read(
            "SELECT query, stream, tuples_in, tuples_out,"
            " (SELECT COALESCE(SUM(t.tuples), 0) FROM trains t WHERE t.stream = c.stream"
            "   AND t.number >= c.next_train AND t.kept) FROM cursors c", ()
        )  # fmt: skip
        by_query = {query: (stream, *counts) for query, stream, *counts in rows}
        cut = _cut({query: values[0] for query, values in by_query.items()})
        return {
            query: (by_query[cut[query]][1] - queued if query in cut else tuples_in, tuples_out)
            for query, (_, tuples_in, tuples_out, queued) in by_query.items()
            if query not in cut.values()
        }

    def letters_from(self, query: str) -> int:
        """Return the train of a query's timeline from which on bad tuples have no letters yet."""
        rows = self._journal.read(
            "SELECT COALESCE(letters_to, first_train) FROM cursors WHERE query = ?", (query,)
        )
        return int(rows[0][0])

    def dead(self) -> dict[str, int]:
        """Return how many tuples became dead letters of each query that has any, over all runs."""
        rows = self._journal.read("SELECT query, dead FROM cursors WHERE dead", ())
        return {query.removesuffix(FIRST): dead for query, dead in rows}

    def accounts(self) -> dict[str, Account]:
        """Return every query's account: how many tuples arrived, and what has become of them.

        Each term is counted independently, so that a wrong sum reveals a mistake. What retention
        has dropped before a query that does not run could read it is missed already.
        """
        rows = self._journal.read(
            "SELECT query, stream, first_tuple, delivered, tuples_in - delivered - late - dead,"
            " shed, missed, late, dead,"
            " (SELECT COALESCE(MAX(t.first_tuple + t.tuples), 0) FROM trains t"
            "   WHERE t.stream = c.stream),"
            " (SELECT COALESCE(SUM(t.tuples), 0) FROM trains t"
            "   WHERE t.stream = c.stream AND t.number >= c.next_train AND t.kept),"
            " (SELECT COALESCE(SUM(l.records - b.first_letter), 0) FROM beginnings b"
            "   JOIN letters l ON l.stream = b.stream WHERE b.query = c.query),"
            " (SELECT t.first_tuple FROM trains t WHERE t.stream = c.stream AND t.kept"
            "   ORDER BY t.number LIMIT 1) FROM cursors c", ()
        )  # fmt: skip
        accounts, streams = {}, {}
        for row in rows:
            query, stream, first, delivered, filtered, shed, missed, late, dead = row[:9]
            end, queued, of_streams, oldest = row[9:]
            passed = first + delivered + filtered + shed + missed + late + dead
            missed += max(0, (end if oldest is None else oldest) - passed)
            streams[query] = stream
            accounts[query] = Account(
                end - first + of_streams, delivered, filtered, queued, shed, missed, late,
                of_streams + dead,
            )  # fmt: skip
        for query, first_segment in _cut(streams).items():
            accounts[query] = _account_of_cut(accounts.pop(first_segment), accounts[query])
        return accounts


def _cut(streams: Mapping[str, str]) -> dict[str, str]:
    """Return the names of the first segments of cut queries, by query.

    Args:
        streams: the stream that each query reads.
    """
    return {
        query: query + FIRST
        for query, stream in streams.items()
        if stream == query + REST and query + FIRST in streams
    }


def _account_of_cut(first: Account, rest: Account) -> Account:
    """Return the account of a cut query: the rest reads what the first segment delivers."""
    return Account(
        arrived=first.arrived,
        delivered=rest.delivered,
        filtered=first.filtered + rest.filtered,
        queued=first.queued + rest.queued,
        shed=first.shed + rest.shed,
        missed=first.missed + rest.missed,
        late=first.late + rest.late,
        dead_lettered=first.dead_lettered,
    )


def other_text(query: str, old: str, new: str, others: Sequence[str] = ()) -> RecoveryRefused:
    more = f". The same holds for {', '.join(map(repr, others))}" if others else ""
    return RecoveryRefused(
        subject=f"query '{query}'",
        expected=f"the text of the last run, {old!r}",
        found=repr(new),
        fix="restore the text, and change it by `headgate alter` during the run, or give the new"
        f" one a new name: its results would mix with the old ones{more}",
    )
