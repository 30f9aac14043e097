"""Who still holds a tuple, compiled: the last one frees its memory (BZ §2)."""

from headgate.compiled import compiled
from headgate.simulation.pointer import World
from headgate.simulation.queues import free_entry


@compiled
def release_source(world: World, worker: int, stream: int, number: int, begun_s: float) -> None:
    """Counts one holder of a source tuple less; the last one frees its memory (BZ §2)."""
    place = world.streams[stream].first + number
    world.holders[place] -= 1
    if world.holders[place] == 0:
        _free(world, worker, begun_s - world.arrivals[place], world.streams[stream].bytes)


@compiled
def release_entry(world: World, worker: int, entry: int, begun_s: float) -> None:
    slot = world.pool[entry]
    owner = slot.owner
    if owner <= -2:
        release_source(world, worker, slot.target, -2 - owner, begun_s)
        free_entry(world, entry)
        return
    world.pool[owner].holders -= 1
    if world.pool[owner].holders == 0:
        _free(world, worker, begun_s - world.pool[owner].queued_at_s, world.pool[owner].bytes)
        if owner != entry:
            free_entry(world, owner)
        free_entry(world, entry)
    elif owner != entry:
        free_entry(world, entry)


@compiled
def _free(world: World, worker_number: int, held_s: float, size_bytes: float) -> None:
    clock, worker = world.clock[0], world.workers[worker_number]
    clock.shared_area += held_s
    clock.shared_bytes_area += held_s * size_bytes
    worker.released += 1
    worker.released_bytes += size_bytes


@compiled
def drop(world: World, entry: int) -> None:
    """Takes an entry out of memory that no call will ever take: its query has gone."""
    clock, slot = world.clock[0], world.pool[entry]
    owner = slot.owner
    if owner <= -2:
        drop_source(world, slot.target, -2 - owner)
        free_entry(world, entry)
        return
    world.pool[owner].holders -= 1
    if world.pool[owner].holders == 0:
        clock.shared -= 1
        clock.shared_bytes -= world.pool[owner].bytes
        held_s = clock.now_s - world.pool[owner].queued_at_s
        clock.shared_area += held_s
        clock.shared_bytes_area += held_s * world.pool[owner].bytes
        free_entry(world, owner)
    if owner != entry:
        free_entry(world, entry)


@compiled
def drop_source(world: World, stream: int, number: int) -> None:
    """Counts one holder of a source tuple less, outside of any call."""
    clock, place = world.clock[0], world.streams[stream].first + number
    world.holders[place] -= 1
    if world.holders[place] == 0:
        held_s = clock.now_s - world.arrivals[place]
        clock.shared -= 1
        clock.shared_bytes -= world.streams[stream].bytes
        clock.shared_area += held_s
        clock.shared_bytes_area += held_s * world.streams[stream].bytes
