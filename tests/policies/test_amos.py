"""Turns, scores and choices of AMoS (AMoS §3)."""

from collections.abc import Sequence
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model.events import Measured, StepFinished, StepStarted
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.unit_table import UnitTable, unit_table
from headgate.model.network.units import Units, units_of
from headgate.model.plan import BoxCall
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.policies import State, policies, policy_named
from headgate.policies.amos import TABLE_3, Amos
from headgate.policies.methods.learning import Learning, SeededRandom
from headgate.policies.methods.strategies import LEARNING
from headgate.policies.mtiq import most_tuples
from headgate.policies.priority import PriorityPolicy
from headgate.policies.round_robin import RoundRobin

THREE = ("rr", "fcfs", "hr")
EVERY_WHERE = [
    name
    for name, entry in policies().items()
    if name != "amos" and entry.engines == ("simulation", "spark") and "query" in entry.levels
]


class InOrder(Learning):
    """A strategy that chooses in a fixed order and records its rewards."""

    def __init__(self, order: Sequence[int]) -> None:
        self.order, self.rewards = list(order), list[tuple[int, float]]()

    def choose(self, scores: Sequence[float]) -> int:
        return self.order.pop(0)

    def hear(self, arm: int, reward: float) -> None:
        self.rewards.append((arm, reward))


def units(count: int = 3) -> Units:
    return units_of(
        Network(
            (Stream(name="s", format="rate"),),
            (QueryClass(name="N", priority=1.0),),
            tuple(
                Path(
                    query=Query(name=f"q{number}", sql="SELECT * FROM s", query_class="N"),
                    stream="s",
                    operators=(Operator(kind="select", cost_s=1.0 + number, selectivity=0.5),),
                )
                for number in range(count)
            ),
        )
    )


def waiting(count: int = 3) -> State:
    table: UnitTable = unit_table(units(count))
    table["pending"] = np.arange(1, count + 1)
    table["head_arrived_at_s"] = -np.arange(count, dtype=float)
    table["ready"] = True
    return State(table, np.arange(count))


def name_in_charge(amos: Amos) -> str:
    return amos.in_charge(amos.wake_at_s).name


def turn(amos: Amos, **values: float) -> str:
    """End the current dwell with these values; return the policy that is in charge then."""
    amos.hear(Measured(amos.wake_at_s, amos.dwell_s, values))
    return name_in_charge(amos)


def test_scores_to_the_digit() -> None:
    """Two policies, total queue size 75 %, result latency 25 % (AMoS Table 3), decay 0.25."""
    learning = InOrder([0, 1, 0])
    amos = Amos(("rr", "hr"), specification=TABLE_3, decay=0.25, learning=learning)

    assert turn(amos, pending=10.0, mean_response_s=2.0) == "hr"
    assert amos.scores == (1.0, 1.0)  # all values the same so far: z = 0

    # pending: (4 − 7) / (10 − 4) = −0.5; response: (4 − 3) / (4 − 2) = 0.5; no decay at first
    assert turn(amos, pending=4.0, mean_response_s=4.0) == "rr"
    assert amos.scores == pytest.approx((1.0, 1 + 0.75 * 0.5 - 0.25 * 0.5))

    # pending: (10 − 8) / 6 · 0.75 + 0 · 0.25 = 0.25; response: (1 − 7/3) / 3 · 0.75 = −1/3
    assert turn(amos, pending=10.0, mean_response_s=1.0) == "hr"
    assert amos.scores == pytest.approx((1 - 0.75 * 0.25 + 0.25 / 3, 1.25))

    # pending: (6 − 7.5) / 6 · 0.75 − 0.5 · 0.25 = −0.3125
    # response: (4 − 2.75) / 3 · 0.75 + 0.5 · 0.25 = 0.4375
    assert turn(amos, pending=6.0, mean_response_s=4.0) == "rr"
    assert amos.scores == pytest.approx((0.8958333333333334, 1.125))

    # Rewards are the scores without memory, divided by 2.
    assert [arm for arm, _ in learning.rewards] == [0, 1, 0, 1]
    assert learning.rewards[3][1] == pytest.approx((1 + 0.75 * 0.25 - 0.25 * 1.25 / 3) / 2)


def test_more_is_better_where_the_specification_says_maximize() -> None:
    amos = Amos(("rr", "hr"), specification="output_per_s:maximize:1", learning=InOrder([0]))
    turn(amos, output_per_s=10.0)
    turn(amos, output_per_s=30.0)
    assert amos.scores == pytest.approx((1.0, 1.5))


def test_at_first_every_policy_has_one_turn_in_the_order_given() -> None:
    amos = Amos(("hr", "rr", "fcfs"), learning=InOrder([1]))
    assert name_in_charge(amos) == "hr"
    assert [turn(amos, pending=1.0) for _ in range(3)] == ["rr", "fcfs", "rr"]
    assert amos.turns == (1, 2, 1)


