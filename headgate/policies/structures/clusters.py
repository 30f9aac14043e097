"""Clusters of units whose priority is Φ W: few priorities per decision, compiled (Sharaf §3.3.2).

Cluster 0 has the units with Φ = 0, which may wait forever; the others follow in ascending order.
"""

from typing import Any

import numpy as np

from headgate.compiled import borrowing, inlined
from headgate.model.arrays import Floats, Ints
from headgate.model.network.unit_table import UnitTable
from headgate.model.plan import ALL
from headgate.policies.structures import fagin
from headgate.policies.structures.cache_fetch import fetch
from headgate.policies.structures.oldest_first import OUT, clear, oldest_first, put, take
from headgate.policies.structures.selection import NO_UNIT
from headgate.policies.structures.single_units import measure

MOST_CLUSTERS = 1024
LARGEST_RATIO = 1e300
IN_SET = 3

DIVISION = np.dtype(
    [
        ("uniform", np.bool_),
        ("clusters", np.int64),  # how many are requested
        ("epsilon", np.float64),  # NaN if `clusters` sets their number
        ("used", np.int64),  # how many there are, with cluster 0
        ("smallest", np.float64),  # the smallest Φ above 0
        ("largest", np.float64),  # the largest Φ
        ("stale", np.bool_),
        ("together", np.bool_),  # clustered processing; the next fields are the set that was begun
        ("next_of_set", np.int64),
        ("end_of_set", np.int64),
        ("head_of_set_s", np.float64),
    ]
)


@borrowing
def edges(largest: float, uniform: bool, clusters: int, epsilon: float, begins: Floats) -> int:
    """Fill `begins` with where clusters of the domain [1, Δ] begin, then Δ; return their number m.

    Logarithmic cluster i covers [ε^i, ε^(i+1)] and m is log Δ / log ε; if m is given, ε follows.
    Uniform clusters have equal ranges of [0, Δ], the first one from 1 on.

    Args:
        epsilon: NaN if `clusters` sets the number of clusters.

    >>> begins = np.zeros(3)
    >>> edges(100.0, True, 2, np.nan, begins), begins.tolist()
    (2, [1.0, 50.0, 100.0])
    >>> edges(100.0, False, 0, 10.0, begins), begins.tolist()
    (2, [1.0, 10.0, 100.0])
    """
    count = clusters
    if epsilon > 1.0:
        # Slightly less, so that Δ = 1000 and ε = 10 make three clusters whatever the rounding.
        count = int(np.ceil(np.log(largest) / np.log(epsilon) - 1e-9))
        count = max(1, min(count, len(begins) - 1))
    for number in range(count + 1):
        if uniform:
            begins[number] = max(1.0, largest * number / count)
        else:
            begins[number] = largest ** (number / count)
            if epsilon > 1.0 and count < MOST_CLUSTERS:
                begins[number] = epsilon**number
    begins[count] = largest
    return count


@borrowing
def cluster(division: Any, begins: Floats, value: float) -> int:
    """Return the cluster of a Φ: the last one that begins at or below it."""
    if not value > 0.0:
        return 0
    relative, low, high = value / division[0].smallest, 1, division[0].used
    while high - low > 1:
        middle = (low + high) >> 1
        if begins[middle] <= relative:
            low = middle
        else:
            high = middle
    return low


@borrowing
def divide(phi: Floats, division: Any, begins: Floats, cluster_of: Ints) -> None:
    """Divide units into clusters by Φ over the smallest Φ (Sharaf §3.3.2.1).

    A cluster's pseudo priority is where it begins; that of cluster 0 is 0.
    """
    smallest, largest = np.inf, 0.0
    for value in phi:
        if value > 0.0:
            smallest, largest = min(smallest, value), max(largest, value)
    ratio = min(largest / smallest, LARGEST_RATIO) if largest > 0.0 else 1.0
    state = division[0]
    state.smallest, state.largest, state.stale = smallest, largest, False
    state.used = edges(ratio, state.uniform, state.clusters, state.epsilon, begins[1:]) + 1
    for unit in range(len(phi)):
        cluster_of[unit] = cluster(division, begins, phi[unit])


def division_of(
    units: int, *, uniform: bool, clusters: int, epsilon: float, together: bool
) -> tuple[Any, Floats, Ints]:
    """Return arrays for a division: its record, where clusters begin, the cluster of each unit."""
    division = np.zeros(1, dtype=DIVISION)
    division["uniform"], division["clusters"], division["epsilon"] = uniform, clusters, epsilon
    division["together"] = together
    room = 2 + (clusters if np.isnan(epsilon) else MOST_CLUSTERS)
    return division, np.zeros(room), np.zeros(units, dtype=np.int64)


def clustered(division: Any, begins: Floats, cluster_of: Ints) -> tuple[Any, ...]:
    """Return the memory of clusters: the queues, with room for a set's units, and the division."""
    memory = oldest_first(cluster_of, len(begins)), division
    _rebuild(memory, begins, cluster_of)
    return memory


@borrowing
def _rebuild(memory: Any, begins: Floats, cluster_of: Ints) -> None:
    """Put every unit into the queue of its new cluster; a set that was begun stays as it is."""
    queued, _ = memory
    nodes, queues, _ = queued
    clear(queued, cluster_of)
    for number in range(len(queues)):
        queues[number].weight = begins[number]
    for unit in range(len(cluster_of)):
        node = nodes[unit]
        if node.place != OUT and node.place != IN_SET:
            put(queued, unit, node.key)


