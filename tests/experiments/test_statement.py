"""Statements: when they hold, hold partly, or do not."""

from math import nan

import pytest

from headgate.experiments.statement import (
    Best,
    Claim,
    MeanOverTime,
    Ordered,
    Ratio,
    Reaches,
    Statement,
    Trend,
    Values,
    lower,
)


def values(a: list[float], b: list[float]) -> Values:
    return Values({(0, "a", "y"): a, (0, "b", "y"): b}, [(0.5, 0.9)])


def test_a_statement_holds_partly_if_only_the_mean_meets_it() -> None:
    statement = Statement(text="a is below b", claims=(Ratio(of="a", to="b", most=1.0),))
    good, bad, mean = values([1, 1], [2, 2]), values([3, 1], [2, 2]), values([2, 1], [2, 2])
    assert statement.verdict([good, good], good) == "yes"
    assert statement.verdict([good, bad], mean) == "partly"
    assert statement.verdict([good, bad], bad) == "no"


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        (lower("a", "b", 0.75, x=0.9), True),
        (lower("a", "b", 0.75, x=0.5), False),
        (Ratio(of="a", to="b", most=1.0), True),
        (Ratio(of="a", to="a", least=4.0, most=4.0, at=0.9, other_at=0.5), True),
        (Ratio(of="a", to="b", most=1.0, at=0.7), False),
        (Ratio(of="a", to="c", most=1.0), False),
        (Best(label="a"), True),
        (Best(label="b"), False),
        (Best(label="b", most=True), True),
        (Ordered(labels=("a", "b")), True),
        (Ordered(labels=("b", "a")), False),
        (Trend(of="a", by=3.9), True),
        (Trend(of="a", by=4.1), False),
        (Trend(of="a", rises=False), False),
        (Trend(of="b", minus="a", steadily=True), True),
        (Trend(of="a", to="b"), False),
        (MeanOverTime(labels=("a", "b")), True),
        (MeanOverTime(labels=("b",)), False),
        (Reaches(of="b", to="a", least=4.0), True),
        (Reaches(of="b", to="a", least=9.0), False),
    ],
    ids=str,
)
def test_claims_about_two_curves(claim: Claim, holds: bool) -> None:
    assert claim.holds(values([1.0, 4.0], [2.0, 16.0])) == holds
    assert claim.measured(values([1.0, 4.0], [2.0, 16.0]))


def test_a_missing_value_meets_no_claim() -> None:
    missing = values([1.0, nan], [2.0, 16.0])
    for claim in (Ratio(of="a", to="b", most=1.0), Best(label="a"), Ordered(labels=("a", "b"))):
        assert not claim.holds(missing)
