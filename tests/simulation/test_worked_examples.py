"""The papers' worked examples, run from the first arrival to the last result, to the digit."""

from math import inf, nextafter

import numpy as np
import pytest
from kit.networks import (
    box,
    line,
    network,
    new_simulation,
    ran,
    report,
    results,
    results_of,
    select,
)

from headgate import simulate
from headgate.model.network.network import Network
from headgate.model.network.operator import Operator
from headgate.model.plan import ALL
from headgate.simulation.loop.run import Simulation

BOXES = ("b1", "b2", "b4", "b3", "b5", "b6")


@pytest.mark.parametrize(
    ("policy", "response_ms", "slowdown"), [("hr", 12.25, 3.875), ("hnr", 13.0, 2.9)]
)
def test_sharaf_example_1(policy: str, response_ms: float, slowdown: float) -> None:
    queries = network(line("Q1", select(0.005, 1.0)), line("Q2", select(0.002, 0.33)))
    total = simulate(
        queries, {"s": np.zeros(3)}, policy=policy, fates={"Q1": (1, 1, 1), "Q2": (0, 1, 0)}
    ).total
    assert total.response_s.count == 4
    assert total.response_s.mean * 1000 == pytest.approx(response_ms)
    assert total.slowdown.mean == pytest.approx(slowdown)


def tree(p: float) -> Network:
    """Return b1 ← (b2, b6), b2 ← (b4, b3), b3 ← b5, every box at cost p (Aurora Figure 4)."""

    def like_all() -> Operator:
        return Operator(kind="map", cost_s=p, selectivity=1.0)

    inputs = {
        "b1": ("b2", "b6"), "b2": ("b4", "b3"), "b4": ("s4",), "b3": ("b5",), "b5": ("s5",),
        "b6": ("s6",),
    }  # fmt: skip
    boxes = [box(name, like_all(), *inputs[name]) for name in BOXES]
    return network(results_of("q", "b1"), boxes=boxes, streams=("s4", "s5", "s6"))


def traversed(policy: str, p: float, o: float) -> tuple[float, float, int]:
    """Return total execution time, average latency and calls; one tuple waits in every queue."""
    simulation = ran(
        tree(p), {}, policy, level="operator", overhead_s=o, preloaded=dict.fromkeys(BOXES, 1),
        train_tuples=ALL,
    )  # fmt: skip
    latencies_s = [departed_s for _, _, departed_s in results(simulation)]
    assert len(latencies_s) == 6
    return simulation.now_s, float(np.mean(latencies_s)), report(simulation).calls


COSTS = [(1.0, 0.0), (0.25, 1.0), (1.0, 2.0), (3.0, 0.5)]


@pytest.mark.parametrize(("p", "o"), COSTS)
def test_aurora_min_cost_takes_15p_and_6o_and_has_a_latency_of_12_5p_and_6o(
    p: float, o: float
) -> None:
    total_s, latency_s, calls = traversed("mc", p, o)
    assert total_s == pytest.approx(15 * p + 6 * o)
    assert latency_s == pytest.approx(12.5 * p + 6 * o)
    assert calls == 6


@pytest.mark.parametrize(("p", "o"), COSTS)
def test_aurora_min_latency_takes_15p_and_15o_and_has_a_latency_of_7_17p_and_7_17o(
    p: float, o: float
) -> None:
    total_s, latency_s, calls = traversed("ml", p, o)
    assert total_s == pytest.approx(15 * p + 15 * o)
    assert latency_s == pytest.approx(43 / 6 * (p + o))
    assert calls == 15


@pytest.mark.parametrize("share", [0.1, 0.21, 0.2187, 0.2188, 0.23, 1.0])
def test_aurora_min_latency_is_better_where_p_over_o_is_above_0_22(share: float) -> None:
    by_latency, by_cost = (traversed(policy, share, 1.0)[1] for policy in ("ml", "mc"))
    assert (by_latency < by_cost) == (share > 7 / 32)  # 12.5 p + 6 o = 43/6 (p + o)
    assert round(7 / 32, 2) == 0.22


FIFO = [
    (1.0, 2, 0, 0, 2, 0),
    (1.5, 1, 0.25, 0, 1.25, 0),
    (1.75, 1, 0, 0.125, 1.125, 0),
    (2.0, 3, 0, 0, 3, 0.1),
    (2.5, 2, 0.25, 0, 2.25, 0.1),
    (3.0, 4, 0, 0, 4, 0.2),
    (3.5, 3, 0.25, 0, 3.25, 0.2),
    (4.0, 3, 0, 0, 3, 0.3),
]
MTIQ = [
    (1.0, 2, 0, 0, 2, 0),
    (1.5, 1, 0.25, 0, 1.25, 0),
    (2.0, 2, 0.5, 0, 2.5, 0),
    (2.5, 1, 0.75, 0, 1.75, 0),
    (3.0, 2, 1, 0, 3, 0),
    (3.5, 1, 1.25, 0, 2.25, 0),
    (3.75, 1, 1, 0.125, 2.125, 0),  # printed as 4
]


