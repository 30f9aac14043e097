"""The last minute of a run: tuples, results and response times of every query."""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import TypeVar

import numpy as np

from headgate.metrics.tally import BINS, bins_of, value_in
from headgate.model.arrays import Floats, Ints
from headgate.model.events import StepFinished

K = TypeVar("K", bound=Hashable)

SPAN_S, SPANS = 5.0, 12
"""A minute is 12 spans of 5 s, the last of which is not over yet: so it is 55 to 60 s."""

MERGED = 5
"""How many bins of a tally are one bin here, 10 % wide: so p95 is accurate to 5 %."""

WIDE_BINS = BINS // MERGED

MOST_STEPS, MOST_VALUES = 4096, 262_144
"""How many steps, and response times in them, wait at most to be counted together."""


@dataclass(frozen=True)
class Recent:
    """What a unit did in the last minute; mean and p95 are NaN without results."""

    tuples: int = 0
    results: int = 0
    mean_s: float = nan
    p95_s: float = nan


@dataclass(frozen=True)
class Counts:
    """What some steps of one span did.

    Args:
        span: the number of the span.
        units: the ids of the units that took part; the next two have an entry for each.
        keys: the pairs of unit and bin that occur, as place in `units` * WIDE_BINS + bin.
        results: how many results each of these pairs has.
    """

    span: int
    units: Ints
    tuples: Floats
    sums_s: Floats
    keys: Ints
    results: Ints


class LastMinute:
    """The last minute of all units, which are named by their ids.

    Steps are only kept when they come. They are counted by the hundred, all units at once, because
    NumPy takes as long for a few values as for many. Only pairs of a unit and a bin that occur are
    stored, so that hundreds of units take little room.

    >>> from headgate.model.plan import BoxCall
    >>> minute, call = LastMinute(), BoxCall(0, (7,), 0, 0, 1, 30)
    >>> minute.hear(StepFinished(100.0, call, 0.1, (2,), (np.array([1.0, 3.0]),)))
    >>> recent_by_unit(minute.counts(110.0))[7].mean_s, minute.counts(170.0)
    (2.0, ())
    """

    def __init__(self) -> None:
        self._span = 0
        self._steps: list[StepFinished] = []
        self._values = 0
        self._counts: deque[Counts] = deque()

    def hear(self, step: StepFinished) -> None:
        """Take note of a step."""
        self._pass(step.at_s)
        self._steps.append(step)
        self._values += sum(map(len, step.responses_s))
        if len(self._steps) >= MOST_STEPS or self._values >= MOST_VALUES:
            self._count()

    def counts(self, now_s: float) -> tuple[Counts, ...]:
        """Return what was counted in the minute before an instant."""
        self._pass(now_s)
        self._count()
        return tuple(self._counts)

    def _pass(self, at_s: float) -> None:
        """Go on to the span of an instant; forget what is not in its minute."""
        span = int(at_s // SPAN_S)
        if span > self._span:
            self._count()
            self._span = span
            while self._counts and self._counts[0].span <= span - SPANS:
                self._counts.popleft()

    def _count(self) -> None:
        """Count the steps that wait. All of them are of the present span."""
        if not self._steps:
            return
        unit_of_part, tuples, parts = list[int](), list[int](), list[Floats]()
        for step in self._steps:
            call = step.call
            unit_of_part += call.units
            tuples += [
                0 if unit in step.failed else call.tuples - shed
                for unit, shed in zip(call.units, step.shed or [0] * len(call.units), strict=True)
            ]
            parts += step.responses_s
        self._steps, self._values = [], 0
        units, places = np.unique(unit_of_part, return_inverse=True)
        values = np.concatenate(parts)
        owners = np.repeat(places, [len(part) for part in parts])
        if not np.isfinite(values).all():
            owners, values = owners[np.isfinite(values)], values[np.isfinite(values)]
        results = np.bincount(owners * WIDE_BINS + bins_of(values) // MERGED)
        keys = np.flatnonzero(results)
        weights = np.array(tuples, dtype=np.float64)
        tuples_by_unit: Floats = np.bincount(places, weights).astype(np.float64)
        sums_s: Floats = np.bincount(owners, values, len(units)).astype(np.float64)
        self._counts.append(Counts(self._span, units, tuples_by_unit, sums_s, keys, results[keys]))


def minute_s(now_s: float) -> float:
    """Return how long the minute before an instant is.

    >>> minute_s(100.0), minute_s(104.0)
    (55.0, 59.0)
    """
    return now_s % SPAN_S + SPAN_S * (SPANS - 1)


def recent_by_unit(parts: Sequence[Counts]) -> dict[int, Recent]:
    """Return what every unit did, by its id, from what was counted in a minute."""
    units = {unit: unit for part in parts for unit in part.units.tolist()}
    return recent_by_group(parts, units)


def recent_by_group(parts: Sequence[Counts], groups: Mapping[int, K]) -> dict[K, Recent]:
    """Return what groups of units did, from what was counted in a minute.

    Args:
        groups: the group of each unit, by its id; other units are left out.
    """
    names = [*dict.fromkeys(groups.values())]
    place_by_name = {name: place for place, name in enumerate(names)}
    tuples, sums_s = np.zeros((2, len(names)))
    results = np.zeros((len(names), WIDE_BINS), dtype=np.int64)
    for part in parts:
        units = part.units.tolist()
        places = np.array([place_by_name[groups[unit]] if unit in groups else -1 for unit in units])
        of_group, in_group = places >= 0, places[part.keys // WIDE_BINS] >= 0
        np.add.at(tuples, places[of_group], part.tuples[of_group])
        np.add.at(sums_s, places[of_group], part.sums_s[of_group])
        keys = part.keys[in_group]
        cells = places[keys // WIDE_BINS], keys % WIDE_BINS
        np.add.at(results, cells, part.results[in_group])
    upto = results.cumsum(axis=1)
    counts = upto[:, -1]
    bins = (upto < 0.95 * counts[:, np.newaxis]).sum(axis=1)
    return {
        name: Recent(
            int(total), count, sum_s / count if count else nan,
            value_in(MERGED * place + MERGED // 2) if count else nan,
        )
        for name, total, count, sum_s, place in zip(
            names, tuples.tolist(), counts.tolist(), sums_s.tolist(), bins.tolist(), strict=True
        )
    }  # fmt: skip