def test_nobody_is_replaced_before_the_dwell_is_over() -> None:
    amos = Amos(THREE, dwell_s=2.0)
    assert amos.in_charge(100.0).name == "rr"
    assert amos.wake_at_s == 102.0
    for at_s in (100.5, 101.0, 101.9):
        amos.hear(Measured(at_s, 0.5, {"pending": 1.0}))
        assert amos.in_charge(at_s).name == "rr"
    amos.hear(Measured(102.25, 0.35, {"pending": 1.0}))
    assert amos.in_charge(102.25).name == "fcfs"
    assert amos.wake_at_s == 104.25


def test_what_was_measured_before_the_first_turn_shortens_no_dwell() -> None:
    amos = Amos(THREE, dwell_s=1.0)
    amos.hear(Measured(1.7e9, 0.25, {}))
    assert amos.in_charge(1.7e9).name == "rr"
    assert amos.wake_at_s == 1.7e9 + 0.75


def test_a_run_whose_time_begins_again_begins_a_dwell() -> None:
    amos = Amos(THREE, dwell_s=1.0)
    amos.in_charge(500.0)
    amos.in_charge(0.0)
    assert amos.wake_at_s == 1.0


def test_a_value_counts_for_the_seconds_it_was_taken_over() -> None:
    amos = Amos(("rr", "hr"), specification="pending:minimize:1", dwell_s=4.0)
    amos.in_charge(0.0)
    amos.hear(Measured(1.0, 1.0, {"pending": 8.0}))
    amos.hear(Measured(4.0, 3.0, {"pending": 4.0}))
    assert amos.history["pending"].mean == pytest.approx(5.0)
    assert (amos.history["pending"].smallest, amos.history["pending"].largest) == (4.0, 8.0)


@pytest.mark.parametrize("missing", [nan, inf, None])
def test_a_metric_without_a_value_leaves_its_z_as_it_was(missing: float | None) -> None:
    amos = Amos(("rr", "hr"), specification=TABLE_3, learning=InOrder([1, 0]))
    turn(amos, pending=10.0, mean_response_s=2.0)
    turn(amos, pending=4.0, mean_response_s=4.0)
    before = amos.candidates[1].z["mean_response_s"]
    turn(amos, pending=4.0, **({} if missing is None else {"mean_response_s": missing}))
    assert amos.candidates[1].z["mean_response_s"] == before
    assert amos.history["mean_response_s"].seconds == 2.0


def test_a_new_specification_scores_all_that_was_measured_before() -> None:
    amos = Amos(("rr", "hr"), specification="mean_response_s:minimize:1", learning=InOrder([0]))
    turn(amos, mean_response_s=2.0, output_per_s=10.0)
    turn(amos, mean_response_s=4.0, output_per_s=30.0)
    assert amos.scores == pytest.approx((1.0, 0.5))
    amos.specification = "mean_response_s:minimize:0.3,output_per_s:maximize:0.7"
    assert amos.scores == pytest.approx((1.0, 1 - 0.3 * 0.5 + 0.7 * 0.5))


@pytest.mark.parametrize("learning", sorted(set(LEARNING) - {"roulette"}))
def test_when_the_specification_changes_the_choice_follows(learning: str) -> None:
    """One policy has quick results, the other many."""
    worth = {
        "fcfs": {"mean_response_s": 1.0, "output_per_s": 10.0},
        "mtiq": {"mean_response_s": 9.0, "output_per_s": 90.0},
    }
    amos = Amos(("fcfs", "mtiq"), specification="mean_response_s:minimize:1", learning=learning)

    def share_of_fcfs(turns: int) -> float:
        names = [name_in_charge(amos)]
        names += [turn(amos, **worth[name_in_charge(amos)]) for _ in range(turns)]
        return names.count("fcfs") / len(names)

    assert share_of_fcfs(300) > 0.6
    amos.specification = "output_per_s:maximize:1"
    assert share_of_fcfs(300) < 0.4


def test_the_roulette_wheel_turns_by_scores() -> None:
    amos = Amos(("fcfs", "mtiq"), specification="pending:minimize:1", seed=3)
    worth = {"fcfs": 1.0, "mtiq": 9.0}
    names = [turn(amos, pending=worth[name_in_charge(amos)]) for _ in range(3000)]
    good, bad = amos.scores
    # z settles near ± half the spread, so the better policy has at most 3 turns of 4.
    assert names.count("fcfs") / 3000 == pytest.approx(good / (good + bad), abs=0.04)


def test_two_of_the_same_seed_decide_the_same_and_another_seed_otherwise() -> None:
    def course(seed: int) -> list[str]:
        amos, random = Amos(THREE, seed=seed), SeededRandom(9)
        return [
            turn(amos, pending=random.uniform(), mean_response_s=random.uniform())
            for _ in range(60)
        ]

    assert course(1) == course(1)
    assert course(1) != course(2)


