"""How busy a network keeps the machine."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import ConfigRefused
from headgate.model.network.network import Box, Network, Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.workloads.load import busy_share, load, measured_rate_per_s, network_at, work_s

CLASSES = (QueryClass(name="all", priority=1.0),)
STREAMS = (Stream(name="a", format="rate"), Stream(name="b", format="rate"))


def line(unit_s: float) -> Network:
    """Return two queries over `a`: a half-selective pair of boxes, and a single box."""
    select = Operator(kind="select", cost_s=unit_s, selectivity=0.5)
    project = Operator(kind="project", cost_s=4 * unit_s, selectivity=1.0)
    queries = [Query(name=name, sql="SELECT * FROM a", query_class="all") for name in ("p", "q")]
    paths = (
        Path(query=queries[0], stream="a", operators=(select, project)),
        Path(query=queries[1], stream="a", operators=(project,)),
    )
    return Network(STREAMS, CLASSES, paths)


def joined() -> Network:
    join = Operator(kind="join", cost_s=0.01, selectivity=0.1, window_s=2.0)
    project = Operator(kind="project", cost_s=0.02, selectivity=1.0)
    boxes = (
        Box(name="j", operator=join, inputs=("a", "b")),
        Box(name="out", operator=project, inputs=("j",)),
    )
    query = Query(name="q", sql="SELECT * FROM a JOIN b", query_class="all")
    return Network(STREAMS, CLASSES, (Path(query=query, output="out"),), boxes)


def test_the_work_of_a_tuple_is_that_of_all_queries_that_read_it() -> None:
    assert work_s(line(0.001), {"a": 10.0}) == pytest.approx({"a": 0.007, "b": 0.0})


def test_the_work_of_a_join_counts_the_partners_in_the_other_window() -> None:
    works = work_s(joined(), {"a": 5.0, "b": 20.0})
    # A tuple of a meets 0.1 · 20 · 2 = 4 of b, one of b 0.1 · 5 · 2 = 1 of a.
    assert works == pytest.approx({"a": 0.01 + 4 * 0.02, "b": 0.01 + 1 * 0.02})
    assert load(joined(), {"a": 5.0, "b": 20.0}) == pytest.approx(5 * 0.09 + 20 * 0.03)


def test_costs_are_scaled_to_the_utilisation_asked_for() -> None:
    network = network_at(0.95, line, {"a": 40.0})
    assert load(network, {"a": 40.0}) == pytest.approx(0.95)


def test_a_machine_that_waits_between_tuples_is_not_busy_all_the_time() -> None:
    times_s = {"a": np.array([0.0, 10.0])}
    assert busy_share(times_s, {"a": 1.0}) == pytest.approx(2 / 11)


def test_what_comes_together_at_the_end_is_done_after_it() -> None:
    times_s = {"a": np.array([0.0, 10.0, 10.0]), "b": np.array([10.0])}
    assert busy_share(times_s, {"a": 2.0, "b": np.array([6.0])}) == pytest.approx(12 / 20)


@given(
    st.lists(st.floats(0.0, 100.0), min_size=2, max_size=40).map(sorted),
    st.lists(st.floats(0.01, 10.0), min_size=40, max_size=40),
)
def test_the_busy_share_is_that_of_a_machine_simulated_tuple_by_tuple(
    times: list[float], works: list[float]
) -> None:
    clock_s, works = times[0], works[: len(times)]
    for time_s, cost_s in zip(times, works, strict=True):
        clock_s = max(clock_s, time_s) + cost_s
    expected = sum(works) / (clock_s - times[0])
    share = busy_share({"a": np.array(times)}, {"a": np.array(works)})
    assert share == pytest.approx(expected)


@pytest.mark.parametrize("times", [[], [1.0], [2.0, 2.0], [2.0, 1.0]])
def test_a_rate_needs_two_ascending_times(times: list[float]) -> None:
    with pytest.raises(ConfigRefused, match="two or more, ascending"):
        measured_rate_per_s(np.array(times))
