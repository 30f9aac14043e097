"""The kernel against a plain model written from the definitions: queues, joins, ideal times."""

from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headgate.model.arrays import Floats
from headgate.model.network.graph import NAMED
from headgate.model.network.network import Box, Network, Path
from headgate.model.network.operator import Operator
from headgate.model.plan import ALL
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.policies import policies, policy_named
from headgate.runtime.what_if.simulate import simulation_of
from headgate.workloads.random_hash import chance, mixed

GRAIN_S = 1 / 64  # all times are multiples of it, so that every sum is exact
STREAMS = ("s0", "s1")
CLASSES = (QueryClass(name="H", priority=6.0), QueryClass(name="N", priority=1.0))
BOTH_LEVELS = [(name, level) for name, entry in policies().items() for level in entry.levels]


@dataclass(frozen=True)
class Case:
    boxes: tuple[Box, ...]
    outputs: tuple[str, ...]
    arrivals: dict[str, Floats]
    seed: int

    @property
    def network(self) -> Network:
        paths = tuple(
            Path(query=Query(name=f"q{n}", sql="SELECT 1", query_class="HN"[n % 2]), output=name)
            for n, name in enumerate(self.outputs)
        )
        streams = tuple(Stream(name=name, format="rate") for name in STREAMS)
        return Network(streams, CLASSES, paths, self.boxes)


@dataclass(frozen=True)
class Tuple:
    """A tuple, when it arrived, and when it would be where it is if nothing else ran."""

    number: int
    arrived_at_s: float
    ideal_at_s: float


def after(box: Box, place: int, one: Tuple, seed: int) -> list[Tuple]:
    """Return the outputs of a box that is no join for a tuple: s on average, drawn at random."""
    selectivity, cost_s = box.operator.selectivity or 0.0, box.operator.cost_s or 0.0
    copies = int(selectivity)
    if chance(seed, one.number, NAMED + place) < selectivity - copies:
        copies += 1
    left_at_s = one.ideal_at_s + cost_s
    numbers = [one.number] + [int(mixed(one.number, copy)) for copy in range(1, copies)]
    return [Tuple(number, one.arrived_at_s, left_at_s) for number in numbers[:copies]]


def joined(box: Box, place: int, left: Tuple, right: Tuple, seed: int) -> list[Tuple]:
    """Return the composite of two tuples at most V apart, if the draw is a match (Sharaf §2.2.1).

    It arrives with the later of the two. For A_l ≤ A_r its ideal departure is
    max(A_l + C_L + C_J, A_r) + C_R + C_J (Sharaf §3.4.1).
    """
    operator, cost_s = box.operator, box.operator.cost_s or 0.0
    if abs(left.arrived_at_s - right.arrived_at_s) > (operator.window_s or 0.0):
        return []
    pair = int(mixed(left.number, right.number))
    if chance(seed, pair, NAMED + place) >= (operator.selectivity or 0.0):
        return []
    first, second = sorted((left, right), key=lambda candidate: candidate.arrived_at_s)
    second_s = second.ideal_at_s - second.arrived_at_s
    ideal_at_s = max(first.ideal_at_s + cost_s, second.arrived_at_s) + second_s + cost_s
    return [Tuple(pair, second.arrived_at_s, ideal_at_s)]


def batch_answer(case: Case) -> list[tuple[int, float]]:
    """Return (query, arrival) of every result, as if all tuples were there from the beginning."""
    outputs: dict[str, list[Tuple]] = {
        name: [Tuple(n, at_s, at_s) for n, at_s in enumerate(case.arrivals[name])]
        for name in STREAMS
    }
    for place, box in enumerate(case.boxes):
        if box.operator.kind == "join":
            left, right = (outputs[name] for name in box.inputs)
            outputs[box.name] = [
                out for a in left for b in right for out in joined(box, place, a, b, case.seed)
            ]
        else:
            coming = [one for name in box.inputs for one in outputs[name]]
            outputs[box.name] = [out for one in coming for out in after(box, place, one, case.seed)]
    return sorted(
        (query, one.arrived_at_s)
        for query, name in enumerate(case.outputs)
        for one in outputs[name]
    )


