"""Freshness-aware scheduling of multiple continuous queries (Sharaf §4.2–4.4)."""

from collections.abc import Sequence
from math import expm1, frexp, log1p
from typing import Any

import numpy as np

from headgate.compiled import borrowing
from headgate.model.arrays import Floats, Ints
from headgate.model.network.unit_table import Unit, UnitTable
from headgate.model.network.units import Units
from headgate.model.plan import ALL, Step
from headgate.policies.interface import Policy, Selection, State
from headgate.policies.registry import register
from headgate.policies.structures.bit_sets import bit_sets, following, put, take
from headgate.policies.structures.heaps import NONE, joined, nodes_of, without
from headgate.policies.structures.selection import NO_UNIT

OUT, IN = 0, 1
OCTAVES, CLASSES_AN_OCTAVE = 128, 64
CLASSES = OCTAVES * CLASSES_AN_OCTAVE
NOT_MEASURED = -1.0


@register(
    "fas",
    objective="mean freshness of the output streams",
    paper="Sharaf eq 4.11, 4.12, 4.15",
    use="Users look at the latest result of each query, and bursts make some of them stale.",
    avoid="Every result matters: a query with a long queue waits, since it stays stale longest.",
)
class FreshnessAware(Policy):
    """Chance that an output is stale, over the time to refresh it: (1 − (1 − S)^N) / (N C̄).

    The priority is multiplied by the weight of the query (eq 4.12). N is raised to the power of β:
    β = 1 ranks by freshness alone, β = 0 by output rate alone, S / C̄ (eq 4.15). A step takes all
    pending tuples, as in the derivation (§4.2.1). S is at most 1 here; the thesis has no joins in
    this chapter.

    Args:
        beta: β, from 0 to 1.
    """

    tuples_a_step = ALL

    def __init__(self, beta: float = 1.0) -> None:
        if not 0 <= beta <= 1:
            raise ValueError("beta between 0 and 1")
        self.beta = float(beta)

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        values = np.empty(len(state.ready))
        fill_freshness(state.table, state.ready, self.beta, values)
        return list(map(Step, state.ready[np.argsort(-values, kind="stable")].tolist()))

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        words, levels = bit_sets(1, CLASSES)
        roots = np.full(CLASSES, NONE, dtype=np.int64)
        nodes = nodes_of(np.arange(len(table)))
        memory = nodes, roots, words, levels, np.full(1, self.beta), np.zeros(1, dtype=np.int64)
        return Selection(memory, class_changed, class_pick)


@borrowing
def stale_chance(selectivity: float, tuples: float) -> float:
    """Return the chance that at least one of N tuples passes: 1 − (1 − S)^N (Sharaf §4.2.2).

    Computed so that a small S is not lost beside 1, and so that a single tuple gives exactly S.
    """
    return selectivity if tuples == 1.0 else -expm1(tuples * log1p(-selectivity))


@borrowing
def freshness(unit: Unit, beta: float) -> float:
    """Return the priority α (1 − (1 − S)^(N^β)) / (N^β C̄); −1 if the unit was never measured."""
    tuples, selectivity = float(unit.pending) ** beta, min(unit.selectivity, 1.0)
    if not (unit.selectivity >= 0.0 and unit.cost_s > 0.0 and tuples > 0.0):
        return NOT_MEASURED
    if selectivity == 1.0:
        return unit.weight / (tuples * unit.cost_s)
    return unit.weight * stale_chance(selectivity, tuples) / (tuples * unit.cost_s)


@borrowing
def fill_freshness(table: UnitTable, units: Ints, beta: float, values: Floats) -> None:
    for position in range(len(units)):
        values[position] = freshness(table[units[position]], beta)


@borrowing
def priority_class(value: float) -> int:
    """Return the bucket of a priority, 0 for the largest; 64 per factor of two (Sharaf §4.4.1)."""
    if not value > 0.0:
        return CLASSES - 1
    mantissa, exponent = frexp(value)
    rank = int((exponent + OCTAVES // 2 + 2.0 * mantissa - 1.0) * CLASSES_AN_OCTAVE)
    return CLASSES - 1 - min(max(rank, 0), CLASSES - 1)


@borrowing
def class_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    """Move a unit to the bucket of its current priority; no other unit's is computed."""
    nodes, roots, words, levels, beta, computed = memory
    node, row, key = nodes[unit], table[unit], 0.0
    if row.ready:
        key = -freshness(row, beta[0])
        computed[0] += 1
        if node.place == IN and node.key == key:
            return
    if node.place == IN:
        left = without(nodes, roots[node.queue], unit)
        roots[node.queue], node.place = left, OUT
        if left < 0:
            take(words, levels, 0, node.queue)
    if row.ready:
        node.key, node.place, node.queue = key, IN, priority_class(-key)
        if roots[node.queue] < 0:
            put(words, levels, 0, node.queue)
        roots[node.queue] = joined(nodes, roots[node.queue], unit)


@borrowing
def class_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    """Pick the best unit of the first bucket that is not empty."""
    _, roots, words, levels, _, computed = memory
    first, examined = following(words, levels, 0, 0), computed[0]
    computed[0] = 0
    return (NO_UNIT, 0, examined) if first < 0 else (roots[first], ALL, examined)
