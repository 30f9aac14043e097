"""Round robin: queries in turn, or boxes in turn (Aurora §5.1, Sharaf §3.7)."""

from collections.abc import Sequence
from math import isnan, nan
from typing import Any

import numpy as np

from headgate.compiled import compiled
from headgate.model.arrays import Floats, Ints
from headgate.model.events import Measured, StepFinished, StepStarted
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.model.plan import ALL, Step
from headgate.policies.interface import Policy, Selection, State
from headgate.policies.registry import register
from headgate.policies.structures.selection import NO_UNIT


@register(
    "rr-box",
    objective="fairness by turns",
    paper="Aurora §5.1",
    starves=False,
    use="You want a plain baseline: every box in turn, whatever its cost and selectivity.",
    avoid="Anything matters besides giving every box its turn.",
)
class BoxRoundRobin(Policy):
    """Units in turn, starting after the one that was served last (Aurora §5.1).

    The papers do not say how long a turn is. Here it is one train: `quantum_s` limits it to the
    tuples that fit into that many seconds by the unit's measured cost, and at least one; 0 means
    one tuple, None means whatever the run's train size allows.

    The turn advances from the *first* unit of a fused call. If it advanced from the last one, a
    unit that reads other trains than its neighbors could be skipped forever.

    A decision examines the units whose turn it would be and that have no tuples, too: in STREAM,
    visiting them was the largest cost of round robin (CQC §3). A simulation charges `visit_s` for
    each of them.
    """

    visits_empty = True

    def __init__(self, quantum_s: float | None = None) -> None:
        if quantum_s is not None and not quantum_s >= 0:
            raise ValueError("quantum_s of 0 or more seconds")
        self.quantum_s = quantum_s
        self.fewest = 1
        if quantum_s is not None:
            self.tuples_a_step = ALL
            self.train = f"{quantum_s:g} s" if quantum_s else "1"
        self._at_query_level = True
        self._served_last = NO_UNIT

    def prepare(self, units: Units) -> None:
        self._at_query_level = units.level == "query"
        self._served_last = NO_UNIT

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        count, places = len(state.table), self.places(state.ready)
        order = state.ready[np.argsort((places - self._served_last - 1) % count)]
        return [Step(int(unit), self.tuples(state.table[unit])) for unit in order]

    def hear(self, event: StepStarted | StepFinished | Measured) -> None:
        if isinstance(event, StepStarted):
            first = np.array(event.call.units[:1], dtype=np.int64)
            self._served_last = int(self.places(first)[0])

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        all_units = np.arange(len(table))
        return Selection(self.ring(units, self.places(all_units)), turn_changed, turn_pick)

    def take_at_least(self, tuples: int) -> None:
        """Set the smallest number of tuples per turn, however short the turn is."""
        if not (isinstance(tuples, int) and 1 <= tuples <= ALL):
            raise ValueError("tuples of 1 or more a call")
        self.fewest, self.train = tuples, str(tuples)

    def places(self, chosen: Ints) -> Ints:
        """Return the position of each chosen unit in the round."""
        return chosen

    def slice_s(self, unit: int) -> float:
        """Return how long a unit's turn lasts; NaN if only the train size limits it."""
        return nan if self.quantum_s is None else self.quantum_s

    def tuples(self, row: np.void) -> int:
        """Return how many tuples a turn of this unit takes."""
        slice_s = self.slice_s(int(row["unit"]))
        if isnan(slice_s):
            return ALL
        cost_s = row["tuple_cost_s"] if self._at_query_level else row["box_cost_s"]
        return max(self.fewest, tuples_within(slice_s, float(row["overhead_s"]), float(cost_s)))

    def ring(self, units: Units, places: Ints) -> tuple[Any, ...]:
        """Return the memory of the compiled selection."""
        order = np.empty(len(places), dtype=np.int64)
        order[places] = np.arange(len(places))
        slices_s = np.array([self.slice_s(unit) for unit in range(len(units))], dtype=np.float64)
        manner = np.array([units.level == "query", self.fewest], dtype=np.int64)
        last = np.full(1, NO_UNIT, dtype=np.int64)
        return (
            places.astype(np.int64),
            order,
            ready_bits(len(places)),
            last,
            slices_s,
            manner,
        )


@register(
    "rr",
    objective="fairness by turns",
    paper="Aurora §5.1, Sharaf §3.7",
    starves=False,
    use="All queries matter equally and nothing is known about their costs.",
    avoid="The mean response matters: a costly query gets as many turns as a cheap one.",
)
class RoundRobin(BoxRoundRobin):
    """Queries in turn, starting after the one that was served last; inside a query, by rate.

    At query level a turn is one call of the query. At operator level it is one call of the box of
    that query with the highest output rate S / C̄ (RB, Sharaf §3.1.1.1). A box that several queries
    share has its turn with the most important of them.

    The papers do not say how long a turn is. Here it is one train: `quantum_s` limits it to the
    tuples that fit into that many seconds by the unit's measured cost, and at least one; 0 means
    one tuple, None means whatever the run's train size allows.
    """

    def __init__(self, quantum_s: float | None = None) -> None:
        super().__init__(quantum_s)
        self._queries = np.zeros(0, dtype=np.int64)
        self._count = 0

    def prepare(self, units: Units) -> None:
        super().prepare(units)
        self._queries = np.array([shape.query for shape in units.shapes], dtype=np.int64)
        self._count = len(units.network.paths)

    def places(self, chosen: Ints) -> Ints:
        return chosen if self._at_query_level else self._queries[chosen]

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        if self._at_query_level:
            return super().plan(state, now_s)
        distances = (self.places(state.ready) - self._served_last - 1) % self._count
        order = state.ready[np.lexsort((-output_rates(state.table[state.ready]), distances))]
        return [Step(int(unit), self.tuples(state.table[unit])) for unit in order]

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        if units.level == "query":
            return super().selection(units, table, learns=learns)
        queries = np.array([shape.query for shape in units.shapes], dtype=np.int64)
        members = np.argsort(queries, kind="stable")
        begins = np.searchsorted(queries[members], np.arange(len(units.network.paths) + 1))
        _, _, _, last, slices_s, manner = self.ring(units, np.arange(len(units)))
        memory = (
            queries, members, begins, np.zeros(len(units), dtype=np.bool_),
            ready_bits(len(units.network.paths)), last, slices_s, manner,
        )  # fmt: skip
        return Selection(memory, query_changed, query_pick)


