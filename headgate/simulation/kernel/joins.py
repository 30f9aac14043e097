"""Window joins in virtual time, compiled (Sharaf §2.2.1, §3.4)."""

import numpy as np

from headgate.compiled import compiled
from headgate.simulation.kernel.memory import hold, release_entry
from headgate.simulation.kernel.queues import new_entry
from headgate.simulation.world.pointer import World
from headgate.simulation.world.records import NONE
from headgate.workloads.random_hash import chance, mixed


@compiled
def push(
    world: World, top: int, position: int, arrived_at_s: float, ideal_at_s: float, number: int,
    mass: float,
) -> None:  # fmt: skip
    item = world.stack[top]
    item.target, item.number, item.mass = position, number, mass
    item.arrived_at_s, item.ideal_at_s = arrived_at_s, ideal_at_s


@compiled
def match(
    world: World, position: int, top: int, arrived_at_s: float, reached_at_s: float, number: int,
    cost_s: float, owner: int, source: int,
) -> int:  # fmt: skip
    """Insert a tuple on its side of a window join, push its matches, and return the stack's top.

    Symmetric hash join (Sharaf §2.2.1): pairs at most V apart, both ends included. Older tuples of
    the other side are pruned if this side receives its tuples in order of arrival. The output of
    another join is not in order, since a composite has the later arrival of its two tuples.
    """
    stage, seed = world.stages[position], world.settings[0].seed
    window, pool = world.windows[stage.join], world.pool
    left = stage.side == 0
    in_order = window.left_in_order if left else window.right_in_order
    other_in_order = window.right_in_order if left else window.left_in_order
    entry = new_entry(world)
    slot = pool[entry]
    slot.arrived_at_s, slot.ideal_at_s, slot.number = arrived_at_s, reached_at_s, number
    hold(world, entry, owner, source)
    if left:
        if window.left_tail == NONE:
            window.left_head = entry
        else:
            pool[window.left_tail].next = entry
        window.left_tail = entry
        window.left += 1
    else:
        if window.right_tail == NONE:
            window.right_head = entry
        else:
            pool[window.right_tail].next = entry
        window.right_tail = entry
        window.right += 1
    other = window.right_head if left else window.left_head
    while in_order and other != NONE and pool[other].arrived_at_s < arrived_at_s - window.window_s:
        old, other = other, pool[other].next
        release_entry(world, old)
        if left:
            window.right -= 1
        else:
            window.left -= 1
    if left:
        window.right_head = other
        if other == NONE:
            window.right_tail = NONE
    else:
        window.left_head = other
        if other == NONE:
            window.left_tail = NONE
    while other != NONE:
        partner = pool[other]
        if other_in_order and partner.arrived_at_s > arrived_at_s + window.window_s:
            break
        pair = mixed(number, partner.number) if left else mixed(partner.number, number)
        near = partner.arrived_at_s <= arrived_at_s + window.window_s
        near = near and partner.arrived_at_s >= arrived_at_s - window.window_s
        if near and chance(seed, pair, stage.random_key) < stage.selectivity:
            if partner.arrived_at_s <= arrived_at_s:
                ready_s = max(partner.ideal_at_s + cost_s, arrived_at_s)
                ideal_at_s = ready_s + (reached_at_s - arrived_at_s) + cost_s
            else:
                ready_s = max(reached_at_s + cost_s, partner.arrived_at_s)
                ideal_at_s = ready_s + (partner.ideal_at_s - partner.arrived_at_s) + cost_s
            together_s = max(arrived_at_s, partner.arrived_at_s)
            push(world, top, position, together_s, ideal_at_s, pair, 1.0)
            top += 1
        other = partner.next
    return top


@compiled
def forget(world: World) -> None:
    """Prune windows by the oldest tuple in the world: no composite can arrive before it."""
    clock, pool = world.clock[0], world.pool
    oldest_s = clock.now_s
    if clock.next_arrival < len(world.order):  # while workers are busy, arrivals are not admitted
        oldest_s = min(oldest_s, world.order_at_s[clock.next_arrival])
    for unit in range(len(world.queues)):
        queue = world.queues[unit]
        oldest_s = min(oldest_s, _oldest(world, queue.head))
        if queue.stream >= 0 and queue.cursor < world.streams[queue.stream].arrived:
            first = world.streams[queue.stream].first
            oldest_s = min(oldest_s, world.arrivals[first + queue.cursor])
    for number in range(len(world.workers)):
        if world.workers[number].unit != NONE:
            oldest_s = min(oldest_s, _oldest(world, world.workers[number].head))
    for number in range(len(world.windows)):
        window = world.windows[number]
        for left in (True, False):
            entry = window.left_head if left else window.right_head
            head, tail, count = NONE, NONE, 0
            while entry != NONE:
                following = pool[entry].next
                if pool[entry].arrived_at_s < oldest_s - window.window_s:
                    release_entry(world, entry)
                else:
                    if tail == NONE:
                        head = entry
                    else:
                        pool[tail].next = entry
                    tail, count = entry, count + 1
                    pool[entry].next = NONE
                entry = following
            if left:
                window.left_head, window.left_tail, window.left = head, tail, count
            else:
                window.right_head, window.right_tail, window.right = head, tail, count
    clock.forget_at = max(1024, 2 * clock.entries)


@compiled
def _oldest(world: World, entry: int) -> float:
    """Return the earliest arrival in a list of entries."""
    oldest_s = np.inf
    while entry != NONE:
        oldest_s = min(oldest_s, world.pool[entry].arrived_at_s)
        entry = world.pool[entry].next
    return oldest_s