@inlined
def cluster_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    queued, _ = memory
    node, row = queued[0][unit], table[unit]
    if not row.ready:
        if node.place != OUT and node.place != IN_SET:
            take(queued, unit)
        node.place = OUT
        return
    if node.place != OUT:
        same = node.key == row.head_arrived_at_s
        if same and (node.place == IN_SET or node.queue == node.home):
            return
        if node.place != IN_SET:
            take(queued, unit)
    put(queued, unit, row.head_arrived_at_s)


@inlined
def cluster_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    (_, queues, _), division = memory
    unit = _next_of_set(memory)
    if unit >= 0:
        return unit, ALL, 0
    chosen, largest, examined = NO_UNIT, 0.0, 0
    for number in range(division[0].used):
        if queues[number].front >= 0:
            value = queues[number].weight * (now_s - queues[number].front_s)
            examined += 1
            if chosen < 0 or value > largest:
                chosen, largest = number, value
            elif value == largest and queues[number].front < queues[chosen].front:
                chosen = number
    if chosen < 0:
        return NO_UNIT, 0, examined
    unit = _first_of_set(memory, chosen)
    # Fetch the new first unit: the cluster will be chosen again in a few decisions.
    fetch(table, max(queues[chosen].front, 0))
    return unit, ALL, examined


@inlined
def _first_of_set(memory: Any, number: int) -> int:
    """Return the first unit of a cluster; under `together`, begin a set with it (§3.3.2.3).

    The set has all units of the cluster that wait on the same tuple.
    """
    queued, division = memory
    nodes, queues, members = queued
    state, queue = division[0], queues[number]
    if not state.together:
        return queue.front
    state.head_of_set_s, count = queue.front_s, 0
    while queue.front >= 0 and queue.front_s == state.head_of_set_s:
        unit = queue.front
        take(queued, unit)
        nodes[unit].place = IN_SET
        members[count] = unit
        count += 1
    state.next_of_set, state.end_of_set = 1, count
    nodes[members[0]].place = OUT
    return members[0]


@inlined
def _next_of_set(memory: Any) -> int:
    """Return the next unit of the set that still waits on the set's tuple, −1 if there is none."""
    (nodes, _, members), division = memory
    state = division[0]
    for place in range(state.next_of_set, state.end_of_set):
        node = nodes[members[place]]
        if node.place != OUT and node.key == state.head_of_set_s:
            state.next_of_set = place + 1
            if node.place == IN_SET:
                node.place = OUT
            return members[place]
    return NO_UNIT


@borrowing
def fagin_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    inner, lists = memory
    (nodes, queues, _), _ = inner
    node = nodes[unit]
    before = node.queue
    cluster_changed(inner, table, unit, now_s)
    _seat(queues, lists, before)
    if node.queue != before:
        _seat(queues, lists, node.queue)


@borrowing
def fagin_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    inner, lists = memory
    queues = inner[0][1]
    unit = _next_of_set(inner)
    if unit >= 0:
        return unit, ALL, 0
    chosen, examined = fagin.best(lists, queues, now_s)
    if chosen < 0:
        return NO_UNIT, 0, examined
    unit = _first_of_set(inner, chosen)
    _seat(queues, lists, chosen)
    return unit, ALL, examined


@borrowing
def _seat(queues: Any, lists: Any, number: int) -> None:
    front_s = queues[number].front_s if queues[number].front >= 0 else np.inf
    fagin.seat(lists, number, front_s)


@borrowing
def _learn(memory: Any, learning: Any, table: UnitTable, unit: int) -> None:
    """Update Φ and the cluster of a unit; if the ends of the division move, mark it as stale."""
    figures, begins, _ = learning
    (nodes, _, _), division = memory
    before, state = figures[0][unit], division[0]
    if not measure(figures, table, unit):
        return
    value = figures[0][unit]
    within = value == 0.0 or state.smallest <= value <= state.largest
    if within and before != state.smallest and before != state.largest:
        nodes[unit].home = cluster(division, begins, value)
    else:
        state.stale = True


@borrowing
def _divide_if_stale(memory: Any, learning: Any) -> bool:
    (phi, _, _, _), begins, cluster_of = learning
    division = memory[1]
    if not division[0].stale:
        return False
    divide(phi, division, begins, cluster_of)
    _rebuild(memory, begins, cluster_of)
    return True


@borrowing
def learning_cluster_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    inner, learning = memory
    _learn(inner, learning, table, unit)
    cluster_changed(inner, table, unit, now_s)


@borrowing
def learning_cluster_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    inner, learning = memory
    _divide_if_stale(inner, learning)
    return cluster_pick(inner, table, now_s)


@borrowing
def learning_fagin_changed(memory: Any, table: UnitTable, unit: int, now_s: float) -> None:
    inner, learning = memory
    _learn(inner[0], learning, table, unit)
    fagin_changed(inner, table, unit, now_s)


@borrowing
def learning_fagin_pick(memory: Any, table: UnitTable, now_s: float) -> tuple[int, int, int]:
    inner, learning = memory
    queues = inner[0][0][1]
    if _divide_if_stale(inner[0], learning):
        for number in range(len(queues)):
            _seat(queues, inner[1], number)
    return fagin_pick(inner, table, now_s)
