"""Queues of units, the oldest head first: what a cluster's input queue is (Sharaf §3.3.2.1).

A queue has three parts, by the arrival of a unit's oldest tuple. Near: a run in its order, and a
heap of strays that came too late for their place in the run. Then days, unsorted, of equal length.
Beyond: all that is later. When nothing is near, the next day is; when all days are over, those of
beyond that are earlier than twice the mean get days of their own, as many as there are units.

So each unit is moved three times, however many there are, and heads that arrive in order are never
compared with more than one other. A calendar queue would need the length of its days to be known.
"""

from typing import Any

import numpy as np

from headgate.compiled import compiled
from headgate.model.events import Ints
from headgate.policies.heaps import NONE, OUT, comes_before, joined, nodes_of, without

STRAY = -2

QUEUE = np.dtype(
    [
        ("first_day", np.int64),  # of its days among those of all queues
        ("most_days", np.int64),
        ("days", np.int64),  # in use
        ("day", np.int64),  # days up to this one are near
        ("begins_s", np.float64),
        ("days_per_s", np.float64),
        ("ends_s", np.float64),  # later heads are beyond
        ("strays", np.int64),
    ]
)


def oldest_first(units: int, queues: int) -> tuple[Any, ...]:
    """Gives empty queues for units, each of which is in one of them or in none.

    Of the arrays, `fronts` and `fronts_s` are for the reader: the first unit of each queue, −1 where
    it is empty, and the arrival of its oldest tuple.

    >>> memory = oldest_first(3, 1)
    >>> for unit, head_s in enumerate((2.0, 1.0, 1.0)):
    ...     put(memory, unit, 0, head_s)
    >>> take(memory, 1)
    >>> _, _, _, fronts, fronts_s = memory
    >>> int(fronts[0]), float(fronts_s[0])
    (2, 1.0)
    """
    links = np.full((2 * queues + units + queues, 2), NONE, dtype=np.int32)
    memory = (
        nodes_of(units),
        links,
        np.zeros(queues, dtype=QUEUE),
        np.full(queues, NONE, dtype=np.int64),
        np.zeros(queues),
    )
    clear(memory, np.full(queues, units // queues, dtype=np.int64))
    return memory


@compiled
def clear(memory: Any, members: Ints) -> None:
    """Empties all queues; `members` says how many units are to be expected in each."""
    nodes, links, queues, fronts, _ = memory
    first = 2 * len(queues)
    for queue in range(len(queues)):
        queues[queue].first_day, queues[queue].most_days = first, members[queue] + 1
        first += members[queue] + 1
        queues[queue].days = queues[queue].day = 0
        queues[queue].ends_s = -np.inf
        queues[queue].strays = fronts[queue] = NONE
    for place in range(len(links)):
        links[place, 0] = links[place, 1] = NONE
    for unit in range(len(nodes)):
        nodes[unit].place = OUT
        nodes[unit].next = nodes[unit].prev = nodes[unit].child = NONE


@compiled
def put(memory: Any, unit: int, queue: int, head_s: float) -> None:
    """Puts a unit that is in no queue into one."""
    nodes, links, queues, fronts, fronts_s = memory
    node, of = nodes[unit], queues[queue]
    node.key, node.queue = head_s, queue
    front = fronts[queue]
    if front < 0:
        of.ends_s, of.days, of.day = head_s, 0, 0
        _append(nodes, links, queue, unit)
    elif head_s > of.ends_s:
        _append(nodes, links, len(queues) + queue, unit)
    else:
        day = _day(of, head_s)
        if day > of.day:
            _append(nodes, links, of.first_day + day - 1, unit)
        else:
            _near(memory, unit, queue)
    if front < 0 or comes_before(nodes, unit, front):
        fronts[queue], fronts_s[queue] = unit, head_s


@compiled
def take(memory: Any, unit: int) -> None:
    """Takes a unit out of its queue."""
    nodes, links, queues, fronts, _ = memory
    node = nodes[unit]
    queue = node.queue
    if node.place == STRAY:
        queues[queue].strays = without(nodes, queues[queue].strays, unit)
    else:
        _unlink(nodes, links, unit)
    node.place = OUT
    if fronts[queue] == unit:
        _settle(memory, queue)


@compiled
def _settle(memory: Any, queue: int) -> None:
    """Finds the first unit of a queue; opens days until there is one."""
    nodes, links, queues, fronts, fronts_s = memory
    of = queues[queue]
    while True:
        front, stray = links[queue, 0], of.strays
        if front < 0 or (stray >= 0 and comes_before(nodes, stray, front)):
            front = stray
        if front >= 0:
            fronts[queue], fronts_s[queue] = front, nodes[front].key
            return
        while of.day < of.days and links[of.first_day + of.day, 0] < 0:
            of.day += 1
        if of.day < of.days:
            place = of.first_day + of.day
            of.day += 1
            _empty_into_near(memory, place, queue)
        elif links[len(queues) + queue, 0] >= 0:
            _share_out(memory, queue)
        else:
            fronts[queue] = NONE
            return


@compiled
def _share_out(memory: Any, queue: int) -> None:
    """Gives days to what lies beyond, up to twice the mean: so to at least half of it."""
    nodes, links, queues, _, _ = memory
    of, beyond = queues[queue], len(queues) + queue
    earliest_s, latest_s, total_s, count = np.inf, -np.inf, 0.0, 0
    unit, before_s = links[beyond, 0], of.ends_s
    while unit >= 0:
        key = nodes[unit].key
        earliest_s, latest_s = min(earliest_s, key), max(latest_s, key)
        if key < np.inf:
            total_s += key - before_s
            count += 1
        unit = nodes[unit].next
    of.days = of.day = 0
    of.ends_s = latest_s
    if earliest_s == latest_s:
        _empty_into_near(memory, beyond, queue)
        return
    mean_s = max(0.0, total_s / count - (earliest_s - before_s))
    ends_s = min(latest_s, earliest_s + 2.0 * mean_s)
    of.begins_s, of.ends_s = earliest_s, ends_s
    of.days = max(1, min(of.most_days, count))
    of.days_per_s = of.days / max(ends_s - earliest_s, 1e-300)
    unit = links[beyond, 0]
    while unit >= 0:
        after, key = nodes[unit].next, nodes[unit].key
        if key <= ends_s:
            _unlink(nodes, links, unit)
            _append(nodes, links, of.first_day + _day(of, key) - 1, unit)
        unit = after


@compiled
def _day(of: Any, head_s: float) -> int:
    """Gives the number of a head's day, from 1; never a smaller one for a later head."""
    day = (head_s - of.begins_s) * of.days_per_s
    return min(int(day) + 1, of.days) if day > 0.0 else min(1, of.days)


@compiled
def _empty_into_near(memory: Any, place: int, queue: int) -> None:
    nodes, links, _, _, _ = memory
    unit = links[place, 0]
    links[place, 0] = links[place, 1] = NONE
    while unit >= 0:
        after = nodes[unit].next
        _near(memory, unit, queue)
        unit = after


@compiled
def _near(memory: Any, unit: int, queue: int) -> None:
    nodes, links, queues, _, _ = memory
    last = links[queue, 1]
    if last < 0 or comes_before(nodes, last, unit):
        _append(nodes, links, queue, unit)
    else:
        nodes[unit].place = STRAY
        nodes[unit].next = nodes[unit].prev = NONE
        queues[queue].strays = joined(nodes, queues[queue].strays, unit)


@compiled
def _append(nodes: Any, links: Any, place: int, unit: int) -> None:
    last = links[place, 1]
    nodes[unit].place, nodes[unit].prev, nodes[unit].next = place, last, NONE
    if last >= 0:
        nodes[last].next = unit
    else:
        links[place, 0] = unit
    links[place, 1] = unit


@compiled
def _unlink(nodes: Any, links: Any, unit: int) -> None:
    node = nodes[unit]
    if node.prev >= 0:
        nodes[node.prev].next = node.next
    else:
        links[node.place, 0] = node.next
    if node.next >= 0:
        nodes[node.next].prev = node.prev
    else:
        links[node.place, 1] = node.prev
