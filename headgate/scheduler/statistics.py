"""Cost and selectivity of every unit, learned from what its calls took (Sharaf §3.3.3)."""

from collections.abc import Iterable, Mapping

import numpy as np

from headgate.model.events import Floats, Ints, StepFinished
from headgate.model.unit_table import UnitTable
from headgate.model.units import Units

PRIOR_SELECTIVITY = 0.5
PRIOR_OVERHEAD_S = 0.05
PRIOR_COST_S = 1e-5

LANES = ("driver", "job")
"""Ways of running a call, each with an overhead of its own; an engine with one has the first."""

LEAST_S = 5e-4, 1e-9
"""No call has less overhead and no tuple costs less; noise must not make slowdowns infinite."""

UNKNOWN, REHEARSED = 4.0, 0.25
"""How far an estimate may be off, as the variance of a factor: a guess, and a measured one."""

NOISE = 0.2
"""How far a call's time is off for reasons of its own."""

IN_COMMON = 0.9
"""How much of what is off is so for all members of a call: the machine is slow at the moment, or
what they share is cheaper than it was alone."""

MOST_AT_ONCE = 4.0
"""One call changes no estimate by more than this factor: it may have been disturbed."""


class Statistics:
    """Learns S by smoothing over windows of input tuples, o and c̄ from what calls took.

    A call's time is modelled as o + Σ c̄_m n over its members m, with an o for each lane. What it
    took more or less than expected corrects each of them by a factor, according to its part of the
    time and to how little is known of it (a Kalman filter of the logarithms, whose errors have much
    in common within a call). So no estimate is ever negative, and members that always run together,
    which no fit can tell apart, about keep the proportion that they had when each ran alone: before
    the first call, in the rehearsal or as a probe.

    Args:
        smoothing: α of S_new = (1 − α) S_old + α N_out / N_in (0.175 in §3.8.5).
        window_tuples: input tuples a window.
        drift: how much a member's estimate may have changed since its last call, relatively.
    """

    def __init__(
        self,
        table: UnitTable,
        *,
        smoothing: float = 0.175,
        window_tuples: int = 100,
        drift: float = 0.1,
    ) -> None:
        self.smoothing, self.window_tuples, self.drift = smoothing, window_tuples, drift
        self._measured = np.zeros(0, dtype=np.bool_)
        self._overhead_s = np.full(len(LANES), PRIOR_OVERHEAD_S)
        self._overhead_doubt = np.full(len(LANES), UNKNOWN)
        self._cost_s, self._doubt = np.zeros(0), np.zeros(0)
        self._lane = np.zeros(0, dtype=np.int64)
        self._feeds: dict[int, tuple[int, ...]] = {}
        self.grow(table)

    def grow(self, table: UnitTable, again: Iterable[int] = ()) -> None:
        """Takes in the units that have come since, with what the table says of them.

        Args:
            again: the numbers of units that went before, and now are others.
        """
        old, count = len(self._measured), len(table)
        new = np.array([*again, *range(old, count)], dtype=np.int64)
        known = ~np.isnan(table["box_cost_s"][new] * table["box_selectivity"][new])
        if not old and known.any():
            self._overhead_s[:] = np.maximum(table["overhead_s"][new][known].mean(), LEAST_S[0])
            self._overhead_doubt[:] = REHEARSED
        self._cost_s, self._doubt = np.resize(self._cost_s, count), np.resize(self._doubt, count)
        self._measured = np.resize(self._measured, count)
        self._lane = np.resize(self._lane, count)
        self._cost_s[new] = np.where(known, table["box_cost_s"][new], PRIOR_COST_S)
        self._doubt[new] = np.where(known, REHEARSED, UNKNOWN)
        self._measured[new], self._lane[new] = known, 0
        table["box_selectivity"][new[~known]] = PRIOR_SELECTIVITY
        self._publish(table)

    def connect(self, feeds: Mapping[int, tuple[int, ...]], table: UnitTable) -> None:
        """Take in which units fill the streams of which: producers, with their readers."""
        self._feeds = dict(feeds)
        self._publish(table)

    def unmeasured(self, units: Ints) -> Ints:
        """Gives those of the units that have never run."""
        new: Ints = units[~self._measured[units]]
        return new

    def learn(self, table: UnitTable, event: StepFinished) -> None:
        """Takes in one call."""
        tuples, units = event.call.tuples, np.array(event.call.units)
        if not tuples:
            return
        self._measured[units] = True
        lane = LANES.index(event.lane) if event.lane in LANES else 0
        self._lane[units] = lane
        self._learn_cost(lane, units, tuples, event.seconds)
        keep = (1 - self.smoothing) ** (tuples / self.window_tuples)
        # Floored, so that a query that has output nothing yet is still measured again.
        seen = (np.array(event.instants or event.tuples_out) + 1) / (tuples + 2)
        known = table["box_selectivity"][units]
        table["box_selectivity"][units] = keep * known + (1 - keep) * seen
        self._publish(table)

    def shares_s(self, units: tuple[int, ...], tuples: int, seconds: float) -> Floats:
        """Splits a call's time among its members; the shares add up to what was measured."""
        costs_s = self._cost_s[list(units)]
        parts = self._overhead_s[self._lane[units[0]]] / len(units) + costs_s * tuples
        shares: Floats = parts * (seconds / parts.sum())
        return shares

    def _learn_cost(self, lane: int, units: Ints, tuples: int, seconds: float) -> None:
        parts_s = self._cost_s[units] * tuples
        overhead_s = self._overhead_s[lane]
        doubts, overhead_doubt = self._doubt[units], self._overhead_doubt[lane] + self.drift**2
        doubts += self.drift**2
        spreads = np.sqrt(doubts)
        # What the error of each says of the sum's: its own part, and what all have in common.
        ties = (1 - IN_COMMON) * doubts * parts_s + IN_COMMON * spreads * (spreads @ parts_s)
        variance = ties @ parts_s + overhead_doubt * overhead_s**2 + (NOISE * seconds) ** 2
        off = (seconds - overhead_s - parts_s.sum()) / variance
        tie = overhead_doubt * overhead_s
        factors = np.clip(1 + np.append(ties, tie) * off, 1 / MOST_AT_ONCE, MOST_AT_ONCE)
        self._cost_s[units] = np.maximum(self._cost_s[units] * factors[:-1], LEAST_S[1])
        self._overhead_s[lane] = max(overhead_s * factors[-1], LEAST_S[0])
        self._doubt[units] = doubts - ties**2 / variance
        self._overhead_doubt[lane] = overhead_doubt - tie**2 / variance

    def _publish(self, table: UnitTable) -> None:
        table["overhead_s"] = self._overhead_s[self._lane]
        table["tuple_cost_s"] = self._cost_s
        table["ideal_s"] = table["overhead_s"] + table["tuple_cost_s"]
        table["remaining_s"], table["box_cost_s"] = table["ideal_s"], table["tuple_cost_s"]
        table["selectivity"] = table["box_selectivity"]
        follow(table, self._feeds)


