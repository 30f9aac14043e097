"""A cost model of calls, fitted to the steps of a recorded run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats, Ints
from headgate.model.events import StepFinished
from headgate.model.plan import BoxCall
from headgate.runtime.recording.recordings import Recording
from headgate.runtime.what_if.least_squares import least_squares

LANES = ("driver", "job")
WRITES, RESULTS, SHARED, FIRST, OWN = 2, 3, 4, 6, 8
"""Positions of the coefficients: the overhead of each lane, a member's file of results, a result, a
tuple that is read (by lane) and a member that runs for the first time (by lane); then, for each
unit, a tuple that it takes and its part of a call, since some units have code of their own."""

RIDGE = 1e-3
"""Ridge that splits costs evenly between members that always ran together."""

ENOUGH = 8
"""Steps beside others, and as many alone, needed to estimate how much calls slow each other."""

ROUNDS = 6
"""How often costs and the pace of the machine are fitted, each to the other."""

ALIKE_S = 10.0
"""Two steps this many seconds apart are as unlike as two of which one has e times the tuples."""

NEAR_S = 5.0
"""Seconds on either side of an instant over which the pace of the machine is measured."""


@dataclass(frozen=True)
class CallCosts:
    """Seconds of a call: overhead of its lane + Σ c_m n + commit, at the machine's pace.

    Args:
        coefficients: in the order of `features`.
        places: by unit, its place among the coefficients and lanes.
        lanes: for each unit, the instants, the logarithms of the tuples and the lanes of its steps.
        crowding: the share by which a call takes longer for every other call under way.
        loop_s: seconds that the loop takes from an event to the plan.
        start_s: seconds between start and end of a call that are not its worker's.
        at_s, paces: instants, and how many times slower than the model the machine was then: other
            programs use it, too, and new code is slow.
        steps: number of fitted steps.
        error: mean absolute error over the mean seconds of a step.
    """

    coefficients: Floats
    places: Mapping[int, int]
    lanes: tuple[Floats, ...]
    crowding: float
    loop_s: float
    start_s: float
    at_s: Floats
    paces: Floats
    steps: int
    error: float

    def call(self, call: BoxCall, outs: Sequence[int], new: int, at_s: float) -> tuple[float, str]:
        """Return the seconds of a call that runs alone, and its lane: that of most members.

        A member takes the lane of its recorded step that is most alike in time and tuples.
        """
        call = _placed(call, self.places)
        lanes = [self._lane(unit, call.tuples, at_s) for unit in call.units]
        lane = int(2 * sum(lanes) > len(lanes))
        places, values = features(call, outs, new, lane)
        return float(values @ self.coefficients[places]), LANES[lane]

    def pace(self, at_s: float) -> float:
        """Return how many times slower than the model the machine was at an instant."""
        return float(np.interp(at_s, self.at_s, self.paces))

    def _lane(self, unit: int, tuples: int, at_s: float) -> int:
        if not len(self.lanes[unit]):
            return 0
        times_s, sizes, lanes = self.lanes[unit]
        unlike = np.abs(times_s - at_s) / ALIKE_S + np.abs(sizes - np.log(max(tuples, 1)))
        return int(lanes[np.argmin(unlike)])


def _placed(call: BoxCall, places: Mapping[int, int]) -> BoxCall:
    """Return a call with the places of its units for their ids."""
    return replace(call, units=tuple(places[unit] for unit in call.units))


def features(call: BoxCall, outs: Sequence[int], new: int, lane: int) -> tuple[Ints, Floats]:
    """Return the terms of a call's time: positions of coefficients, and how often each counts.

    Args:
        call: a call in which units have places, not ids.
    """
    units = np.array(call.units, dtype=np.int64)
    common, per_tuple = [lane, WRITES, RESULTS, FIRST + lane, SHARED + lane], OWN + 2 * units
    places = np.concatenate([common, per_tuple, per_tuple + 1])
    values = np.ones(len(places))
    values[1:4] = np.count_nonzero(outs), sum(outs), new
    values[4 : 5 + len(units)] = call.tuples
    return places, values


def fitted_costs(recording: Recording) -> CallCosts:
    """Fit the model to the steps of a recorded run that did not fail.

    Raises:
        ConfigRefused: there are no such steps.
    """
    events = [turn.event for turn in recording.turns]
    steps = [e for e in events if isinstance(e, StepFinished) and not e.failed and e.call.tuples]
    if not steps:
        expected = "of a run in which at least one call finished"
        raise ConfigRefused(
            path=str(recording.file), key="recording", value=None, expected=expected
        )
    lanes = [LANES.index(step.lane) if step.lane in LANES else 0 for step in steps]
    place_by_unit = {unit: place for place, unit in enumerate(recording.paths)}
    steps = [replace(step, call=_placed(step.call, place_by_unit)) for step in steps]
    rows, ran = [], set[int]()
    for step, lane in zip(steps, lanes, strict=True):
        new = len(set(step.call.units) - ran)
        ran.update(step.call.units)
        rows.append(features(step.call, step.tuples_out, new, lane))
    units = len(place_by_unit)
    seconds = np.array([step.seconds for step in steps])
    ends_s = np.array([step.at_s for step in steps])
    others = beside(ends_s - seconds, ends_s)
    can_tell = min(np.count_nonzero(others > 0.5), np.count_nonzero(others <= 0.5)) >= ENOUGH
    count, crowding, slowed = OWN + 2 * units, 0.0, np.ones(len(steps))
    paces, alone_s = np.ones(len(steps)), np.full(len(steps), seconds.mean())
    for _ in range(ROUNDS):
        coefficients = _fit(rows, seconds / slowed, alone_s, count)
        alone_s = np.array([values @ coefficients[places] for places, values in rows])
        if can_tell:
            crowding = _crowding(seconds, alone_s * paces, others)
        expected_s = alone_s * (1.0 + crowding * others)
        at_s, machine_paces = _paces(ends_s - seconds, ends_s, expected_s)
        paces = _means(at_s, machine_paces, ends_s - seconds, ends_s)
        slowed = paces * (1.0 + crowding * others)
    error = np.abs(seconds - alone_s * slowed).mean() / seconds.mean()
    seen: list[list[tuple[float, float, int]]] = [[] for _ in range(units)]
    for step, lane in zip(steps, lanes, strict=True):
        for unit in step.call.units:
            seen[unit].append((step.at_s - step.seconds, float(np.log(step.call.tuples)), lane))
    return CallCosts(
        coefficients, place_by_unit, tuple(np.array(samples).T for samples in seen), crowding,
        _loop_s(recording), _start_s(recording), at_s, machine_paces, len(steps), float(error),
    )  # fmt: skip


def beside(begin_s: Floats, end_s: Floats) -> Floats:
    """Return, for each step, the mean number of other steps under way beside it.

    >>> beside(np.array([0.0, 1.0]), np.array([2.0, 2.0])).tolist()
    [0.5, 1.0]
    """
    instants = np.concatenate([begin_s, end_s])
    order = np.argsort(instants, kind="stable")
    instants = instants[order]
    changes = np.concatenate([np.ones(len(begin_s)), -np.ones(len(end_s))])[order]
    areas = np.cumsum(np.cumsum(changes)[:-1] * np.diff(instants))
    areas = np.concatenate([[0.0], areas])
    lasts_s = np.maximum(end_s - begin_s, 1e-9)
    worked = np.interp(end_s, instants, areas) - np.interp(begin_s, instants, areas)
    others: Floats = np.maximum(worked / lasts_s - 1.0, 0.0)
    return others


def _fit(
    rows: Sequence[tuple[Ints, Floats]], seconds: Floats, expected_s: Floats, count: int
) -> Floats:
    gram, target = np.zeros((count, count)), np.zeros(count)
    # Long steps are less certain, so they weigh less. The expected time decides: by the measured
    # time, steps that happened to be quick would weigh more, and all costs would look too low.
    weights = 1.0 / np.maximum(expected_s, 0.01 * expected_s.mean() + 1e-9)
    for (places, values), step_s, weight in zip(rows, seconds, weights, strict=True):
        gram[np.ix_(places, places)] += weight * np.outer(values, values)
        target[places] += weight * step_s * values
    gram[np.diag_indices(count)] *= 1.0 + RIDGE
    return least_squares(gram, target)


def _crowding(seconds: Floats, alone_s: Floats, others: Floats) -> float:
    """Return the slope of the ratio of measured to expected time over the number of others beside.

    It is relative to the ratio of a step alone, where the fitted line begins.
    """
    ratios, weights = np.clip(seconds / np.maximum(alone_s, 1e-9), 0.0, 5.0), np.sqrt(seconds)
    slope, alone = np.polyfit(others, ratios, 1, w=weights)
    return float(np.clip(slope / max(alone, 0.1), 0.0, 1.0))


def _paces(begin_s: Floats, end_s: Floats, expected_s: Floats) -> tuple[Floats, Floats]:
    """Return instants, a second apart, and how many times longer work took around each.

    A step is assumed to do its work evenly from beginning to end.
    """
    at_s = np.arange(begin_s.min(), end_s.max() + 1.0)
    busy_s, worked_s = np.zeros(len(at_s)), np.zeros(len(at_s))
    speeds = expected_s / np.maximum(end_s - begin_s, 1e-9)
    for begun_s, ended_s, speed in zip(begin_s, end_s, speeds, strict=True):
        first = int(np.searchsorted(at_s, begun_s - NEAR_S))
        end = int(np.searchsorted(at_s, ended_s + NEAR_S))
        near = at_s[first:end]
        shared_s = np.minimum(ended_s, near + NEAR_S) - np.maximum(begun_s, near - NEAR_S)
        busy_s[first:end] += shared_s
        worked_s[first:end] += shared_s * speed
    has_work = worked_s > 0
    return at_s[has_work], busy_s[has_work] / worked_s[has_work]


def _means(at_s: Floats, values: Floats, begin_s: Floats, end_s: Floats) -> Floats:
    """Return the pace of each step: the harmonic mean over its time, so all its work is done."""
    places = np.linspace(begin_s, end_s, 9)
    speeds: Floats = (1.0 / np.interp(places, at_s, values)).mean(axis=0)
    return 1.0 / speeds


def _loop_s(recording: Recording) -> float:
    """Return the median seconds from an event to its plan, without waits for a busy loop."""
    delays_s, free_at_s = [], 0.0
    for turn in recording.turns:
        delays_s.append(turn.planned_at_s - max(turn.event.at_s, free_at_s))
        free_at_s = turn.calls[-1][1] if turn.calls else turn.planned_at_s
    return max(0.0, float(np.median(delays_s))) if delays_s else 0.0


def _start_s(recording: Recording) -> float:
    started = {call.number: at_s for turn in recording.turns for call, at_s in turn.calls}
    delays_s = [
        turn.event.at_s - started[turn.event.call.number] - turn.event.seconds
        for turn in recording.turns
        if isinstance(turn.event, StepFinished)
    ]
    return max(0.0, float(np.median(delays_s))) if delays_s else 0.0
