"""Choices by an outlook: costs, noise and scale."""

import pytest

from headgate.model.outlook import Outlook
from headgate.model.performance import specification_of
from headgate.policies.methods.look_ahead import LARGEST_RATIO, LookingAhead

QUEUE = specification_of("pending:minimize:1")


def outlook(metric: str, *candidates: tuple[float, ...]) -> Outlook:
    return Outlook(0.0, 5.0, tuple(tuple({metric: x} for x in futures) for futures in candidates))


def test_a_policy_takes_over_only_if_it_is_better_by_more_than_the_noise() -> None:
    learning = LookingAhead()
    clear = outlook("pending", (10.0, 20.0, 30.0), (9.0, 18.0, 27.0))
    assert learning.best(learning.prospect(clear, QUEUE, 0), 0) == (1, "10.0% better ahead")
    doubtful = outlook("pending", (10.0, 20.0, 30.0), (15.0, 10.0, 32.0))
    place, why = learning.best(learning.prospect(doubtful, QUEUE, 0), 0)
    assert (place, "within the noise" in why) == (0, True)


def test_a_metric_counts_by_its_usual_size_and_not_by_that_of_the_moment() -> None:
    learning = LookingAhead()
    learning.prospect(outlook("pending", (999.0,), (1999.0,)), QUEUE, 0)
    quiet = learning.prospect(outlook("pending", (1.0,), (2.0,)), QUEUE, 0)
    assert quiet.costs == pytest.approx((1 / 500, 2 / 500))


def test_an_output_rate_costs_its_inverse_and_no_output_costs_a_bounded_amount() -> None:
    rate = specification_of("output_per_s:maximize:1")
    prospect = LookingAhead().prospect(outlook("output_per_s", (8.0,), (4.0,), (0.0,)), rate, 0)
    assert prospect.costs == pytest.approx((1.0, 2.0, LARGEST_RATIO))
    assert prospect.scores == pytest.approx([1.0, 0.5, 1 / LARGEST_RATIO])
