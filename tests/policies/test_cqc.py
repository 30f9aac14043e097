"""Quotas, debts and turns of classes (CQC §4.2)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.networks import line, network, ran, results, select

from headgate.errors import ConfigRefused, UnknownName
from headgate.model.events import StepFinished, StepStarted
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.unit_table import UnitTable, unit_table
from headgate.model.network.units import units_of
from headgate.model.plan import ALL, BoxCall
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.policies import State, policy_named
from headgate.policies.cqc import Cqc
from headgate.policies.round_robin import RoundRobin

PRIORITIES = {"H": 6.0, "C": 3.0, "N": 1.0}


class Table:
    """A policy with some classes; by default, each has one query and all of them always wait."""

    def __init__(self, policy: Cqc, members: str = "HCN", classes: str = "HCN") -> None:
        self.policy, self.members = policy, members
        network = Network(
            (Stream(name="s", format="rate"),),
            tuple(QueryClass(name=name, priority=PRIORITIES[name]) for name in classes),
            tuple(
                Path(
                    query=Query(name=f"q{number}", sql="SELECT * FROM s", query_class=name),
                    stream="s",
                    operators=(Operator(kind="select", cost_s=1.0, selectivity=0.5),),
                )
                for number, name in enumerate(members)
            ),
        )
        self.units: UnitTable = unit_table(units_of(network))
        self.units["pending"] = 1
        policy.prepare(units_of(network))

    def turn(self, waiting: str = "HCN") -> str:
        """Return the class that the next step belongs to."""
        return self.members[self.unit(waiting)]

    def unit(self, waiting: str = "HCN") -> int:
        ready = [number for number, name in enumerate(self.members) if name in waiting]
        return self.policy.plan(State(self.units, np.array(ready)), 0.0)[0].unit

    def start(self, name: str) -> BoxCall:
        call = BoxCall(0, (self.members.index(name),), 0, 0, 1, 1)
        self.policy.hear(StepStarted(0.0, call))
        return call

    def finish(self, call: BoxCall, seconds: float) -> None:
        self.policy.hear(StepFinished(0.0, call, seconds, (0,), (np.zeros(0),)))

    def spend(self, seconds: float, waiting: str = "HCN") -> str:
        """Run one step of the class whose turn it is; return that class."""
        name = self.turn(waiting)
        self.finish(self.start(name), seconds)
        return name

    def quota_s(self, name: str) -> float:
        number = list(PRIORITIES).index(name)
        return next(turn.quota_s for turn in self.policy.turns if turn.number == number)


def test_priorities_6_3_1_and_k_20_give_quotas_12_6_2() -> None:
    table = Table(Cqc(period_s=20))
    assert [table.quota_s(name) for name in "HCN"] == pytest.approx([12, 6, 2])


def test_classes_take_turns_for_their_quotas_in_descending_priority() -> None:
    table = Table(Cqc(period_s=20))
    round_of_turns = "H" * 12 + "C" * 6 + "N" * 2
    assert "".join(table.spend(1.0) for _ in range(40)) == round_of_turns * 2


def test_the_order_of_classes_in_the_file_does_not_matter() -> None:
    table = Table(Cqc(period_s=20), members="NCH", classes="NCH")
    assert "".join(table.spend(1.0) for _ in range(20)) == "H" * 12 + "C" * 6 + "N" * 2


def test_an_overrun_quota_is_deducted_from_the_next_round() -> None:
    table = Table(Cqc(period_s=20))
    first = "".join([table.spend(15.0)] + [table.spend(1.0) for _ in range(8)])
    assert first == "H" + "C" * 6 + "N" * 2
    assert table.quota_s("H") == pytest.approx(9)  # 12 − (15 − 12)
    assert "".join(table.spend(1.0) for _ in range(17)) == "H" * 9 + "C" * 6 + "N" * 2


def test_an_overrun_is_counted_from_the_quota_that_was_granted() -> None:
    table = Table(Cqc(period_s=20))
    table.spend(15.0)
    for _ in range(8):
        table.spend(1.0)
    table.spend(10.0)  # of 9
    assert table.turn() == "C"
    assert table.quota_s("H") == pytest.approx(11)  # 12 − (10 − 9)


def test_an_unused_rest_is_not_carried_over() -> None:
    table = Table(Cqc(period_s=20))
    table.spend(1.0)
    assert table.turn(waiting="CN") == "C"
    assert table.quota_s("H") == pytest.approx(12)
    served = "".join(table.spend(1.0) for _ in range(20))
    assert served == "C" * 6 + "N" * 2 + "H" * 12


def test_a_class_in_debt_skips_as_many_turns_as_its_debt_asks_and_gains_t_each_time() -> None:
    table = Table(Cqc(period_s=20))
    others = "C" * 6 + "N" * 2
    assert table.spend(40.0) == "H"  # 28 over: −16, −4, then 8
    assert "".join(table.spend(1.0) for _ in range(24)) == others * 3
    assert "".join(table.spend(1.0) for _ in range(9)) == "H" * 8 + "C"


def test_a_quota_of_exactly_zero_skips_one_turn() -> None:
    table = Table(Cqc(period_s=20))
    table.spend(24.0)
    assert "".join(table.spend(1.0) for _ in range(17)) == ("C" * 6 + "N" * 2) * 2 + "H"


def test_a_class_in_debt_still_runs_when_nobody_else_waits() -> None:
    table = Table(Cqc(period_s=20))
    table.spend(1000.0)
    assert [table.spend(1000.0, waiting="H") for _ in range(5)] == ["H"] * 5


def test_a_class_that_comes_back_after_others_ran_alone_finds_its_turn() -> None:
    table = Table(Cqc(period_s=20))
    for _ in range(50):
        table.spend(1.0, waiting="N")
    served = [table.spend(1.0) for _ in range(4)]
    assert "H" in served


def test_an_hour_of_debt_at_a_period_of_a_millisecond_is_sat_out_at_once() -> None:
    table = Table(Cqc(period_s=0.001))
    for name in "HCN":
        assert table.spend(3600.0) == name
    # Debts are 3600 s each; at 6 : 3 : 1 the most important class has paid first.
    assert table.turn() == "H"


def test_no_step_waits_for_ever_when_nobody_waits() -> None:
    table = Table(Cqc(period_s=20))
    empty = State(table.units, np.array([], dtype=np.int64))
    assert list(table.policy.plan(empty, 0.0)) == []


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples // 2)
@given(
    period_s=st.sampled_from([0.001, 1.0, 20.0]),
    lengths_s=st.lists(st.floats(0.1, 3.0), min_size=1, max_size=7),
)
def test_classes_that_always_wait_get_time_by_their_priorities(
    period_s: float, lengths_s: list[float]
) -> None:
    table, used_s = Table(Cqc(period_s=period_s)), dict.fromkeys("HCN", 0.0)
    for step in range(1500):
        seconds = lengths_s[step % len(lengths_s)]
        used_s[table.spend(seconds)] += seconds
    total_s = sum(used_s.values())
    slack_s = 2 * max(lengths_s) + 2 * period_s  # a step and a round on either side
    for name, priority in PRIORITIES.items():
        assert used_s[name] == pytest.approx(total_s * priority / 10, abs=slack_s)


def test_a_period_is_at_least_so_many_mean_steps() -> None:
    table = Table(Cqc(period_s=0.001, period_steps=10))
    for seconds in (0.5, 1.0, 1.5):
        table.spend(seconds)
    assert [turn.slice_s for turn in table.policy.turns] == pytest.approx([6, 3, 1])


def test_a_period_that_is_long_enough_stays_as_it_was_given() -> None:
    table = Table(Cqc(period_s=20, period_steps=10))
    table.spend(1.0)
    assert [turn.slice_s for turn in table.policy.turns] == pytest.approx([12, 6, 2])


def test_a_call_that_outlives_its_turn_uses_up_what_its_turn_left() -> None:
    table = Table(Cqc(period_s=20))
    running = table.start(table.turn())
    assert table.turn(waiting="CN") == "C"  # the other worker goes on; H had 12 s left
    table.finish(running, 10.0)
    assert table.quota_s("H") == pytest.approx(12)


def test_a_call_that_outlives_its_turn_is_charged_what_its_turn_did_not_cover() -> None:
    table = Table(Cqc(period_s=20))
    running = table.start(table.turn())
    assert table.turn(waiting="CN") == "C"
    table.finish(running, 15.0)
    assert table.quota_s("H") == pytest.approx(9)  # as if it had been charged in its turn


def test_a_call_is_charged_its_cpu_time_where_that_is_known() -> None:
    table = Table(Cqc(period_s=20.0))
    call = table.start("H")
    # It took 30 s by the clock, as it waited for a core; of the quota of 12 s it has used 5.
    table.policy.hear(StepFinished(0.0, call, 30.0, (0,), (np.zeros(0),), cpu_s=5.0))
    assert table.turn() == "H"
    assert table.spend(7.0) == "H"
    assert table.turn() == "C"


def test_polls_are_charged_to_the_highest_class_that_reads_the_source() -> None:
    classes = {"H": 6.0, "N": 3.0}
    paths = (
        line("h", select(1.0), stream="t", query_class="H"),
        line("n", select(1.0), query_class="N"),
        line("both", select(1.0), stream="t", query_class="N"),
    )
    units = units_of(network(*paths, streams=("s", "t", "unread"), classes=classes))
    policy = Cqc(period_s=9.0)
    policy.prepare(units)
    for stream in range(3):
        policy.charge_polls(stream, 1.0)
    used_s = {turn.number: (turn.used_s, turn.quota_s) for turn in policy.turns}
    # It is the turn of H; N is charged at once, for its next turn.
    assert used_s == {0: (1.0, 6.0), 1: (0.0, 2.0)}


def test_two_calls_that_outlive_their_turn_share_its_rest() -> None:
    table = Table(Cqc(period_s=20), members="HHCN")
    first, second = table.start("H"), table.start("H")
    assert table.turn(waiting="CN") == "C"
    table.finish(first, 8.0)
    assert table.quota_s("H") == pytest.approx(12)
    table.finish(second, 8.0)  # 4 s of the rest were left
    assert table.quota_s("H") == pytest.approx(8)


def test_no_call_spans_two_classes() -> None:
    table = Table(Cqc(), members="HHCN")
    assert table.policy.may_fuse(table.units, 0, 1)
    assert not table.policy.may_fuse(table.units, 1, 2)
    assert not table.policy.may_fuse(table.units, 2, 3)


def test_the_inner_policy_may_forbid_a_fusion_inside_a_class() -> None:
    class Alone(RoundRobin):
        def may_fuse(self, table: UnitTable, unit: int, other: int) -> bool:
            return False

    table = Table(Cqc(inner=Alone()), members="HHCN")
    assert not table.policy.may_fuse(table.units, 0, 1)


def test_inside_a_class_the_inner_policy_decides() -> None:
    table = Table(Cqc(inner="hr", period_s=20), members="HHHCN")
    table.units["selectivity"] = [0.2, 0.9, 0.5, 1.0, 1.0]
    assert table.unit() == 1
    table = Table(Cqc(inner="fcfs", period_s=20), members="HHHCN")
    table.units["head_arrived_at_s"] = [3.0, 2.0, 1.0, 0.0, 0.0]
    assert table.unit() == 2


def test_the_inner_policy_hears_of_its_steps() -> None:
    table = Table(Cqc(inner=RoundRobin(), period_s=20), members="HHCN")
    served = []
    for _ in range(4):
        served.append(table.unit())
        call = BoxCall(0, (served[-1],), 0, 0, 1, 1)
        table.policy.hear(StepStarted(0.0, call))
        table.finish(call, 1.0)
    assert served == [0, 1, 0, 1]


@pytest.mark.parametrize("period_s", [0.0, -1.0, float("nan")])
def test_a_period_of_no_time_is_refused(period_s: float) -> None:
    with pytest.raises(ConfigRefused, match="period_s above 0 seconds"):
        policy_named("cqc", period_s=period_s)


def test_an_inner_policy_that_nobody_knows_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'hnr'"):
        policy_named("cqc", inner="hnrr")


def test_an_inner_policy_that_is_no_policy_is_refused() -> None:
    with pytest.raises(ConfigRefused, match="inner"):
        policy_named("cqc", inner=5)


def operators(policy: Cqc, classes: str) -> UnitTable:
    """Return the table of queries of two operators: source 2 q, and 2 q + 1, which reads it."""
    network = Network(
        (Stream(name="s", format="rate"),),
        tuple(QueryClass(name=name, priority=value) for name, value in PRIORITIES.items()),
        tuple(
            Path(
                query=Query(name=f"q{number}", sql="SELECT * FROM s", query_class=name),
                stream="s",
                operators=(
                    Operator(kind="select", cost_s=0.1, selectivity=1.0),
                    Operator(kind="select", cost_s=9.0, selectivity=0.1),
                ),
            )
            for number, name in enumerate(classes)
        ),
    )
    units = units_of(network, "operator")
    policy.prepare(units)
    return unit_table(units)


def planned(policy: Cqc, table: UnitTable, *ready: int) -> list[int]:
    return [step.unit for step in policy.plan(State(table, np.array(ready)), 0.0)]


def test_sources_run_only_when_no_operator_of_their_class_has_tuples() -> None:
    policy = Cqc(period_s=20)
    table = operators(policy, "HH")
    table["selectivity"][[0, 2]] = 1.0  # at these rates hr alone would take the sources
    assert planned(policy, table, 0, 2, 3) == [3]
    assert planned(policy, table, 0, 2) == [0, 2]


def test_sources_of_a_class_do_not_wait_for_operators_of_another() -> None:
    policy = Cqc(period_s=20)
    table = operators(policy, "HN")
    assert planned(policy, table, 0, 3) == [0]


def test_a_class_without_tuples_yields_the_rest_of_its_turn() -> None:
    policy = Cqc(period_s=20)
    table = operators(policy, "HN")
    call = BoxCall(0, (planned(policy, table, 0, 2)[0],), 0, 0, 1, 1)
    policy.hear(StepStarted(0.0, call))
    policy.hear(StepFinished(1.0, call, 1.0, (0,), (np.zeros(0),)))  # of 12 s
    assert planned(policy, table, 2) == [2]
    assert planned(policy, table, 0, 2) == [2]


def test_an_operator_drains_its_whole_queue() -> None:
    policy = Cqc()
    table = operators(policy, "H")
    assert policy.tuples_a_step == ALL
    assert policy.plan(State(table, np.array([1])), 0.0)[0].tuples == ALL


def test_at_query_level_nobody_is_a_source() -> None:
    table = Table(Cqc(period_s=20), members="HHCN")
    ready = State(table.units, np.arange(4))
    assert [step.unit for step in table.policy.plan(ready, 0.0)] == [0, 1]


def test_cqc_4_1_priority_inversion_of_the_extended_hr_and_none_under_cqc() -> None:
    # R_N = 10 > (P_H / P_N) R_H = 6 × 1: by P S / C̄ the operator of class N runs first (CQC §4.1).
    classes = {"H": 6.0, "N": 1.0}
    inverted = network(
        line("h", select(1.0), query_class="H"), line("n", select(0.1), query_class="N"),
        classes=classes,
    )  # fmt: skip
    first = {name: results(ran(inverted, {"s": [0.0]}, name))[0][0] for name in ("hr-class", "cqc")}
    assert first == {"hr-class": "n", "cqc": "h"}
    # R_N = 5 < 6: no inversion.
    balanced = network(
        line("h", select(1.0), query_class="H"), line("n", select(0.2), query_class="N"),
        classes=classes,
    )  # fmt: skip
    assert results(ran(balanced, {"s": [0.0]}, "hr-class"))[0][0] == "h"
