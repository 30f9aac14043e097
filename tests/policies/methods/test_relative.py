"""Rewards relative to the load: the regression, and who is chosen by it."""

from math import log

import numpy as np
import pytest

from headgate.model.performance import specification_of
from headgate.policies.methods.learning import SeededRandom
from headgate.policies.methods.relative import PRIOR, Regression, RelativeToLoad
from headgate.policies.methods.turns import TurnMeasures

DELAY = specification_of("mean_response_s:minimize:1")


def test_without_fading_the_regression_is_ridge_regression() -> None:
    random = np.random.default_rng(1)
    rows, values = random.normal(size=(30, 3)), random.normal(size=30)
    model = Regression(3, discount=1.0)
    for row, value in zip(rows, values, strict=True):
        model.learn(row, float(value))
    ridge = np.linalg.solve(rows.T @ rows + PRIOR * np.eye(3), rows.T @ values)
    assert model.predict(rows[0])[0] == pytest.approx(float(rows[0] @ ridge))


def test_the_better_policy_is_chosen_although_it_had_the_worse_load() -> None:
    """Policy 1 halves the response time, but has its turns when ten times as much arrives."""
    learning = RelativeToLoad()
    learning.prepare(2, SeededRandom(1))
    for number in range(40):
        for arm, busy, factor in ((0, 1.0, 1.0), (1, 10.0, 0.5)):
            per_s = busy * (1.0 + number % 4)
            values = {"mean_response_s": factor * (1.0 + per_s)}
            learning.learn(arm, TurnMeasures(values, per_s, 0.0, 0.0, 0.5))
    learning.look_at(8.0, 0.0, DELAY)
    assert learning.choose(()) == 1
    assert learning.own_scores()[1] > 1.0 > learning.own_scores()[0]


def test_every_policy_has_a_turn_before_any_is_preferred() -> None:
    learning = RelativeToLoad()
    learning.prepare(2, SeededRandom(1))
    learning.learn(0, TurnMeasures({"mean_response_s": log(2)}, 1.0, 0.0, 0.0, 0.5))
    learning.look_at(1.0, 0.0, DELAY)
    assert learning.choose(()) == 1
