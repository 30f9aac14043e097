"""The load shedder: which tuples to drop when more arrive than can be processed (Aurora §2.2)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats, Ints
from headgate.model.events import TuplesShed
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.scheduler.queues import StreamBuffer


@dataclass(frozen=True, slots=True)
class Load:
    """The load at an instant: tuples arrived by stream, tuples pending by unit, and workers."""

    at_s: float
    arrived: Ints
    pending: Ints
    workers: int


class Shedder:
    """A load shedder: every period it decides which share of each unit's new tuples to drop.

    There is overload if the work that arrives per second, plus what must be caught up, is more than
    the workers can do. The shedder then drops where the QoS lost per second saved is least,
    S w / C̄ with w the query's weight, until the rest fits. It never drops from a query that does
    not allow shedding. Drops by value begin with the tuples that the query's first box would drop
    anyway, which loses nothing.

    Args:
        period_s: seconds between two decisions.
        headroom: the share of the workers' time that may be used.
        patience_s: seconds of pending work per worker that are tolerated. What exceeds it is to be
            caught up within the same time.
        by_value: drop by value instead of at random.
    """

    def __init__(
        self,
        *,
        period_s: float = 1.0,
        headroom: float = 0.95,
        patience_s: float = 1.0,
        by_value: bool = False,
    ) -> None:
        for key, value in (("period_s", period_s), ("patience_s", patience_s)):
            if not value > 0:
                raise ConfigRefused(
                    path="shedder", key=key, value=value, expected="above 0 seconds"
                )
        if not 0 < headroom <= 1:
            raise ConfigRefused(
                path="shedder", key="headroom", value=headroom, expected="above 0 and at most 1"
            )
        self.period_s, self.headroom, self.patience_s = period_s, headroom, patience_s
        self.by_value = by_value
        self._arrived_before: Ints | None = None

    def rates(self, load: Load, units: Units, table: UnitTable) -> Floats:
        """Return for each unit the share of its new tuples to drop until the next decision."""
        before = self._arrived_before
        self._arrived_before = load.arrived.copy()
        rates = np.zeros(len(units))
        if before is None:
            return rates
        incoming = (load.arrived - before) / self.period_s
        per_s = np.array([sum(incoming[s] for s in shape.streams) for shape in units.shapes])
        cost_s = table["tuple_cost_s"]
        waiting_s = float(load.pending @ table["tuple_cost_s"])
        late_s = max(0.0, waiting_s - self.patience_s * load.workers) / self.patience_s
        excess = float(per_s @ cost_s) + late_s - self.headroom * load.workers
        if excess <= 0:
            return rates
        pieces = self._pieces(units, table, per_s)
        for _, unit, part, tuple_s in sorted(pieces):
            possible = part * per_s[unit] * tuple_s
            saved = min(possible, excess)
            if possible > 0:
                rates[unit] += part * saved / possible
                excess -= saved
        return rates

    def _pieces(
        self, units: Units, table: UnitTable, per_s: Floats
    ) -> list[tuple[float, int, float, float]]:
        """Return what may be dropped: QoS lost per second saved, unit, share, seconds per tuple.

        Dropping a tuple that the first box drops anyway saves the cost of that box. The rest of the
        expected cost is spread over the other tuples.
        """
        pieces = []
        for shape in units.shapes:
            queries = [units.network.paths[query].query for query in shape.queries]
            if not per_s[shape.number] or not all(query.allows_shedding for query in queries):
                continue
            row = table[shape.number]
            weight = sum(query.weight for query in queries)
            first = units.graph.selectivity(shape.box, shape.side)
            useless = max(0.0, 1.0 - first) if self.by_value and first < 1.0 else 0.0
            first_s = units.graph.nodes[shape.box].cost_s
            if useless:
                pieces.append((0.0, shape.number, useless, first_s))
            if useless < 1.0:
                saved_s = float(row["tuple_cost_s"]) - useless * first_s
                lost = weight * float(row["selectivity"]) / saved_s
                tuple_s = saved_s / (1.0 - useless)
                pieces.append((lost, shape.number, 1.0 - useless, tuple_s))
        return pieces


def skips_of(
    units: Sequence[int],
    table: UnitTable,
    cursors: Ints,
    buffers: Sequence[StreamBuffer],
    now_s: float,
) -> list[TuplesShed]:
    """Return for each unit the pending trains to skip: all except the last.

    Queries whose results are worth least per second of cost come first (Aurora §2.2).

    Args:
        units: the units whose queries allow shedding.
        cursors: the next train of each unit of the table.
        buffers: the trains of each stream.
    """
    worth = table["weight"] * table["selectivity"] / table["tuple_cost_s"]
    skips = []
    for unit in sorted(units, key=lambda unit: float(worth[unit])):
        stream, first = int(table["stream"][unit]), int(cursors[unit])
        buffer = buffers[stream]
        if buffer.end - first < 2:
            continue
        tuples = buffer.tuples(first, buffer.end - 1)
        skips.append(TuplesShed(now_s, int(unit), first, buffer.end - 1, tuples))
    return skips
