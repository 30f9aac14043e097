"""Ordered unions: in the order of arrival, and without idle waiting (BZ §4.1)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks import (
    arrivals_out,
    box,
    departures,
    line,
    network,
    ran,
    report,
    results_of,
    select,
)

from headgate.model.network.network import Network
from headgate.model.network.operator import Operator
from headgate.model.plan import ALL

UNION = Operator(kind="union", cost_s=1.0, selectivity=1.0)


def two_ways(left_s: float = 1.0, right_s: float = 1.0) -> Network:
    """Return two streams, a box behind each, and a union of the two."""
    boxes = [
        box("a", select(left_s), "s"), box("b", select(right_s), "t"), box("u", UNION, "a", "b"),
    ]  # fmt: skip
    return network(results_of("q", "u"), boxes=boxes, streams="st")


def operators(tested: Network, arrivals: dict[str, list[float]], policy: str = "fcfs", **more: Any):
    return ran(tested, arrivals, policy, level="operator", **more)


def test_a_tuple_does_not_wait_for_an_input_that_has_nothing_older() -> None:
    # a until 1, u until 2: the other input is empty, so that nothing older can come from it.
    ended = operators(two_ways(), {"s": [0.0], "t": [50.0]})
    assert departures(ended, "q") == [2.0, 52.0]


def test_with_idle_waiting_it_waits_for_the_next_tuple_of_the_empty_input() -> None:
    # The tuple of 0 goes on when that of 50 has come through b, at 51; that of 50 when that of 60
    # has come through a, at 61. Nothing follows for the tuple of 60.
    ended = operators(two_ways(), {"s": [0.0, 60.0], "t": [50.0]}, idle_waiting=True)
    assert departures(ended, "q") == [52.0, 62.0]
    assert report(ended).total.pending == 1


def test_an_older_tuple_that_is_still_on_its_way_is_waited_for() -> None:
    # Two workers: a holds the tuple of 0 until 10, b is done with that of 1 at 2.
    ended = operators(two_ways(left_s=10.0), {"s": [0.0], "t": [1.0]}, workers=2)
    assert arrivals_out(ended, "q") == [0.0, 1.0]
    assert departures(ended, "q") == [11.0, 12.0]


def test_a_policy_that_prefers_one_input_does_not_break_the_order() -> None:
    # hr would rather run b and its side of the union, the cheaper way, first.
    ended = operators(two_ways(left_s=5.0), {"s": [0.0, 1.0], "t": [0.5, 1.5]}, "hr")
    assert arrivals_out(ended, "q") == [0.0, 0.5, 1.0, 1.5]


@pytest.mark.parametrize("idle", [False, True])
def test_tuples_of_one_instant_leave_in_the_order_of_inputs(idle: bool) -> None:
    direct = network(results_of("q", "u"), boxes=[box("u", UNION, "s", "t")], streams="st")
    ended = operators(direct, {"s": [1.0, 2.0], "t": [1.0, 2.0]}, idle_waiting=idle)
    assert arrivals_out(ended, "q") == [1.0, 1.0, 2.0, 2.0]


def test_a_train_stops_where_the_other_input_has_an_older_tuple() -> None:
    # The other query holds the worker until 20; then 1, 5 wait on one side and 3 on the other.
    boxes = [box("u", UNION, "s", "t")]
    held = network(
        results_of("q", "u"), line("z", select(20.0), stream="r"), boxes=boxes, streams="str"
    )
    ended = operators(held, {"s": [1.0, 5.0], "t": [3.0], "r": [0.0]}, train_tuples=ALL)
    assert arrivals_out(ended, "q") == [1.0, 3.0, 5.0]


instants = st.lists(st.integers(0, 30), max_size=8).map(sorted)


@given(
    arrivals=st.tuples(instants, instants, instants),
    costs=st.tuples(*[st.integers(1, 5)] * 2),
    policy=st.sampled_from(["hr", "fcfs"]),
    idle=st.booleans(),
    train=st.sampled_from([1, 2, ALL]),
    workers=st.integers(1, 3),
)
def test_whatever_the_policy_results_leave_in_the_order_of_arrival(
    arrivals: tuple[list[int], ...],
    costs: tuple[int, ...],
    policy: str,
    idle: bool,
    train: int,
    workers: int,
) -> None:
    """Three streams, two of them through boxes; without idle waiting, all tuples leave."""
    boxes = [
        box("a", select(float(costs[0])), "r"), box("b", select(float(costs[1])), "s"),
        box("u", UNION, "a", "b", "t"),
    ]  # fmt: skip
    three = network(results_of("q", "u"), boxes=boxes, streams="rst")
    times = {
        name: [float(instant) for instant in stream_instants]
        for name, stream_instants in zip("rst", arrivals, strict=True)
    }
    ended = operators(three, times, policy, idle_waiting=idle, train_tuples=train, workers=workers)
    left = arrivals_out(ended, "q")
    assert left == sorted(left)
    every = sorted(instant for stream_instants in times.values() for instant in stream_instants)
    assert left == (every[: len(left)] if idle else every)


@given(arrivals=st.tuples(instants, instants))
def test_idle_waiting_never_lets_a_result_leave_earlier(
    arrivals: tuple[list[int], list[int]],
) -> None:
    # One input each way and the oldest first: what is held back could only have gone before.
    times = {
        name: [float(instant) for instant in stream_instants]
        for name, stream_instants in zip("st", arrivals, strict=True)
    }
    eager = departures(operators(two_ways(), times), "q")
    waiting = departures(operators(two_ways(), times, idle_waiting=True), "q")
    assert all(a <= b for a, b in zip(eager, waiting, strict=False))
