"""Queues of queries that go, compiled."""

from headgate.compiled import compiled
from headgate.simulation.kernel.memory import release_entry, release_source
from headgate.simulation.kernel.queues import step_over
from headgate.simulation.world.pointer import World
from headgate.simulation.world.records import NONE


@compiled
def clear(world: World, unit: int) -> None:
    """Empty the queue of a unit whose queries are gone. A running call is not interrupted."""
    queue, row, clock = world.queues[unit], world.table[unit], world.clock[0]
    running, mass, arrived_sum_s, known_s, known_outputs = 0, 0.0, 0.0, 0.0, 0.0
    for number in range(len(world.workers)):
        worker = world.workers[number]
        if worker.unit == unit:
            running, mass, arrived_sum_s = worker.tuples, worker.mass, worker.arrived_sum_s
            known_s, known_outputs = worker.known_s, worker.known_outputs
    gone, held_s = row.pending - running, 0.0
    if queue.stream >= 0:
        stream, place = world.streams[queue.stream], queue.cursor
        for _ in range(gone):
            held_s += clock.now_s - world.arrivals[stream.first + place]
            release_source(world, queue.stream, place)
            place = step_over(world, unit, place + 1)
        queue.cursor = stream.arrived
    while queue.head != NONE:
        entry = queue.head
        queue.head = world.pool[entry].next
        held_s += clock.now_s - world.pool[entry].queued_at_s
        release_entry(world, entry)
    queue.tail = NONE
    queue.pending_area += held_s
    clock.bytes_area += held_s * row.bytes_in
    clock.pending -= gone
    clock.bytes -= gone * row.bytes_in
    world.class_pending[row.query_class] -= gone
    row.pending, row.due = running, min(row.due, running)
    row.amount, queue.arrived_sum_s = mass, arrived_sum_s
    if world.settings[0].foresight:
        row.pending_s, row.pending_outputs = known_s, known_outputs
