"""Load shedding in a run: where it drops, what it reports, and that nothing else goes missing."""

from dataclasses import replace
from math import isnan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.networks import arrivals_out, line, network, ran, report, select

from headgate.model.network.network import Network
from headgate.model.plan import ALL
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import QueryClass
from headgate.policies import policy_named
from headgate.runtime.what_if.simulate import simulation_of
from headgate.scheduler.shedder import Shedder
from headgate.simulation.loop.run_report import report_of


def two(selectivity: float = 1.0) -> Network:
    """Return a query that keeps all tuples and one that may lose some; each can fill a worker."""
    return network(
        line("kept", select(0.1)), line("free", select(0.1, selectivity), allows_shedding=True)
    )


def every(gap_s: float, seconds: float) -> dict[str, list[float]]:
    return {"s": (np.arange(int(seconds / gap_s)) * gap_s).tolist()}


def test_in_overload_only_the_query_that_allows_it_loses_tuples() -> None:
    times = every(0.125, 40.0)  # 8 a second: 1.6 s of work a second
    ended = ran(two(), times, shedder=Shedder())
    strict, free = report(ended).queries
    assert strict.shed == 0
    assert strict.response_s.count == len(times["s"])
    assert 0.5 * len(times["s"]) < free.shed < len(times["s"])  # 0.65 of 0.8 must go
    assert report(ended).total.shed == free.shed


def test_what_was_dropped_counts_as_qos_by_the_loss_graph() -> None:
    loss = QoSGraph(((0.0, 1.0), (1.0, 0.5)))
    paths = network(
        line("kept", select(0.1)),
        line("free", select(0.1), allows_shedding=True, loss=loss, weight=3.0),
        line("hard", select(0.1), allows_shedding=True, qos=QoSGraph(((0.0, 1.0),))),
    )
    total = report(ran(paths, every(0.125, 40.0), shedder=Shedder()))
    strict, free, hard = total.queries
    assert isnan(strict.qos)
    shed = [query.shed / (query.shed + query.tuples_in) for query in (free, hard)]
    assert 0 < shed[1] < 1
    assert [free.qos, hard.qos] == pytest.approx([1 - shed[0] / 2, 1 - shed[1]])
    assert total.total.qos == pytest.approx((3 * free.qos + hard.qos) / 4)


def test_of_a_run_that_is_not_over_what_waits_counts_at_its_age() -> None:
    graph = QoSGraph(((0.0, 1.0), (8.0, 0.0)))
    begun = simulation_of(
        network(line("a", select(4.0, 0.5), qos=graph)), {"s": np.array([0.0, 1.0, 2.0])},
        policy_named("fcfs"), seed=1,
    )  # fmt: skip
    begun.run_until(3.0)  # the first tuple is in its call
    line_of = report_of("fcfs", begun.world, begun.units).queries[0]
    assert line_of.qos == pytest.approx(np.mean([1 - age_s / 8 for age_s in (3.0, 2.0, 1.0)]))
    begun.run_until(5.0)  # it is done at 4 s, and as it passes or not, counts as one or none
    line_of = report_of("fcfs", begun.world, begun.units).queries[0]
    worth, due = (1 - 4 / 8, 1) if line_of.response_s.count else (0.0, 0)
    waits = [1 - age_s / 8 for age_s in (4.0, 3.0)]
    assert line_of.qos == pytest.approx((worth + sum(waits) / 2) / (due + 1))


def test_without_overload_nothing_is_dropped() -> None:
    total = report(ran(two(), every(0.25, 40.0), shedder=Shedder())).total
    assert total.shed == 0
    assert total.response_s.count == 2 * 160


def test_without_a_shedder_nothing_is_dropped() -> None:
    assert report(ran(two(), every(0.125, 10.0))).total.shed == 0


def test_where_nobody_allows_it_nothing_is_dropped() -> None:
    strict = network(line("a", select(0.1)), line("b", select(0.1)))
    assert report(ran(strict, every(0.125, 10.0), shedder=Shedder())).total.shed == 0


def test_shedding_keeps_the_waits_short() -> None:
    times = every(0.125, 60.0)
    with_it, without = (
        report(ran(two(), times, shedder=shedder)).total for shedder in (Shedder(), None)
    )
    assert without.response_s.maximum > 30.0  # 0.6 s more work a second, for a minute
    assert with_it.response_s.maximum < 5.0


def test_a_class_below_its_target_makes_others_lose_tuples() -> None:
    # 0.8 s of work a second: it fits, but under fcfs bursts of `free` make `kept` wait.
    burst = [float(second) for second in range(40) for _ in range(4)]
    paths = two()
    targets = (QueryClass(name="only", priority=1.0, target_s=0.15),)
    waits = report(ran(replace(paths, classes=targets), {"s": burst}, shedder=Shedder()))
    calm = report(ran(paths, {"s": burst}, shedder=Shedder()))
    assert calm.total.shed == 0
    assert waits.queries[0].shed == 0 < waits.queries[1].shed


def test_by_value_nothing_is_lost_as_long_as_worthless_tuples_are_enough() -> None:
    # 8 a second: 1.6 s of work, 0.65 too many. Of `free`'s 0.8 s, 0.9 × 0.8 = 0.72 are worthless.
    times = every(0.125, 40.0)
    plain = ran(two(0.1), times)
    ended = ran(two(0.1), times, shedder=Shedder(by_value=True, patience_s=30.0, stops_at=1.0))
    assert report(ended).queries[1].shed > 200
    assert sorted(arrivals_out(ended, "free")) == sorted(arrivals_out(plain, "free"))


def test_at_random_worthy_tuples_are_lost_too() -> None:
    times = every(0.125, 40.0)
    plain = arrivals_out(ran(two(0.5), times), "free")
    left = arrivals_out(ran(two(0.5), times, shedder=Shedder()), "free")
    assert set(left) < set(plain)


def test_two_runs_of_one_seed_drop_the_same() -> None:
    times = every(0.125, 20.0)
    runs = [arrivals_out(ran(two(), times, shedder=Shedder(), seed=3), "free") for _ in range(2)]
    assert runs[0] == runs[1]


@settings(max_examples=40)
@given(
    gaps=st.lists(st.sampled_from([0.0, 0.125, 0.25, 1.0]), min_size=5, max_size=120),
    period_s=st.sampled_from([0.25, 1.0]),
    by_value=st.booleans(),
    options=st.fixed_dictionaries(
        {
            "train_tuples": st.sampled_from([1, 3, ALL]),
            "workers": st.integers(1, 2),
            "level": st.sampled_from(["query", "operator"]),
        }
    ),
)
def test_every_tuple_is_either_worked_on_once_or_reported_as_dropped(
    gaps: list[float], period_s: float, by_value: bool, options: dict[str, Any]
) -> None:
    """All instants differ, so that a result identifies its tuple; some fall on a load check."""
    times_s = np.cumsum(gaps) + np.arange(len(gaps)) / 64
    busy = network(
        line("kept", select(0.5)), line("free", select(0.25), select(0.5), allows_shedding=True)
    )
    shedder = Shedder(period_s=period_s, patience_s=0.5, by_value=by_value)
    ended = ran(busy, {"s": times_s.tolist()}, shedder=shedder, **options)
    strict, free = report(ended).queries
    assert arrivals_out(ended, "kept") == times_s.tolist()
    left = arrivals_out(ended, "free")
    assert left == sorted(set(left))
    assert set(left) <= set(times_s.tolist())
    assert len(left) + free.shed == len(times_s)
    assert (strict.pending, free.pending) == (0, 0)
    assert ended.world.clock["shared"][0] == 0
