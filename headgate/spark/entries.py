"""The part of the journal that is a timeline's: in which order it has taken trains in."""

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass

from headgate.spark.journal import Journal


@dataclass(frozen=True)
class Entry:
    """A train of a timeline: one of a stream, or (train −1) a beat of the clock without tuples.

    Args:
        first_tuple: the number of its first tuple in the stream.
        before, top: the greatest time of the stream so far, before it and with it.
    """

    number: int
    stream: str
    train: int
    tuples: int
    first_tuple: int
    before: int
    top: int
    arrived_at_s: float


@dataclass(frozen=True)
class Stand:
    """How far a timeline has come with one of its streams.

    Args:
        train: the next train of the stream.
        top: the greatest time so far; `heard` is that of tuples alone, without beats of the clock.
    """

    train: int
    top: int
    heard: int


class Entries:
    """What the journal has of one timeline, which counts as a stream of trains there."""

    def __init__(self, journal: Journal, timeline: str) -> None:
        self._journal, self._timeline = journal, timeline

    def __call__(self) -> list[Entry]:
        """Gives those that are kept, in order."""
        rows = self._journal.read(
            "SELECT number, stream, train, tuples, first_tuple, before, top, arrived_at_s"
            " FROM entries WHERE timeline = ? ORDER BY number", (self._timeline,)
        )  # fmt: skip
        return [Entry(*row) for row in rows]

    def add(self, entry: Entry, durable: bool = False) -> None:
        """Puts a train behind the others.

        One that is not durable is on the disk with the first result that rests on it: until then a
        power failure may take it, and the train comes again, perhaps in another order.
        """
        arrived_s = entry.arrived_at_s
        with self._journal.transaction(durable) as db:
            db.execute(
                "INSERT INTO trains VALUES (?, ?, ?, ?, 0, ?, ?, ?, 1, 0)",
                (self._timeline, entry.number, entry.number, entry.tuples, arrived_s, arrived_s,
                 self._journal.end(db, self._timeline)[1]),
            )  # fmt: skip
            db.execute(
                "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
        return {name: Stand(*json.loads(value)) for name, value in found.items()}