@dataclass
class Model:
    """A model as plain as it can be: one worker and first-in-first-out queues, run to the end.

    At operator level, there is a queue before each side of every box. At query level, there is one
    only where a stream comes in, and the boxes behind it run in the same call.
    """

    case: Case
    level: str
    policy: str
    train: int
    overhead_s: float
    results: list[tuple[int, float, float]] = field(default_factory=list)
    slowdowns: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.places = {box.name: place for place, box in enumerate(self.case.boxes)}
        self.queues: dict[tuple[str, int], deque[Tuple]] = {
            (box.name, side): deque()
            for box in self.case.boxes
            for side in range(len(self.sides(box)))
            if self.level == "operator" or set(self.sides(box)[side]) & set(STREAMS)
        }
        self.windows: dict[tuple[str, int], list[Tuple]] = {}
        self.rates = {name: self.rate(*name) for name in self.queues}

    def sides(self, box: Box) -> list[tuple[str, ...]]:
        apart = box.operator.kind in ("join", "union")
        return [(name,) for name in box.inputs] if apart else [box.inputs]

    def readers(self, name: str) -> list[tuple[str, int]]:
        return [
            (box.name, side)
            for box in self.case.boxes
            for side, names in enumerate(self.sides(box))
            if name in names
        ]

    # What a scheduler by rate knows of the network

    def input_per_s(self, name: str, side: int) -> Fraction:
        total = Fraction(0)
        for source in self.sides(self.case.boxes[self.places[name]])[side]:
            if source in STREAMS:
                times_s = self.case.arrivals[source]
                total += Fraction(len(times_s)) / Fraction(times_s[-1])
            else:
                count = len(self.sides(self.case.boxes[self.places[source]]))
                total += sum(
                    self.input_per_s(source, source_side) * self.selectivity(source, source_side)
                    for source_side in range(count)
                )
        return total

    def selectivity(self, name: str, side: int) -> Fraction:
        """Return s; of a join, s times the other window's tuples, S_R V / τ_R (Sharaf §3.4.2)."""
        operator = self.case.boxes[self.places[name]].operator
        base = Fraction(operator.selectivity or 0.0)
        if operator.kind == "join":
            return base * self.input_per_s(name, 1 - side) * Fraction(operator.window_s or 0.0)
        return base

    def cost_s(self, name: str) -> Fraction:
        return Fraction(self.case.boxes[self.places[name]].operator.cost_s or 0.0)

    def ways(self, name: str, side: int) -> int:
        """Count the ways from a side of a box to outputs."""
        onward = sum(self.ways(*reader) for reader in self.readers(name))
        return self.case.outputs.count(name) + onward

    def output_per_tuple(self, name: str, side: int) -> Fraction:
        onward = self.case.outputs.count(name) + sum(
            self.output_per_tuple(*reader) for reader in self.readers(name)
        )
        return self.selectivity(name, side) * onward

    def mean_cost_s(self, name: str, side: int) -> Fraction:
        onward = sum((self.mean_cost_s(*reader) for reader in self.readers(name)), Fraction(0))
        return self.cost_s(name) + self.selectivity(name, side) * onward

    def rate(self, name: str, side: int) -> Fraction:
        """Return S / C̄; of a shared operator, all S over the one C̄ (Sharaf eq 3.1, 3.9)."""
        cost_s = Fraction(self.overhead_s) + self.mean_cost_s(name, side)
        return self.output_per_tuple(name, side) / cost_s

    # Ideal times

    def ideal_s(self, name: str) -> Fraction:
        """Return T: the costs along the way, C_L + C_R + 2 C_J at a join (Sharaf definition 8)."""
        box, times_s = self.case.boxes[self.places[name]], []
        for side, names in enumerate(self.sides(box)):
            below = max(
                Fraction(0) if source in STREAMS else self.ideal_s(source) for source in names
            )
            call_s = Fraction(self.overhead_s) if (name, side) in self.queues else Fraction(0)
            times_s.append(below + self.cost_s(name) + call_s)
        return sum(times_s) if box.operator.kind == "join" else max(times_s)

    # The run

    def run(self) -> None:
        now_s = 0.0
        arrivals = sorted(
            (at_s, stream, number)
            for stream, name in enumerate(STREAMS)
            for number, at_s in enumerate(self.case.arrivals[name])
        )
        while True:
            while arrivals and arrivals[0][0] <= now_s:
                at_s, stream, number = arrivals.pop(0)
                for reader in self.readers(STREAMS[stream]):
                    self.queues[reader].append(Tuple(number, at_s, at_s))
            waiting = [unit for unit, queue in self.queues.items() if queue]
            if not waiting and not arrivals:
                return
            if not waiting:
                now_s = arrivals[0][0]
                continue
            unit = min(waiting, key=self.rank)
            self.now_s, outputs = now_s + self.overhead_s, []
            for _ in range(min(self.train, len(self.queues[unit]))):
                one = self.queues[unit].popleft()
                ideal_at_s = one.ideal_at_s + self.overhead_s
                outputs += self.call(unit, Tuple(one.number, one.arrived_at_s, ideal_at_s))
            now_s = self.now_s
            while arrivals and arrivals[0][0] <= now_s:
                at_s, stream, number = arrivals.pop(0)
                for reader in self.readers(STREAMS[stream]):
                    self.queues[reader].append(Tuple(number, at_s, at_s))
            for reader, one in outputs:
                self.queues[reader].append(one)

    def rank(self, unit: tuple[str, int]) -> tuple[Any, ...]:
        """Return the sort key of a unit: that of the policy, then the numbers of box and side."""
        first = self.queues[unit][0].arrived_at_s if self.policy == "fcfs" else -self.rates[unit]
        return first, self.places[unit[0]], unit[1]

    def call(self, unit: tuple[str, int], one: Tuple) -> list[tuple[tuple[str, int], Tuple]]:
        """Run a tuple through a box and the boxes behind it; return what queues get afterwards."""
        (name, side), seed = unit, self.case.seed
        place = self.places[name]
        box = self.case.boxes[place]
        self.now_s += box.operator.cost_s or 0.0
        if box.operator.kind == "join":
            self.windows.setdefault((name, side), []).append(one)
            others = self.windows.get((name, 1 - side), [])
            pairs = [(one, other) if side == 0 else (other, one) for other in others]
            outs = [out for a, b in pairs for out in joined(box, place, a, b, seed)]
        else:
            outs = after(box, place, one, seed)
        queued = []
        for out in outs:
            for query, output in enumerate(self.case.outputs):
                if output == name:
                    self.results.append((query, out.arrived_at_s, self.now_s))
                    late_s = Fraction(self.now_s) - Fraction(out.ideal_at_s)
                    slowdown = float(1 + late_s / self.ideal_s(name))
                    self.slowdowns[query] = self.slowdowns.get(query, 0.0) + slowdown
            queued += [(reader, out) for reader in self.readers(name) if reader in self.queues]
        for out in outs:
            for reader in self.readers(name):
                if reader not in self.queues:
                    queued += self.call(reader, out)
        return queued


