"""What queries drop in overload: rules in the journal, each in force from a train on."""

import json
import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from headgate.model.drop import Drop, ValueGraph
from headgate.model.network.network import FIRST
from headgate.spark.journal.journal import Journal

NOTHING = Drop(0.0)

Covered = NDArray[np.bool_]


@dataclass(frozen=True)
class Rule:
    """From a train of the stream that it reads on, a query drops some of its tuples.

    Args:
        drop: which ones. Its seed is that of the stream (`seed_of`), whatever it says.
    """

    train: int
    drop: Drop
    reason: str
    at_s: float


class SheddingRules:
    """The rules of all queries. The loop changes them, and any worker may read them meanwhile.

    A rule is in the journal before a call reads a train that it covers. From then on nothing
    changes which tuples of that train are dropped: a call that runs again, after a crash for
    example, and a window that needs the train later, drop the same.
    """

    def __init__(
        self, journal: Journal, reached: Callable[[str], None] = lambda point: None
    ) -> None:
        self._journal, self._reached = journal, reached
        rows = journal.read(
            "SELECT query, stream, train, fraction, value_column, points, threshold, reason, at_s"
            " FROM shedding ORDER BY query, stream, train", ()
        )  # fmt: skip
        self._rules: dict[tuple[str, str], tuple[Rule, ...]] = {}
        for query, stream, train, fraction, column, points, threshold, reason, at_s in rows:
            value = None if column is None else ValueGraph(column, _points(points))
            drop = Drop(fraction, value=value, threshold=threshold)
            key = query, stream
            self._rules[key] = (*self._rules.get(key, ()), Rule(train, drop, reason, at_s))

    def of(self, query: str, stream: str) -> tuple[Rule, ...]:
        """Return the rules of a query over a stream, in the order of their trains."""
        return self._rules.get((query, stream), ())

    def last(self, query: str, stream: str) -> Rule | None:
        """Return the newest rule of a query; None if it has never dropped anything."""
        rules = self.of(query, stream)
        return rules[-1] if rules else None

    def add(self, query: str, stream: str, rule: Rule) -> bool:
        """Add a rule, and forget those whose trains are gone. Return False if it changes nothing.

        No call may have read a train that it covers.
        """
        rules, drop = self.of(query, stream), rule.drop
        if (rules[-1].drop if rules else NOTHING) == drop:
            return False
        with self._journal.transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO shedding VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (query, stream, rule.train, drop.fraction,
                 None if drop.value is None else drop.value.column,
                 None if drop.value is None else json.dumps(drop.value.points),
                 drop.threshold, rule.reason, rule.at_s),
            )  # fmt: skip
            first = self._first_needed(db, query, stream)
            db.execute(
                "DELETE FROM shedding WHERE query = ? AND stream = ? AND train < ?",
                (query, stream, first),
            )
        self._reached("rule journalled")
        older = (old for old in rules if first <= old.train < rule.train)
        self._rules[query, stream] = (*older, rule)
        return True

    def forget(self, query: str) -> None:
        """Forget a query that was dropped, with the first segment of one that is cut."""
        names = query, query + FIRST
        with self._journal.transaction() as db:
            db.execute("DELETE FROM shedding WHERE query IN (?, ?)", names)
            self._rules = {key: rule for key, rule in self._rules.items() if key[0] not in names}

    def segments(
        self, query: str, stream: str, first: int, end: int
    ) -> tuple[tuple[int, int, Drop], ...]:
        """Return parts of the trains first, ..., end − 1 of which a query drops something."""
        rules = self.of(query, stream)
        bounds = [*(rule.train for rule in rules), end]
        return tuple(
            (max(first, begin), min(end, until), rule.drop)
            for rule, (begin, until) in zip(rules, pairwise(bounds), strict=True)
            if begin < end and until > first and not rule.drop.drops_nothing
        )

    def _first_needed(self, db: sqlite3.Connection, query: str, stream: str) -> int:
        """Return the train of the rule that is in force at the oldest train in the log."""
        (oldest,) = db.execute(
            "SELECT MIN(number) FROM (SELECT number FROM trains WHERE stream = ?1 AND kept"
            " UNION ALL SELECT number FROM entries WHERE timeline = ?1)", (stream,)
        ).fetchone()  # fmt: skip
        (train,) = db.execute(
            "SELECT MAX(train) FROM shedding WHERE query = ? AND stream = ? AND train <= ?",
            (query, stream, -1 if oldest is None else oldest),
        ).fetchone()
        return 0 if train is None else int(train)


@dataclass(frozen=True)
class QueryDrops:
    """What one query drops of the trains that it reads."""

    rules: SheddingRules
    query: str
    stream: str

    @property
    def key(self) -> tuple[tuple[int, Drop], ...]:
        """A value that is equal for queries of a stream that drop the same."""
        return tuple((rule.train, rule.drop) for rule in self.rules.of(self.query, self.stream))

    def of(self, train: int) -> Drop | None:
        """Return what is dropped of a train; None if nothing is."""
        rules = self.rules.of(self.query, self.stream)
        place = bisect_right(rules, train, key=lambda rule: rule.train)
        drop = rules[place - 1].drop if place else NOTHING
        return None if drop.drops_nothing else drop

    def covered(
        self, train: int, source: str, first_tuple: int, tuples: int,
        column: Callable[[str], Any],
    ) -> Covered | None:  # fmt: skip
        """Return which tuples of a train are dropped; None if nothing is.

        Args:
            source: the stream that the tuples belong to.
            first_tuple: the number of the first in that stream.
            column: returns a column of the train.
        """
        drop = self.of(train)
        return None if drop is None else covered_by(drop, source, first_tuple, tuples, column)


def covered_by(
    drop: Drop, source: str, first_tuple: int, tuples: int, column: Callable[[str], Any]
) -> Covered:
    """Return which of some consecutive tuples of a stream are dropped."""
    numbers = np.arange(first_tuple, first_tuple + tuples)
    values = None if drop.value is None else column(drop.value.column)
    seeded = Drop(drop.fraction, seed_of(source), drop.value, drop.threshold)
    return seeded.covers(numbers, values)


def seed_of(stream: str) -> int:
    """Return the seed of a stream's random numbers: the tuples of two streams drop independently.

    >>> seed_of("sensors")
    3503553168
    """
    return crc32(stream.encode())


def _points(text: str) -> tuple[tuple[float, float], ...]:
    return tuple((value, utility) for value, utility in json.loads(text))


def pieces_of(
    segments: tuple[tuple[int, int, Drop], ...], first: int, tuples: list[int]
) -> Iterator[tuple[int, int, Drop]]:
    """Yield parts of a call as the places of their first tuple and of the one after the last.

    Args:
        segments: parts of its trains (`SheddingRules.segments`).
        first: the call's first train.
        tuples: how many tuples each of its trains has.
    """
    starts = np.concatenate([[0], np.cumsum(tuples)]).astype(int)
    for begin, end, drop in segments:
        yield int(starts[begin - first]), int(starts[end - first]), drop
