"""Who still holds a tuple, compiled: the last one frees its memory (BZ §2).

A tuple is in memory while a queue, a call that works on it, or the window of a join holds it. What
several of them hold counts once.
"""

from headgate.compiled import compiled
from headgate.simulation.kernel.queues import free_entry, step_over
from headgate.simulation.world.pointer import World
from headgate.simulation.world.world import NONE


@compiled
def store(world: World, tuples: int) -> None:
    """Counts tuples that are new in memory."""
    clock = world.clock[0]
    clock.shared += tuples
    clock.shared_max = max(clock.shared_max, clock.shared)


@compiled
def hold(world: World, entry: int, owner: int, stream: int) -> None:
    """Makes an entry one more holder of a tuple; of a new one where it has no owner."""
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
    """Counts one holder of a source tuple less."""
    place = world.streams[stream].first + number
    world.holders[place] -= 1
    if world.holders[place] == 0:
        world.clock[0].shared -= 1


@compiled
def release_entry(world: World, entry: int) -> None:
    """Counts one holder less of the tuple that an entry stands for, and frees the entry."""
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
def release_taken(world: World, worker_number: int) -> None:
    """Lets go of the tuples of a call that has ended."""
    worker = world.workers[worker_number]
    stream, place = world.queues[worker.unit].stream, worker.taken
    for _ in range(worker.tuples):
        if stream >= 0:
            release_source(world, stream, place)
            place = step_over(world, worker.unit, place + 1)
        else:
            following = world.pool[place].next
            release_entry(world, place)
            place = following
