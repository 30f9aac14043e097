"""Clusters of units whose priority is Φ W: few priorities a decision, compiled (Sharaf §3.3.2).

Cluster 0 has the units with Φ = 0, which may wait for ever; the others follow in ascending order.
"""

from typing import Any

import numpy as np

from headgate.compiled import borrowing, inlined
from headgate.model.arrays import Floats, Ints
from headgate.model.plan import ALL
from headgate.model.unit_table import UnitTable
from headgate.policies.structures import fagin
from headgate.policies.structures.cache_fetch import fetch
from headgate.policies.structures.oldest_first import OUT, clear, oldest_first, put, take
from headgate.policies.structures.selection import NOBODY
from headgate.policies.structures.single_units import measure

MOST_CLUSTERS = 1024
LARGEST_RATIO = 1e300
IN_SET = 3

DIVISION = np.dtype(
    [
        ("uniform", np.bool_),
        ("clusters", np.int64),  # asked for
        ("epsilon", np.float64),  # NaN where `clusters` says how many there are
        ("used", np.int64),  # clusters that there are, cluster 0 among them
        ("smallest", np.float64),  # Φ above 0, and the largest
        ("largest", np.float64),
        ("stale", np.bool_),
        ("together", np.bool_),  # clustered processing; then the set that was begun:
        ("next_of_set", np.int64),
        ("end_of_set", np.int64),
        ("head_of_set_s", np.float64),
    ]
)


@borrowing
def edges(largest: float, uniform: bool, clusters: int, epsilon: float, found: Floats) -> int:
    """Fills in where clusters of the domain [1, Δ] begin, and then Δ; gives their number m.

    Logarithmic cluster i covers [ε^i, ε^(i+1)] and m is log Δ / log ε; where m is given, ε follows.
    Uniform ones have equal ranges of [0, Δ], the first from 1 on.

    Args:
        epsilon: NaN where `clusters` says how many there are.

    >>> found = np.zeros(3)
    >>> edges(100.0, True, 2, np.nan, found), found.tolist()
    (2, [1.0, 50.0, 100.0])
    >>> edges(100.0, False, 0, 10.0, found), found.tolist()
    (2, [1.0, 10.0, 100.0])
    """
    count = clusters
    if epsilon > 1.0:
        # A hair less, so that Δ = 1000 and ε = 10 make three clusters whatever the rounding.
        count = int(np.ceil(np.log(largest) / np.log(epsilon) - 1e-9))
        count = max(1, min(count, len(found) - 1))
    for number in range(count + 1):
        if uniform:
            found[number] = max(1.0, largest * number / count)
        else:
            found[number] = largest ** (number / count)
            if epsilon > 1.0 and count < MOST_CLUSTERS:
                found[number] = epsilon**number
    found[count] = largest
    return count


@borrowing
def cluster(division: Any, begins: Floats, value: float) -> int:
    """Gives the cluster of a Φ: the last that begins at or below it."""
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
    """Divides units into clusters by Φ over the smallest Φ (Sharaf §3.3.2.1).

    A cluster's pseudo priority is where it begins; that of cluster 0 is 0.
    """
    smallest, largest = np.inf, 0.0
    for value in phi:
        if value > 0.0:
            smallest, largest = min(smallest, value), max(largest, value)
    ratio = min(largest / smallest, LARGEST_RATIO) if largest > 0.0 else 1.0
    to = division[0]
    to.smallest, to.largest, to.stale = smallest, largest, False
    to.used = edges(ratio, to.uniform, to.clusters, to.epsilon, begins[1:]) + 1
    for unit in range(len(phi)):
        cluster_of[unit] = cluster(division, begins, phi[unit])


def division_of(
    units: int, *, uniform: bool, clusters: int, epsilon: float, together: bool
) -> tuple[Any, Floats, Ints]:
    """Gives room for a division: what it is, where clusters begin, the cluster of each unit."""
    division = np.zeros(1, dtype=DIVISION)
    division["uniform"], division["clusters"], division["epsilon"] = uniform, clusters, epsilon
    division["together"] = together
    room = 2 + (clusters if np.isnan(epsilon) else MOST_CLUSTERS)
    return division, np.zeros(room), np.zeros(units, dtype=np.int64)


def clustered(division: Any, begins: Floats, cluster_of: Ints) -> tuple[Any, ...]:
    """Gives the memory of clusters: queues, in whose room a set's units are, and the division."""
    memory = oldest_first(cluster_of, len(begins)), division
    _rebuild(memory, begins, cluster_of)
    return memory


@borrowing
def _rebuild(memory: Any, begins: Floats, cluster_of: Ints) -> None:
    """Puts every unit into the queue of its new cluster; a set that was begun goes on as it was."""
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
    chosen, largest, examined = NOBODY, 0.0, 0
    for number in range(division[0].used):
        if queues[number].front >= 0:
            value = queues[number].weight * (now_s - queues[number].front_s)
            examined += 1
            if chosen < 0 or value > largest:
                chosen, largest = number, value
            elif value == largest and queues[number].front < queues[chosen].front:
                chosen = number
    if chosen < 0:
        return NOBODY, 0, examined
    unit = _first_of_set(memory, chosen)
    # Who is the first now is fetched: the cluster is chosen again in a few decisions.
    fetch(table, max(queues[chosen].front, 0))
    return unit, ALL, examined


@inlined
def _first_of_set(memory: Any, number: int) -> int:
    """Gives the first unit of a cluster; all that wait on the same tuple follow (§3.3.2.3)."""
    queued, division = memory
    nodes, queues, members = queued
    of, queue = division[0], queues[number]
    if not of.together:
        return queue.front
    of.head_of_set_s, count = queue.front_s, 0
    while queue.front >= 0 and queue.front_s == of.head_of_set_s:
        unit = queue.front
        take(queued, unit)
        nodes[unit].place = IN_SET
        members[count] = unit
        count += 1
    of.next_of_set, of.end_of_set = 1, count
    nodes[members[0]].place = OUT
    return members[0]


@inlined
def _next_of_set(memory: Any) -> int:
    """Gives the next unit of the set that still waits on the set's tuple, −1 if there is none."""
    (nodes, _, members), division = memory
    of = division[0]
    for place in range(of.next_of_set, of.end_of_set):
        node = nodes[members[place]]
        if node.place != OUT and node.key == of.head_of_set_s:
            of.next_of_set = place + 1
            if node.place == IN_SET:
                node.place = OUT
            return members[place]
    return NOBODY


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
        return NOBODY, 0, examined
    unit = _first_of_set(inner, chosen)
    _seat(queues, lists, chosen)
    return unit, ALL, examined


@borrowing
def _seat(queues: Any, lists: Any, number: int) -> None:
    front_s = queues[number].front_s if queues[number].front >= 0 else np.inf
    fagin.seat(lists, number, front_s)


@borrowing
def _learn(memory: Any, learning: Any, table: UnitTable, unit: int) -> None:
    """Brings Φ and the cluster of a unit up to date; the division, when its ends have moved."""
    figures, begins, _ = learning
    (nodes, _, _), division = memory
    before, of = figures[0][unit], division[0]
    if not measure(figures, table, unit):
        return
    value = figures[0][unit]
    within = value == 0.0 or of.smallest <= value <= of.largest
    if within and before != of.smallest and before != of.largest:
        nodes[unit].home = cluster(division, begins, value)
    else:
        of.stale = True


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
