"""The cost of a decision as boxes are added: buckets and clusters against examining every box.

Every box reads its own stream and always has tuples. A decision serves the oldest tuple of a box;
meanwhile another tuple arrives at a random box. A queue that would run empty gets its next tuple at
once. A box is served once a second on average, however many boxes there are, so it waits long
enough for its bucket to change.

The loop is compiled and calls the selection as the kernel does: `changed` for the box that a tuple
reached, `pick`, and `changed` when the step starts and when it ends. As in the loop of plain
worlds, references to arrays are not counted: a count is a locked instruction, and waits for every
earlier store that is still on its way to memory. The loop then runs again with the same picks and
no selection; the cost of a decision is the difference, in CPU time.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bars import Measurement
from headgate.compiled import taking_functions
from headgate.model.arrays import Floats, Ints
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.unit_table import UnitTable, unit_table
from headgate.model.network.units import Units, units_of
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.policies import Policy, Selection, policy_named

SEED = 1
TWICE = 2.0
"""How many times more a decision may cost among the most boxes than among the fewest."""
CYCLE_S = 1.0
ROOM = 8
"""Tuples that fit into a queue; any more are dropped."""
GRAPHS = 64
FULL = (1_000, 10_000, 100_000)
QUICK = (1_000, 10_000)
SCANNED = 200_000_000
"""Units that the exact policies examine in a measurement."""


def contenders() -> Iterator[tuple[str, Policy, bool]]:
    """Yield a name, the policy, and whether the policy examines every box."""
    yield "qos-bucketed", policy_named("qos-bucketed"), False
    yield "bsd, log clusters", policy_named("bsd", search="log", clustered=True), False
    yield "qos, exact", policy_named("qos"), True
    yield "bsd, exact", policy_named("bsd"), True


@dataclass
class Boxes:
    """The queues of boxes: a ring of arrival times per box, and the unit table.

    Args:
        now_s: an array of one element.
    """

    table: UnitTable
    arrived_at_s: Floats
    heads: Ints
    sums_s: Floats
    now_s: Floats

    def copy(self) -> "Boxes":
        return Boxes(*(array.copy() for array in self.arrays()))

    def arrays(self) -> tuple[Any, ...]:
        return self.table, self.arrived_at_s, self.heads, self.sums_s, self.now_s


def measurements(sizes: tuple[int, ...], repeats: int) -> Iterator[Measurement]:
    """Yield the nanoseconds of a decision by policy and number of boxes, then their growth."""
    costs_s: dict[str, list[float]] = {}
    for count in sizes:
        began_s = time.perf_counter()
        units = units_of(network(count))
        rows = unit_table(units)
        built_s = time.perf_counter() - began_s
        for name, policy, exact in contenders():
            print(f"{name}, {count} boxes", file=sys.stderr, flush=True)
            decisions = max(1_000, SCANNED // count) if exact else max(200_000, 2 * count)
            decision_s, turn_s, examined = a_decision_s(units, rows, policy, decisions, repeats)
            costs_s.setdefault(name, []).append(decision_s)
            yield Measurement(
                what=f"{name}: a decision among {count:,} boxes",
                measured=decision_s * 1e9, unit="ns",
                figures={
                    "boxes": count, "decisions": decisions, "with_the_loop_ns": turn_s * 1e9,
                    "examined_a_decision": examined, "network_built_s": built_s,
                },
            )  # fmt: skip
    for name, _, exact in contenders():
        yield Measurement(
            what=f"{name}: growth from {sizes[0]:,} to {sizes[-1]:,} boxes",
            measured=costs_s[name][-1] / costs_s[name][0], unit="times",
            bar=None if exact else TWICE, at_most=True,
        )  # fmt: skip


def a_decision_s(
    units: Units, rows: UnitTable, policy: Policy, decisions: int, repeats: int
) -> tuple[float, float, float]:
    """Return the seconds of a decision and of a whole turn of the loop, and the units examined."""
    boxes = full_boxes(rows)
    policy.prepare(units)
    selection = policy.selection(units, boxes.table, learns=False)
    assert selection is not None
    picks, places = np.zeros(decisions, dtype=np.int64), drawn_places(len(units), decisions)
    for unit in range(len(units)):
        selection.changed(selection.memory, boxes.table, unit, 0.0)
    with_s, without_s, examined = [], [], 0
    for repeat in range(1 + repeats):  # the first run compiles, and mixes the boxes
        before = boxes.copy()
        began_s = time.process_time()
        examined = _decide(boxes, selection, places, picks)
        between_s = time.process_time()
        _replay(before, places, picks)
        ended_s = time.process_time()
        assert np.array_equal(before.arrived_at_s, boxes.arrived_at_s), (
            "the replay must serve the same tuples"
        )
        if repeat:
            with_s.append(between_s - began_s)
            without_s.append(ended_s - between_s)
    turn_s = min(with_s) / decisions
    return turn_s - min(without_s) / decisions, turn_s, examined / decisions


def network(count: int) -> Network:
    """Return boxes that differ in cost and selectivity, each with a stream and one of the graphs.

    A graph is level for one to two cycles and then falls. So a box that was served lets others go
    first until its next tuple is about to lose QoS.
    """
    random = np.random.default_rng(SEED)
    level_s = CYCLE_S * random.uniform(1.0, 2.0, GRAPHS)
    falls_s = CYCLE_S * random.uniform(0.5, 2.0, GRAPHS)
    graphs = [
        QoSGraph(((0.0, 1.0), (level, 1.0), (level + falls, 0.0)))
        for level, falls in zip(level_s.tolist(), falls_s.tolist(), strict=True)
    ]
    costs_s = CYCLE_S / count * 2.0 ** random.integers(-2, 3, count)
    selectivities = random.integers(1, 11, count) / 10
    streams, paths = [], []
    for number in range(count):
        streams.append(Stream(name=f"s{number}", format="headgate", schema="value INT"))
        query = Query(
            name=f"q{number}", sql=f"SELECT * FROM s{number}", query_class="all",
            qos=graphs[number % GRAPHS],
        )  # fmt: skip
        box = Operator(
            kind="select", cost_s=float(costs_s[number]), selectivity=float(selectivities[number])
        )
        paths.append(Path(query=query, stream=streams[-1].name, operators=(box,)))
    return Network(tuple(streams), (QueryClass(name="all", priority=1.0),), tuple(paths))


def full_boxes(rows: UnitTable) -> Boxes:
    """Return boxes with one tuple each, which arrived at a random time of the last cycle."""
    table, count = rows.copy(), len(rows)
    arrived_at_s = np.zeros((count, ROOM))
    arrived_at_s[:, 0] = -CYCLE_S * np.random.default_rng(SEED).random(count)
    first_s = arrived_at_s[:, 0]
    table["ready"], table["pending"], table["amount"] = True, 1, 1.0
    table["head_arrived_at_s"] = table["mean_arrived_at_s"] = first_s
    return Boxes(table, arrived_at_s, np.zeros(count, np.int64), first_s.copy(), np.zeros(1))


def drawn_places(count: int, decisions: int) -> Ints:
    return np.random.default_rng(SEED).integers(0, count, decisions)


def _decide(boxes: Boxes, selection: Selection, places: Ints, picks: Ints) -> int:
    parts = selection.memory, selection.changed, selection.pick
    return int(_serve(*boxes.arrays(), places, picks, *parts, CYCLE_S / len(boxes.table)))


def _replay(boxes: Boxes, places: Ints, picks: Ints) -> None:
    memory = (np.zeros(1, dtype=np.int64), picks)
    gap_s = CYCLE_S / len(boxes.table)
    _serve(*boxes.arrays(), places, np.zeros_like(picks), memory, _no_change, _as_before, gap_s)


@taking_functions
def _no_change(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    pass


@taking_functions
def _as_before(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    position, picks = memory
    unit = picks[position[0]]
    position[0] += 1
    return unit, 1, 0


@taking_functions
def _serve(
    table: UnitTable, arrived_at_s: Floats, heads: Ints, sums_s: Floats, clock_s: Floats,
    places: Ints, picks: Ints, memory: Any, changed: Any, pick: Any, gap_s: float,
) -> int:  # fmt: skip
    """Decide as often as there are places; return how many priorities were computed."""
    examined, now_s = 0, clock_s[0]
    for step in range(len(picks)):
        _arrive(table, arrived_at_s, heads, sums_s, places[step], now_s)
        changed(memory, table, places[step], now_s)
        unit, _, looked = pick(memory, table, now_s)
        examined += looked
        picks[step] = unit
        table[unit].ready = False
        changed(memory, table, unit, now_s)
        now_s += gap_s
        _leave(table, arrived_at_s, heads, sums_s, unit, now_s)
        table[unit].ready = True
        changed(memory, table, unit, now_s)
    clock_s[0] = now_s
    return examined


@taking_functions
def _arrive(
    table: UnitTable, arrived_at_s: Floats, heads: Ints, sums_s: Floats, unit: int, now_s: float
) -> None:
    row = table[unit]
    if row.pending == ROOM:
        return
    arrived_at_s[unit, (heads[unit] + row.pending) % ROOM] = now_s
    row.pending += 1
    row.amount += 1.0
    sums_s[unit] += now_s
    row.mean_arrived_at_s = sums_s[unit] / row.pending


@taking_functions
def _leave(
    table: UnitTable, arrived_at_s: Floats, heads: Ints, sums_s: Floats, unit: int, now_s: float
) -> None:
    row = table[unit]
    sums_s[unit] -= arrived_at_s[unit, heads[unit]]
    heads[unit] = (heads[unit] + 1) % ROOM
    row.pending -= 1
    row.amount -= 1.0
    if row.pending == 0:
        sums_s[unit] = 0.0
        _arrive(table, arrived_at_s, heads, sums_s, unit, now_s)
    row.head_arrived_at_s = arrived_at_s[unit, heads[unit]]
    row.mean_arrived_at_s = sums_s[unit] / row.pending
