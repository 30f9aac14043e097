"""Several workers: independent queries run side by side, a unit never twice at once."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks import (
    Watched,
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


def independent(count: int) -> Network:
    return network(
        *(line(f"q{number}", select(1.0), stream=f"s{number}") for number in range(count)),
        streams=[f"s{number}" for number in range(count)],
    )


@pytest.mark.parametrize(("workers", "seconds"), [(1, 40.0), (2, 20.0), (4, 10.0), (8, 10.0)])
def test_independent_queries_take_half_the_time_with_twice_the_workers(
    workers: int, seconds: float
) -> None:
    times = {f"s{number}": [0.0] * 10 for number in range(4)}
    figures = report(ran(independent(4), times, workers=workers))
    assert figures.seconds == seconds
    assert figures.utilisation == 40.0 / (seconds * workers)


def test_a_unit_never_runs_twice_at_once() -> None:
    # Three workers, one query: its tuples go one after the other.
    ended = ran(independent(1), {"s0": [0.0] * 4}, workers=3)
    assert departures(ended, "q0") == [1.0, 2.0, 3.0, 4.0]


def test_boxes_of_one_query_work_side_by_side_at_operator_level() -> None:
    # The first box has the second tuple in work while the second has the first: a pipeline.
    two = network(line("q", select(1.0), select(1.0)))
    ended = ran(two, {"s": [0.0] * 3}, level="operator", workers=2)
    assert departures(ended, "q") == [2.0, 3.0, 4.0]


def test_a_worker_that_becomes_free_decides_at_once_while_others_still_run() -> None:
    # 3 s and 1 s; the third tuple starts when the short one is done, at 1.
    three = network(
        line("long", select(3.0), stream="r"), line("short", select(1.0), stream="s"),
        line("next", select(1.0), stream="t"), streams="rst",
    )  # fmt: skip
    ended = ran(three, {"r": [0.0], "s": [0.0], "t": [0.5]}, workers=2)
    assert departures(ended, "next") == [2.0]


def test_a_tuple_that_arrives_while_a_worker_is_free_starts_at_once() -> None:
    both = network(
        line("a", select(5.0), stream="s"), line("b", select(1.0), stream="t"), streams="st"
    )
    ended = ran(both, {"s": [0.0], "t": [2.0]}, workers=2)
    assert departures(ended, "b") == [3.0]


def test_who_runs_is_never_among_the_ready() -> None:
    watched = Watched()
    times = {f"s{number}": [0.0, 0.25, 0.5] for number in range(3)}
    ran(independent(3), times, watched, workers=2)
    running: dict[int, float] = {}  # in this policy the oldest ready unit starts, for a second
    for now_s, table in watched.seen:
        running = {unit: end_s for unit, end_s in running.items() if end_s > now_s}
        ready = np.flatnonzero(table["ready"])
        assert not running.keys() & set(ready.tolist())
        chosen = int(ready[np.argsort(table["head_arrived_at_s"][ready], kind="stable")[0]])
        running[chosen] = now_s + 1.0
        assert len(running) <= 2


JOIN = Operator(kind="join", cost_s=0.5, selectivity=0.5, window_s=2.0)


@given(
    gaps=st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=25),
    options=st.fixed_dictionaries(
        {
            "policy": st.sampled_from(["fcfs", "hr"]),
            "level": st.sampled_from(["query", "operator"]),
            "train_tuples": st.sampled_from([1, ALL]),
            "workers": st.integers(2, 4),
        }
    ),
)
def test_results_do_not_depend_on_the_number_of_workers(
    gaps: list[float], options: dict[str, Any]
) -> None:
    times_s = (np.cumsum(gaps) + np.arange(len(gaps)) / 64).tolist()
    boxes = [
        box("x", select(0.5, 0.7), "s"), box("y", select(0.25, 0.5), "x"),
        box("z", select(0.25), "x"), box("j", JOIN, "x", "t"),
    ]  # fmt: skip
    paths = (results_of("y_out", "y"), results_of("z_out", "z"), results_of("j_out", "j"))
    mixed = network(*paths, line("own", select(0.5, 0.5)), boxes=boxes, streams="st")
    times = {"s": times_s, "t": [at_s + 1 / 128 for at_s in times_s]}
    many = ran(mixed, times, **options)
    one = ran(mixed, times, "fcfs")
    for path in mixed.paths:
        name = path.query.name
        assert sorted(arrivals_out(many, name)) == sorted(arrivals_out(one, name))