def follow(table: UnitTable, feeds: Mapping[int, tuple[int, ...]]) -> None:
    """Count what follows behind a producer: S is a product, c̄ weighted by what goes on.

    T is that of the whole way, for every unit of it.

    Args:
        table: with what each unit is by itself.
        feeds: the units that read what others make, in order (`feeds_of`).
    """
    for unit, fed in reversed([*feeds.items()]):
        row, after = table[unit], list(fed)
        passes = float(row["box_selectivity"])
        row["selectivity"] = passes * table["selectivity"][after].sum()
        row["tuple_cost_s"] += passes * table["tuple_cost_s"][after].sum()
        row["remaining_s"] += table["remaining_s"][after].max()
        row["ideal_s"] = row["remaining_s"]
    for unit, fed in feeds.items():
        spent_s = table["ideal_s"][unit] - table["remaining_s"][list(fed)].max()
        for each in fed:  # of several ways to it the longest counts
            whole_s = spent_s + table["remaining_s"][each]
            table["ideal_s"][each] = max(whole_s, table["ideal_s"][each])


def feeds_of(units: Units) -> dict[int, tuple[int, ...]]:
    """Return the units that read what others make, by unit, each before those that it feeds."""
    feeds = {shape.number: shape.feeds for shape in units.shapes if shape.feeds}
    return {unit: feeds[unit] for unit in _in_order(feeds)}


def _in_order(feeds: Mapping[int, tuple[int, ...]]) -> list[int]:
    """Return the units that feed others, each before those that it feeds."""
    order: dict[int, None] = {}

    def add(unit: int) -> None:
        if unit in feeds and unit not in order:
            for fed in feeds[unit]:
                add(fed)
            order[unit] = None

    for unit in sorted(feeds):
        add(unit)
    return [*reversed(order)]
