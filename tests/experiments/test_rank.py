"""Claims about the rank of a curve."""

from math import nan

import pytest

from headgate.experiments.rank import NoWorseThanMedian, Often
from headgate.experiments.statement import Claim, Values


def values(**curves: list[float]) -> Values:
    places = range(max(map(len, curves.values())))
    return Values({(0, label, "y"): line for label, line in curves.items()}, [list(places)])


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        (Often(label="a"), True),
        (Often(label="b"), False),
        (Often(label="a", share=0.7), False),
        (NoWorseThanMedian(label="a"), False),
        (NoWorseThanMedian(label="b"), True),
        (NoWorseThanMedian(label="b", most=True), False),
        (NoWorseThanMedian(label="c", most=True), True),
    ],
    ids=str,
)
def test_claims_about_ranks(claim: Claim, holds: bool) -> None:
    measured = values(a=[1, 9, 1, nan], b=[2, 2, 2, 0], c=[8, 8, 8, 8])
    assert claim.holds(measured) == holds
    assert claim.measured(measured)


def test_a_curve_without_values_has_no_rank() -> None:
    assert not Often(label="a").holds(values(a=[nan], b=[1.0]))
    assert not NoWorseThanMedian(label="a").holds(values(a=[nan], b=[1.0]))
