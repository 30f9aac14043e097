"""The part of the journal that is a timeline's: in which order it has taken trains in."""

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass

from headgate.spark.log.journal import Journal


@dataclass(frozen=True)
class Entry:
    """A train of a timeline: one of a stream, or one without tuples (train below 0).

    Args:
        first_tuple: the number of its first tuple in the stream.
        before, top: the time that the stream has come to, before it and with it: the greatest of
            its tuples so far, or of a derived stream what its producer says.
        reach: the greatest time of the stream's tuples so far, with it.
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
"""Trains without tuples: the stream is quiet and the clock goes on, or the producer of a derived
stream has come further without a result."""


@dataclass(frozen=True)
class Stand:
    """How far a timeline has come with one of its streams.

    Args:
        train: the next train of the stream.
        top: the time that it has come to; `heard` is that without beats of the clock.
        reach: the greatest time of its tuples so far.
    """

    train: int
    top: int
    heard: int
    reach: int


class Entries:
    """What the journal has of one timeline, which counts as a stream of trains there."""

    def __init__(self, journal: Journal, timeline: str) -> None:
        self._journal, self._timeline = journal, timeline

    def __call__(self) -> list[Entry]:
        """Gives those that are kept, in order."""
        rows = self._journal.read(
            "SELECT number, stream, train, tuples, first_tuple, before, top, arrived_at_s,"
            " COALESCE(reach, top) FROM entries WHERE timeline = ? ORDER BY number",
            (self._timeline,),
        )
        return [Entry(*row) for row in rows]

    def add(self, entry: Entry, durable: bool = False) -> None:
        """Puts a train behind the others.

        One that is not durable is on the disk with the first result that rests on it: until then a
        power failure may take it, and the train comes again, perhaps in another order.
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
        """Forgets trains below a number, but not how far the timeline had come, by stream."""
        with self._journal.transaction() as db:
            self._journal.drop_lines(db, self._timeline, before)
            db.execute(
                "DELETE FROM entries WHERE timeline = ? AND number < ?", (self._timeline, before)
            )
            db.executemany(
                "INSERT OR REPLACE INTO positions VALUES (?, ?, ?)",
                [
                    (self._timeline, name, json.dumps(astuple(each)))
                    for name, each in stands.items()
                ],
            )

    def stands(self) -> dict[str, Stand]:
        """Gives how far the timeline had come, by stream, with the trains that are forgotten."""
        found = self._journal.positions(self._timeline)
        stands = {name: json.loads(value) for name, value in found.items()}
        # A journal of an older release has no reach: there, it was what was heard.
        return {
            name: Stand(train, top, heard, reach[0] if reach else heard)
            for name, (train, top, heard, *reach) in stands.items()
        }
