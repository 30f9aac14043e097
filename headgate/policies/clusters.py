"""Clusters of units whose priority is Φ W: few priorities a decision, compiled (Sharaf §3.3.2).

Cluster 0 has the units with Φ = 0, which may wait for ever; the others follow in ascending order.
"""

from typing import Any

import numpy as np

from headgate.compiled import compiled
from headgate.model.events import Floats, Ints
from headgate.model.plan import ALL
from headgate.model.unit_table import UNIT, UnitTable
from headgate.policies import fagin
from headgate.policies.heaps import OUT
from headgate.policies.oldest_first import clear, oldest_first, put, take
from headgate.policies.selection import NOBODY, wait_changed, wait_pick, waiting

MOST_CLUSTERS = 1024
IN_SET = -3
UNIFORM, CLUSTERS, TOGETHER, STALE, USED = 0, 1, 2, 3, 4
EPSILON, SMALLEST, LARGEST = 0, 1, 2


@compiled
def edges(largest: float, uniform: bool, clusters: int, epsilon: float) -> Floats:
    """Gives where clusters of the domain [1, Δ] begin, and Δ.

    Logarithmic cluster i covers [ε^i, ε^(i+1)], and there are log Δ / log ε of them; where their
    number is given, ε follows. Uniform ones have equal ranges of [0, Δ], the first from 1 on.

    Args:
        epsilon: NaN where `clusters` says how many there are.

    >>> edges(100.0, True, 2, np.nan).tolist(), edges(100.0, False, 2, np.nan).tolist()
    ([1.0, 50.0, 100.0], [1.0, 10.0, 100.0])
    """
    count = clusters
    if epsilon > 1.0:
        # A hair less, so that Δ = 1000 and ε = 10 make three clusters whatever the rounding.
        count = int(np.ceil(np.log(largest) / np.log(epsilon) - 1e-9))
        count = max(1, min(count, MOST_CLUSTERS))
    found = np.empty(count + 1)
    for number in range(count + 1):
        if uniform:
            found[number] = max(1.0, largest * number / count)
        else:
            found[number] = largest ** (number / count)
            if epsilon > 1.0 and count < MOST_CLUSTERS:
                found[number] = epsilon**number
    found[count] = max(found[count], largest)
    return found


@compiled
def cluster(spans: Floats, begins: Floats, used: int, value: float) -> int:
    """Gives the cluster of a Φ; the pseudo priorities are where clusters begin."""
    if not value > 0.0:
        return 0
    return int(np.searchsorted(begins[2:used], value / spans[SMALLEST], side="right")) + 1


@compiled
def divide(phi: Floats, settings: Ints, spans: Floats, cluster_of: Ints, pseudo: Floats) -> None:
    """Divides units into clusters by Φ over the smallest Φ (Sharaf §3.3.2.1)."""
    smallest, largest = np.inf, 0.0
    for value in phi:
        if value > 0.0:
            smallest, largest = min(smallest, value), max(largest, value)
    spans[SMALLEST], spans[LARGEST] = smallest, largest
    ratio = largest / smallest if largest > 0.0 else 1.0
    found = edges(ratio, settings[UNIFORM] != 0, settings[CLUSTERS], spans[EPSILON])
    settings[USED] = len(found)
    pseudo[:] = 0.0
    pseudo[1 : len(found)] = found[:-1]
    for unit in range(len(phi)):
        cluster_of[unit] = cluster(spans, pseudo, settings[USED], phi[unit])


def division(
    units: int, *, uniform: bool, clusters: int, epsilon: float, together: bool
) -> tuple[Any, ...]:
    """Gives settings and room for a division: of each unit its cluster, of each its priority."""
    room = 1 + (clusters if np.isnan(epsilon) else MOST_CLUSTERS)
    settings = np.array([uniform, clusters, together, 0, 0], dtype=np.int64)
    spans = np.array([epsilon, np.inf, 0.0])
    return settings, spans, np.zeros(units, dtype=np.int64), np.zeros(room)


def measured(phi: Floats, changes: Any, function: Any) -> tuple[Any, ...]:
    """Gives Φ of all units, which of them are measured anew, and what that needs."""
    return phi.astype(np.float64), changes.astype(np.bool_), np.zeros(1, dtype=UNIT), function


@compiled
def measure(figures: Any, table: UnitTable, unit: int) -> bool:
    """Brings Φ of a unit up to date: its priority after a wait of 1 s. Says whether it changed."""
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
    """Gives the memory of a scan of all units."""
    _, ready_phi, heads_s = waiting(figures[0])
    return figures, ready_phi, heads_s


@compiled
def scan_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    figures, ready_phi, heads_s = memory
    measure(figures, table, unit)
    wait_changed((figures[0], ready_phi, heads_s), table, unit, now_s)


@compiled
def scan_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    figures, ready_phi, heads_s = memory
    return wait_pick((figures[0], ready_phi, heads_s), table, now_s)


def pruned(figures: tuple[Any, ...]) -> tuple[Any, ...]:
    """Gives the memory of Fagin's algorithm over single units."""
    numbers = np.arange(len(figures[0]))
    stale = np.ones(1, dtype=np.bool_)
    return figures, fagin.two_lists(numbers), numbers, stale


@compiled
def pruned_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    figures, lists, _, stale = memory
    if measure(figures, table, unit):
        stale[0] = True
    fagin.seat(lists, unit, table[unit].head_arrived_at_s if table[unit].ready else np.inf)


