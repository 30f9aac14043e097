"""Cost and selectivity of every unit, learned from what its calls took (Sharaf §3.3.3)."""

import numpy as np

from headgate.model.events import Floats, Ints, StepFinished
from headgate.model.unit_table import UnitTable

PRIOR_SELECTIVITY = 0.5
PRIOR_OVERHEAD_S = 0.05
PRIOR_COST_S = 1e-5

LANES = ("driver", "job")
"""Ways of running a call, each with an overhead of its own; an engine with one has the first."""

LEAST_S = 5e-4, 1e-9
"""No call has less overhead and no tuple costs less; noise must not make slowdowns infinite."""

MOST_TOLD_APART = 128
"""Of a call with more members than this, each is corrected in proportion to its doubt."""


class Statistics:
    """Learns S by smoothing over windows of input tuples, o and c̄ by recursive least squares.

    A call's time is modelled as o + Σ c̄_m n over its members m, with an o for each lane. Members
    that always run together cannot be told apart by any fit, therefore each unit first runs alone;
    later calls correct the estimates only along what they show, and the rest stays as it was.
    Estimates are never negative.

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
        self._estimate = np.full(len(LANES), PRIOR_OVERHEAD_S)
        self._variance = np.diag(np.full(len(LANES), 0.1**2))
        self._lane = np.zeros(0, dtype=np.int64)
        self.grow(table)

    def grow(self, table: UnitTable) -> None:
        """Takes in the units that have come since, with what the table says of them."""
        old, lanes = len(self._measured), len(LANES)
        new = table[old:]
        known = ~np.isnan(new["tuple_cost_s"] * new["selectivity"])
        if not old and known.any():
            self._estimate[:] = new["overhead_s"][known].mean()
        costs_s = np.where(known, new["tuple_cost_s"], PRIOR_COST_S)
        spread_s = np.where(known, costs_s, 1e-4)
        variance = np.zeros((lanes + len(table),) * 2)
        variance[: lanes + old, : lanes + old] = self._variance
        at = np.arange(lanes + old, lanes + len(table))
        variance[at, at] = spread_s**2
        self._variance = variance
        self._estimate = np.concatenate([self._estimate, costs_s])
        self._measured = np.concatenate([self._measured, known])
        self._lane = np.concatenate([self._lane, np.zeros(len(new), dtype=np.int64)])
        new["selectivity"][~known] = PRIOR_SELECTIVITY
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
        for unit, out in zip(event.call.units, event.tuples_out, strict=True):
            # Floored, so that a query that has output nothing yet is still measured again.
            seen = (out + 1) / (tuples + 2)
            table["selectivity"][unit] = keep * table["selectivity"][unit] + (1 - keep) * seen
        self._publish(table)

    def shares_s(self, units: tuple[int, ...], tuples: int, seconds: float) -> Floats:
        """Splits a call's time among its members; the shares add up to what was measured."""
        costs_s = self._estimate[len(LANES) :][list(units)]
        parts = self._estimate[self._lane[units[0]]] / len(units) + costs_s * tuples
        shares: Floats = parts * (seconds / parts.sum())
        return shares

    def _learn_cost(self, lane: int, units: Ints, tuples: int, seconds: float) -> None:
        used = np.concatenate([[lane], units + len(LANES)])
        row = np.full(len(used), float(tuples))
        row[0] = 1.0
        told_apart = len(used) <= MOST_TOLD_APART
        block = self._variance[np.ix_(used, used)] if told_apart else None
        drifts = (self.drift * self._estimate[used]) ** 2
        doubts = self._variance[used, used] + drifts
        if block is not None:
            block[np.diag_indices(len(used))] = doubts
        gain = doubts * row if block is None else block @ row
        noise = (0.2 * seconds) ** 2 + 1e-12
        gain /= row @ gain + noise
        error = seconds - row @ self._estimate[used]
        least_s = np.where(used < len(LANES), *LEAST_S)
        self._estimate[used] = np.maximum(self._estimate[used] + gain * error, least_s)
        if block is None:
            self._variance[used, used] = doubts * (1 - gain * row)
        else:
            self._variance[np.ix_(used, used)] = block - np.outer(gain, row @ block)

    def _publish(self, table: UnitTable) -> None:
        table["overhead_s"] = self._estimate[self._lane]
        table["tuple_cost_s"] = self._estimate[len(LANES) :]
        table["ideal_s"] = table["overhead_s"] + table["tuple_cost_s"]
        table["remaining_s"], table["box_cost_s"] = table["ideal_s"], table["tuple_cost_s"]
        table["box_selectivity"] = table["selectivity"]
