"""The entries of a timeline in the journal: the order in which it has taken trains."""

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass

from headgate.spark.journal.journal import Journal


@dataclass(frozen=True)
class Entry:
    """A train of a timeline: one of a stream, or one without tuples (`train` is below 0).

    Args:
        first_tuple: the number of its first tuple in the stream.
        before, top: the time that the stream has reached before the train and with it. That is the
            greatest time of its tuples so far; for a derived stream, what its producer reports.
        reach: the greatest time of the stream's tuples so far, with those of the train.
    """

    number: int
    stream: str
    train: int
    tuples: int
    first_tuple: int
    before: int
    top: int
    arrived_at_s: float
    reach: int


CLOCK, PRODUCER = -1, -2
"""Values of `train` without tuples: the source has nothing and the clock goes on, or the producer
of a derived stream has reached a later time without a result."""


@dataclass(frozen=True)
class Stand:
    """How far one of the streams of a timeline has come.

    Args:
        train: the next train of the stream.
        top: the time that it has reached; `heard` is the same without what the clock added.
        reach: the greatest time of its tuples so far.
    """

    train: int
    top: int
    heard: int
    reach: int


class TimelineEntries:
    """The entries of one timeline in the journal, which treats it as a stream of trains."""

    def __init__(self, journal: Journal, timeline: str) -> None:
        self._journal, self._timeline = journal, timeline

    def __call__(self) -> list[Entry]:
        """Return the entries that were not dropped, in order."""
        rows = self._journal.read(
            "SELECT number, stream, train, tuples, first_tuple, before, top, arrived_at_s,"
            " COALESCE(reach, top) FROM entries WHERE timeline = ? ORDER BY number",
            (self._timeline,),
        )
        return [Entry(*row) for row in rows]

    def add(self, entry: Entry, durable: bool = False) -> None:
        """Append an entry.

        One that is not durable reaches the disk with the first result that depends on it. Until
        then a power failure may lose it, and its train is added again, perhaps in another order.
        """
        arrived_s = entry.arrived_at_s
        with self._journal.transaction(durable) as db:
            db.execute(
                "INSERT INTO trains (stream, number, source_batch, tuples, bytes,"
                " head_arrived_at_s, mean_arrived_at_s, first_tuple)"
                " VALUES (?, ?, ?, ?, 0, ?, ?, ?)",
                (self._timeline, entry.number, entry.number, entry.tuples, arrived_s, arrived_s,
                 self._journal.end(db, self._timeline)[1]),
            )  # fmt: skip
            db.execute(
                "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (self._timeline, *astuple(entry)),
            )

    def drop(self, before: int, stands: Mapping[str, Stand]) -> None:
        """Drop entries below a number, but keep how far each stream had come with them."""
        with self._journal.transaction() as db:
            self._journal.drop_lines(db, self._timeline, before)
            db.execute(
                "DELETE FROM entries WHERE timeline = ? AND number < ?", (self._timeline, before)
            )
            db.executemany(
                "INSERT OR REPLACE INTO positions VALUES (?, ?, ?)",
                [
                    (self._timeline, name, json.dumps(astuple(stand)))
                    for name, stand in stands.items()
                ],
            )

    def stands(self) -> dict[str, Stand]:
        """Return how far each stream had come with the entries that were dropped."""
        positions = self._journal.positions(self._timeline)
        stands = {name: json.loads(value) for name, value in positions.items()}
        # A journal of an older release has no reach: there, it was the same as `heard`.
        return {
            name: Stand(train, top, heard, reach[0] if reach else heard)
            for name, (train, top, heard, *reach) in stands.items()
        }
