"""Priority policies: one decorated function of a unit and the time, compiled by Numba."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, Literal, get_args

import numba
import numpy as np
from numpy.typing import NDArray

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats
from headgate.model.events import Measured, StepFinished, StepStarted
from headgate.model.network.graph import Graph, Way
from headgate.model.network.priority_tree import combined, priority_tree
from headgate.model.network.unit_table import UNIT, Unit, UnitTable
from headgate.model.network.units import Units
from headgate.model.plan import Step
from headgate.policies.interface import Policy, Ranking, Selection, State
from headgate.policies.registry import Engine, register
from headgate.policies.structures import selection as kernels

PriorityFunction = Callable[[Unit, float], float]

Tree = tuple[tuple[Way, ...], float, tuple[int, ...]]
"""The segments that count for a unit, their C̄, and the units that run with it."""

Changes = Literal["never", "wait", "queue", "time"]
"""When a priority changes. `never`: only when figures are measured. `wait`: in proportion to the
wait W. `queue`: with its unit's queue. `time`: in any other way; always correct, slowest to run."""


def priority(
    name: str,
    *,
    objective: str = "",
    paper: str = "",
    starves: bool = True,
    changes: Changes = "time",
    tuples_a_step: int | None = None,
    foresees: bool = False,
    engines: tuple[Engine, ...] = ("simulation", "spark"),
    aliases: tuple[str, ...] = (),
    use: str = "",
    avoid: str = "",
) -> Callable[[PriorityFunction], PriorityFunction]:
    """Register a function of a unit and the time as a policy. The unit of largest value runs first.

    >>> @priority("longest-queue", objective="memory", changes="queue")
    ... def longest_queue(unit, now_s):
    ...     return float(unit.pending)
    """
    if changes not in get_args(Changes):
        expected = "one of " + ", ".join(get_args(Changes))
        raise ConfigRefused(
            path=f"policy '{name}'", key="changes", value=changes, expected=expected
        )

    def enter(function: PriorityFunction) -> PriorityFunction:
        def make() -> Policy:
            return PriorityPolicy(function, changes, tuples_a_step, foresees)

        rule = (function.__doc__ or "").strip()
        register(
            name, objective=objective, paper=paper, starves=starves, rule=rule, engines=engines,
            aliases=aliases, use=use, avoid=avoid,
        )(make)  # fmt: skip
        return function

    return enter


@cache
def _compiled(function: PriorityFunction) -> Any:
    return numba.cfunc(kernels.PRIORITY)(function)


