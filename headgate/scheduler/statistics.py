"""The cost model: cost and selectivity of calls and conditions, learned from their outcomes."""

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from headgate.model.arrays import Floats, Ints, moved_keys
from headgate.model.events import ConditionSample, StepFinished
from headgate.model.network.unit_table import UnitTable
from headgate.model.plan import ALL, LANES, Lane
from headgate.scheduler.feeds import follow
from headgate.scheduler.filter_order import ConditionFigures

PRIOR_SELECTIVITY = 0.5
PRIOR_OVERHEAD_S = 0.008, 0.09
"""Overhead of a call on each lane until one has run: about that of a filter on two cores."""
PRIOR_COST_S = 1e-5

MOST_IN_DRIVER = 200_000
"""A call with more tuples than this never runs on the driver lane."""

MOST_OVERHEAD = 0.05
"""The largest part of a call that may be overhead, if more tuples wait (Aurora §4.2, §8)."""

LEAST_S = 5e-4, 1e-9
"""Lower limits of a call's overhead and a tuple's cost: noise must not make slowdowns infinite."""

UNKNOWN, REHEARSED = 4.0, 0.25
"""Relative variance of an estimate: of a guess, and of a value measured in the rehearsal."""

NOISE = 0.2
"""Relative error of a call's time that no estimate explains."""

IN_COMMON = 0.9
"""Share of the error that all members of a call have in common: the machine is slow at the moment,
or the code that they share is cheaper than it was for each alone."""

MOST_AT_ONCE = 4.0
"""One call changes no estimate by more than this factor: it may have been disturbed."""

WORTH_PUBLISHING = 0.01
"""The overhead is written to the rows of all units once it has changed by this fraction."""


