"""Queues of units, the oldest head first: what a cluster's input queue is (Sharaf §3.3.2.1).

A queue has three parts, by the arrival of a unit's oldest tuple. Near: a run in its order, and a
heap of strays that came too late for their place in the run. Then days of equal length, and beyond
them all that is later, in the order of coming. When nothing is near, the next day is; when all days
are over, what lies beyond, up to twice its mean, gets days of its own. A list that has come in
order, as the heads of one stream do, becomes the run as it is.

So a unit is moved twice at the most, however many there are. A calendar queue would have to know
how long its days should be; these are set anew each time.
"""

from typing import Any

import numpy as np

from headgate.compiled import borrowing, inlined
from headgate.model.arrays import Ints
from headgate.policies.structures.cache_fetch import fetch
from headgate.policies.structures.heaps import NONE, comes_before, joined, nodes_of, without

OUT, LISTED, STRAY = 0, 1, 2
UNITS_A_DAY = 4
AHEAD = 16
"""How many units ahead of the one that is looked at are fetched along a trail."""

QUEUE = np.dtype(
    [
        ("front", np.int64),  # the first unit, −1 where the queue is empty
        ("front_s", np.float64),  # when its oldest tuple arrived
        ("weight", np.float64),  # the owner's
        ("strays", np.int64),
        ("run", np.int64),  # where the lists of the run, of beyond and of the first day begin
        ("beyond", np.int64),
        ("first_day", np.int64),
        ("most_days", np.int64),
        ("trail", np.int64),  # where its trail begins, how long it is and how long it may become
        ("trailed", np.int64),
        ("most_trailed", np.int64),
        ("days", np.int64),  # in use
        ("day", np.int64),  # days up to this one are near
        ("begins_s", np.float64),
        ("days_per_s", np.float64),
        ("ends_s", np.float64),  # later heads are beyond
    ]
)


