"""Trains: how many tuples a call takes, and that it pays its overhead once (Aurora §4.2)."""

from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks import Watched, departures, line, network, ran, report, select

from headgate.model.plan import ALL
from headgate.model.stream import Stream
from headgate.policies import policies, policy_named

ONE = network(line("q", select(1.0)))
AT_ONCE = [0.0] * 5


def train_sizes(**options: object) -> list[int]:
    """Return the tuples of each call when five wait; a call begins with 1 s of overhead."""
    done = departures(ran(ONE, {"s": AT_ONCE}, overhead_s=1.0, **options), "q")
    gaps_s = np.diff([0.0, *done])
    starts = [number for number, gap_s in enumerate(gaps_s) if gap_s > 1.5]
    return np.diff([*starts, len(done)]).astype(int).tolist()


def test_a_call_takes_at_most_so_many_tuples() -> None:
    assert train_sizes(train_tuples=2) == [2, 2, 1]
    assert train_sizes(train_tuples=1) == [1] * 5
    assert train_sizes(train_tuples=ALL) == [5]


def test_only_a_policy_whose_definition_fixes_the_train_decides_it() -> None:
    for usual, sizes in ((1, [1] * 5), (2, [2, 2, 1]), (ALL, [5])):
        assert train_sizes(policy="fcfs", usual_train=usual) == sizes
        assert train_sizes(policy="qos", usual_train=usual) == sizes
        assert train_sizes(policy="cqc", usual_train=usual) == [5]
        assert train_sizes(policy="taat", usual_train=usual) == [1] * 5
    assert train_sizes(policy="fcfs") == [1] * 5
    fixed = {name for name in policies() if policy_named(name).tuples_a_step is not None} - {
        "sources-last"
    }
    superboxes = {"aaat", "mc", "ml", "mm", "top-k"}
    assert fixed == {"taat", "baat", "wrr", "rr-k", "fas", "cqc"} | superboxes


def test_a_tuple_is_pending_until_it_is_done_and_its_result_from_then_on() -> None:
    # Tuples of one call are done at 1, 2, 3: (1 + 2 + 3) tuple-seconds, however long the call.
    ended = ran(ONE, {"s": [0.0] * 3}, train_tuples=ALL)
    assert report(ended).total.pending_mean == (1 + 2 + 3) / 3
    assert report(ended).bytes_mean == (1 + 2 + 3) / 3
    assert report(ended).memory_mean == (1 + 2 + 3) / 3
    two = network(line("q", select(1.0), select(1.0)))
    for train in (1, ALL):
        # Box by box: 3 until the first is done with all, then it falls: 9 + (1 + 2 + 3).
        level = {"level": "operator", "train_tuples": train, "policy": "rr-box"}
        ended = ran(two, {"s": [0.0] * 3}, **level)
        areas = {1: 3 + 3 + 2 + 2 + 1 + 1, ALL: 3 * 3 + 1 + 2 + 3}
        assert report(ended).total.pending_mean == areas[train] / 6
        assert report(ended).memory_mean == areas[train] / 6


def test_results_leave_a_train_one_by_one() -> None:
    # 0.5 overhead, then a second each: two tuples, two, one.
    ended = ran(ONE, {"s": AT_ONCE}, overhead_s=0.5, train_tuples=2)
    assert departures(ended, "q") == [1.5, 2.5, 4.0, 5.0, 6.5]


def test_a_call_takes_at_most_a_part_of_its_queue_rounded_up() -> None:
    assert train_sizes(train_tuples=ALL, train_fraction=0.5) == [3, 1, 1]
    assert train_sizes(train_tuples=ALL, train_fraction=0.01) == [1] * 5


def test_a_call_takes_at_most_so_many_expected_seconds() -> None:
    assert train_sizes(train_tuples=ALL, train_cost_s=2.5) == [2, 2, 1]


def test_a_limit_in_seconds_is_used_up_where_it_is_a_multiple_of_the_cost() -> None:
    # 0.3 / 0.1 is 2.9999999999999996 in floats.
    tenths = network(line("q", select(0.1)))
    ended = ran(tenths, {"s": [0.0] * 6}, train_tuples=ALL, train_cost_s=0.3)
    assert report(ended).calls == 2


def test_a_part_of_the_queue_is_not_rounded_up_by_an_error_of_floats() -> None:
    # 0.55 × 100 is 55.00000000000001 in floats: 55, then 25 of 45, 11 of 20, 5 of 9, ...
    ended = ran(ONE, {"s": [0.0] * 100}, train_tuples=ALL, train_fraction=0.55, overhead_s=1.0)
    assert np.diff(departures(ended, "q")).tolist().index(2.0) == 54


