"""Queues of units, oldest head first: the input queue of a cluster (Sharaf §3.3.2.1).

A unit's head is the arrival of its oldest tuple. By head, a queue has three parts. Near: a run,
which is a list in order, and a heap of strays, which came too late for their place in the run. Then
days of equal length, with a list each. Beyond: all later units, in order of insertion. When nothing
is near, the next day becomes near. When all days are over, the units beyond, up to twice their mean
head, are divided into new days. A list that was filled in order, as by the heads of one stream,
becomes the run as it is.

So a unit is moved at most twice, however many units there are. A calendar queue would have to know
how long its days should be; here the length is set again each time.
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
"""How many units ahead of the current one are fetched along a trail."""

QUEUE = np.dtype(
    [
        ("front", np.int64),  # the first unit, −1 if the queue is empty
        ("front_s", np.float64),  # when its oldest tuple arrived
        ("weight", np.float64),  # set by the owner
        ("strays", np.int64),  # the heap of strays
        ("run", np.int64),  # the node where the list of the run begins
        ("beyond", np.int64),  # the node where the list beyond begins
        ("first_day", np.int64),  # the node where the list of the first day begins
        ("most_days", np.int64),
        ("trail", np.int64),  # where its trail begins
        ("trailed", np.int64),  # length of the trail
        ("most_trailed", np.int64),  # largest length of the trail
        ("days", np.int64),  # days in use
        ("day", np.int64),  # days up to this one are near
        ("begins_s", np.float64),
        ("days_per_s", np.float64),
        ("ends_s", np.float64),  # later heads are beyond
    ]
)


def oldest_first(queue_of: Ints, queues: int) -> tuple[Any, Any, Any]:
    """Return nodes, empty queues, and room: one place per unit for the owner, then the trails.

    The first nodes are the units, by number; after them come the nodes where lists begin. A list is
    a ring, so that it can be cut and joined without touching its units. In the node where it
    begins, `child` says whether the list was filled in order; `key` and `unit` are those of the
    unit that was added last. A trail has the units that were put beyond, in order: a walk through
    that list uses it to fetch ahead. Some of these units may have left since.

    Args:
        queue_of: the queue that each unit is put into.

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
    """Empty all queues; `queue_of` says which one each unit is put into from now on.

    A node's `place` still says what the unit was in: the caller puts it in again, or regards it as
    out.
    """
    nodes, queues, _ = memory
    for number in range(len(queues)):
        queues[number].most_days = 0
    for unit in range(len(queue_of)):
        node = nodes[unit]
        node.home, node.child = queue_of[unit], NONE
        queues[queue_of[unit]].most_days += 1
    ring = trail = len(queue_of)
    for number in range(len(queues)):
        queue = queues[number]
        queue.trail, queue.trailed, queue.most_trailed = trail, 0, queue.most_days
        trail += queue.most_days + 1
        queue.most_days = queue.most_days // UNITS_A_DAY + 1
        queue.run, queue.beyond, queue.first_day = ring, ring + 1, ring + 2
        ring += 2 + queue.most_days
        queue.days = queue.day = 0
        queue.front = queue.strays = NONE
    for node_number in range(len(queue_of), len(nodes)):
        nodes[node_number].next = nodes[node_number].prev = node_number
        nodes[node_number].child = True


@inlined
def put(memory: Any, unit: int, head_s: float) -> None:
    """Put a unit that is in no queue into its home queue."""
    nodes, queues, room = memory
    node, queue = nodes[unit], queues[nodes[unit].home]
    node.key, node.queue = head_s, node.home
    if queue.front < 0:
        queue.ends_s, queue.days, queue.day, queue.trailed = head_s, 0, 0, 0
        _append(nodes, queue.run, unit)
    elif head_s > queue.ends_s:
        _append_beyond(nodes, queue, room, unit)
    else:
        day = _day(queue, head_s)
        if day > queue.day:
            _append(nodes, queue.first_day + day - 1, unit)
        else:
            _draw_near(nodes, queue, unit)
    if (
        queue.front < 0
        or head_s < queue.front_s
        or (head_s == queue.front_s and unit < queue.front)
    ):
        queue.front, queue.front_s = unit, head_s


@inlined
def take(memory: Any, unit: int) -> None:
    """Remove a unit from its queue."""
    nodes, queues, room = memory
    node, queue = nodes[unit], queues[nodes[unit].queue]
    if node.place == STRAY:
        queue.strays = without(nodes, queue.strays, unit)
    else:
        nodes[node.prev].next, nodes[node.next].prev = node.next, node.prev
    node.place = OUT
    if queue.front == unit:
        if nodes[queue.run].next == queue.run and queue.strays < 0:
            _open(nodes, queue, room)
        _settle(nodes, queue)


@inlined
def _settle(nodes: Any, queue: Any) -> None:
    """Find the first unit of a queue among those that are near."""
    front, stray = nodes[queue.run].next, queue.strays
    if front == queue.run or (stray >= 0 and comes_before(nodes, stray, front)):
        front = stray
    queue.front = front
    if front >= 0:
        queue.front_s = nodes[front].key
        fetch(nodes, max(nodes[front].next, 0))  # usually the next first unit


