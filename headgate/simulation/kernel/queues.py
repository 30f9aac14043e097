"""Queues in virtual time, compiled: the tuples that wait, and their figures in the unit table."""

import numpy as np

from headgate.compiled import compiled
from headgate.simulation.world.pointer import World
from headgate.simulation.world.records import NONE
from headgate.workloads.random_hash import chance

SHED_LUCK = 2**50


@compiled
def touch(world: World, unit: int) -> None:
    """Mark a unit's row as changed since the last decision."""
    queue, clock = world.queues[unit], world.clock[0]
    if not queue.touched:
        queue.touched = True
        world.changed[clock.changed] = unit
        clock.changed += 1


@compiled
def refresh(world: World, unit: int) -> None:
    """Update a unit's row from its queue."""
    queue, row, settings = world.queues[unit], world.table[unit], world.settings[0]
    if queue.running:
        row.ready = False  # the rest is updated when its call ends
    elif row.pending > 0:
        if queue.stream >= 0:
            head_s = world.arrivals[world.streams[queue.stream].first + queue.cursor]
        else:
            head_s = world.pool[queue.head].arrived_at_s
        if queue.slide_s > 0.0 and head_s != row.head_arrived_at_s:
            row.deadline_at_s = (np.floor(head_s / queue.slide_s) + 1.0) * queue.slide_s
            row.due = _due(world, unit, row.deadline_at_s)
        elif queue.slide_s == 0.0:
            row.deadline_at_s = head_s + row.deadline_s
            row.due = row.pending
        row.head_arrived_at_s = head_s
        row.mean_arrived_at_s = queue.arrived_sum_s / row.pending
        tuples = min(row.pending, settings.train_tuples)
        row.cost_s = row.overhead_s / tuples + row.tuple_cost_s
        row.ready = queue.active
    else:
        queue.arrived_sum_s = 0.0
        row.amount = 0.0
        row.head_arrived_at_s = row.mean_arrived_at_s = row.deadline_at_s = np.inf
        row.due = 0
        row.cost_s = row.overhead_s + row.tuple_cost_s
        row.ready = False
        if settings.foresight:
            row.pending_s = row.pending_outputs = 0.0
    touch(world, unit)


@compiled
def refresh_all(world: World) -> None:
    """Update every row, and mark every unit as changed."""
    for unit in range(len(world.table)):
        refresh(world, unit)


@compiled
def _due(world: World, unit: int, deadline_s: float) -> int:
    """Count the pending tuples that arrived before a deadline."""
    queue, row = world.queues[unit], world.table[unit]
    count = 0
    if queue.stream >= 0:
        first = world.streams[queue.stream].first
        place = first + queue.cursor
        end = first + world.streams[queue.stream].arrived
        while place < end and world.arrivals[place] < deadline_s:
            count += 1
            place += 1
    else:
        entry = queue.head
        while entry != NONE and world.pool[entry].arrived_at_s < deadline_s:
            count += 1
            entry = world.pool[entry].next
    return min(count, row.pending)


@compiled
def sheds(world: World, unit: int, number: int, at_s: float) -> bool:
    """Return True if the shedder drops a source tuple on its way into a queue.

    Shedding by value drops the tuples that the first box is least likely to pass. Otherwise the
    choice is random.
    """
    settings, queue = world.settings[0], world.queues[unit]
    epoch = int(at_s / settings.shed_s)
    # A tuple that arrives at the start of an epoch may have been admitted before the shedder set
    # the new rate, so it belongs to the previous epoch.
    if at_s <= epoch * settings.shed_s:
        epoch -= 1
    elif at_s > (epoch + 1) * settings.shed_s:
        epoch += 1
    rate = world.shed[unit, max(0, min(epoch, world.shed.shape[1] - 1))]
    if rate <= 0.0:
        return False
    if queue.shed_value:
        return chance(settings.seed, number, queue.random_key) >= 1.0 - rate
    return chance(settings.seed, number, SHED_LUCK + unit) < rate


@compiled
def step_over(world: World, unit: int, place: int) -> int:
    """Return the first tuple at or after a place in a cursor's stream that was not shed."""
    queue = world.queues[unit]
    stream = world.streams[queue.stream]
    if world.settings[0].shed_s > 0.0:
        while place < stream.arrived and sheds(
            world, unit, place, world.arrivals[stream.first + place]
        ):
            place += 1
    return place


@compiled
def new_entry(world: World) -> int:
    clock = world.clock[0]
    entry = clock.free
    clock.free = world.pool[entry].next
    clock.entries += 1
    world.pool[entry].next = NONE
    world.pool[entry].left_at_s = -np.inf
    return entry


@compiled
def free_entry(world: World, entry: int) -> None:
    clock = world.clock[0]
    world.pool[entry].next = clock.free
    clock.free = entry
    clock.entries -= 1


@compiled
def append(world: World, unit: int, entry: int) -> None:
    """Append an entry to a unit's queue."""
    queue = world.queues[unit]
    if queue.tail == NONE:
        queue.head = entry
    else:
        world.pool[queue.tail].next = entry
    queue.tail = entry
    world.pool[entry].next = NONE
    queue.seen_s = world.pool[entry].arrived_at_s
    join_queue(world, unit, world.pool[entry].arrived_at_s, world.pool[entry].mass)


@compiled
def join_queue(world: World, unit: int, arrived_at_s: float, mass: float) -> None:
    """Count a tuple that joins a unit's queue."""
    queue, row, clock = world.queues[unit], world.table[unit], world.clock[0]
    row.pending += 1
    row.amount += mass
    queue.arrived_sum_s += arrived_at_s
    queue.pending_max = max(queue.pending_max, row.pending)
    if queue.slide_s > 0.0 and arrived_at_s < row.deadline_at_s:
        row.due += 1
    clock.pending += 1
    clock.pending_max = max(clock.pending_max, clock.pending)
    clock.bytes += row.bytes_in
    clock.bytes_max = max(clock.bytes_max, clock.bytes)
    world.class_pending[row.query_class] += 1


@compiled
def may_pass(world: World, unit: int, arrived_at_s: float) -> bool:
    """Return True if a tuple of an input of an ordered union may pass (BZ §4.1).

    It may pass if no other input can still deliver an older tuple. The bound of an empty input is
    computed on demand: the oldest tuple on its way there, or else the present instant. With idle
    waiting the bound is the last tuple that came.
    """
    queue = world.queues[unit]
    place = queue.merge_first
    while place < queue.merge_end:
        other, ahead = world.links[place], world.links[place + 1]
        bound_s = world.table[other].head_arrived_at_s
        if world.table[other].pending == 0:
            if world.settings[0].idle_waiting:
                bound_s = world.queues[other].seen_s
            else:
                bound_s = world.clock[0].now_s
                for up in range(place + 2, place + 2 + ahead):
                    bound_s = min(bound_s, world.table[world.links[up]].head_arrived_at_s)
        if arrived_at_s > bound_s:
            return False
        if arrived_at_s == bound_s and other < unit and world.table[other].pending > 0:
            return False
        place += 2 + ahead
    return True


@compiled
def open_merges(world: World) -> None:
    """Update which inputs of ordered unions are ready."""
    settings = world.settings[0]
    for link in range(settings.merge_first, settings.merge_end):
        unit = world.links[link]
        queue, row = world.queues[unit], world.table[unit]
        if row.pending == 0:
            continue
        ready = queue.active and not queue.running and may_pass(world, unit, row.head_arrived_at_s)
        if ready != row.ready:
            row.ready = ready
            touch(world, unit)
