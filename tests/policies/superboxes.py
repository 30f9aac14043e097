"""Small applications of boxes, and a machine that runs the plans of a policy for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from headgate.model.events import StepFinished, StepStarted
from headgate.model.network.network import Box, Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import Level, Units, units_of
from headgate.model.plan import BoxCall
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.policies import Policy, State, policy_named

# Figure 4: each box with the boxes that feed it, in pre-order.
SAMPLE = {
    "b1": ("b2", "b6"),
    "b2": ("b4", "b3"),
    "b4": (),
    "b3": ("b5",),
    "b5": (),
    "b6": (),
}
EXAMPLE_OF_MM = {
    "b1": (0.9, 2.0), "b2": (0.4, 2.0), "b3": (0.5, 1.0),
    "b4": (1.0, 2.0), "b5": (0.4, 3.0), "b6": (0.6, 1.0),
}  # fmt: skip
Tree = Mapping[str, Sequence[str]]
Figures = Mapping[str, tuple[float, float]]


def trees(
    fed_by: Tree, figures: Figures, outputs: Sequence[str], level: Level = "operator"
) -> Units:
    """Return the units of boxes, each of which reads the boxes that feed it, or else the stream."""
    boxes = tuple(
        Box(
            name=name,
            operator=Operator(kind="map", selectivity=figures[name][0], cost_s=figures[name][1]),
            inputs=tuple(feeders) or ("s",),
        )
        for name, feeders in fed_by.items()
    )
    paths = tuple(
        Path(query=Query(name=f"q{number}", sql="SELECT 1", query_class="N"), output=name)
        for number, name in enumerate(outputs)
    )
    classes = (QueryClass(name="N", priority=1.0),)
    network = Network((Stream(name="s", format="rate"),), classes, paths, boxes)
    return units_of(network, level)


def sample(figures: Figures | None = None, cost_s: float = 1.0) -> Units:
    return trees(SAMPLE, figures or dict.fromkeys(SAMPLE, (1.0, cost_s)), ["b1"])


@dataclass
class Machine:
    """A machine that runs a policy's plans call by call; a tuple becomes `selectivity` tuples."""

    policy: Policy
    units: Units
    overhead_s: float = 0.0
    now_s: float = 0.0
    calls: list[str] = field(default_factory=list)
    continued: list[bool] = field(default_factory=list)
    latencies_s: list[float] = field(default_factory=list)
    tuples_in_memory: list[float] = field(default_factory=list)
    outputs: float = 0.0

    def __post_init__(self) -> None:
        self.table = unit_table(self.units, overhead_s=self.overhead_s)
        self.names = [self.units.graph.nodes[shape.box].name for shape in self.units.shapes]
        self.queues = np.zeros(len(self.units))
        self.policy.prepare(self.units)

    def queue(self, tuples: float, names: str = "") -> None:
        for name in names.split() or self.names:
            self.queues[self.names.index(name)] += tuples

    def state(self, running: Sequence[int] = ()) -> State:
        self.table["amount"] = self.queues
        self.table["pending"] = np.ceil(self.queues)
        waits = self.queues > 0
        waits[list(running)] = False
        return State(self.table, np.flatnonzero(waits))

    def start(self, number: int = 0, running: Sequence[int] = ()) -> BoxCall:
        """Start the first step of the plan."""
        step = self.policy.plan(self.state(running), self.now_s)[0]
        call = BoxCall(number, (step.unit,), 0, 0, 1, step.tuples)
        self.policy.hear(StepStarted(self.now_s, call))
        self.calls.append(self.names[step.unit])
        self.continued.append(step.continues)
        return call

    def finish(self, call: BoxCall) -> None:
        unit = call.units[0]
        tuples = min(self.queues[unit], call.tuples)
        row, shape = self.table[unit], self.units.shapes[unit]
        leaving, began_s = tuples * row["box_selectivity"], self.now_s
        self.queues[unit] -= tuples
        self.now_s += self.overhead_s + tuples * row["box_cost_s"]
        for reader in shape.feeds:
            self.queues[reader] += leaving
        if any(stage.queries for stage in shape.stages):
            self.outputs += leaving
            spent_s = np.arange(1, round(tuples) + 1) * row["box_cost_s"]
            self.latencies_s += list(began_s + self.overhead_s + spent_s)
        self.tuples_in_memory.append(float(self.queues.sum() + self.outputs))
        seconds = self.now_s - began_s
        self.policy.hear(StepFinished(self.now_s, call, seconds, (1,), (np.zeros(1),)))

    def run(self, most: int = 1000) -> str:
        """Run until nothing is left, or `most` calls were made; return the calls."""
        while self.queues.any() and len(self.calls) < most:
            self.finish(self.start())
        return " ".join(self.calls)


TWO = {"a1": ("a2",), "a2": (), "c1": ("c2",), "c2": ()}


def two(policy: str, level: Level = "operator", **parameters: Any) -> Machine:
    """Return a machine with two applications of two boxes each."""
    units = trees(TWO, dict.fromkeys(TWO, (1.0, 1.0)), ["a1", "c1"], level)
    return Machine(policy_named(policy, **parameters), units)


@st.composite
def forests(draw: st.DrawFn) -> Units:
    """Draw applications that may share boxes: each box feeds some of the boxes before it."""
    count = draw(st.integers(1, 8))
    fed_by: dict[str, list[str]] = {f"b{number}": [] for number in range(count)}
    roots = draw(st.integers(1, count))
    for number in range(roots, count):
        readers = draw(st.sets(st.integers(0, number - 1), min_size=1, max_size=2))
        for reader in readers:
            fed_by[f"b{reader}"].append(f"b{number}")
    figure = st.tuples(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.floats(0.1, 2.0))
    figures = {name: draw(figure) for name in fed_by}
    return trees(fed_by, figures, [f"b{number}" for number in range(roots)])
