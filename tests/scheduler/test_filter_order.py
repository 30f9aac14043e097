"""Conditions run in the order that costs least, and none fails that did not as written."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from headgate.model.network.network import Condition
from headgate.scheduler.filter_order import ConditionFigures, best_order, better_order, expected_s

parts = st.floats(0.0, 1.0)
costs_s = st.floats(1e-9, 1e-3)
three = st.tuples(st.tuples(parts, costs_s), st.tuples(parts, costs_s), st.tuples(parts, costs_s))


def figures_of(pairs: tuple[tuple[float, float], ...]) -> ConditionFigures:
    return ConditionFigures(tuple(part for part, _ in pairs), tuple(cost_s for _, cost_s in pairs))


@given(three)
def test_no_order_costs_less_where_none_can_fail(pairs: tuple[tuple[float, float], ...]) -> None:
    figures = figures_of(pairs)
    best = best_order(figures, [Condition("c", True)] * 3)
    least = min(expected_s(figures, order) for order in permutations(range(3)))
    assert expected_s(figures, best) <= least * (1 + 1e-9)


@given(three, st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_what_may_fail_sees_no_tuple_that_it_did_not_see(
    pairs: tuple[tuple[float, float], ...], certain: tuple[bool, bool, bool]
) -> None:
    figures, written = figures_of(pairs), tuple(range(3))
    best = best_order(figures, [Condition("c", never_fails) for never_fails in certain])
    assert sorted(best) == list(written)
    for place, condition in enumerate(best):
        if not certain[condition]:
            assert set(best[:place]) >= set(range(condition))
    assert expected_s(figures, best) <= expected_s(figures, written)


def test_another_order_is_taken_only_if_it_saves_a_tenth() -> None:
    conditions = [Condition("c", True)] * 2
    little, much = (
        ConditionFigures((0.5, 0.5), (1.0, 0.9)),
        ConditionFigures((0.5, 0.5), (1.0, 0.5)),
    )
    assert best_order(little, conditions) == (1, 0)
    assert better_order(little, conditions, (0, 1)) == (0, 1)
    assert better_order(much, conditions, (0, 1)) == (1, 0)
