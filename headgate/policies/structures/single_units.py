"""Priorities Φ W of single units, compiled: all are computed, or those that can be the largest.

Φ is computed again where figures change, so that the product equals that of a plan to the bit.
"""

from typing import Any

import numpy as np

from headgate.compiled import borrowing
from headgate.model.arrays import Floats
from headgate.model.network.unit_table import UNIT, UnitTable
from headgate.model.plan import ALL
from headgate.policies.structures import fagin
from headgate.policies.structures.selection import wait_changed, wait_pick, waiting


def measured(phi: Floats, changes: Any, function: Any) -> tuple[Any, ...]:
    """Return Φ of all units, which of them change, and what is needed to compute Φ again."""
    return phi.astype(np.float64), changes.astype(np.bool_), np.zeros(1, dtype=UNIT), function


@borrowing
def measure(figures: Any, table: UnitTable, unit: int) -> bool:
    """Update Φ of a unit, its priority after a wait of 1 s, and return True if it changed."""
    phi, changes, row, function = figures
    if not changes[unit]:
        return False
    row[0] = table[unit]
    row[0].head_arrived_at_s = row[0].mean_arrived_at_s = -1.0
    value = function(row[0], 0.0)
    if not 0.0 < value < np.inf:
        value = 0.0
    before, phi[unit] = phi[unit], value
    return bool(before != value)


def scanned(figures: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the memory of a scan of all units."""
    _, ready_phi, heads_s = waiting(figures[0])
    return figures, ready_phi, heads_s


@borrowing
def scan_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    figures, ready_phi, heads_s = memory
    measure(figures, table, unit)
    wait_changed((figures[0], ready_phi, heads_s), table, unit, now_s)


@borrowing
def scan_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    figures, ready_phi, heads_s = memory
    return wait_pick((figures[0], ready_phi, heads_s), table, now_s)


def pruned(figures: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the memory of Fagin's algorithm over single units."""
    by_weight = np.argsort(-figures[0], kind="stable")
    items = np.zeros(len(by_weight), dtype=[("front", np.int64), ("weight", np.float64)])
    items["front"], items["weight"] = np.arange(len(by_weight)), figures[0]
    return figures, fagin.two_lists(by_weight), items


@borrowing
def pruned_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    figures, lists, items = memory
    if measure(figures, table, unit):
        items[unit].weight = figures[0][unit]
        fagin.weigh(lists, items, unit)
    fagin.seat(lists, unit, table[unit].head_arrived_at_s if table[unit].ready else np.inf)


@borrowing
def pruned_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    _, lists, items = memory
    unit, examined = fagin.best(lists, items, now_s)
    return unit, ALL, examined