@borrowing
def _open(nodes: Any, queue: Any, room: Any) -> None:
    """Move units near, one day after the other, until a unit is near or the queue is empty."""
    while nodes[queue.run].next == queue.run and queue.strays < 0:
        while (
            queue.day < queue.days
            and nodes[queue.first_day + queue.day].next == queue.first_day + queue.day
        ):
            queue.day += 1
        if queue.day < queue.days:
            queue.day += 1
            _fetch_days(nodes, queue)
            _become_run(nodes, queue, queue.first_day + queue.day - 1)
        elif nodes[queue.beyond].next == queue.beyond:
            return
        elif nodes[queue.beyond].child:
            queue.days = queue.day = queue.trailed = 0
            queue.ends_s = nodes[nodes[queue.beyond].prev].key
            _become_run(nodes, queue, queue.beyond)
        else:
            _share_out(nodes, queue, room)


@borrowing
def _fetch_days(nodes: Any, queue: Any) -> None:
    """Fetch one unit of each of the next days: the nearer the day, the later in its list.

    So the unit that links to it was fetched when the day before was opened.
    """
    for ahead in range(min(UNITS_A_DAY, queue.days - queue.day), 0, -1):
        ring = queue.first_day + queue.day - 1 + ahead
        node = nodes[ring].next
        for _ in range(UNITS_A_DAY - ahead):
            if node != ring:
                node = nodes[node].next
        fetch(nodes, node)


@borrowing
def _share_out(nodes: Any, queue: Any, room: Any) -> None:
    """Divide the units beyond into days, up to twice their mean head: so at least half of them."""
    earliest_s, latest_s, total_s, count = np.inf, -np.inf, 0.0, 0
    node, ahead, end = (
        nodes[queue.beyond].next,
        queue.trail + AHEAD,
        queue.trail + queue.most_trailed,
    )
    while node != queue.beyond:
        fetch(nodes, room[min(ahead, end)])
        key, node, ahead = nodes[node].key, nodes[node].next, ahead + 1
        if key < np.inf:
            earliest_s, latest_s = min(earliest_s, key), max(latest_s, key)
            total_s += key - queue.ends_s
            count += 1
    if count == 0:
        earliest_s = latest_s = np.inf
    queue.begins_s, queue.days_per_s = earliest_s, 0.0
    queue.days, queue.day = min(queue.most_days, count // UNITS_A_DAY + 1), 0
    mean_s = 0.0
    if count > 0:
        mean_s = max(0.0, total_s / count - (earliest_s - queue.ends_s))
    queue.ends_s = min(latest_s, earliest_s + 2.0 * mean_s)
    if queue.ends_s > earliest_s:
        queue.days_per_s = queue.days / (queue.ends_s - earliest_s)
    node = nodes[queue.beyond].next
    nodes[queue.beyond].next = nodes[queue.beyond].prev = queue.beyond
    queue.trailed = 0
    while node != queue.beyond:
        after, key = nodes[node].next, nodes[node].key
        if key <= queue.ends_s:
            _append(nodes, queue.first_day + _day(queue, key) - 1, node)
        else:
            _append_beyond(nodes, queue, room, node)
        node = after


@inlined
def _day(queue: Any, head_s: float) -> int:
    """Return the number of a head's day, from 1; a later head never has a smaller number."""
    day = (head_s - queue.begins_s) * queue.days_per_s
    return min(int(day) + 1, queue.days) if day > 0.0 else min(1, queue.days)


@borrowing
def _become_run(nodes: Any, queue: Any, ring: int) -> None:
    """Make a list near, when nothing else is; a list in order becomes the run without a walk."""
    first, last = nodes[ring].next, nodes[ring].prev
    nodes[ring].next = nodes[ring].prev = ring
    if nodes[ring].child:
        nodes[queue.run].next, nodes[queue.run].prev = first, last
        nodes[queue.run].key, nodes[queue.run].unit = nodes[ring].key, nodes[ring].unit
        nodes[first].prev = nodes[last].next = queue.run
        return
    node = first
    while node != ring:
        after = nodes[node].next
        _draw_near(nodes, queue, node)
        node = after


@inlined
def _draw_near(nodes: Any, queue: Any, node: int) -> None:
    if nodes[queue.run].prev == queue.run or comes_before(nodes, queue.run, node):
        _append(nodes, queue.run, node)
    else:
        nodes[node].place = STRAY
        nodes[node].next = nodes[node].prev = NONE
        queue.strays = joined(nodes, queue.strays, node)


@inlined
def _append_beyond(nodes: Any, queue: Any, room: Any, node: int) -> None:
    _append(nodes, queue.beyond, node)
    room[queue.trail + queue.trailed] = node
    queue.trailed = min(queue.trailed + 1, queue.most_trailed)


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
