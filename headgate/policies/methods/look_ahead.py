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

LARGEST_RATIO = 1000.0
"""What a metric that is to be large costs at most, if it is almost 0."""


@dataclass(frozen=True)
class Prospect:
    """What an outlook says of each candidate: its cost, and the doubt about its gain.

    Args:
        costs: Σ w · metric / (usual best value of the metric), inverted where more is better.
        doubts: standard error of the difference to the policy in charge.
    """

    costs: tuple[float, ...]
    doubts: tuple[float, ...]

    @property
    def scores(self) -> list[float]:
        """The least cost over the cost of each candidate: 1 for the best one."""
        least = min(self.costs)
        return [least / cost if cost > 0 else 1.0 for cost in self.costs]


class LookingAhead(Learning):
    """The policy that would do best from here, if it is better than the present one by the noise.

    Every candidate meets the same random futures, so that their differences have little noise. The
    cost of a candidate divides each metric by the mean best value of all outlooks so far: a queue
    of 2 tuples instead of 1 then counts less than one of 2 000 instead of 1 000.
    """

    looks_ahead = True

    def __init__(self) -> None:
        self._best: dict[str, tuple[int, float]] = {}
        self._scores: list[float] = []

    def choose(self, scores: Sequence[float]) -> int:
        return max(range(len(scores)), key=lambda place: scores[place])

    def own_scores(self) -> Sequence[float]:
        """Return, for each arm of the latest outlook, the least cost over its cost."""
        return self._scores

    def judge(
        self, outlook: Outlook, specification: PerformanceSpecification, current: int
    ) -> tuple[int, str]:
        prospect = self.prospect(outlook, specification, current)
        self._scores = prospect.scores
        return self.best(prospect, current)

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

    def best(self, prospect: Prospect, current: int) -> tuple[int, str]:
        """Return the candidate that takes over, and why: the present one, if the gain is noise."""
        costs, here = prospect.costs, prospect.costs[current]
        place = min(range(len(costs)), key=lambda number: costs[number])
        gain, noise = here - costs[place], DOUBT * prospect.doubts[place]
        part = f"{gain / here:.1%}" if here > 0 else f"{gain:.3g}"
        if place == current:
            return current, "best of all ahead"
        if gain > max(noise, LEAST_GAIN * abs(here)):
            return place, f"{part} better ahead"
        return current, f"another is only {part} better ahead, within the noise"

    def _learn_scale(self, outlook: Outlook, metric: str, sign: int) -> None:
        means = [fmean(values[metric] for values in futures) for futures in outlook.values]
        best = max(means) if sign > 0 else min(means)
        if isfinite(best) and best > 0:
            count, mean = self._best.get(metric, (0, 0.0))
            self._best[metric] = count + 1, mean + (best - mean) / (count + 1)

    def _cost(self, values: Mapping[str, float], specification: PerformanceSpecification) -> float:
        total = 0.0
        for row in specification.requirements:
            scale = self._best.get(row.metric, (0, 0.0))[1]
            if scale > 0:
                ratio = values[row.metric] / scale
                total += row.weight * (
                    ratio if row.sign < 0 else 1.0 / max(ratio, 1.0 / LARGEST_RATIO)
                )
        return total
