"""Ids and rows: a unit is a row of the unit table in the scheduler, and an id everywhere else.

Rows are dense, so that arrays have one entry per unit. They change when queries are dropped. An id
belongs to one unit for all time (`Network.ids`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headgate.model.arrays import Ints
from headgate.model.events import (
    Event,
    QueryStopped,
    SheddingChanged,
    StepFinished,
    UnitDelayed,
    UnitFailed,
)
from headgate.model.network.network import Network
from headgate.model.network.unit_table import UnitTable
from headgate.model.plan import ALL, BoxCall, Lane
from headgate.scheduler.filter_order import ConditionOrders
from headgate.scheduler.statistics import Statistics


@dataclass(frozen=True, eq=False)
class Rows:
    """What has a row per unit. A change of the network replaces all of it at once.

    So a thread that reads it while the network changes never sees the row of another unit.
    """

    network: Network
    table: UnitTable
    cursors: Ints
    statistics: Statistics | None
    orders: ConditionOrders

    def unit(self, number: int) -> Any:
        """Return the row of the unit with an id; None if the scheduler does not have it."""
        row = self.network.places.get(number)
        return None if row is None else self.table[row]

    def next_train(self, number: int) -> int | None:
        """Return the next train of a unit; None if the scheduler does not have it."""
        row = self.network.places.get(number)
        return None if row is None else int(self.cursors[row])

    def lane(self, units: Sequence[int], tuples: int, lane: Lane | None) -> Lane:
        """Return the lane of a call: the one for all calls, or else the one expected faster."""
        if lane is not None or self.statistics is None:
            return lane or "driver"
        return self.statistics.lane(units, tuples)

    def train(self, units: Sequence[int], call_s: float, lane: Lane | None) -> int:
        """Return the most tuples of a call that is to take at most `call_s`."""
        return ALL if self.statistics is None else self.statistics.train(units, call_s, lane)

    def train_text(self, number: int, call_s: float, lane: Lane | None) -> str | None:
        """Return the most tuples of a call of a unit and why; None if they are not known."""
        row = self.network.places.get(number)
        if row is None or self.statistics is None:
            return None
        return self.statistics.train_text((row,), call_s, lane)

    def lane_text(self, number: int, tuples: int, lane: Lane | None) -> str:
        """Return the lane that a call of a unit takes, as the first word, and the reason."""
        row = self.network.places.get(number)
        if row is None:
            return "driver: the query is new, and the scheduler has not heard of it yet"
        if lane is not None or self.statistics is None:
            return f"{lane or 'driver'} for every call"
        return self.statistics.lane_text((row,), tuples)

    def order_text(self, number: int) -> str | None:
        """Return the order of a unit's conditions and why; None if they were not measured."""
        row = self.network.places.get(number)
        if row is None:
            return None
        figures = None if self.statistics is None else self.statistics.conditions(row)
        return self.orders.text(row, figures, self.network.paths[row].conditions)

    def event(self, event: Event) -> Event:
        """Return an event from outside with rows for ids."""
        return in_rows(event, self.network.places) if self.network.ids else event

    def call(self, call: BoxCall) -> BoxCall:
        """Return a call of the scheduler with ids for rows."""
        ids = self.network.ids
        if not ids:
            return call
        orders = tuple((ids[row], order) for row, order in call.orders)
        return replace(call, units=tuple(ids[row] for row in call.units), orders=orders)


def in_rows(event: Event, row_by_id: Mapping[int, int]) -> Event:
    """Return an event with the row of each unit in place of its id."""
    match event:
        case StepFinished():
            call = event.call
            return replace(
                event,
                call=replace(call, units=tuple(row_by_id[number] for number in call.units)),
                failed=tuple(row_by_id[number] for number in event.failed),
                samples=tuple(
                    replace(sample, unit=row_by_id[sample.unit]) for sample in event.samples
                ),
            )
        case UnitDelayed() | UnitFailed() | QueryStopped() | SheddingChanged():
            return replace(event, unit=row_by_id[event.unit])
    return event
