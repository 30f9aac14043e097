"""A cut is predicted to pay if the rest is expensive and few tuples reach it."""

import pytest

from headgate.model.query import QueryStatistics
from headgate.runtime.members.cut_decision import cut_pays


@pytest.mark.parametrize(
    ("selectivity", "rest_s", "pays"),
    [
        (0.1, 1e-4, True),
        (0.1, 1e-5, False),  # 500 of 5 000 tuples pass: 5 ms of work; another call costs 10
        (0.001, 1e-4, False),
        (0.999, 1e-7, False),
        (1.0, 1e-4, False),  # the first segment drops nothing: one piece of the envelope
    ],
)
def test_the_work_put_off_exceeds_a_call_and_the_first_falls_faster(
    selectivity: float, rest_s: float, pays: bool
) -> None:
    first = QueryStatistics(cost_s=1e-7, selectivity=selectivity, overhead_s=0.01)
    rest = QueryStatistics(cost_s=rest_s, selectivity=0.5, overhead_s=0.01)
    assert cut_pays("q", {"q__first": first, "q__rest": rest}) == pays


def test_what_was_never_measured_in_two_is_tried() -> None:
    assert cut_pays("q", {"q": QueryStatistics(cost_s=1e-7, selectivity=0.1)})
