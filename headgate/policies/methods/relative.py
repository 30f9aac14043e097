"""A learner without a model: rewards relative to what the load would have given."""

from collections.abc import Sequence
from math import exp, isfinite, log, log1p, sqrt

import numpy as np

from headgate.model.arrays import Floats
from headgate.model.performance import PerformanceSpecification
from headgate.policies.methods.learning import Learning, SeededRandom
from headgate.policies.methods.turns import TurnMeasures

PRIOR = 0.1
"""Precision of the prior: how many turns the assumption counts that nothing has an effect."""

SMALLEST = 1e-9

LOAD_FEATURES = 3
"""A constant, the arrivals and the backlog. A feature for each policy follows."""


class Regression:
    """Bayesian linear regression by its normal equations; old observations fade.

    A dozen numbers are regressed once a second, so this is all that is needed of it.
    """

    def __init__(self, size: int, discount: float) -> None:
        self._discount = discount
        self._precision, self._sums = np.eye(size) * PRIOR, np.zeros(size)
        self._count, self._squares = 0.0, 0.0

    def learn(self, features: Floats, value: float) -> None:
        mean, _ = self.predict(features)
        # The prior does not fade: without it, a policy that has no turns would become uncertain
        # without bound, and the matrix singular.
        prior = np.eye(len(features)) * PRIOR
        self._precision = self._discount * (self._precision - prior) + prior
        self._precision += np.outer(features, features)
        self._sums = self._discount * self._sums + features * value
        self._count = self._discount * self._count + 1.0
        self._squares = self._discount * self._squares + (value - mean) ** 2

    def grow(self, size: int) -> None:
        """Make room for more features, of which nothing is known yet."""
        before = len(self._sums)
        precision = np.eye(size) * PRIOR
        precision[:before, :before] = self._precision
        self._precision, self._sums = (
            precision,
            np.concatenate([self._sums, np.zeros(size - before)]),
        )

    def predict(self, features: Floats) -> tuple[float, float]:
        """Return the expected value, and its standard error."""
        mean = float(features @ np.linalg.solve(self._precision, self._sums))
        width = float(features @ np.linalg.solve(self._precision, features))
        variance = self._squares / self._count if self._count else 1.0
        return mean, sqrt(max(0.0, variance * width))


class RelativeToLoad(Learning):
    """The policy with the least expected cost at the present load, with a draw for its doubt.

    The logarithm of each metric is regressed on the arrivals and on the backlog that a turn began
    with, plus an effect of each policy. That effect is the reward: what the policy made better than
    the load would have given. Tuples that still wait at the end of a turn count with their age, so
    a policy that outputs nothing is measured, too. Draws as in Thompson sampling explore.
    """

    measures_load = keeps_all = True

    def __init__(self, discount: float = 0.99) -> None:
        self.discount = discount
        self.counts: list[int] = []
        self._models: dict[str, Regression] = {}

    def prepare(self, arms: int, random: SeededRandom) -> None:
        """Start, or go on with more arms: what is known of the others stays."""
        super().prepare(arms, random)
        self.counts += [0] * (arms - len(self.counts))
        for model in self._models.values():
            model.grow(LOAD_FEATURES + arms)
        self._costs = [0.0] * arms

    def end_turn(
        self, arm: int, turn: TurnMeasures, specification: PerformanceSpecification
    ) -> None:
        self.learn(arm, turn)
        self.look_at(turn.arrived_per_s, turn.waiting_after, specification)

    def learn(self, arm: int, turn: TurnMeasures) -> None:
        """Learn from a turn of a policy: its effect on every metric beside that of the load."""
        self.counts[arm] += 1
        features = self._features(arm, turn.arrived_per_s, turn.waiting_before)
        for metric, value in turn.values.items():
            if isfinite(value):
                model = self._models.setdefault(metric, Regression(len(features), self.discount))
                model.learn(features, log(max(value, SMALLEST)))

    def look_at(
        self, arrived_per_s: float, waiting: float, specification: PerformanceSpecification
    ) -> None:
        """Draw the cost of every policy at the present load."""
        self._costs = [0.0] * self.arms
        for row in specification.requirements:
            model = self._models.get(row.metric)
            if model is None:
                continue
            guesses = [
                model.predict(self._features(arm, arrived_per_s, waiting))
                for arm in range(self.arms)
            ]
            drawn = [self.random.normal(mean, error) for mean, error in guesses]
            level = sum(mean for mean, _ in guesses) / self.arms
            for arm, value in enumerate(drawn):
                ratio = min(max(value - level, -50.0), 50.0)
                self._costs[arm] += row.weight * exp(-row.sign * ratio)

    def choose(self, scores: Sequence[float]) -> int:
        if 0 in self.counts:
            return self.counts.index(0)
        return min(range(self.arms), key=lambda arm: self._costs[arm])

    def own_scores(self) -> list[float]:
        """Return the latest score of every policy: 1 is as the load alone would give."""
        return [1.0 / cost if cost > 0 else 1.0 for cost in self._costs]

    def _features(self, arm: int, arrived_per_s: float, waiting: float) -> Floats:
        features = np.zeros(LOAD_FEATURES + self.arms)
        features[:LOAD_FEATURES] = 1.0, log1p(arrived_per_s), log1p(waiting)
        features[LOAD_FEATURES + arm] = 1.0
        return features