class PriorityPolicy(Policy):
    """A policy that runs the unit of largest priority. Ties go to the smaller unit number.

    A priority in proportion to the wait is split into Φ, its value after one second, and W. Both
    `plan` and the compiled selection compare Φ W, so that they agree to the bit. A shared unit has
    the combined value of its segments (Sharaf §3.6).
    """

    def __init__(
        self,
        function: Any,
        changes: Changes = "time",
        tuples_a_step: int | None = None,
        foresees: bool = False,
    ) -> None:
        self._python, self.changes = function, changes
        self.tuples_a_step, self.foresees = tuples_a_step, foresees
        self._shared: tuple[int, ...] = ()
        self._units: Units | None = None
        self._next_of_tree: tuple[int, ...] = ()
        self._figures = b""
        self._graph: Graph | None = None
        self._trees: dict[int, Tree] = {}
        self._declared = np.zeros((0, 2))

    @property
    def function(self) -> Any:
        """The compiled function, `float64(row, float64)`."""
        return _compiled(self._python)

    def prepare(self, units: Units) -> None:
        """Compile the priority function, so that the first decision is as fast as later ones."""
        self._units, self._next_of_tree = units, ()
        self._figures, self._trees = b"", {}
        self._shared = tuple(
            shape.number for shape in units.shapes if self._adds_up and len(shape.segments) > 1
        )
        if self._shared and (units.level == "operator" or units.rebuilds_trees):
            self._declared = np.array([units.figures(unit) for unit in range(len(units))])
        kernels.priorities(np.ones(1, dtype=UNIT), np.zeros(1, dtype=np.int64), 0.0, self.function)

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        values = self.values(state.table, state.ready, now_s)
        order = state.ready[np.argsort(-values, kind="stable")].tolist()
        first = [unit for unit in self._next_of_tree if unit in order]
        return [Step(unit, continues=True) for unit in first] + [
            Step(unit) for unit in order if unit not in first
        ]

    def hear(self, event: StepStarted | StepFinished | Measured) -> None:
        """Note which units of a priority-defining tree come next: the tree runs as one."""
        if self._units is None or not self._units.rebuilds_trees:
            return
        if isinstance(event, StepStarted):
            unit = event.call.units[0]
            tree = self._trees.get(unit)
            left = tuple(other for other in self._next_of_tree if other != unit)
            self._next_of_tree = left if tree is None else tree[2]

    def values(self, table: UnitTable, chosen: Any, now_s: float) -> Floats:
        """Return the current priority of each chosen unit."""
        if self.changes != "wait":
            values: Floats = kernels.priorities(table, chosen, now_s, self.function)
        else:
            waits_s = now_s - table["head_arrived_at_s"][chosen]
            values = self._after_a_second(table, chosen) * waits_s
        if self.changes == "never":
            self._replace_shared(values, table, chosen)
        return values

    def ranking(self, now_s: float) -> Ranking:
        return self

    def priority_of(
        self, row: Any, unit: int, now_s: float, class_priorities: Sequence[float]
    ) -> float:
        """Return the priority of a unit from a row of it, as `plan` computes it, to the bit.

        Args:
            class_priorities: by class, in the network of that row.
        """
        table = np.zeros(unit + 1, dtype=UNIT)
        table[unit] = row
        return float(self.values(table, np.array([unit]), now_s)[0])

    def value(self, selectivity: float, cost_s: float, ideal_s: float) -> float:
        row = np.zeros(1, dtype=UNIT)
        row["selectivity"], row["cost_s"], row["tuple_cost_s"] = selectivity, cost_s, cost_s
        row["ideal_s"] = row["remaining_s"] = ideal_s
        row["head_arrived_at_s"], row["mean_arrived_at_s"] = -1.0, -1.0
        row["weight"] = row["pending"] = row["due"] = 1
        return float(kernels.priorities(row, np.zeros(1, dtype=np.int64), 0.0, self.function)[0])

    def rates(self, table: UnitTable, units: NDArray[np.int64], now_s: float) -> Floats | None:
        if not self._adds_up:
            return None
        values: Floats = kernels.priorities(table, units, now_s + 1.0, self.function)
        return values

    @cached_property
    def _adds_up(self) -> bool:
        """True if the priority is a numerator over C̄, so that values of segments add up."""
        steady = self.changes in ("never", "wait")
        return steady and self.value(1.0, 2.0, 1.0) == self.value(1.0, 1.0, 1.0) / 2.0

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        all_units = np.arange(len(table))
        if self.changes == "never" and not learns:
            values = self.values(table, all_units, 0.0)
            return Selection(kernels.ranked(values), kernels.rank_changed, kernels.rank_pick)
        if self.changes == "wait" and not learns:
            values = self._after_a_second(table, all_units)
            return Selection(kernels.waiting(values), kernels.wait_changed, kernels.wait_pick)
        if self._shared:
            return None
        if self.changes == "wait":
            memory = kernels.weighed(len(table), self.function)
            return Selection(memory, kernels.weight_changed, kernels.weight_pick)
        memory = kernels.valued(len(table), self.function)
        if self.changes in ("never", "queue"):
            return Selection(memory, kernels.value_changed, kernels.value_pick)
        return Selection(memory, kernels.time_changed, kernels.time_pick)

    def _after_a_second(self, table: UnitTable, chosen: Any) -> Floats:
        """Return Φ of each chosen unit: its priority once its oldest tuple has waited 1 s."""
        rows = table[chosen]
        rows["head_arrived_at_s"] = rows["mean_arrived_at_s"] = -1.0
        values: Floats = kernels.priorities(rows, np.arange(len(rows)), 0.0, self.function)
        self._replace_shared(values, table, chosen)
        return values

    def _replace_shared(self, values: Floats, table: UnitTable, chosen: Any) -> None:
        if not self._shared or self._units is None:
            return
        position_of = {int(unit): position for position, unit in enumerate(chosen)}
        for unit in self._shared:
            if unit in position_of:
                values[position_of[unit]] = self._together(self._units, table, unit)

    def _together(self, units: Units, table: UnitTable, unit: int) -> float:
        """Return the value of a unit in which several segments begin (Sharaf §3.6).

        It is that of the best segment (`max`), of all (eq 3.9), or of the priority-defining tree.
        The overhead of a call is charged to one tuple, so that the value does not change while the
        queue grows. At operator level, the segments have the measured figures of their boxes. At
        query level a call measures all its boxes together, so that the declared values of its
        segments are scaled alike; there a Φ that is split from W keeps the declared values.
        """
        row: Any = table[unit]
        call_s = float(row["overhead_s"])
        ways, ways_s = units.shapes[unit].segments, units.cost_s(unit)
        by_boxes = units.level == "operator" or units.rebuilds_trees
        if by_boxes:
            ways, ways_s, _ = self._tree(units, table, unit)
        segments = tuple(
            replace(
                segment,
                cost_s=call_s + segment.cost_s,
                ideal_s=segment.ideal_s + call_s * units.calls_of(segment.query),
            )
            for segment in ways
        )
        declared = sum(segment.selectivity for segment in segments)
        declared_s = call_s + ways_s
        measured_s = call_s + float(row["tuple_cost_s"])
        follows = not by_boxes and self.changes == "never"
        follows = follows and declared > 0 and measured_s > 0
        scale = float(row["selectivity"]) / declared * (declared_s / measured_s) if follows else 1.0
        if units.shared_priority == "max":
            best = max(
                self.value(segment.selectivity, segment.cost_s, segment.ideal_s)
                for segment in segments
            )
            return scale * best
        return scale * combined(segments, declared_s, self.value)

    def _tree(self, units: Units, table: UnitTable, unit: int) -> Tree:
        """Return the segments that count for a unit by the present figures."""
        figures = table["box_selectivity"].tobytes() + table["box_cost_s"].tobytes()
        if self._figures != figures:
            self._figures, self._trees = figures, {}
            self._graph = self._measured(units, table)
        if unit not in self._trees:
            graph, shape = self._graph or units.graph, units.shapes[unit]
            place, fed = (shape.box, shape.side), tuple[int, ...]()
            ways, cost_s = graph.ways(*place), graph.mean_cost_s(*place)
            if units.shared_priority == "pdt":
                tree = priority_tree(graph, *place, self.value)
                ways, cost_s = tree.ways, tree.cost_s
                behind = [units.shapes[reader] for reader in shape.feeds]
                unit_of = {(reader.box, reader.side): reader.number for reader in behind}
                fed = tuple(unit_of[reader] for reader in tree.readers if reader in unit_of)
            self._trees[unit] = ways, cost_s, fed
        return self._trees[unit]

    def _measured(self, units: Units, table: UnitTable) -> Graph:
        """Return the graph with the figures of the table, where they differ from the declared.

        The figures of a call are those of all its boxes, so they stand at its first box.
        """
        differs = table["box_selectivity"] != self._declared[:, 0]
        differs |= table["box_cost_s"] != self._declared[:, 1]
        figures = {}
        for unit in np.flatnonzero(differs).tolist():
            row, stages = table[unit], units.shapes[unit].stages
            places = [(stage.box, stage.side) for stage in stages]
            figures.update(dict.fromkeys(places[1:], (1.0, 0.0)))
            figures[places[0]] = float(row["box_selectivity"]), float(row["box_cost_s"])
        return units.graph.measured(figures) if figures else units.graph