def test_a_tuple_that_costs_more_than_the_limit_runs_alone() -> None:
    assert train_sizes(train_tuples=ALL, train_cost_s=0.25) == [1] * 5


def test_the_limit_in_seconds_counts_what_is_expected_of_a_tuple() -> None:
    # c̄ = 1 + 0.5 × 2 = 2, though a tuple that passes takes 3: two tuples in 5 s.
    two = network(line("q", select(1.0, 0.5), select(2.0)))
    assert report(ran(two, {"s": [0.0] * 8}, train_tuples=ALL, train_cost_s=5.0)).calls == 4


def test_a_call_takes_at_most_so_many_bytes() -> None:
    stream = Stream(name="s", format="rate", tuple_bytes=100.0)
    heavy = network(line("q", select(1.0)), streams=[stream])
    assert report(ran(heavy, {"s": AT_ONCE}, train_tuples=ALL, train_bytes=250.0)).calls == 3


def test_tuples_of_a_train_arrived_at_most_so_far_apart() -> None:
    # The other query keeps the worker until 20; then 1, 2, 3 wait together, 9 comes later.
    both = network(line("q", select(1.0)), line("other", select(20.0), stream="t"), streams="st")
    ended = ran(
        both, {"s": [1.0, 2.0, 3.0, 9.0], "t": [0.0]}, overhead_s=1.0, train_tuples=ALL,
        train_spread_s=2.0,
    )  # fmt: skip
    assert departures(ended, "q") == [23.0, 24.0, 25.0, 27.0]


def test_the_spread_limits_trains_behind_other_boxes_too() -> None:
    two = network(
        line("q", select(1.0), select(1.0)), line("z", select(9.0), stream="t"), streams="st"
    )
    ended = ran(
        two, {"s": [1.0, 2.0, 5.0], "t": [0.0]}, level="operator", train_tuples=ALL, overhead_s=1.0,
        train_spread_s=1.5,
    )  # fmt: skip
    # 10: z is done. First box 1, 2 until 13; then the oldest: second box 1, 2 at 15, 16; then 5.
    assert departures(ended, "q") == [15.0, 16.0, 20.0]


def test_the_tightest_limit_rules() -> None:
    limits = {"train_tuples": 4, "train_fraction": 0.9, "train_cost_s": 3.5, "train_bytes": 2.0}
    assert train_sizes(**limits) == [2, 2, 1]


@given(tuples=st.integers(1, 40), size=st.integers(1, 12))
def test_overhead_is_paid_once_a_call_however_many_tuples_it_takes(tuples: int, size: int) -> None:
    ended = ran(ONE, {"s": [0.0] * tuples}, overhead_s=0.5, train_tuples=size)
    figures, calls = report(ended), ceil(tuples / size)
    assert figures.calls == calls
    assert figures.overhead_s == 0.5 * calls
    assert figures.seconds == tuples * 1.0 + 0.5 * calls


def test_at_operator_level_every_box_pays_for_its_own_calls() -> None:
    two = network(line("q", select(1.0), select(1.0)))
    whole = report(ran(two, {"s": [0.0] * 3}, level="operator", train_tuples=ALL, overhead_s=0.5))
    single = report(ran(two, {"s": [0.0] * 3}, level="operator", train_tuples=1, overhead_s=0.5))
    assert (whole.calls, whole.overhead_s, whole.seconds) == (2, 1.0, 7.0)
    assert (single.calls, single.overhead_s, single.seconds) == (6, 3.0, 9.0)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_the_cost_in_the_table_shares_the_overhead_among_the_tuples_of_a_train(size: int) -> None:

    watched = Watched()
    ran(ONE, {"s": AT_ONCE}, watched, overhead_s=1.0, train_tuples=size)
    _, first = watched.seen[0]
    assert first["cost_s"][0] == 1.0 + 1.0 / min(size, 5)


@pytest.mark.parametrize("name", ["wrr", "taat"])
@pytest.mark.parametrize("run", [{}, {"train_tuples": ALL}])
def test_with_more_tuples_a_call_a_turn_is_worth_its_overhead(
    name: str, run: dict[str, Any]
) -> None:
    # A call costs a second and a tuple a millisecond: 200 calls, or two.
    one = network(line("q", select(0.001)))
    times = {"s": [0.0] * 200}
    single = ran(one, times, policy_named(name), overhead_s=1.0, **run)
    hundred = ran(one, times, policy_named(name, tuples=100), overhead_s=1.0, **run)
    assert report(single).calls == 200
    assert report(hundred).calls == 2
    assert report(hundred).seconds == pytest.approx(2.2)
