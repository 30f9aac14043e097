"""Cost and selectivity of every unit, learned from what its calls took (Sharaf §3.3.3)."""

import numpy as np

from headgate.model.events import Floats, Ints, StepFinished
from headgate.model.unit_table import UnitTable

PRIOR_SELECTIVITY = 0.5
PRIOR_OVERHEAD_S = 0.05
PRIOR_COST_S = 1e-5


class Statistics:
    """Learns S by smoothing over windows of input tuples, o and c̄ by recursive least squares.

    A call's time is modelled as o + Σ c̄_m n over its members m. Members that always run together
    cannot be told apart by any fit, therefore each unit first runs alone; later calls correct the
    estimates only along what they show, and the rest stays as it was. Estimates are never negative.

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
        self._measured = ~np.isnan(table["tuple_cost_s"] * table["selectivity"])
        known = self._measured
        overheads = table["overhead_s"][known]
        self._estimate = np.full(len(table) + 1, PRIOR_COST_S)
        self._estimate[0] = overheads.mean() if len(overheads) else PRIOR_OVERHEAD_S
        self._estimate[1:][known] = table["tuple_cost_s"][known]
        spread = np.full(len(table) + 1, 1e-4)
        spread[0] = 0.1
        spread[1:][known] = self._estimate[1:][known]
        self._variance = np.diag(spread**2)
        table["selectivity"][~known] = PRIOR_SELECTIVITY
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
        self._learn_cost(units, tuples, event.seconds)
        keep = (1 - self.smoothing) ** (tuples / self.window_tuples)
        for unit, out in zip(event.call.units, event.tuples_out, strict=True):
            # Floored, so that a query that has output nothing yet is still measured again.
            seen = (out + 1) / (tuples + 2)
            table["selectivity"][unit] = keep * table["selectivity"][unit] + (1 - keep) * seen
        self._publish(table)

    def shares_s(self, units: tuple[int, ...], tuples: int, seconds: float) -> Floats:
        """Splits a call's time among its members; the shares add up to what was measured."""
        parts = self._estimate[0] / len(units) + self._estimate[1:][list(units)] * tuples
        shares: Floats = parts * (seconds / parts.sum())
        return shares

    def _learn_cost(self, units: Ints, tuples: int, seconds: float) -> None:
        row = np.zeros(len(self._estimate))
        row[0] = 1.0
        row[units + 1] = tuples
        used = np.flatnonzero(row)
        self._variance[used, used] += (self.drift * self._estimate[used]) ** 2
        gain = self._variance @ row
        noise = (0.2 * seconds) ** 2 + 1e-12
        gain /= row @ gain + noise
        self._estimate += gain * (seconds - row @ self._estimate)
        self._variance -= np.outer(gain, row @ self._variance)
        np.maximum(self._estimate, 1e-9, out=self._estimate)

    def _publish(self, table: UnitTable) -> None:
        table["overhead_s"] = self._estimate[0]
        table["tuple_cost_s"] = self._estimate[1:]
        table["ideal_s"] = table["overhead_s"] + table["tuple_cost_s"]
        table["remaining_s"], table["box_cost_s"] = table["ideal_s"], table["tuple_cost_s"]
        table["box_selectivity"] = table["selectivity"]