def op1_to_op3(policy: str) -> Simulation:
    """Return AMoS's plan with two tuples per time unit, for three units.

    The second tuple of a unit comes an instant after the first. So oldest-first finishes a tuple
    before it begins the next, as the paper's table does.
    """
    plan = network(line("q", select(0.5, 0.25), select(1.0, 0.5), select(2.0, 0.8)))
    instants = [at_s for unit in (1.0, 2.0, 3.0) for at_s in (unit, nextafter(unit, inf))]
    return new_simulation(
        plan, {"s": instants}, policy, level="operator", fluid=True, train_tuples=1
    )


def output_by(simulation: Simulation, at_s: float) -> float:
    """Return how much has left: for every input tuple, all that is expected of it."""
    return sum(0.25 * 0.5 * 0.8 for _, _, departed_s in results(simulation) if departed_s <= at_s)


@pytest.mark.parametrize(("policy", "rows"), [("fifo", FIFO), ("mtiq", MTIQ)])
def test_amos_2_2_queue_sizes_and_output(policy: str, rows: list[tuple[float, ...]]) -> None:
    simulation = op1_to_op3(policy)
    for at_s, *expected in rows:
        seen_at_s = at_s + 1e-9  # past the second tuple of the instant
        simulation.run_until(seen_at_s)
        queues = simulation.world.table["amount"].tolist()
        amounts = [*queues, sum(queues), output_by(simulation, seen_at_s)]
        assert amounts == pytest.approx(expected, abs=1e-9), f"at {at_s}"


def test_amos_2_2_mtiq_has_no_output_by_time_4_and_all_in_the_end() -> None:
    simulation = op1_to_op3("mtiq")
    simulation.run_until(4.0)
    assert output_by(simulation, 4.0) == 0.0
    simulation.run()
    assert output_by(simulation, inf) == pytest.approx(0.6)
    assert float(simulation.world.results["mass"][0]) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("policy", "departures_s", "latency_s"),
    [("greedy", [9, 19, 20], 48), ("mss", [10, 11, 20], 41)],
)
def test_bz_5_two_queues_whose_tuples_all_wait(
    policy: str, departures_s: list[float], latency_s: float
) -> None:
    queues = network(
        line("A", select(5.5), stream="a"), line("B", select(9.0), stream="b"), streams=("a", "b")
    )
    simulation = ran(
        queues, {"a": [0.0, 0.0], "b": [0.0]}, policy,
        tuple_costs={"A": np.array([10.0, 1.0]), "B": np.array([9.0])},
    )  # fmt: skip
    left_s = [departed_s for _, _, departed_s in results(simulation)]
    assert left_s == departures_s
    assert sum(left_s) == latency_s


def fork(o1_s: float, o2_s: float, o3_s: float) -> Network:
    boxes = [
        box("O1", select(o1_s), "s"), box("O2", select(o2_s), "O1"), box("O3", select(o3_s), "O1")
    ]  # fmt: skip
    return network(results_of("q2", "O2"), results_of("q3", "O3"), boxes=boxes)


def total_latency_s(o1_s: float, o2_s: float, o3_s: float, tuples: int) -> float:
    simulation = ran(fork(o1_s, o2_s, o3_s), {"s": [0.0] * tuples}, "oc", level="operator")
    return sum(departed_s for _, _, departed_s in results(simulation))


@pytest.mark.parametrize("tuples", [1, 10, 40])
def test_bz_4_the_area_of_a_fork_that_is_partitioned(tuples: int) -> None:
    """3/2 N² (τ1 + τ2) + 1/2 N² τ3, since τ3 > τ1 + τ2; tuples leave in steps, not in a line."""
    area = 1.5 * tuples**2 * (1 + 2) + 0.5 * tuples**2 * 5
    steps = 0.5 * tuples * (1 + 2 + 5)
    assert total_latency_s(1.0, 2.0, 5.0, tuples) == pytest.approx(area + steps)


@pytest.mark.parametrize("tuples", [1, 10, 40])
def test_bz_4_the_area_of_a_fork_that_stays_whole(tuples: int) -> None:
    """N² (τ1 + τ2 + τ3), since τ3 < τ1 + τ2."""
    area, steps = tuples**2 * (3 + 1 + 2), tuples * (3 + 1)
    assert total_latency_s(3.0, 1.0, 2.0, tuples) == pytest.approx(area + steps)
