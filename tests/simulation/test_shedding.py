"""Load shedding in a run: where it drops, what it reports, and that nothing else goes missing."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.networks import arrivals_out, line, network, ran, report, select

from headgate.model.network.network import Network
from headgate.model.plan import ALL
from headgate.model.query import QueryClass
from headgate.scheduler.shedder import Shedder


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