def simulated(
    case: Case, policy: str, **options: Any
) -> tuple[list[tuple[int, float, float]], Any]:
    """Return (query, arrived, departed) of every result in the kernel, and the kernel's counts."""
    simulation = simulation_of(
        case.network, case.arrivals, policy_named(policy), keep=True, seed=case.seed, **options
    )
    simulation.run()
    count = 3 * int(simulation.world.clock["kept"][0])
    rows = simulation.world.kept[:count].reshape(-1, 3).tolist()
    return sorted((int(query), a, d) for query, a, d in rows), simulation.world.results


grains = st.integers(1, 16).map(lambda n: n * GRAIN_S)


@st.composite
def cases(draw: st.DrawFn, unions: bool = True) -> Case:
    """Draw a network of filters, maps, unions and joins over two streams, and their tuples.

    Streams have 1, 2, 4, ... tuples up to an instant that is a power of 2, so that rates are exact.
    """
    boxes: list[Box] = []
    kinds = ["select", "map", "join", "join", *(["union"] if unions else [])]
    for number in range(draw(st.integers(1, 5))):
        kind, names = draw(st.sampled_from(kinds)), [box.name for box in boxes]
        count = {"select": 1, "map": draw(st.integers(1, 2)), "union": 2, "join": 2}[kind]
        # A box with streams and boxes in one queue has calls of two kinds; it is not drawn.
        if kind == "map" and count == 2:
            readable = names if len(names) > 1 and draw(st.booleans()) else list(STREAMS)
        else:
            readable = [*STREAMS, *names]
        inputs = draw(
            st.lists(st.sampled_from(readable), min_size=count, max_size=count, unique=True)
        )
        quarters = {"map": [2, 4, 6], "union": [4]}.get(kind, [0, 1, 3, 4])
        operator = Operator(
            kind=kind,
            cost_s=draw(grains),
            selectivity=draw(st.sampled_from(quarters)) / 4,
            window_s=draw(st.sampled_from([0.25, 0.5, 1.0])) if kind == "join" else None,
        )
        boxes.append(Box(name=f"b{number}", operator=operator, inputs=tuple(inputs)))
    read = {name for box in boxes for name in box.inputs}
    outputs = [box.name for box in boxes if box.name not in read or draw(st.booleans())]
    arrivals = {name: draw(instants()) for name in STREAMS}
    return Case(tuple(boxes), tuple(outputs), arrivals, draw(st.integers(0, 2**31)))


