"""The load shedder: what to drop when more comes in than can be done (Aurora §2.2)."""

from dataclasses import dataclass

import numpy as np

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats, Ints
from headgate.model.unit_table import UnitTable
from headgate.model.units import Units


@dataclass(frozen=True, slots=True)
class Load:
    """What the shedder is told: tuples by stream so far, those waiting by unit, the workers."""

    at_s: float
    arrived: Ints
    pending: Ints
    workers: int


class Shedder:
    """Looks at the load every period and says which part of each unit's new tuples to drop.

    Overload is when the work that arrives a second, or what already waits, is more than the workers
    can do. Then it drops where the QoS lost per second saved is least, S w / C̄ with w the query's
    weight, until the rest fits; never from a query that does not allow it. Drops by value take
    first the tuples that the query's first box would drop anyway, which lose nothing.

    Args:
        period_s: how often it looks.
        headroom: the part of the workers' time that it fills.
        patience_s: how much waiting work is left alone; beyond it, it is worked off within as much.
        by_value: drops by value instead of at random.
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
        """Gives for each unit the part of its new tuples to drop until the next look."""
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
        for _, unit, part, each_s in sorted(pieces):
            saved = part * per_s[unit] * each_s
            taken = min(saved, excess)
            if saved > 0:
                rates[unit] += part * taken / saved
                excess -= taken
        return rates

    def _pieces(
        self, units: Units, table: UnitTable, per_s: Floats
    ) -> list[tuple[float, int, float, float]]:
        """Gives what may be dropped: QoS lost per second saved, unit, part of its tuples, seconds.

        A tuple that the first box drops anyway saves the cost of that box; the others share what
        else is expected of a tuple.
        """
        found = []
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
                found.append((0.0, shape.number, useless, first_s))
            if useless < 1.0:
                saved_s = float(row["tuple_cost_s"]) - useless * first_s
                lost = weight * float(row["selectivity"]) / saved_s
                each_s = saved_s / (1.0 - useless)
                found.append((lost, shape.number, 1.0 - useless, each_s))
        return found