class Statistics:
    """Estimates of S, smoothed over windows of input tuples, and of o and c̄, from call times.

    The time of a call is modeled as o + Σ c̄_m n over its members m, with an o for each lane and a
    c̄ for each unit and lane. The difference between a call's time and the expected time corrects
    each of them by a factor. The factor depends on its share of the time and on how uncertain it
    is: this is a Kalman filter of the logarithms, whose errors are correlated within a call.
    So no estimate is ever negative. Members that always run together cannot be told apart by any
    fit; they roughly keep the proportion that they had when each ran alone, in the rehearsal or
    as a probe. Until a lane has run a unit, the unit's c̄ on that lane is that of the other lane: a
    guess that is too low would send long queues to jobs whose code is still to be generated.

    Args:
        smoothing: α of S_new = (1 − α) S_old + α N_out / N_in (0.175 in Sharaf §3.8.5).
        window_tuples: input tuples per window.
        drift: how much a member's estimate may have changed since its last call, as a fraction.
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
        shape = len(LANES), len(table)
        self._overhead_s = np.array(PRIOR_OVERHEAD_S)
        self._overhead_doubt = np.full(len(LANES), UNKNOWN)
        self._numbers = np.arange(len(table))
        self._conditions: dict[int, ConditionFigures] = {}
        self._feeds: dict[int, tuple[int, ...]] = {}
        measured = ~np.isnan(table["box_cost_s"] * table["box_selectivity"])
        lanes, overheads_s = table["lane"][measured], table["overhead_s"][measured]
        for lane in np.unique(lanes):
            self._overhead_s[lane] = max(overheads_s[lanes == lane].mean(), LEAST_S[0])
            self._overhead_doubt[lane] = REHEARSED
        self._cost_s, self._doubt = np.empty(shape), np.full(shape, UNKNOWN)
        self._cost_s[:] = np.where(measured, table["box_cost_s"], PRIOR_COST_S)
        self._measured, self._knows_all = np.zeros(shape, dtype=np.bool_), False
        self._doubt[lanes, self._numbers[measured]] = REHEARSED
        self._measured[lanes, self._numbers[measured]] = True
        table["lane"][~measured] = 0
        table["box_selectivity"][~measured] = PRIOR_SELECTIVITY
        self._publish(table)

    def moved(self, table: UnitTable, before: Ints) -> "Statistics":
        """Return the statistics after units have come and gone.

        Args:
            table: the table after that, with the figures of new units.
            before: for each unit, its row before; −1 for a new one.
        """
        new = Statistics(
            table, smoothing=self.smoothing, window_tuples=self.window_tuples, drift=self.drift
        )
        new._overhead_s, new._overhead_doubt = self._overhead_s, self._overhead_doubt
        stays = before >= 0
        for name in ("_cost_s", "_doubt", "_measured"):
            getattr(new, name)[:, stays] = getattr(self, name)[:, before[stays]]
        new._conditions = moved_keys(self._conditions, before)
        new._publish(table)
        return new

    def connect(self, feeds: Mapping[int, tuple[int, ...]], table: UnitTable) -> None:
        """Set which units fill streams, and which units read those streams."""
        self._feeds = dict(feeds)
        self._publish(table)

    def unmeasured(self, units: Ints) -> Ints:
        """Return the units, of those passed in, that have never run."""
        new: Ints = units[~self._measured[:, units].any(axis=0)]
        return new

    @property
    def knows_all(self) -> bool:
        """Whether every unit has run."""
        if not self._knows_all:
            self._knows_all = bool(self._measured.any(axis=0).all())
        return self._knows_all

    def learn(self, table: UnitTable, event: StepFinished) -> Ints:
        """Learn from one call, and from the conditions that were measured after it.

        A call in which a unit failed teaches neither cost nor selectivity: the unit has put out
        nothing, and its time is that of the failure. Else a query would rank last after one error,
        under a policy that never runs it again.

        Return the units whose rows of the table have changed.
        """
        for sample in event.samples:
            self._learn_conditions(sample)
        units = np.array(event.call.units)
        if event.failed:
            return units
        tuples = event.call.tuples - np.array(event.shed or np.zeros_like(units))
        ran = tuples > 0
        if not ran.any():
            return units
        units, tuples = units[ran], tuples[ran]
        lane = int(event.lane == "job")
        table["lane"][units] = lane
        self._learn_cost(lane, units, tuples, event.seconds)
        keep = (1 - self.smoothing) ** (tuples / self.window_tuples)
        # Never 0, so that a query without output so far is still run and measured again.
        seen = (np.array(event.instants or event.tuples_out)[ran] + 1) / (tuples + 2)
        before = table["box_selectivity"][units]
        table["box_selectivity"][units] = keep * before + (1 - keep) * seen
        moved = np.abs(self._overhead_s / self._published_s - 1) > WORTH_PUBLISHING
        publishes_all = bool(moved.any()) or bool(self._feeds)
        self._publish(table, None if publishes_all else units)
        return self._numbers if publishes_all else units

    def lane(self, units: Sequence[int], tuples: int) -> Lane:
        """Return the lane that is expected to be faster for a call."""
        driver_s, job_s = self.expected_s(units, tuples)
        return "driver" if tuples <= MOST_IN_DRIVER and driver_s <= job_s else "job"

    def expected_s(self, units: Sequence[int], tuples: int) -> Floats:
        """Return the expected seconds of a call on each lane."""
        expected: Floats = self._overhead_s + self._cost_s[:, units].sum(axis=1) * tuples
        return expected

    def train(self, units: Sequence[int], call_s: float, lane: Lane | None) -> int:
        """Return the most tuples of a call: as many as it is expected to process in `call_s`.

        They are more if overhead would else be more than a twentieth of the call (Aurora §4.2).

        Args:
            lane: the lane of every call; None for the faster one.
        """
        if call_s == inf:
            return ALL
        overheads_s = self._overhead_s.tolist()
        costs_s = self._cost_s[:, units].sum(axis=1).tolist()
        sizes = [
            int(min(max(1.0, (max(call_s, overhead_s / MOST_OVERHEAD) - overhead_s) / cost_s), ALL))
            for overhead_s, cost_s in zip(overheads_s, costs_s, strict=True)
        ]
        if lane is not None:
            return sizes[LANES.index(lane)]
        expected_s = [[overheads_s[n] + costs_s[n] * tuples for n in (0, 1)] for tuples in sizes]
        by_driver = sizes[0] <= MOST_IN_DRIVER and expected_s[0][0] <= expected_s[0][1]
        by_job = sizes[1] > MOST_IN_DRIVER or expected_s[1][1] < expected_s[1][0]
        return max(sizes) if by_driver and by_job else sizes[1 if by_job else 0]

    def train_text(self, units: Sequence[int], call_s: float, lane: Lane | None) -> str:
        """Return the most tuples of a call, with the time that it is expected to take."""
        tuples = self.train(units, call_s, lane)
        if tuples >= ALL:
            return "all that wait"
        place = LANES.index(lane or self.lane(units, tuples))
        seconds = float(self.expected_s(units, tuples)[place])
        overhead = float(self._overhead_s[place]) / seconds
        return f"at most {tuples:,} tuples, in {seconds:.3g} s, of which {overhead:.1%} is overhead"

    def lane_text(self, units: Sequence[int], tuples: int) -> str:
        """Return the faster lane for a call, as the first word, and the reason."""
        if tuples > MOST_IN_DRIVER:
            return f"job at {tuples} tuples: more than {MOST_IN_DRIVER} never run in the driver"
        expected_s = self.expected_s(units, tuples)
        origins = ["measured" if self._measured[lane, units].all() else "guess" for lane in (0, 1)]
        estimates = [
            f"{lane} {expected_s[place] * 1000:.1f} ms ({origins[place]})"
            for place, lane in enumerate(LANES)
        ]
        return f"{self.lane(units, tuples)} at {tuples} tuples: {', '.join(estimates)}"

    def conditions(self, unit: int) -> ConditionFigures | None:
        """Return the figures of a unit's conditions; None if they were not measured."""
        return self._conditions.get(unit)

    def _learn_conditions(self, sample: ConditionSample) -> None:
        tuples, before = np.array(sample.tuples), self._conditions.get(sample.unit)
        selectivity = (np.array(sample.passed) + 1) / (tuples + 2)
        cost_s = np.maximum(np.array(sample.seconds) / tuples, LEAST_S[1])
        if before is not None and len(before.cost_s) == len(tuples):
            keep = (1 - self.smoothing) ** (tuples / self.window_tuples)
            selectivity = keep * np.array(before.selectivity) + (1 - keep) * selectivity
            cost_s = keep * np.array(before.cost_s) + (1 - keep) * cost_s
        self._conditions[sample.unit] = ConditionFigures(
            tuple(selectivity.tolist()), tuple(cost_s.tolist())
        )

    def _learn_cost(self, lane: int, units: Ints, tuples: Ints, seconds: float) -> None:
        costs_s, doubts_of = self._cost_s[lane], self._doubt[lane]
        parts_s = costs_s[units] * tuples
        overhead_s = self._overhead_s[lane]
        doubts, overhead_doubt = doubts_of[units], self._overhead_doubt[lane] + self.drift**2
        doubts += self.drift**2
        spreads = np.sqrt(doubts)
        # Covariance of each part's error with the error of the sum: its own, and the common one.
        ties = (1 - IN_COMMON) * doubts * parts_s + IN_COMMON * spreads * (spreads @ parts_s)
        variance = ties @ parts_s + overhead_doubt * overhead_s**2 + (NOISE * seconds) ** 2
        off = (seconds - overhead_s - parts_s.sum()) / variance
        tie = overhead_doubt * overhead_s
        factors = np.clip(1 + np.append(ties, tie) * off, 1 / MOST_AT_ONCE, MOST_AT_ONCE)
        costs_s[units] = np.maximum(costs_s[units] * factors[:-1], LEAST_S[1])
        self._overhead_s[lane] = max(overhead_s * factors[-1], LEAST_S[0])
        doubts_of[units] = doubts - ties**2 / variance
        self._overhead_doubt[lane] = overhead_doubt - tie**2 / variance
        self._measured[lane, units] = True
        guessed = units[~self._measured[1 - lane, units]]
        self._cost_s[1 - lane, guessed] = costs_s[guessed]

    def _publish(self, table: UnitTable, units: Ints | None = None) -> None:
        """Write the estimates into the table, for some units or for all.

        The overhead is common to all units, so all rows follow when it has changed enough.
        """
        if units is None:
            units, self._published_s = self._numbers, self._overhead_s.copy()
        lanes = table["lane"][units]
        overhead_s, cost_s = self._overhead_s[lanes], self._cost_s[lanes, units]
        table["overhead_s"][units], table["tuple_cost_s"][units] = overhead_s, cost_s
        table["ideal_s"][units] = table["remaining_s"][units] = overhead_s + cost_s
        table["box_cost_s"][units] = cost_s
        table["selectivity"][units] = table["box_selectivity"][units]
        follow(table, self._feeds)
