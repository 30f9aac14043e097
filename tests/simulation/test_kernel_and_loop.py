"""One world, three drivers: the compiled kernel, the kernel led by plans, and the plain loop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate import simulate
from headgate.model.arrays import Floats
from headgate.model.events import Event, Measured, StepFinished, StepStarted
from headgate.model.network.network import Box, Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.model.plan import ALL, Step
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.policies import Policy, Selection, State, policies, policy_named
from headgate.policies.methods.learning import Learning
from headgate.runtime.what_if.simulate import simulation_of
from headgate.simulation.loop.run import Simulation
from headgate.simulation.world.records import NONE

CLASSES = (
    QueryClass(name="H", priority=6.0),
    QueryClass(name="C", priority=3.0),
    QueryClass(name="N", priority=1.0),
)
LOOPED = [
    name
    for name, entry in policies().items()
    # The loop runs whole queries, has no foresight, and measures differently for a wake-up time.
    if "query" in entry.levels
    and not policy_named(name).foresees
    and policy_named(name).wake_at_s == inf
]
BOTH_LEVELS = [(name, level) for name, entry in policies().items() for level in entry.levels]

Decision = tuple[int, int, float]
"""unit, tuples, when it was made"""


@dataclass(frozen=True)
class Case:
    network: Network
    arrivals: dict[str, Floats]
    options: dict[str, Any]


@dataclass
class Seen:
    """The decisions of a run in order, and its outputs as (query, arrived, left) by query."""

    decisions: list[Decision]
    outputs: list[tuple[int, float, float]]

    def __init__(self) -> None:
        self.decisions, self.outputs = [], []


class Lottery(Learning):
    """A strategy that chooses at random, whatever was measured."""

    def choose(self, scores: Sequence[float]) -> int:
        return self.random.below(self.arms)


class ByPlan(Policy):
    """Another policy without its compiled form: every decision is one of its plans."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.name = policy, policy.name
        self.tuples_a_step, self.foresees = policy.tuples_a_step, policy.foresees
        self._by_policy: dict[Policy, ByPlan] = {}

    @property
    def wake_at_s(self) -> float:  # type: ignore[override]  # always that of the other policy
        return self.policy.wake_at_s

    def prepare(self, units: Units) -> None:
        self.policy.prepare(units)

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        return self.policy.plan(state, now_s)

    def hear(self, event: StepStarted | StepFinished | Measured) -> None:
        self.policy.hear(event)

    def value(self, selectivity: float, cost_s: float, ideal_s: float) -> float:
        return self.policy.value(selectivity, cost_s, ideal_s)

    def in_charge(self, now_s: float) -> Policy:
        inner = self.policy.in_charge(now_s)
        return self if inner is self.policy else self._by_policy.setdefault(inner, ByPlan(inner))

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        return None


def by_kernel(case: Case, policy: Policy, **options: Any) -> tuple[Seen, Simulation]:
    """Run in the kernel and inspect it after every decision."""
    simulation = simulation_of(
        case.network, case.arrivals, policy, keep=True, **{**case.options, **options}
    )
    simulation.decisions_a_report = 1
    seen, calls = Seen(), 0

    def look(now_s: float) -> None:
        nonlocal calls
        world = simulation.world
        begun = [row for row in world.workers if row["unit"] != NONE and row["call"] >= calls]
        for row in sorted(begun, key=lambda worker: int(worker["call"])):
            decided_at_s = float(world.clock["met_at_s"][0])
            seen.decisions.append((int(row["unit"]), int(row["tuples"]), decided_at_s))
        calls = int(world.clock["calls"][0])

    simulation.run(look)
    kept_rows = simulation.world.kept[: 3 * int(simulation.world.clock["kept"][0])].reshape(-1, 3)
    seen.outputs = sorted((int(query), *when) for query, *when in kept_rows.tolist())
    assert len(seen.decisions) == calls
    return seen, simulation


def by_loop(case: Case, policy: Policy) -> tuple[list[Decision], list[list[float]], Any]:
    """Run in the plain loop; return decisions, the responses of each query, and the report."""
    decisions: list[Decision] = []
    responses: list[list[float]] = [[] for _ in case.network.paths]

    def hear(event: Event) -> None:
        if isinstance(event, StepFinished):
            responses[event.call.units[0]] += event.responses_s[0].tolist()
            begun_s = event.at_s - event.seconds
            decisions.append((event.call.number, event.call.units[0], event.call.tuples, begun_s))

    report = simulate(case.network, case.arrivals, policy=policy, listeners=[hear], **case.options)
    return [decision[1:] for decision in sorted(decisions)], responses, report


MANNERS: list[dict[str, Any]] = [
    {},
    {"learns": True, "window_tuples": 3},
    {"storage_s": 1 / 32, "decision_s": 1 / 64},
    {"train_fraction": 0.5},
    {"train_spread_s": 0.25},
    {"train_cost_s": 0.3},
    {"fluid": True},
    {"idle_waiting": True},
]
"""Options of a world: see `headgate.simulation.world.setting.Setting`."""


def seconds(most: int) -> st.SearchStrategy[float]:
    """Draw a cost: a multiple of a coarse grain, so that sums are exact and ties happen, or any."""
    return st.integers(1, most).map(lambda n: n / 64) | st.floats(0.001, most / 64)


operators = st.builds(
    Operator,
    kind=st.just("select"),
    cost_s=seconds(16),
    selectivity=st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]),
    attribute=st.none() | st.integers(0, 1),
)
instants = st.lists(
    st.integers(0, 6).map(lambda n: n / 8) | st.floats(0.0, 0.5), min_size=1, max_size=12
).map(lambda gaps_s: np.cumsum(gaps_s))


