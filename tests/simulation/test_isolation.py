"""Class isolation under cqc: lower classes beyond saturation do not disturb class H."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate import simulate
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.policies import policy_named

CLASSES = {"H": 6.0, "C": 3.0, "N": 1.0}
Costs = dict[str, tuple[float, ...]]
COSTS_S: Costs = {"H": (0.01, 0.015), "C": (0.006, 0.008), "N": (0.004, 0.03)}
"""By rate alone, by which hr decides inside a class, queries of C and N would come first."""
LONGEST_CALL_S = 0.03


def network(costs_s: Costs) -> Network:
    """Return one query for each cost; each class reads its own stream."""
    return Network(
        tuple(Stream(name=f"s{name}", format="rate") for name in CLASSES),
        tuple(QueryClass(name=name, priority=value) for name, value in CLASSES.items()),
        tuple(
            Path(
                query=Query(name=f"{name}{number}", sql="SELECT 1", query_class=name),
                stream=f"s{name}",
                operators=(Operator(kind="select", cost_s=cost_s, selectivity=1.0),),
            )
            for name, class_costs_s in costs_s.items()
            for number, cost_s in enumerate(class_costs_s)
        ),
    )


def mean_of_h(
    policy: str, own_load: float, lower_load: float, seed: int, costs_s: Costs = COSTS_S
) -> float:
    """Run H at one load and each lower class at another for 6 s; return H's mean response."""
    arrivals = {}
    for number, (name, class_costs_s) in enumerate(costs_s.items()):
        gap_s = sum(class_costs_s) / (own_load if name == "H" else lower_load)
        gaps_s = np.random.default_rng((seed, number)).exponential(gap_s, int(6 / gap_s))
        arrivals[f"s{name}"] = np.cumsum(gaps_s)
    parameters = {"period_s": 0.1} if policy == "cqc" else {}
    chosen = policy_named(policy, **parameters)
    report = simulate(network(costs_s), arrivals, policy=chosen, train_tuples=1)
    return report.classes[0].response_s.mean


@pytest.mark.slow
@settings(deadline=None, max_examples=3)
@given(seed=st.integers(0, 10_000))
def test_doubling_saturated_lower_classes_moves_h_by_at_most_one_overrun(seed: int) -> None:
    saturated_s, doubled_s = (mean_of_h("cqc", 0.4, load, seed) for load in (1.0, 2.0))
    assert abs(doubled_s - saturated_s) <= LONGEST_CALL_S


@pytest.mark.parametrize("policy", ["hr", "fcfs"])
def test_without_classes_the_same_load_moves_h_by_far_more(policy: str) -> None:
    saturated_s, doubled_s = (mean_of_h(policy, 0.4, load, 1) for load in (1.0, 2.0))
    assert doubled_s - saturated_s > 10 * LONGEST_CALL_S


def test_a_class_within_its_share_keeps_up_however_long_the_calls_of_lower_ones() -> None:
    # N's quota is 10 ms of 100 and each of its calls takes 100. If overruns were forgiven, H's
    # share of 0.6 would be below 0.4 and its queue would grow for as long as it runs.
    costs_s: Costs = {"H": (0.01, 0.015), "C": (0.006, 0.008), "N": (0.1,)}
    assert mean_of_h("cqc", 0.5, 2.0, 1, costs_s) < 0.3