@st.composite
def instants(draw: st.DrawFn) -> Floats:
    count, last = draw(st.sampled_from([1, 2, 4, 8])), draw(st.sampled_from([1, 2]))
    some = st.integers(0, 64 * last)
    chosen = draw(st.lists(some, min_size=count - 1, max_size=count - 1))
    return np.array([*sorted(chosen), 64 * last]) * GRAIN_S


def rates_lie_apart(model: Model) -> bool:
    """Return True if floats order all rates as fractions do.

    The rate of one segment is the quotient of two exact numbers, so that equal rates are equal
    floats too. The rate of several segments is a sum that may be rounded, so it has to lie apart
    from all others.
    """
    several = {model.rates[unit] for unit in model.rates if model.ways(*unit) > 1} - {Fraction(0)}
    rates = sorted(model.rates.values())
    return all(
        float((b - a) / b) > 1e-9 if a != b else a not in several for a, b in pairwise(rates)
    )


@pytest.mark.parametrize("level", ["query", "operator"])
@pytest.mark.parametrize("policy", ["fcfs", "hr"])
@given(
    case=cases(unions=False),
    train=st.sampled_from([1, 3, ALL]),
    overhead_s=st.sampled_from([0.0, 2 * GRAIN_S]),
)
def test_every_result_leaves_when_the_model_says(
    policy: str, level: str, case: Case, train: int, overhead_s: float
) -> None:
    if policy == "hr" and train > 1:
        overhead_s = 0.0  # a rate would change with the queue
    model = Model(case, level, policy, train, overhead_s)
    assume(policy == "fcfs" or rates_lie_apart(model))
    model.run()
    results, counted = simulated(
        case, policy, level=level, shared_priority="sum", train_tuples=train, overhead_s=overhead_s
    )
    assert results == sorted(model.results)
    for query, total in model.slowdowns.items():
        assert float(counted["slowdown_sum"][query]) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize(("name", "level"), BOTH_LEVELS)
@settings(max_examples=settings.default.max_examples // 2)
@given(case=cases(), options=st.fixed_dictionaries({
    "train_tuples": st.sampled_from([None, 1, 3, ALL]),
    "overhead_s": st.sampled_from([0.0, 4 * GRAIN_S]),
    "shared_priority": st.sampled_from(["max", "sum", "pdt"]),
    "workers": st.integers(1, 3),
}))  # fmt: skip
def test_what_is_joined_does_not_depend_on_the_policy(
    name: str, level: str, case: Case, options: dict[str, Any]
) -> None:
    results, _ = simulated(case, name, level=level, **options)
    assert [result[:2] for result in results] == batch_answer(case)