@given(
    periods=st.lists(
        st.tuples(st.floats(0.0, 1e9), st.floats(-1e9, 1e9), st.floats(1e-6, 100.0)), max_size=30
    ),
    decay=st.floats(0.001, 0.499),
)
def test_every_score_lies_between_0_and_2(periods: Any, decay: float) -> None:
    amos = Amos(THREE, specification="pending:minimize:0.5,qos:maximize:0.5", decay=decay)
    for pending, qos, seconds in periods:
        amos.hear(Measured(amos.wake_at_s, seconds, {"pending": pending, "qos": qos}))
        assert all(0 <= score <= 2 for score in amos.scores)


def test_the_plan_is_that_of_the_policy_in_charge() -> None:
    state, amos = waiting(), Amos(("fcfs", "mtiq", "hr"))
    amos.prepare(units())
    for name in ("fcfs", "mtiq", "hr"):
        alone = policy_named(name)
        alone.prepare(units())
        assert list(amos.plan(state, amos.wake_at_s)) == list(alone.plan(state, amos.wake_at_s))
        turn(amos, pending=1.0)


def test_a_round_robin_goes_on_where_it_was_left() -> None:
    state, amos = waiting(), Amos(("rr", "hr"), learning=InOrder([0]))
    amos.prepare(units())

    def step(number: int) -> int:
        unit = amos.plan(state, amos.wake_at_s)[0].unit
        call = BoxCall(number, (unit,), 0, 0, 1, 1)
        amos.hear(StepStarted(0.0, call))
        amos.hear(StepFinished(0.0, call, 1.0, (1,), (np.zeros(1),)))
        return unit

    assert [step(0), step(1)] == [0, 1]
    turn(amos, pending=1.0)
    assert [step(2), step(3)] == [0, 0]  # hr
    turn(amos, pending=1.0)
    assert [step(4), step(5)] == [2, 0]


def test_the_end_of_a_step_is_told_to_the_policy_that_began_it() -> None:
    class Heard(RoundRobin):
        def __init__(self) -> None:
            super().__init__()
            self.ends: list[int] = []

        def hear(self, event: Any) -> None:
            if isinstance(event, StepFinished):
                self.ends.append(event.call.number)

    first, second = Heard(), Heard()
    amos, call = Amos((first, second)), BoxCall(7, (0,), 0, 0, 1, 1)
    amos.hear(StepStarted(0.0, call))
    turn(amos, pending=1.0)
    assert amos.in_charge(amos.wake_at_s) is second
    amos.hear(StepFinished(0.0, call, 1.0, (1,), (np.zeros(1),)))
    assert (first.ends, second.ends) == ([7], [])


def test_a_policy_added_during_the_run_has_the_next_turn() -> None:
    amos = Amos(("rr", "hr"), learning=InOrder([0, 1]))
    amos.prepare(units())
    turn(amos, pending=1.0)
    turn(amos, pending=2.0)
    amos.add("fcfs")
    assert turn(amos, pending=3.0) == "fcfs"
    assert amos.plan(waiting(), amos.wake_at_s)
    assert turn(amos, pending=3.0) == "hr"


def test_what_was_learned_stays_when_queries_come_and_go() -> None:
    amos = Amos(("rr", "hr"), learning=InOrder([0]))
    amos.prepare(units(3))
    turn(amos, pending=10.0)
    turn(amos, pending=4.0)
    before = amos.scores, amos.turns, amos.wake_at_s
    amos.prepare(units(2))
    assert (amos.scores, amos.turns, amos.wake_at_s) == before


def test_a_step_takes_as_many_tuples_as_the_policy_in_charge_says() -> None:
    amos = Amos((PriorityPolicy(most_tuples, "queue", 50), RoundRobin()))
    assert amos.tuples_a_step == 50
    turn(amos, pending=1.0)
    assert amos.tuples_a_step == RoundRobin.tuples_a_step


@settings(max_examples=settings.default.max_examples // 2)
@given(
    chosen=st.lists(st.sampled_from(EVERY_WHERE), min_size=1, max_size=5, unique=True),
    learning=st.sampled_from(sorted(LEARNING)),
    periods=st.lists(st.tuples(st.floats(0.0, 100.0), st.floats(0.01, 5.0)), max_size=8),
)
def test_any_policies_plan_the_same_twice_and_only_who_waits(
    chosen: list[str], learning: str, periods: list[tuple[float, float]]
) -> None:
    amos, state = Amos(chosen, learning=learning), waiting()
    amos.prepare(units())
    before = state.table.tobytes()
    for number, (pending, seconds) in enumerate(periods):
        now_s = amos.wake_at_s
        steps = list(amos.plan(state, now_s))
        assert steps
        assert list(amos.plan(state, now_s)) == steps
        assert {step.unit for step in steps} <= set(state.ready.tolist())
        call = BoxCall(number, (steps[0].unit,), 0, 0, 1, 1)
        amos.hear(StepStarted(now_s, call))
        amos.hear(StepFinished(now_s, call, seconds, (1,), (np.zeros(1),)))
        amos.hear(Measured(now_s, seconds, {"pending": pending}))
    assert state.table.tobytes() == before
