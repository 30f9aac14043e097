"""What queries drop in overload: journaled before it takes effect, and reported."""

import logging
import sqlite3
from collections.abc import Sequence

import numpy as np

from headgate.errors import TrainUnreadable
from headgate.model.drop import Drop, ValueGraph, loss_by_value
from headgate.model.events import SheddingChanged
from headgate.model.network.network import Path
from headgate.model.qos_graph import QoSGraph
from headgate.spark.engine.log_space import LogSpace
from headgate.spark.engine.parts import Parts
from headgate.spark.journal.cursors import Cursors
from headgate.spark.log.shedding_rules import Rule
from headgate.spark.log.trains import numbers_in

log = logging.getLogger("headgate.spark")

SAMPLED = 4
"""A threshold on values is a quantile over this many of the newest trains."""


class Shedding:
    """Turns the fractions that the scheduler decides into rules of the journal."""

    def __init__(self, parts: Parts, log_space: LogSpace) -> None:
        self._members, self._store = parts.members, parts.store
        self._journal, self._rules = parts.journal, parts.executor.rules
        self._warn = log_space.warn
        self._end_refused()

    def change(self, changes: Sequence[SheddingChanged]) -> list[SheddingChanged]:
        """Journal what units drop from now on; return the changes that are journaled."""
        journaled: list[SheddingChanged] = []
        for change in changes:
            if change.unit not in self._members.network.places:
                continue  # the scheduler has not heard yet that the query was dropped
            path = self._members.path_of(change.unit)
            name, stream = path.query.name, path.stream
            last = self._rules.last(name, stream)
            rule = Rule(
                change.first_train, self._drop(path, change.fraction), change.reason, change.at_s
            )
            try:
                changed = self._rules.add(name, stream, rule)
            except sqlite3.Error as error:
                self._warn(error)
                break
            journaled.append(change)
            if changed:
                began = last is None or last.drop.drops_nothing
                level = logging.WARNING if began or not change.fraction else logging.INFO
                log.log(
                    level, "query '%s': %d %% of its tuples are shed from now on: %s",
                    name, round(100 * change.fraction), change.reason,
                )  # fmt: skip
        return journaled

    def loss_of(self, unit: int) -> QoSGraph | None:
        """Return the utility left by the share of tuples dropped, where a unit drops by value."""
        if unit not in self._members.network.places:
            return None
        path = self._members.path_of(unit)
        value = path.query.value
        if value is None or not self._has(path, value.column):
            return None
        return loss_by_value(self._utilities(path, value))

    def _end_refused(self) -> None:
        """End what earlier runs have dropped from queries that do not allow it any more."""
        cursors = Cursors(self._journal)
        for path in self._members.paths:
            name, stream = path.query.name, path.stream
            if path.query.allows_shedding or self._rules.last(name, stream) is None:
                continue
            train = cursors.train_of(name) or 0
            self._rules.add(name, stream, Rule(train, Drop(0.0), "it is not allowed any more", 0.0))

    def _drop(self, path: Path, fraction: float) -> Drop:
        """Return which tuples are dropped; by value, those whose utility is below a quantile."""
        value = path.query.value
        if value is None or fraction in (0.0, 1.0) or not self._has(path, value.column):
            return Drop(fraction)
        utilities = self._utilities(path, value)
        threshold = float(np.quantile(utilities, fraction)) if len(utilities) else 0.0
        return Drop(fraction, value=value, threshold=threshold)

    def _has(self, path: Path, column: str) -> bool:
        """Return True if a query reads a column; the rest of a cut query may not."""
        names = [
            name.lower() for stream in path.reads for name in self._store.logs[stream].schema.names
        ]
        return column.lower() in names

    def _utilities(self, path: Path, value: ValueGraph) -> np.ndarray:
        """Return the utilities of the newest tuples that a query reads."""
        utilities = [np.zeros(0)]
        for stream in path.reads:
            source = self._store.logs[stream]
            first = max(source.next_number - SAMPLED, self._store.first_train(stream))
            try:
                for number in range(first, source.next_number):
                    numbers = numbers_in(source.table(number, number + 1), value.column)
                    utilities.append(value.utilities(numbers))
            except TrainUnreadable as error:
                log.debug("values could not be sampled: %s", error)
        return np.concatenate(utilities)
