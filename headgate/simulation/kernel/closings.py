"""Windows of aggregates in virtual time, compiled: when they close, and what comes out.

A result of a window by time comes out at the window's end, or when the last of its tuples is done
(Sharaf §2.2.2, §3.5). Until then the clock waits for tuples that are still on their way. A result
of a window by tuples comes out with the tuple that completes it.
"""

import numpy as np

from headgate.compiled import compiled
from headgate.simulation.kernel.memory import store
from headgate.simulation.kernel.outputs import output
from headgate.simulation.kernel.queues import append, new_entry, refresh, step_over
from headgate.simulation.world.pointer import World
from headgate.simulation.world.records import NONE


@compiled
def take_in(
    world: World, number: int, arrived_at_s: float, done_at_s: float, ideal_at_s: float
) -> int:
    """Add a tuple to an aggregate.

    Return the number of the window by tuples that it completes, or NONE. Windows by time are
    completed by the clock.
    """
    closing = world.closings[number]
    closing.tuples += 1
    if closing.slide_tuples == 0:
        finish(world, number, arrived_at_s, done_at_s, ideal_at_s)
        return NONE
    completes = closing.tuples % closing.slide_tuples == 0
    return closing.tuples // closing.slide_tuples - 1 if completes else NONE


@compiled
def finish(
    world: World, number: int, arrived_at_s: float, done_at_s: float, ideal_at_s: float
) -> None:
    """Update how late a tuple's windows by time are, once it is taken in or dropped on the way.

    The second column is how late they would be if nothing else ran.
    """
    closing = world.closings[number]
    window = int(arrived_at_s / closing.slide_s)
    while True:
        due_at_s, place = (window + 1) * closing.slide_s, closing.first + window
        ahead = due_at_s - closing.range_s > arrived_at_s
        if ahead or place >= closing.end or max(done_at_s, ideal_at_s) <= due_at_s:
            return
        world.late_s[place, 0] = max(world.late_s[place, 0], done_at_s - due_at_s)
        world.late_s[place, 1] = max(world.late_s[place, 1], ideal_at_s - due_at_s)
        window += 1


@compiled
def finish_all(
    world: World, position: int, arrived_at_s: float, done_at_s: float, ideal_at_s: float
) -> None:
    """Note that a tuple was dropped at a stage, for the windows of all aggregates behind it."""
    stage = world.stages[position]
    for link in range(stage.closing_first, stage.closing_end):
        finish(world, world.links[link], arrived_at_s, done_at_s, ideal_at_s)


@compiled
def close_all(world: World) -> bool:
    """Close all windows by time that are due, and note when the next one is.

    Return False if there is no room for the results.
    """
    clock, next_s = world.clock[0], np.inf
    for number in range(len(world.closings)):
        if not close(world, number):
            return False
        due_at_s = world.closings[number].due_at_s
        if due_at_s > clock.now_s:
            next_s = min(next_s, due_at_s)
    clock.closes_at_s = next_s
    return True


@compiled
def close_behind(world: World, unit: int) -> bool:
    """Close the windows that have waited for tuples of a unit. Return False if there is no room."""
    queue = world.queues[unit]
    for link in range(queue.closing_first, queue.closing_end):
        if not close(world, world.links[link]):
            return False
    return True


@compiled
def close(world: World, number: int) -> bool:
    """Close an aggregate's windows that are due and complete. Return False if there is no room."""
    closing, clock = world.closings[number], world.clock[0]
    while closing.due_at_s <= clock.now_s and not _waits(world, number):
        fills = closing.fill_end - closing.fill_first
        results = closing.query_end - closing.query_first
        if clock.entries + fills > len(world.pool):
            return False
        if world.settings[0].keep and 3 * (clock.kept + results) > len(world.kept):
            return False
        _emit(world, number)
        closing.window += 1
        closing.due_at_s = (closing.window + 1) * closing.slide_s
    return True


@compiled
def _waits(world: World, number: int) -> bool:
    """Return True if a tuple of the next window may still come, from a unit or an aggregate."""
    closing = world.closings[number]
    from_s = -np.inf if closing.behind_join else closing.due_at_s - closing.range_s
    for link in range(closing.before_first, closing.before_end):
        if world.closings[world.links[link]].due_at_s < closing.due_at_s:
            return True
    for link in range(closing.unit_first, closing.unit_end):
        if _has_between(world, world.links[link], from_s, closing.due_at_s):
            return True
    return False


@compiled
def _has_between(world: World, unit: int, from_s: float, to_s: float) -> bool:
    """Return True if a tuple that waits or runs at a unit arrived within [from, to)."""
    queue, row = world.queues[unit], world.table[unit]
    head_s = row.head_arrived_at_s
    if row.pending == 0 or (queue.in_order and head_s >= to_s):
        return False
    if from_s <= head_s < to_s:
        return True
    place, entry, running = queue.cursor, queue.head, 0
    for number in range(len(world.workers)):
        if world.workers[number].unit == unit:
            running = world.workers[number].tuples
            place = world.workers[number].taken
    if queue.stream >= 0:
        stream = world.streams[queue.stream]
        while place < stream.arrived and world.arrivals[stream.first + place] < to_s:
            if world.arrivals[stream.first + place] >= from_s:
                return True
            place = step_over(world, unit, place + 1)
        return False
    for part in range(2):
        member = place if part == 0 else entry
        left = running if part == 0 else row.pending - running
        while left > 0 and member != NONE:
            if from_s <= world.pool[member].arrived_at_s < to_s:
                return True
            member = world.pool[member].next
            left -= 1
    return False


@compiled
def _emit(world: World, number: int) -> None:
    """Put out the result of an aggregate's next window."""
    closing, clock = world.closings[number], world.clock[0]
    place, due_at_s = closing.first + closing.window, closing.due_at_s
    left_at_s = ideal_at_s = due_at_s
    if place < closing.end:
        left_at_s, ideal_at_s = due_at_s + world.late_s[place, 0], due_at_s + world.late_s[place, 1]
    for link in range(closing.query_first, closing.query_end):
        output(world, world.links[link], due_at_s, ideal_at_s, left_at_s, 1.0)
    holders = 0
    for link in range(closing.fill_first, closing.fill_end):
        holders += world.queues[world.links[link]].active
    owner = NONE
    for link in range(closing.fill_first, closing.fill_end):
        target = world.links[link]
        if not world.queues[target].active:
            continue
        entry = new_entry(world)
        slot = world.pool[entry]
        slot.arrived_at_s, slot.ideal_at_s, slot.queued_at_s = due_at_s, ideal_at_s, left_at_s
        slot.number, slot.mass, slot.target = closing.window, 1.0, target
        if owner == NONE:
            owner, slot.holders = entry, holders
            store(world, 1)
            clock.shared_area += clock.now_s - left_at_s
        slot.owner = owner
        append(world, target, entry)
        clock.pending_area += clock.now_s - left_at_s
        refresh(world, target)