@register(
    "taat",
    objective="none: the baseline that trains are measured against",
    paper="Aurora §5.5",
    starves=False,
    use="You want to show what a decision and a box call for every single tuple cost.",
    avoid="Work must get done: each tuple pays for a decision and a box call.",
)
def tuple_at_a_time(tuples: int = 1) -> Policy:
    """Boxes in turn, one tuple per call: TAAT (Aurora Figure 9).

    Args:
        tuples: how many tuples a call takes; 1 in the paper. Where a call costs as much as
            thousands of tuples, as on Spark, one tuple per call is not a useful baseline.
    """
    policy = BoxRoundRobin(quantum_s=0.0)
    policy.take_at_least(tuples)
    policy.tuples_a_step = tuples
    return policy


@register(
    "baat",
    objective="fewer box calls than tuple by tuple",
    paper="Aurora §5.2, §5.5",
    starves=False,
    use="You want to show what superboxes gain over trains alone.",
    avoid="Many boxes have few tuples each: every box needs its own decision.",
)
def box_at_a_time() -> Policy:
    """Boxes in turn, the whole queue per call: BAAT (Aurora Figure 9)."""
    policy = BoxRoundRobin()
    policy.tuples_a_step = ALL
    return policy


def output_rates(rows: UnitTable) -> Floats:
    """Return S / C̄ of each row, −∞ if it was never measured."""
    rates = np.full(len(rows), -np.inf)
    measured = (rows["cost_s"] > 0) & ~np.isnan(rows["selectivity"])
    np.divide(rows["selectivity"], rows["cost_s"], out=rates, where=measured)
    return rates


def ready_bits(count: int) -> Any:
    """Return one bit for each position of a round, with none ready."""
    return np.zeros(count // 64 + 1, dtype=np.uint64)


def tuples_within(slice_s: float, overhead_s: float, cost_s: float) -> int:
    """Return how many tuples fit into a call of `slice_s`, at least one: o + n c ≤ slice."""
    if not cost_s > 0:
        return 1
    count = (slice_s - overhead_s) / cost_s
    if count >= ALL:
        return ALL
    return int(count) if count >= 1 else 1


_tuples_within = compiled(tuples_within)


@compiled
def next_ready(bits: Any, place: int) -> int:
    """Return the first ready position from `place` on, around the ring; −1 if there is none."""
    index, skipped = (place >> 6) % len(bits), np.uint64(place & 63)
    word = (bits[index] >> skipped) << skipped
    for _ in range(len(bits) + 1):
        if word:
            position = index << 6
            while not word & np.uint64(1):
                word >>= np.uint64(1)
                position += 1
            return position
        index = (index + 1) % len(bits)
        word = bits[index]
    return NO_UNIT


@compiled
def set_ready(bits: Any, place: int, ready: bool) -> None:
    bit = np.uint64(1) << np.uint64(place & 63)
    if ready:
        bits[place >> 6] |= bit
    else:
        bits[place >> 6] &= ~bit


@compiled
def tuples_of_turn(slices_s: Floats, manner: Ints, table: UnitTable, unit: int) -> int:
    if np.isnan(slices_s[unit]):
        return ALL
    row = table[unit]
    cost_s = row.tuple_cost_s if manner[0] else row.box_cost_s
    return max(manner[1], _tuples_within(slices_s[unit], row.overhead_s, cost_s))


@compiled
def turn_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    places, _, bits, _, _, _ = memory
    set_ready(bits, places[unit], table[unit].ready)


@compiled
def turn_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    _, order, bits, last, slices_s, manner = memory
    place = next_ready(bits, last[0] + 1)
    if place < 0:
        return NO_UNIT, 0, 0
    visited = 1 + (place - last[0] - 1) % len(order)
    last[0] = place
    unit = order[place]
    return unit, tuples_of_turn(slices_s, manner, table, unit), visited


@compiled
def query_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    queries, members, begins, ready, bits, _, _, _ = memory
    ready[unit] = table[unit].ready
    query = queries[unit]
    any_ready = False
    for position in range(begins[query], begins[query + 1]):
        any_ready |= ready[members[position]]
    set_ready(bits, query, any_ready)


@compiled
def query_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    _, members, begins, ready, bits, last, slices_s, manner = memory
    query = next_ready(bits, last[0] + 1)
    if query < 0:
        return NO_UNIT, 0, 0
    chosen, best, examined = NO_UNIT, -np.inf, (query - last[0] - 1) % (len(begins) - 1)
    last[0] = query
    for position in range(begins[query], begins[query + 1]):
        unit = members[position]
        if ready[unit]:
            row = table[unit]
            rate = row.selectivity / row.cost_s if row.cost_s > 0 else -np.inf
            examined += 1
            if chosen < 0 or rate > best:
                chosen = unit
                best = -np.inf if np.isnan(rate) else rate
    return chosen, tuples_of_turn(slices_s, manner, table, chosen), examined
