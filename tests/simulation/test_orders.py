"""The orders that the papers find, at their settings: each holds in every one of five seeds.

Three seeds are in the short form, all five in the long one.

Runs are shorter than the papers' (2 000 tuples in place of an hour), so figures differ from theirs;
which policy is best does not. Margins are asserted, so that a tie would be seen.
"""

from functools import cache
from typing import Any

import pytest

from headgate import simulate
from headgate.metrics.report import Report
from headgate.policies import policy_named
from headgate.workloads.testbeds import sharaf
from headgate.workloads.testbeds.sharaf_aggregates import aggregates
from headgate.workloads.testbeds.sharaf_freshness import freshness
from headgate.workloads.testbeds.testbed import Testbed

SEEDS = [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in (3, 4))]
QUERIES, TUPLES, UTILISATION = 500, 2_000, 0.95


@cache
def single_stream(seed: int) -> Testbed:
    return sharaf.single_stream(queries=QUERIES, tuples=TUPLES, utilisation=UTILISATION, seed=seed)


@cache
def report(policy: str, seed: int) -> Report:
    testbed = single_stream(seed)
    return simulate(testbed.network, testbed.arrivals, policy=policy, seed=seed)


VALUE: dict[str, Any] = {
    "mean response": lambda run: run.total.response_s.mean,
    "mean slowdown": lambda run: run.total.slowdown.mean,
    "maximum response": lambda run: run.total.response_s.maximum,
    "maximum slowdown": lambda run: run.total.slowdown.maximum,
    "ℓ2 of response": lambda run: run.total.response_s.norm,
    "ℓ2 of slowdown": lambda run: run.total.slowdown.norm,
    "memory": lambda run: run.total.pending_mean,
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("metric", "best", "others", "margin"),
    [
        ("mean response", "hr", ("hnr", "srpt", "rr", "fcfs"), 0.98),
        ("mean slowdown", "hnr", ("hr", "srpt", "rr", "fcfs", "lsf", "bsd"), 0.95),
        ("maximum response", "fcfs", ("hr", "hnr", "srpt", "brt", "bsd", "lsf"), 0.99),
        ("maximum slowdown", "lsf", ("hr", "hnr", "srpt", "brt", "bsd", "fcfs"), 0.8),
        ("ℓ2 of response", "brt", ("hr", "hnr", "srpt", "bsd", "lsf", "fcfs"), 0.98),
        ("ℓ2 of slowdown", "bsd", ("hr", "hnr", "srpt", "brt", "lsf", "fcfs"), 0.95),
        ("memory", "chain", ("hr", "hnr", "brt", "bsd", "fcfs", "srpt"), 0.95),
    ],
)
def test_each_policy_is_best_in_what_it_is_made_for(
    metric: str, best: str, others: tuple[str, ...], margin: float, seed: int
) -> None:
    value = VALUE[metric]
    least = value(report(best, seed))
    for other in others:
        assert least <= margin * value(report(other, seed)), other


@pytest.mark.parametrize("seed", SEEDS)
def test_hnr_takes_less_memory_than_hr_and_bsd_less_than_hnr(seed: int) -> None:
    chain, bsd, hnr, hr = (
        VALUE["memory"](report(name, seed)) for name in ("chain", "bsd", "hnr", "hr")
    )
    assert chain < bsd < hnr < hr


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("policy", "metric"),
    [("hr", "mean response"), ("hnr", "mean slowdown"), ("bsd", "ℓ2 of slowdown")],
)
def test_a_priority_defining_tree_beats_the_sum_and_the_sum_the_maximum(
    policy: str, metric: str, seed: int
) -> None:
    testbed = sharaf.shared_selects(queries=200, tuples=1_500, utilisation=0.9, seed=seed)
    value = {
        shared_priority: VALUE[metric](
            simulate(
                testbed.network,
                testbed.arrivals,
                policy=policy,
                seed=seed,
                shared_priority=shared_priority,
            )
        )
        for shared_priority in ("max", "sum", "pdt")
    }
    assert value["pdt"] < 0.8 * value["sum"]
    assert value["sum"] < value["max"]


@pytest.mark.parametrize("seed", SEEDS)
def test_fas_gives_the_freshest_results(seed: int) -> None:
    testbed = freshness(tuples=500, seed=seed)
    stale = {
        name: simulate(testbed.network, testbed.arrivals, policy=name, seed=seed).total.staleness
        for name in ("fas", "hr", "rr", "fcfs", "srpt", "hnr", "bsd")
    }
    for other in stale.keys() - {"fas"}:
        assert stale["fas"] < 0.98 * stale[other], other


@pytest.mark.parametrize("utilisation", [0.9, 1.2])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_hybrid_is_less_tardy_than_edf_and_hr(utilisation: float, seed: int) -> None:
    testbed = aggregates(queries=200, tuples=3_000, utilisation=utilisation, seed=seed)
    tardy = {
        name: simulate(testbed.network, testbed.arrivals, policy=name, seed=seed).total.tardiness_s
        for name in ("edf", "hr", "edf-hr")
    }
    assert tardy["edf-hr"] < tardy["edf"]
    assert tardy["edf-hr"] < tardy["hr"]
    assert tardy["edf"] < tardy["hr"]  # against §3.8.1.13 where the load is high: see the docs


@pytest.mark.parametrize("seed", SEEDS)
def test_logarithmic_clusters_come_nearer_to_exact_bsd_than_uniform_ones(seed: int) -> None:
    testbed = single_stream(seed)
    norm = {
        search: simulate(
            testbed.network,
            testbed.arrivals,
            policy=policy_named("bsd", search=search, clusters=12),
            seed=seed,
        ).total.slowdown.norm
        for search in ("log", "uniform")
    }
    exact = report("bsd", seed).total.slowdown.norm
    assert exact <= norm["log"] < 0.9 * norm["uniform"]