@st.composite
def queries(draw: st.DrawFn, number: int) -> Query:
    return Query(
        name=f"q{number}", sql="SELECT 1", query_class=draw(st.sampled_from("HCN")),
        weight=draw(st.sampled_from([0.5, 1.0, 2.0])),
        deadline_s=draw(st.none() | st.integers(1, 8).map(lambda n: n / 4)),
    )  # fmt: skip


@st.composite
def plain_cases(draw: st.DrawFn) -> Case:
    """Draw queries of one stream each, and how they run."""
    streams = draw(st.integers(1, 3))
    paths = tuple(
        Path(
            query=draw(queries(number)),
            stream=f"s{draw(st.integers(0, streams - 1))}",
            operators=tuple(draw(st.lists(operators, min_size=1, max_size=3))),
        )
        for number in range(draw(st.integers(1, 8)))
    )
    network = Network(
        tuple(Stream(name=f"s{number}", format="rate") for number in range(streams)), CLASSES, paths
    )
    options = {
        "overhead_s": draw(st.sampled_from([0.0, 1 / 64, 0.1])),
        "train_tuples": draw(st.sampled_from([1, 3, ALL])),
        "workers": draw(st.integers(1, 3)),
        "seed": draw(st.integers(0, 2**31)),
    }
    return Case(network, {stream.name: draw(instants) for stream in network.streams}, options)


@st.composite
def woven_cases(draw: st.DrawFn) -> Case:
    """Draw trees, forks, shared boxes, unions and joins beside plain paths."""
    streams = ["s0", "s1"]
    boxes: list[Box] = []
    for number in range(draw(st.integers(1, 6))):
        names = streams + [box.name for box in boxes]
        kind = draw(st.sampled_from(["select", "select", "map", "union", "join"]))
        count = {"select": 1, "map": draw(st.integers(1, 2)), "union": 2, "join": 2}[kind]
        inputs = draw(st.lists(st.sampled_from(names), min_size=count, max_size=count, unique=True))
        selectivities = [0.3, 1.0, 1.5] if kind == "map" else [0.0, 0.25, 0.6, 1.0]
        operator = Operator(
            kind=kind,
            cost_s=draw(seconds(16)),
            selectivity=1.0 if kind == "union" else draw(st.sampled_from(selectivities)),
            window_s=draw(st.sampled_from([0.25, 1.0])) if kind == "join" else None,
        )
        boxes.append(Box(name=f"b{number}", operator=operator, inputs=tuple(inputs)))
    read = {name for box in boxes for name in box.inputs}
    ends = [box.name for box in boxes if box.name not in read or draw(st.booleans())]
    paths = [Path(query=draw(queries(number)), output=name) for number, name in enumerate(ends)]
    for number in range(len(ends), len(ends) + draw(st.integers(0, 2))):
        path_operators = tuple(draw(st.lists(operators, min_size=1, max_size=3)))
        paths.append(Path(query=draw(queries(number)), stream="s0", operators=path_operators))
    network = Network(
        tuple(Stream(name=name, format="rate") for name in streams),
        CLASSES, tuple(paths), tuple(boxes),
    )  # fmt: skip
    options = {
        "overhead_s": draw(st.sampled_from([0.0, 1 / 64, 0.1])),
        "train_tuples": draw(st.sampled_from([None, 1, 3, ALL])),
        "shared_priority": draw(st.sampled_from(["max", "sum", "pdt"])),
        "workers": draw(st.integers(1, 2)),
        "seed": draw(st.integers(0, 2**31)),
        **draw(st.sampled_from(MANNERS)),
    }
    return Case(network, {name: draw(instants) for name in streams}, options)


def same_decisions(actual: list[Decision], expected: list[Decision]) -> None:
    assert [decision[:2] for decision in actual] == [decision[:2] for decision in expected]
    assert [decision[2] for decision in actual] == pytest.approx(
        [decision[2] for decision in expected], rel=1e-9
    )


def same_runs(case: Case, make: Callable[[], Policy]) -> None:
    decisions, responses, report = by_loop(case, make())
    seen, simulation = by_kernel(case, make())
    same_decisions(seen.decisions, decisions)
    assert int(simulation.world.clock["calls"][0]) == report.calls
    for query, expected_s in enumerate(responses):
        actual_s = [
            left_s - arrived_s for number, arrived_s, left_s in seen.outputs if number == query
        ]
        assert sorted(actual_s) == pytest.approx(sorted(expected_s), rel=1e-9, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPED)
@given(case=plain_cases())
def test_the_kernel_decides_as_the_plain_loop_does(name: str, case: Case) -> None:
    same_runs(case, lambda: policy_named(name))


@pytest.mark.slow
@given(case=plain_cases(), dwell_s=st.sampled_from([0.125, 0.3, 1.0]))
def test_in_the_kernel_amos_hands_over_when_it_does_in_the_plain_loop(
    case: Case, dwell_s: float
) -> None:
    # Both begin at 0, and what was measured decides nothing: the loop counts results when a call
    # ends, the kernel when it begins.
    begins_s = min(float(instants_s[0]) for instants_s in case.arrivals.values())
    arrivals = {name: times_s - begins_s for name, times_s in case.arrivals.items()}
    same_runs(
        replace(case, arrivals=arrivals),
        lambda: policy_named("amos", dwell_s=dwell_s, learning=Lottery()),
    )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "level"), BOTH_LEVELS)
@settings(max_examples=settings.default.max_examples // 2)
@given(case=woven_cases())
def test_the_compiled_selection_decides_as_the_plans_do(name: str, level: str, case: Case) -> None:
    seen, _ = by_kernel(case, policy_named(name), level=level)
    planned, _ = by_kernel(case, ByPlan(policy_named(name)), level=level)
    assert seen.decisions == planned.decisions
    assert seen.outputs == planned.outputs
