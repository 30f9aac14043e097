"""Maximum-slope segments over single tuples, and its baselines (BZ §5, §6)."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats
from headgate.model.events import StepStarted
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.plan import BoxCall
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.policies import Policy, State, policy_named

Waiting = tuple[int, int]
"""seconds and outputs of one tuple"""


class Queues:
    """Queries with one operator each, whose pending tuples are known one by one."""

    def __init__(self, *queues: list[Waiting]) -> None:
        self.queues = [list(queue) for queue in queues]
        paths = tuple(
            Path(
                query=Query(name=f"q{number}", sql="-", query_class="N"),
                stream="s",
                operators=(Operator(kind="map", cost_s=1.0, selectivity=1.0),),
            )
            for number in range(len(queues))
        )
        classes = (QueryClass(name="N", priority=1.0),)
        self.units = units_of(Network((Stream(name="s", format="rate"),), classes, paths))
        self.table = unit_table(self.units)

    def waiting(self, unit: int) -> tuple[Floats, Floats]:
        seconds, outputs = np.array(self.queues[unit], dtype=np.float64).reshape(-1, 2).T
        return seconds, outputs

    def state(self) -> State:
        pending = np.array([len(queue) for queue in self.queues])
        self.table["pending"], self.table["ready"] = pending, pending > 0
        return State(self.table, np.flatnonzero(pending), foresight=self)

    def drained(self, policy: Policy, train_tuples: int = 99) -> list[tuple[int, Waiting]]:
        """Run everything under a policy; return the unit and the tuple of each step, in order."""
        policy.prepare(self.units)
        order: list[tuple[int, Waiting]] = []
        while len((state := self.state()).ready):
            step = policy.plan(state, 0.0)[0]
            tuples = min(step.tuples, train_tuples, len(self.queues[step.unit]))
            policy.hear(StepStarted(0.0, BoxCall(0, (step.unit,), 0, 0, 1, tuples)))
            order += [(step.unit, waiting) for waiting in self.queues[step.unit][:tuples]]
            del self.queues[step.unit][:tuples]
        return order


def total_latency_s(order: list[Waiting]) -> int:
    """Return the sum over all outputs of the time at which they come."""
    now_s = total_s = 0
    for seconds, outputs in order:
        now_s += seconds
        total_s += outputs * now_s
    return total_s


def interleavings(queues: list[list[Waiting]]) -> Iterator[list[Waiting]]:
    """Yield every order in which no tuple overtakes another one of its queue."""
    if not any(queues):
        yield []
    for place, queue in enumerate(queues):
        if queue:
            rest = [*queues[:place], queue[1:], *queues[place + 1 :]]
            for order in interleavings(rest):
                yield [queue[0], *order]


queues_of_any_kind = st.lists(
    st.lists(st.tuples(st.integers(1, 12), st.integers(0, 3)), min_size=1, max_size=3),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize(
    ("policy", "order", "latency_s"), [("greedy", [9, 10, 1], 48), ("mss", [10, 1, 9], 41)]
)
def test_the_two_queues_of_bz_5(policy: str, order: list[int], latency_s: int) -> None:
    queues = Queues([(10, 1), (1, 1)], [(9, 1)])
    ran = [waiting for _, waiting in queues.drained(policy_named(policy))]
    assert [seconds for seconds, _ in ran] == order
    assert total_latency_s(ran) == latency_s


@given(queues=queues_of_any_kind)
def test_no_order_beats_mss_when_all_tuples_wait_already(queues: list[list[Waiting]]) -> None:
    ran = [waiting for _, waiting in Queues(*queues).drained(policy_named("mss"))]
    assert total_latency_s(ran) == min(map(total_latency_s, interleavings(queues)))


@given(queues=queues_of_any_kind, train_tuples=st.integers(1, 3))
def test_mss_loses_nothing_when_its_segments_are_cut_into_trains(
    queues: list[list[Waiting]], train_tuples: int
) -> None:
    whole, cut = (
        [waiting for _, waiting in Queues(*queues).drained(policy_named("mss"), tuples)]
        for tuples in (99, train_tuples)
    )
    assert total_latency_s(cut) == total_latency_s(whole)


def test_one_costly_tuple_does_not_hold_back_three_cheap_ones_behind_it() -> None:
    # BZ Figure 10: the first tuple of A costs more than that of B, but four outputs follow.
    queues = Queues([(6, 1), (1, 1), (1, 1), (1, 1)], [(4, 1), (5, 1)])
    queues.state()
    policy = policy_named("mss")
    policy.prepare(queues.units)
    first = policy.plan(queues.state(), 0.0)[0]
    assert (first.unit, first.tuples) == (0, 4)


class PathOfTwo:
    """The path of BZ §6: O1 halves tuples of 2 bytes, O2 lets them leave; each cost is known."""

    def __init__(self, o1_s: list[float], o2_s: float = 5) -> None:
        operators = tuple(
            Operator(kind="map", cost_s=1.0, selectivity=1.0, bytes_out=1.0) for _ in range(2)
        )
        path = Path(
            query=Query(name="q", sql="-", query_class="N"), stream="s", operators=operators
        )
        stream = Stream(name="s", format="rate", tuple_bytes=2.0)
        network = Network((stream,), (QueryClass(name="N", priority=1.0),), (path,))
        self.units = units_of(network, "operator")
        self.table = unit_table(self.units)
        self.queues: list[list[float]] = [list(o1_s), []]
        self.o2_s = o2_s

    def waiting(self, unit: int) -> tuple[Floats, Floats]:
        return np.array(self.queues[unit], dtype=np.float64), np.ones(len(self.queues[unit]))

    def drained(self, policy: Policy) -> str:
        policy.prepare(self.units)
        order = ""
        while any(self.queues):
            ready = np.flatnonzero([len(queue) for queue in self.queues])
            step = policy.plan(State(self.table, ready, foresight=self), 0.0)[0]
            count = min(step.tuples, len(self.queues[step.unit]))
            assert count == 1 or step.unit == 1
            del self.queues[step.unit][:count]
            order += str(step.unit + 1) * count
            if step.unit == 0:
                self.queues[1].append(self.o2_s)
        return order


def test_memory_is_freed_by_the_operator_whose_next_tuples_free_most_a_second() -> None:
    # O1 frees 1 byte a tuple, O2 0.2 a second. Behind the first, O1 has 2 bytes in 11 s: too slow.
    assert PathOfTwo([1, 10, 1]).drained(policy_named("mss-memory")) == "121122"


def test_a_costly_tuple_runs_early_when_enough_cheap_ones_wait_behind_it() -> None:
    # 3 bytes in 12 s are more than 0.2 a second, so the costly one goes first.
    assert PathOfTwo([1, 10, 1, 1]).drained(policy_named("mss-memory")) == "11112222"


def test_greedy_for_memory_sees_only_the_costly_head() -> None:
    assert PathOfTwo([1, 10, 1, 1]).drained(policy_named("greedy-memory")) == "12111222"


def test_it_is_decided_anew_whenever_a_tuple_has_come_to_the_second_operator() -> None:
    # The three are one segment of O1, but each leaves a tuple that O2 frees at 2 bytes a second.
    assert PathOfTwo([10, 1, 1], o2_s=0.5).drained(policy_named("mss-memory")) == "121212"


@pytest.mark.parametrize("policy", ["mss", "mss-memory", "greedy", "greedy-memory"])
def test_without_foresight_it_says_where_it_can_run(policy: str) -> None:
    queues, rule = Queues([(1, 1)]), policy_named(policy)
    rule.prepare(queues.units)
    blind = State(queues.table, queues.state().ready)
    with pytest.raises(ConfigRefused, match=f"policy '{policy}': engine must be one that foresees"):
        rule.plan(blind, 0.0)


@pytest.mark.parametrize("train_tuples", [1, 2, 99])
def test_round_robin_takes_k_tuples_a_visit_in_however_many_steps(train_tuples: int) -> None:
    queues = Queues([(1, 1)] * 5, [(1, 1)] * 2, [(1, 1)] * 3)
    ran = queues.drained(policy_named("rr-k", k=2), train_tuples)
    assert "".join(str(unit) for unit, _ in ran) == "0011220020"


@pytest.mark.parametrize("train_tuples", [1, 99])
def test_round_robin_takes_a_fraction_of_what_waits_when_the_visit_begins(
    train_tuples: int,
) -> None:
    queues = Queues([(1, 1)] * 8, [(1, 1)] * 4)
    ran = queues.drained(policy_named("rr-k", k=0.5), train_tuples)
    assert "".join(str(unit) for unit, _ in ran) == "0000" + "11" + "00" + "1" + "0" + "1" + "0"


def test_a_visit_ends_early_when_the_queue_is_empty() -> None:
    queues = Queues([(1, 1)], [(1, 1)] * 3)
    ran = queues.drained(policy_named("rr-k", k=30), train_tuples=1)
    assert [unit for unit, _ in ran] == [0, 1, 1, 1]


@pytest.mark.parametrize("k", [0, -1, 1.5, float("nan")])
def test_a_visit_of_no_tuples_or_of_half_a_tuple_is_refused(k: float) -> None:
    with pytest.raises(ConfigRefused, match="k of 1 or more whole tuples"):
        policy_named("rr-k", k=k)
