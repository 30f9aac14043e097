"""Looking ahead: the policy that would serve a specification best from the present state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import fmean, stdev

from headgate.model.outlook import Outlook
from headgate.model.performance import PerformanceSpecification
from headgate.policies.methods.learning import Learning

DOUBT = 1.0
"""How many standard errors a policy must be better than the one in charge."""

LEAST_GAIN = 0.002
"""The least gain that is worth a change, as a part of the cost of the policy in charge."""


@dataclass(frozen=True)
class Prospect:
    """What an outlook says of each candidate: its cost, and the doubt about its gain.

    Args:
        costs: Σ w · metric / (usual best value of the metric), output rates inverted.
        doubts: standard error of the difference to the policy in charge.
    """

    costs: tuple[float, ...]
    doubts: tuple[float, ...]


class LookingAhead(Learning):
    """The policy that would do best from here, if it is better than the present one by the noise.

    Every candidate meets the same random futures, so that their differences have little noise. The
    cost of a candidate divides each metric by the mean best value of all outlooks so far: a queue
    of 2 tuples instead of 1 then counts less than one of 2 000 instead of 1 000.
    """

    looks_ahead = True

    def __init__(self) -> None:
        self._best: dict[str, tuple[int, float]] = {}

    def choose(self, scores: Sequence[float]) -> int:
        return max(range(len(scores)), key=lambda place: scores[place])

    def prospect(
        self, outlook: Outlook, specification: PerformanceSpecification, current: int
    ) -> Prospect:
        """Return the cost of each candidate."""
        for row in specification.requirements:
            self._learn_scale(outlook, row.metric, row.sign)
        costs = [
            [self._cost(values, specification) for values in futures] for futures in outlook.values
        ]
        doubts = []
        for values in costs:
            gains = [value - base for value, base in zip(values, costs[current], strict=True)]
            doubts.append(stdev(gains) / sqrt(len(gains)) if len(gains) > 1 else 0.0)
        return Prospect(tuple(map(fmean, costs)), tuple(doubts))

    def best(self, prospect: Prospect, current: int) -> int:
        """Return the candidate that takes over: the present one, if none is better by the noise."""
        costs, here = prospect.costs, prospect.costs[current]
        place = min(range(len(costs)), key=lambda number: costs[number])
        least = max(DOUBT * prospect.doubts[place], LEAST_GAIN * abs(here))
        return place if here - costs[place] > least else current

    def _learn_scale(self, outlook: Outlook, metric: str, sign: int) -> None:
        means = [fmean(values[metric] for values in futures) for futures in outlook.values]
        best = max(means) if sign > 0 else min(means)
        if isfinite(best) and best > 0:
            count, mean = self._best.get(metric, (0, 0.0))
            self._best[metric] = count + 1, mean + (best - mean) / (count + 1)

    def _cost(
        self, values: Mapping[str, float], specification: PerformanceSpecification
    ) -> float:
        total = 0.0
        for row in specification.requirements:
            scale = self._best.get(row.metric, (0, 0.0))[1]
            if scale > 0:
                total -= row.sign * row.weight * values[row.metric] / scale
        return total