@compiled
def pruned_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    figures, lists, numbers, stale = memory
    if stale[0]:
        lists[0][:] = np.argsort(-figures[0])
        stale[0] = False
    unit, examined = fagin.best(lists, figures[0], numbers, now_s)
    return unit, ALL, examined


def clustered(figures: tuple[Any, ...], divided: tuple[Any, ...]) -> tuple[Any, ...]:
    """Gives the memory of clusters: a queue each, the set that runs together, lists for Fagin."""
    units, room = len(figures[0]), len(divided[-1])
    chosen = np.zeros(units, dtype=np.int64), np.zeros(2, dtype=np.int64), np.zeros(1)
    lists = fagin.two_lists(np.arange(room)[::-1])
    memory = figures, divided, oldest_first(units, room), chosen, lists
    _divide_anew(memory)
    return memory


@compiled
def _divide_anew(memory: Any) -> None:
    figures, (settings, spans, cluster_of, pseudo), queues, _, _ = memory
    divide(figures[0], settings, spans, cluster_of, pseudo)
    settings[STALE] = 0
    nodes = queues[0]
    places = np.empty(len(nodes), dtype=np.int64)
    members = np.zeros(len(pseudo), dtype=np.int64)
    for unit in range(len(nodes)):
        places[unit] = nodes[unit].place
        members[cluster_of[unit]] += 1
    clear(queues, members)
    for unit in range(len(nodes)):
        if places[unit] == IN_SET:
            nodes[unit].place = IN_SET
        elif places[unit] != OUT:
            put(queues, unit, cluster_of[unit], nodes[unit].key)


@compiled
def cluster_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    figures, (settings, spans, cluster_of, pseudo), queues, _, _ = memory
    phi = figures[0]
    before = phi[unit]
    if measure(figures, table, unit):
        value = phi[unit]
        bound = before == spans[SMALLEST] or before == spans[LARGEST]
        if bound or (value > 0.0 and not spans[SMALLEST] <= value <= spans[LARGEST]):
            settings[STALE] = 1
        else:
            cluster_of[unit] = cluster(spans, pseudo, settings[USED], value)
    row, node = table[unit], queues[0][unit]
    if not row.ready:
        if node.place != OUT and node.place != IN_SET:
            take(queues, unit)
        node.place = OUT
        return
    if node.place != OUT:
        same = node.key == row.head_arrived_at_s
        if same and (node.place == IN_SET or node.queue == cluster_of[unit]):
            return
        if node.place != IN_SET:
            take(queues, unit)
    put(queues, unit, cluster_of[unit], row.head_arrived_at_s)


@compiled
def cluster_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    _, (settings, _, _, pseudo), (_, _, _, fronts, fronts_s), _, _ = memory
    unit = _next_of_set(memory)
    if unit >= 0:
        return unit, ALL, 0
    if settings[STALE]:
        _divide_anew(memory)
    chosen, largest, examined = NOBODY, 0.0, 0
    for number in range(settings[USED]):
        if fronts[number] >= 0:
            value = pseudo[number] * (now_s - fronts_s[number])
            examined += 1
            tie = value == largest and chosen >= 0 and fronts[number] < fronts[chosen]
            if chosen < 0 or value > largest or tie:
                chosen, largest = number, value
    return (_first_of_set(memory, chosen), ALL, examined) if chosen >= 0 else (NOBODY, 0, examined)


@compiled
def fagin_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    nodes = memory[2][0]
    before = nodes[unit].queue
    cluster_changed(memory, table, unit, now_s)
    _seat(memory, before)
    _seat(memory, nodes[unit].queue)


@compiled
def fagin_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    _, (settings, _, _, pseudo), (_, _, _, fronts, _), _, lists = memory
    unit = _next_of_set(memory)
    if unit >= 0:
        return unit, ALL, 0
    if settings[STALE]:
        _divide_anew(memory)
        for number in range(len(pseudo)):
            _seat(memory, number)
    chosen, examined = fagin.best(lists, pseudo, fronts, now_s)
    if chosen < 0:
        return NOBODY, 0, examined
    unit = _first_of_set(memory, chosen)
    _seat(memory, chosen)
    return unit, ALL, examined


@compiled
def _seat(memory: Any, number: int) -> None:
    _, _, (_, _, _, fronts, fronts_s), _, lists = memory
    fagin.seat(lists, number, fronts_s[number] if fronts[number] >= 0 else np.inf)


@compiled
def _first_of_set(memory: Any, number: int) -> int:
    """Gives the first unit of a cluster; all that wait on the same tuple follow (§3.3.2.3)."""
    _, (settings, _, _, _), queues, (members, counts, head_s), _ = memory
    nodes, _, _, fronts, fronts_s = queues
    if not settings[TOGETHER]:
        return fronts[number]
    head_s[0], count = fronts_s[number], 0
    while fronts[number] >= 0 and fronts_s[number] == head_s[0]:
        unit = fronts[number]
        take(queues, unit)
        nodes[unit].place = IN_SET
        members[count] = unit
        count += 1
    counts[0], counts[1] = 1, count
    nodes[members[0]].place = OUT
    return members[0]


@compiled
def _next_of_set(memory: Any) -> int:
    """Gives the next unit of the set that still waits on the set's tuple, −1 if there is none."""
    _, _, (nodes, _, _, _, _), (members, counts, head_s), _ = memory
    for place in range(counts[0], counts[1]):
        unit = members[place]
        if nodes[unit].place != OUT and nodes[unit].key == head_s[0]:
            counts[0] = place + 1
            if nodes[unit].place == IN_SET:
                nodes[unit].place = OUT
            return unit
    return NOBODY
