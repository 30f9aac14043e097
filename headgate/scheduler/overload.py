"""The closed loop: measure load and QoS once a second, and change what is dropped (Aurora §2.2)."""

from collections.abc import Callable, Collection, Sequence
from math import inf, nan

import numpy as np

from headgate.model.arrays import Bools, Floats, Ints, moved, places_before
from headgate.model.events import (
    Event,
    Overloaded,
    SheddingChanged,
    StepFinished,
    StepStarted,
    TrainArrived,
)
from headgate.model.network.units import Units
from headgate.model.qos_graph import QoSGraph
from headgate.scheduler.qos_monitor import QoSMonitor, infeasible
from headgate.scheduler.rows import Rows
from headgate.scheduler.shedder import Load, Shedder

LEAST_CHANGE = 0.05
"""A fraction changes by at least this much, unless it becomes 0 or 1."""

BUSY = 0.5
"""Poor QoS counts as overload only if the workers are busy for at least this share of the time."""

MEASURED = 100
"""A query is called unable to meet its target only after this many of its tuples were measured,
unless an earlier run has recorded its figures."""

Commit = Callable[[Sequence[SheddingChanged]], Sequence[SheddingChanged]]

LossOf = Callable[[int], QoSGraph | None]


class Overload:
    """What each unit drops, decided once a second from the load and from what is delivered.

    Args:
        rows: network, unit table and cursors, which `change` replaces.
        commit: makes changes of what units drop durable, and returns those that are.
        loss_of: returns, for the id of a unit that drops by value, what its tuples are worth.
    """

    def __init__(
        self, rows: Rows, commit: Commit, workers: int, loss_of: LossOf = lambda unit: None
    ) -> None:
        self._commit, self._workers, self._loss_of = commit, workers, loss_of
        self.shedder = Shedder()
        self.delivery = QoSMonitor(rows.network, rows.table)
        self.fractions = np.full(len(rows.table), nan)
        """By unit, the share of its tuples that it drops. NaN before the first decision: until then
        the rules of the last run apply."""
        self._reasons: dict[int, str] = {}
        """By id of a unit, why it drops what it drops."""
        self._tuples = np.zeros(len(rows.table))
        self._arrived: Ints = np.zeros(len(rows.network.streams), dtype=np.int64)
        self._ends: dict[int, int] = {}
        """By unit with a call under way, the train after the call."""
        self._busy_s, self._full_until_s = 0.0, -inf
        self._looked_at_s = self._due_at_s = -inf
        self._rows, self._places = rows, dict(rows.network.places)
        self._recorded: frozenset[int] = frozenset()

    def trust(self, numbers: Collection[int]) -> None:
        """Take the figures of units for certain, by their ids: an earlier run has recorded them."""
        self._recorded = frozenset(numbers)

    def dropped(self, number: int) -> tuple[float, str]:
        """Return the share of its tuples that a unit drops at present, by its id, and why."""
        row, reason = self._places.get(number), self._reasons.get(number, "")
        fraction = nan if row is None or row >= len(self.fractions) else float(self.fractions[row])
        return (fraction, reason) if fraction > 0 else (0.0, "")

    def infeasible(self, number: int) -> str:
        """Return the target that a unit's measured costs cannot meet; empty if there is none."""
        row = self._places.get(number)
        if row is None or row >= len(self._tuples):
            return ""
        if self._tuples[row] < MEASURED and number not in self._recorded:
            return ""
        return infeasible(self._rows.network, self._rows.table, row)

    def change(self, rows: Rows, begin: Sequence[int]) -> None:
        """Follow a network that has changed.

        Args:
            begin: the rows of units that are new or begin again.
        """
        before = places_before(rows.network.places, self._places)
        self.fractions, self._tuples = moved(self.fractions, before), moved(self._tuples, before)
        self.fractions[[*begin, *np.flatnonzero(before < 0)]] = nan
        after = {row: place for place, row in enumerate(before.tolist()) if row >= 0}
        self._ends = {after[unit]: end for unit, end in self._ends.items() if unit in after}
        more = len(rows.network.streams) - len(self._arrived)
        self._arrived = np.append(self._arrived, np.zeros(more, dtype=np.int64))
        self.delivery.change(rows.network, rows.table, before)
        self._rows, self._places = rows, dict(rows.network.places)

    def hear(self, event: Event) -> None:
        """Count what an event reports. Its units are rows of the unit table."""
        match event:
            case TrainArrived():
                self._arrived[event.stream] += int(event.tuples.sum())
                if self._due_at_s == -inf:  # tuples from before the start are no rate
                    self._due_at_s = event.at_s + self.shedder.period_s
            case StepStarted():
                self._ends.update(dict.fromkeys(event.call.units, event.call.end_train))
            case StepFinished():
                self._busy_s += event.seconds
                for unit in event.call.units:
                    self._ends.pop(unit, None)
                shed = event.shed or [0] * len(event.call.units)
                for unit, dropped in zip(event.call.units, shed, strict=True):
                    if unit not in event.failed:
                        self._tuples[unit] += event.call.tuples - dropped
                self.delivery.hear(event)
            case Overloaded():
                self._full_until_s = event.until_s

    def look(self, now_s: float, units: Units, groups: Ints | None, active: Bools) -> None:
        """Decide, once a second, what each unit drops from now on.

        Args:
            groups: by unit, the same number for units that share code; these drop the same.
            active: by unit, whether it runs. What waits for a query that is paused or has failed is
                no load, and is not dropped.
        """
        if now_s < self._due_at_s or self._due_at_s == -inf:
            return
        seconds = now_s - self._looked_at_s
        table = self._rows.table
        waits_s = np.nan_to_num(table["pending"] * table["box_cost_s"])
        work_s = float(waits_s[active].sum())
        busy = self._busy_s >= BUSY * seconds * self._workers or work_s >= self._workers
        judgement = self.delivery.judge(now_s, active)
        load = Load(
            now_s, self._arrived, table["pending"], self._workers,
            poor=judgement.poor if busy else "", acceptable=judgement.acceptable or not busy,
            full=now_s < self._full_until_s, drops_queues=True, groups=groups,
            losses=self._losses(), active=active,
        )  # fmt: skip
        measured = table.copy()
        measured["tuple_cost_s"][self._tuples == 0] = nan
        self._apply(self.shedder.rates(load, units, measured), now_s)
        self._due_at_s, self._looked_at_s, self._busy_s = now_s + self.shedder.period_s, now_s, 0.0

    def _losses(self) -> dict[int, QoSGraph]:
        """Return what the tuples of units that drop by value are worth."""
        paths = self._rows.network.paths
        losses = {
            unit: self._loss_of(number)
            for number, unit in self._places.items()
            if paths[unit].query.value is not None
        }
        return {unit: loss for unit, loss in losses.items() if loss is not None}

    def _apply(self, rates: Floats, now_s: float) -> None:
        """Commit the changes of what units drop, and follow those that are committed."""
        places, cursors = self._places, self._rows.cursors
        changes = [
            SheddingChanged(
                now_s, number, self._ends.get(unit, int(cursors[unit])), float(rates[unit]),
                self.shedder.reason if rates[unit] else "all is delivered as asked",
            )
            for number, unit in places.items()
            if self._changes(float(self.fractions[unit]), float(rates[unit]))
        ]  # fmt: skip
        for change in self._commit(changes) if changes else ():
            self.fractions[places[change.unit]] = change.fraction
            self._reasons[change.unit] = change.reason

    def _changes(self, present: float, wanted: float) -> bool:
        """Return True if the fraction that a unit drops is to change."""
        return present != wanted and (
            not abs(present - wanted) < LEAST_CHANGE or wanted in (0.0, 1.0)
        )
