"""The holders of each tuple in memory, compiled: the last holder frees the tuple (BZ §2).

A tuple is in memory while a queue, a running call, or the window of a join holds it. A tuple with
several holders counts once.
"""

from headgate.compiled import compiled
from headgate.simulation.kernel.queues import free_entry, step_over
from headgate.simulation.world.pointer import World
from headgate.simulation.world.records import NONE


@compiled
def store(world: World, tuples: int) -> None:
    """Count tuples that are new in memory."""
    clock = world.clock[0]
    clock.shared += tuples
    clock.shared_max = max(clock.shared_max, clock.shared)


@compiled
def hold(world: World, entry: int, owner: int, stream: int) -> None:
    """Make an entry a holder of the owner's tuple, or of a new tuple if there is no owner."""
    slot = world.pool[entry]
    slot.owner, slot.target, slot.holders = owner, stream, 0
    if owner <= -2:
        world.holders[world.streams[stream].first - 2 - owner] += 1
        return
    if owner == NONE:
        slot.owner = entry
    world.pool[slot.owner].holders += 1


@compiled
def release_source(world: World, stream: int, number: int) -> None:
    """Remove one holder of a source tuple."""
    place = world.streams[stream].first + number
    world.holders[place] -= 1
    if world.holders[place] == 0:
        world.clock[0].shared -= 1


@compiled
def release_entry(world: World, entry: int) -> None:
    """Remove an entry as a holder of its tuple, and free the entry."""
    slot = world.pool[entry]
    owner = slot.owner
    if owner <= -2:
        release_source(world, slot.target, -2 - owner)
        free_entry(world, entry)
        return
    world.pool[owner].holders -= 1
    if world.pool[owner].holders == 0:
        world.clock[0].shared -= 1
        free_entry(world, owner)
    if owner != entry:
        free_entry(world, entry)


@compiled
def release_call(world: World, worker_number: int) -> None:
    """Release the tuples of a call that has ended. Each was in memory until it was done."""
    worker, clock = world.workers[worker_number], world.clock[0]
    stream, place = world.queues[worker.unit].stream, worker.taken
    for _ in range(worker.tuples):
        before = clock.shared
        if stream >= 0:
            done_at_s = world.left_s[world.streams[stream].first + place]
            release_source(world, stream, place)
            place = step_over(world, worker.unit, place + 1)
        else:
            slot = world.pool[place]
            owner, following = slot.owner, slot.next
            if owner <= -2:
                done_at_s = world.left_s[world.streams[slot.target].first - 2 - owner]
            else:
                done_at_s = world.pool[owner].left_at_s
            release_entry(world, place)
            place = following
        if clock.shared < before:
            clock.shared_area -= clock.now_s - done_at_s
