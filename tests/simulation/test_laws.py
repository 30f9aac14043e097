"""Laws of every simulated run, whatever the policy: nothing lost, same draws, same answer."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks import line, network, select

from headgate import simulate
from headgate.model.events import StepFinished
from headgate.model.network.network import Network
from headgate.policies import policies

CLASSES = {"H": 6.0, "C": 3.0, "N": 1.0}
BOXES = [("H", 0.01, 0.2), ("C", 0.02, 0.9), ("N", 0.005, 0.5), ("N", 0.03, 1.0)]

HEARD = sorted(name for name, entry in policies().items() if "spark" in entry.engines)
"""The policies that run in the loop too: those that need no foresight."""


def of_classes(boxes: list[tuple[str, float, float]]) -> Network:
    paths = (
        line(f"q{number}", select(cost_s, selectivity), query_class=name)
        for number, (name, cost_s, selectivity) in enumerate(boxes)
    )
    return network(*paths, classes=CLASSES)


def finished(network: Network, times_s: np.ndarray, **options: Any) -> list[StepFinished]:
    calls: list[StepFinished] = []

    def hear(event: object) -> None:
        if isinstance(event, StepFinished):
            calls.append(event)

    simulate(network, {"s": times_s}, listeners=[hear], **options)
    return calls


def consumed(calls: list[StepFinished], unit: int) -> list[int]:
    """Return the tuples that a unit consumed, in order."""
    return [
        number
        for event in calls
        if unit in event.call.units
        for number in range(event.call.first_train, event.call.end_train)
    ]


def output(calls: list[StepFinished], unit: int, times_s: np.ndarray) -> list[int]:
    """Return the tuples that a unit put out. Results leave with their call, so A is D − R."""
    arrived_s = [
        event.at_s - response_s
        for event in calls
        if unit in event.call.units
        for response_s in event.responses_s[event.call.units.index(unit)]
    ]
    return [int(np.argmin(np.abs(times_s - at_s))) for at_s in arrived_s]


settings_of_a_run = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(HEARD),
        "workers": st.integers(1, 3),
        "train_tuples": st.sampled_from([1, 3, 1000]),
        "most_fused": st.sampled_from([1, 2, 4]),
        "seed": st.integers(0, 2**31),
        "together": st.booleans(),
    }
)


@pytest.mark.slow
@given(options=settings_of_a_run, every_s=st.sampled_from([0.001, 0.05, 0.2]))
def test_every_query_consumes_every_tuple_once_and_in_order(
    options: dict[str, Any], every_s: float
) -> None:
    calls = finished(of_classes(BOXES), np.arange(40) * every_s, **options)
    for unit in range(len(BOXES)):
        assert consumed(calls, unit) == list(range(40))


@pytest.mark.slow
@given(seed=st.integers(0, 2**31), options=settings_of_a_run)
def test_a_query_puts_out_the_same_tuples_under_every_policy(
    seed: int, options: dict[str, Any]
) -> None:
    network, times_s = of_classes(BOXES), np.arange(60) * 0.03
    plain = finished(network, times_s, policy="fcfs", seed=seed, together=True)
    calls = finished(network, times_s, **{**options, "seed": seed, "together": True})
    for unit in range(len(BOXES)):
        assert output(calls, unit, times_s) == output(plain, unit, times_s)


@pytest.mark.parametrize("policy", HEARD)
def test_two_runs_of_one_seed_agree_in_every_call(policy: str) -> None:
    def trace(seed: int) -> list[tuple[Any, ...]]:
        calls = finished(
            of_classes(BOXES), np.arange(40) * 0.03, policy=policy, seed=seed, workers=2,
            train_tuples=4, most_fused=2,
        )  # fmt: skip
        return [(c.at_s, c.call, c.seconds, c.tuples_out, *map(list, c.responses_s)) for c in calls]

    assert trace(7) == trace(7)
    assert trace(7) != trace(8)


@pytest.mark.parametrize("seed", range(5))
def test_realised_selectivity_lies_within_four_standard_errors(seed: int) -> None:
    boxes = [("H", 1e-6, selectivity) for selectivity in (0.01, 0.2, 0.5, 0.9)]
    calls = finished(
        of_classes(boxes), np.zeros(20_000), policy="rr", seed=seed, train_tuples=20_000
    )
    for unit, (_, _, selectivity) in enumerate(boxes):
        outs = sum(event.tuples_out[0] for event in calls if event.call.units == (unit,))
        spread = np.sqrt(20_000 * selectivity * (1 - selectivity))
        assert abs(outs - 20_000 * selectivity) <= 4 * spread


def test_queries_of_one_selectivity_have_luck_of_their_own() -> None:
    boxes = [("H", 0.001, 0.5)] * 2
    times_s = np.arange(200) * 0.01
    calls = finished(of_classes(boxes), times_s, policy="rr", together=True)
    both = set(output(calls, 0, times_s)) & set(output(calls, 1, times_s))
    assert 20 < len(both) < 80  # 50 expected


def test_a_selectivity_of_0_passes_nothing_and_of_1_everything() -> None:
    boxes = [("H", 0.001, 0.0), ("H", 0.001, 1.0)]
    calls = finished(of_classes(boxes), np.arange(500) * 0.01, policy="rr")
    outs = [sum(e.tuples_out[0] for e in calls if e.call.units == (unit,)) for unit in (0, 1)]
    assert outs == [0, 500]
