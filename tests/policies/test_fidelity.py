"""What `headgate policies --json` says of a policy and an engine, against the calls it makes."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from kit.networks import box, line, network, ran, results, results_of, select

from headgate import simulate
from headgate.errors import ConfigRefused
from headgate.model.events import Event, StepStarted
from headgate.model.network.network import Network
from headgate.model.network.operator import Operator
from headgate.model.qos_graph import QoSGraph
from headgate.model.stream import Stream
from headgate.policies import Engine, Policy, fidelity, policies, policy_named

CLASSES = {"H": 6.0, "C": 3.0, "N": 1.0}
EVERY = sorted(policies())
ON_SPARK = [name for name in EVERY if fidelity(policies()[name], "spark").word != "not available"]


def said_to_be(name: str, engine: Engine) -> str:
    """Return the policy whose calls a policy is said to make, which may be its own."""
    truth = fidelity(policies()[name], engine)
    return said_to_be(truth.same_as, engine) if truth.same_as else name


def query_values(number: int) -> dict[str, Any]:
    """Return class, weight, deadline and QoS graph of a query, all unlike its neighbors'."""
    graph = QoSGraph(((0.0, 1.0), (0.01 * (number + 1), 1.0), (0.05 * (number + 2), 0.0)))
    return {
        "query_class": "HCN"[number % 3], "weight": float(1 + number % 4),
        "deadline_s": (0.02, 0.5, 0.1)[number % 3], "qos": graph,
    }  # fmt: skip


def as_on_spark() -> Network:
    """Return nine queries over two streams of which no two are alike."""
    rng = np.random.default_rng(5)
    paths = (
        line(
            f"q{number}", select(float(rng.uniform(1e-4, 3e-3)), float(rng.uniform(0.05, 1.0))),
            stream="st"[number % 2], **query_values(number),
        )
        for number in range(9)
    )  # fmt: skip
    streams = [
        Stream(name=name, format="rate", tuple_bytes=size) for name, size in (("s", 9), ("t", 50))
    ]
    return network(*paths, streams=streams, classes=CLASSES)


THRESHOLDS = {"spark": 800, "simulation": 150}
"""Thresholds that queues exceed only at times: else the hybrid is one of its parts."""


def spelled(name: str, engine: Engine) -> Policy:
    """Return a policy by its name."""
    if name == "threshold":
        return policy_named(name, threshold_tuples=THRESHOLDS[engine])
    return policy_named(name)


@cache
def live_calls(name: str) -> str:
    """Return the calls of the live scheduler, whose engine is simulated: units and tuples."""
    rng, calls = np.random.default_rng(7), []

    def hear(event: Event) -> None:
        if isinstance(event, StepStarted):
            calls.append((event.call.units, event.call.tuples))

    times = {stream: np.sort(rng.uniform(0.0, 1.0, 300)) for stream in "st"}
    simulate(
        as_on_spark(), times, policy=spelled(name, "spark"), overhead_s=0.004,
        most_fused=4, train_tuples=40, listeners=[hear],
    )  # fmt: skip
    return repr(calls)


@cache
def simulated_results(name: str) -> str:
    """Return the results of four applications with forks and merges, box by box if it can be."""
    rng, boxes, paths = np.random.default_rng(5), [], []
    for app in range(4):
        inputs = {
            "one": ("s",), "two": ("t",), "three": ("s",), "left": ("one", "two"),
            "root": ("left", "three"), "side": ("two",),
        }  # fmt: skip
        for part, sources in inputs.items():
            operator = Operator(
                kind="map", cost_s=float(10.0 ** rng.uniform(-4.0, -2.0)),
                selectivity=float(rng.uniform(0.1, 1.0)),
            )  # fmt: skip
            names = (name if name in "st" else f"a{app}_{name}" for name in sources)
            boxes.append(box(f"a{app}_{part}", operator, *names))
        values = query_values(app)
        paths.append(results_of(f"q{app}a", f"a{app}_root", **values))
        paths.append(results_of(f"q{app}b", f"a{app}_side", **{**values, "weight": 2.5}))
    forked = network(*paths, boxes=boxes, streams="st", classes=CLASSES)
    times = {stream: np.sort(rng.uniform(0.0, 0.3, 60)).tolist() for stream in "st"}
    level = "operator" if "operator" in policies()[name].levels else "query"
    policy = spelled(name, "simulation")
    return repr(results(ran(forked, times, policy, level=level, overhead_s=0.002, usual_train=5)))


@pytest.mark.parametrize("name", EVERY)
def test_a_policy_has_a_word_and_a_reason_for_each_engine(name: str) -> None:
    for engine in ("simulation", "spark"):
        truth = fidelity(policies()[name], engine)  # type: ignore[arg-type]
        assert truth.reason
        assert bool(truth.same_as) == (truth.word == "same")
        assert truth.same_as in ("", *EVERY)


@pytest.mark.parametrize("name", ON_SPARK)
def test_on_spark_it_makes_the_calls_of_the_policy_that_it_is_said_to_be_and_of_no_other(
    name: str,
) -> None:
    alike = [other for other in ON_SPARK if live_calls(other) == live_calls(name)]
    assert said_to_be(name, "spark") in alike
    assert {said_to_be(other, "spark") for other in alike} == {said_to_be(name, "spark")}


@pytest.mark.parametrize("name", sorted(set(EVERY) - set(ON_SPARK)))
def test_what_is_not_available_is_refused(name: str) -> None:
    with pytest.raises(ConfigRefused):
        simulate(
            as_on_spark(), {"s": np.zeros(2)}, policy=policy_named("cqc", inner=name), most_fused=4
        )


@pytest.mark.parametrize("name", EVERY)
def test_in_simulations_it_makes_the_calls_of_no_other(name: str) -> None:
    alike = [other for other in EVERY if simulated_results(other) == simulated_results(name)]
    assert {said_to_be(other, "simulation") for other in alike} == {said_to_be(name, "simulation")}
