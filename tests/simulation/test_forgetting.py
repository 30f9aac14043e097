"""Windows that hold composites: only what no tuple can meet any more is forgotten."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks import RUNS, box, network, new_simulation, results, results_of

from headgate.model.network.network import Network
from headgate.model.network.operator import Operator
from headgate.simulation.kernel.joins import forget
from headgate.simulation.loop.run import Simulation


def two_joins(first_s: float, second_s: float, window_s: float = 2.0) -> Network:
    """Return (s ⋈ t) ⋈ u: the output of the first join is in no order of arrival."""

    def join(cost_s: float) -> Operator:
        return Operator(kind="join", cost_s=cost_s, selectivity=1.0, window_s=window_s)

    boxes = [box("j1", join(first_s), "s", "t"), box("j2", join(second_s), "j1", "u")]
    return network(results_of("q", "j2"), boxes=boxes, streams="stu")


def forgetting(simulation: Simulation) -> Simulation:
    """Run, and look for tuples to forget in the windows after every decision."""
    simulation.decisions_a_report = 1
    simulation.world.clock["forget_at"] = 1

    def again(now_s: float) -> None:
        simulation.world.clock["forget_at"] = 1

    simulation.run(again)
    return simulation


@pytest.mark.parametrize("level", ["query", "operator"])
@pytest.mark.parametrize("t_s", [1.0, 1.5, 1.75])
def test_a_tuple_stays_in_its_window_while_one_that_it_meets_is_anywhere(
    level: str, t_s: float
) -> None:
    # u is in the second window from 1 on. The first join has s until 6 and t until 11; t waits, or
    # is not even let in, until 6. Their composite, of 1.75 at the most, meets u of 0 thereafter.
    times = {"s": [1.0], "t": [t_s], "u": [0.0]}
    ended = forgetting(new_simulation(two_joins(5.0, 1.0), times, level=level))
    assert results(ended) == [("q", t_s, 12.0)]


def test_a_tuple_stays_wherever_the_one_that_it_meets_waits() -> None:
    # As above. At 1 t arrives, until 6 it waits, until 11 it is worked on, at 11 its composite
    # waits for the second join.
    begun = new_simulation(
        two_joins(5.0, 1.0), {"s": [1.0], "t": [1.0], "u": [0.0]}, level="operator"
    )
    for at_s in np.arange(1.0, 11.5, 0.5):
        begun.run_until(at_s)
        forget(begun.world)
        assert begun.world.windows["right"][1] == 1, at_s
    begun.run()
    assert results(begun) == [("q", 1.0, 12.0)]
    forget(begun.world)
    assert begun.world.windows["right"].tolist() == [0, 0]
    assert begun.world.clock["entries"][0] == begun.world.clock["shared"][0] == 0


instants = st.lists(st.floats(0.0, 10.0), max_size=12).map(sorted)


@given(options=RUNS, times=st.tuples(instants, instants, instants), cost_s=st.floats(0.01, 2.0))
def test_forgetting_changes_no_result(
    options: dict[str, Any], times: tuple[list[float], ...], cost_s: float
) -> None:
    arrivals = dict(zip("stu", times, strict=True))
    keeping = new_simulation(two_joins(cost_s, 0.5, 1.5), arrivals, **options)
    keeping.world.clock["forget_at"] = 0
    keeping.run()
    looked = forgetting(new_simulation(two_joins(cost_s, 0.5, 1.5), arrivals, **options))
    assert results(looked) == results(keeping)


def test_memory_stays_bounded_over_many_windows() -> None:
    # 1000 windows of a second hold some tens of tuples each; in all, 40 000 go through them.
    times = {name: np.arange(0.0, 1000.0, 0.25).tolist() for name in "stu"}
    begun = new_simulation(two_joins(0.001, 0.001, 1.0), times, level="operator", keep=False)
    entries = []
    begun.decisions_a_report = 100
    begun.run(lambda now_s: entries.append(int(begun.world.clock["entries"][0])))
    assert max(entries) < 2500
    assert len(begun.world.pool) <= 8192
    assert begun.world.queues["tuples_in"].sum() > 40_000