def oldest_first(queue_of: Ints, queues: int) -> tuple[Any, Any, Any]:
    """Gives nodes, empty queues, and room: a place a unit for the owner, and behind it the trails.

    Units come first, by number, and behind them the beginnings of lists. A list is a ring, so that
    it can be cut and joined without its units; `child` of its beginning says whether it came in
    order, `key` and `unit` are those of whom was put in last. A trail has the units that were put
    beyond, in their order: who walks that list fetches ahead by it. Some of them may have gone.

    Args:
        queue_of: which queue each unit is put into.

    >>> memory = oldest_first(np.zeros(3, dtype=np.int64), 1)
    >>> for unit, head_s in enumerate((2.0, 1.0, 1.0)):
    ...     put(memory, unit, head_s)
    >>> take(memory, 1)
    >>> memory[1]["front"].tolist(), memory[1]["front_s"].tolist()
    ([2], [1.0])
    """
    units = len(queue_of)
    rings = np.full(3 * queues + units // UNITS_A_DAY, NONE)
    nodes = nodes_of(np.concatenate([np.arange(units), rings]))
    memory = nodes, np.zeros(queues, dtype=QUEUE), np.zeros(2 * units + queues, dtype=np.int64)
    clear(memory, queue_of)
    return memory


@borrowing
def clear(memory: Any, queue_of: Ints) -> None:
    """Empties all queues; `queue_of` says which one each unit is put into from now on.

    What a unit was in is still written there: the caller puts it in again, or takes it as out.
    """
    nodes, queues, _ = memory
    for queue in range(len(queues)):
        queues[queue].most_days = 0
    for unit in range(len(queue_of)):
        node = nodes[unit]
        node.home, node.child = queue_of[unit], NONE
        queues[queue_of[unit]].most_days += 1
    ring = trail = len(queue_of)
    for queue in range(len(queues)):
        of = queues[queue]
        of.trail, of.trailed, of.most_trailed = trail, 0, of.most_days
        trail += of.most_days + 1
        of.most_days = of.most_days // UNITS_A_DAY + 1
        of.run, of.beyond, of.first_day = ring, ring + 1, ring + 2
        ring += 2 + of.most_days
        of.days = of.day = 0
        of.front = of.strays = NONE
    for each in range(len(queue_of), len(nodes)):
        nodes[each].next = nodes[each].prev = each
        nodes[each].child = True


@inlined
def put(memory: Any, unit: int, head_s: float) -> None:
    """Puts a unit that is in no queue into its own."""
    nodes, queues, room = memory
    node, of = nodes[unit], queues[nodes[unit].home]
    node.key, node.queue = head_s, node.home
    if of.front < 0:
        of.ends_s, of.days, of.day, of.trailed = head_s, 0, 0, 0
        _append(nodes, of.run, unit)
    elif head_s > of.ends_s:
        _append_beyond(nodes, of, room, unit)
    else:
        day = _day(of, head_s)
        if day > of.day:
            _append(nodes, of.first_day + day - 1, unit)
        else:
            _draw_near(nodes, of, unit)
    if of.front < 0 or head_s < of.front_s or (head_s == of.front_s and unit < of.front):
        of.front, of.front_s = unit, head_s


@inlined
def take(memory: Any, unit: int) -> None:
    """Takes a unit out of its queue."""
    nodes, queues, room = memory
    node, of = nodes[unit], queues[nodes[unit].queue]
    if node.place == STRAY:
        of.strays = without(nodes, of.strays, unit)
    else:
        nodes[node.prev].next, nodes[node.next].prev = node.next, node.prev
    node.place = OUT
    if of.front == unit:
        if nodes[of.run].next == of.run and of.strays < 0:
            _open(nodes, of, room)
        _settle(nodes, of)


@inlined
def _settle(nodes: Any, of: Any) -> None:
    """Finds the first unit of a queue among those that are near."""
    front, stray = nodes[of.run].next, of.strays
    if front == of.run or (stray >= 0 and comes_before(nodes, stray, front)):
        front = stray
    of.front = front
    if front >= 0:
        of.front_s = nodes[front].key
        fetch(nodes, max(nodes[front].next, 0))  # who will mostly be next


@borrowing
def _open(nodes: Any, of: Any, room: Any) -> None:
    """Opens days until somebody is near, or nobody is left."""
    while nodes[of.run].next == of.run and of.strays < 0:
        while of.day < of.days and nodes[of.first_day + of.day].next == of.first_day + of.day:
            of.day += 1
        if of.day < of.days:
            of.day += 1
            _fetch_days(nodes, of)
            _become_run(nodes, of, of.first_day + of.day - 1)
        elif nodes[of.beyond].next == of.beyond:
            return
        elif nodes[of.beyond].child:
            of.days = of.day = of.trailed = 0
            of.ends_s = nodes[nodes[of.beyond].prev].key
            _become_run(nodes, of, of.beyond)
        else:
            _share_out(nodes, of, room)


@borrowing
def _fetch_days(nodes: Any, of: Any) -> None:
    """Fetches units of the next days: the first of the farthest, one more of each that is nearer.

    So what leads to a unit was fetched when the day before was opened.
    """
    for ahead in range(min(UNITS_A_DAY, of.days - of.day), 0, -1):
        ring = of.first_day + of.day - 1 + ahead
        node = nodes[ring].next
        for _ in range(UNITS_A_DAY - ahead):
            if node != ring:
                node = nodes[node].next
        fetch(nodes, node)


@borrowing
def _share_out(nodes: Any, of: Any, room: Any) -> None:
    """Gives days to what lies beyond, up to twice the mean: so to at least half of it."""
    earliest_s, latest_s, total_s, count = np.inf, -np.inf, 0.0, 0
    node, ahead, end = nodes[of.beyond].next, of.trail + AHEAD, of.trail + of.most_trailed
    while node != of.beyond:
        fetch(nodes, room[min(ahead, end)])
        key, node, ahead = nodes[node].key, nodes[node].next, ahead + 1
        if key < np.inf:
            earliest_s, latest_s = min(earliest_s, key), max(latest_s, key)
            total_s += key - of.ends_s
            count += 1
    if count == 0:
        earliest_s = latest_s = np.inf
    of.begins_s, of.days_per_s = earliest_s, 0.0
    of.days, of.day = min(of.most_days, count // UNITS_A_DAY + 1), 0
    mean_s = 0.0
    if count > 0:
        mean_s = max(0.0, total_s / count - (earliest_s - of.ends_s))
    of.ends_s = min(latest_s, earliest_s + 2.0 * mean_s)
    if of.ends_s > earliest_s:
        of.days_per_s = of.days / (of.ends_s - earliest_s)
    node = nodes[of.beyond].next
    nodes[of.beyond].next = nodes[of.beyond].prev = of.beyond
    of.trailed = 0
    while node != of.beyond:
        after, key = nodes[node].next, nodes[node].key
        if key <= of.ends_s:
            _append(nodes, of.first_day + _day(of, key) - 1, node)
        else:
            _append_beyond(nodes, of, room, node)
        node = after


@inlined
def _day(of: Any, head_s: float) -> int:
    """Gives the number of a head's day, from 1; never a smaller one for a later head."""
    day = (head_s - of.begins_s) * of.days_per_s
    return min(int(day) + 1, of.days) if day > 0.0 else min(1, of.days)


@borrowing
def _become_run(nodes: Any, of: Any, ring: int) -> None:
    """Brings a list near, where nothing is; one in order becomes the run without being walked."""
    first, last = nodes[ring].next, nodes[ring].prev
    nodes[ring].next = nodes[ring].prev = ring
    if nodes[ring].child:
        nodes[of.run].next, nodes[of.run].prev = first, last
        nodes[of.run].key, nodes[of.run].unit = nodes[ring].key, nodes[ring].unit
        nodes[first].prev = nodes[last].next = of.run
        return
    node = first
    while node != ring:
        after = nodes[node].next
        _draw_near(nodes, of, node)
        node = after


@inlined
def _draw_near(nodes: Any, of: Any, node: int) -> None:
    if nodes[of.run].prev == of.run or comes_before(nodes, of.run, node):
        _append(nodes, of.run, node)
    else:
        nodes[node].place = STRAY
        nodes[node].next = nodes[node].prev = NONE
        of.strays = joined(nodes, of.strays, node)


@inlined
def _append_beyond(nodes: Any, of: Any, room: Any, node: int) -> None:
    _append(nodes, of.beyond, node)
    room[of.trail + of.trailed] = node
    of.trailed = min(of.trailed + 1, of.most_trailed)


@inlined
def _append(nodes: Any, ring: int, node: int) -> None:
    last = nodes[ring].prev
    if last == ring:
        nodes[ring].child = True
    elif nodes[ring].child and not comes_before(nodes, ring, node):
        nodes[ring].child = False
    nodes[ring].key, nodes[ring].unit = nodes[node].key, nodes[node].unit
    nodes[node].place, nodes[node].prev, nodes[node].next = LISTED, last, ring
    nodes[last].next = nodes[ring].prev = node
