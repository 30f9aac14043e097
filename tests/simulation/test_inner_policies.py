"""Policies inside policies: woken in time, given foresight, refused where they cannot run."""

from typing import Any

import pytest
from kit.networks import line, network, new_simulation, ran, report, select

from headgate import simulate
from headgate.errors import ConfigRefused
from headgate.model.events import Measured, StepFinished, StepStarted
from headgate.policies import Policy
from headgate.policies.amos import Amos
from headgate.runtime.pipeline import refuse_off_spark
from headgate.runtime.policy_text import Spelled

TWO = network(line("a", select(0.3, 0.9)), line("b", select(0.5, 0.1), select(0.25)))
TIMES = {"s": [float(number) for number in range(10)]}


class Noted(Amos):
    """AMoS that records when it heard of measurements, and how many seconds they cover."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.heard: list[tuple[float, float]] = []

    def hear(self, event: StepStarted | StepFinished | Measured) -> None:
        super().hear(event)
        if isinstance(event, Measured):
            self.heard.append((event.at_s, event.seconds))


@pytest.mark.parametrize("level", ["query", "operator"])
@pytest.mark.parametrize(
    ("outer", "key"), [("cqc", "inner"), ("top-k", "inner"), ("threshold", "below")]
)
def test_an_inner_amos_dwells_and_is_asked_in_time(outer: str, key: str, level: str) -> None:
    inner = Noted(policies=("fcfs", "hr", "rr"), dwell_s=2.0)
    around = Spelled(outer).make()
    around = type(around)(**{key: inner})
    new_simulation(TWO, TIMES, around, level=level).run()
    assert inner.heard == [(at_s, 2.0) for at_s in (2.0, 4.0, 6.0, 8.0)]
    assert sum(inner.turns) == 5
    assert min(inner.turns) >= 1


def test_amos_inside_another_is_no_candidate_of_amos() -> None:
    with pytest.raises(ConfigRefused, match="that set no wake-up time, not 'cqc'"):
        Spelled("amos(policies=hr+cqc(inner=amos))").make()


@pytest.mark.parametrize(
    "text", ["cqc(inner=mss)", "amos(policies=mss)", "top-k(inner=mss)", "threshold(below=mss)"]
)
def test_what_an_inner_policy_foresees_is_foreseen(text: str) -> None:
    nested = report(ran(TWO, TIMES, Spelled(text).make()))
    alone = report(ran(TWO, TIMES, "mss", train_tuples=None))
    assert nested.total.response_s.count == alone.total.response_s.count


def refused(policy: Policy, **options: Any) -> str:
    with pytest.raises(ConfigRefused) as error:
        simulate(TWO, TIMES, policy=policy, **options)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "outer"),
    [
        ("cqc(inner=mss)", "cqc"),
        ("amos(policies=hr+mss)", "amos"),
        ("top-k(inner=mss)", "top-k"),
        ("threshold(above=mss)", "threshold"),
        ("threshold(above=cqc(inner=mss))", "cqc"),
    ],
)
def test_an_inner_policy_that_cannot_run_at_a_level_is_refused_by_name(
    text: str, outer: str
) -> None:
    message = refused(Spelled(text).make(), level="operator")
    assert message.startswith(
        f"policy '{outer}': inner policy is 'mss', but must be one that runs at"
    )
    assert "operator level in simulations; the nearest are " in message
    assert "mss" not in message.partition("nearest")[2]


def test_an_inner_policy_that_foresees_is_refused_where_calls_go_through_the_loop() -> None:
    message = refused(Spelled("cqc(inner=greedy)").make(), together=True)
    assert "inner policy is 'greedy', but must be one that runs at query level on Spark" in message


def test_an_inner_policy_that_foresees_is_refused_on_spark() -> None:
    with pytest.raises(ConfigRefused, match="inner policy is 'mss-memory', but must be one that"):
        refuse_off_spark(Spelled("amos(policies=hr+mss-memory)").make())
    refuse_off_spark(Spelled("cqc(inner=hnr)").make())


def test_the_nearest_are_those_of_the_most_similar_aim() -> None:
    message = refused(Spelled("cqc(inner=mss-memory)").make(), together=True)
    assert "chain" in message.partition("nearest")[2]
