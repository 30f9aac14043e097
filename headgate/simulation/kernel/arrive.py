"""Arrivals in virtual time, compiled."""

from headgate.compiled import compiled
from headgate.simulation.kernel.fates import foresee
from headgate.simulation.kernel.memory import store
from headgate.simulation.kernel.queues import append, join_queue, new_entry, refresh, sheds
from headgate.simulation.world.pointer import World


@compiled
def admit(world: World) -> bool:
    """Admit every tuple that has arrived by now. Return False if the pool is too small."""
    clock, settings = world.clock[0], world.settings[0]
    while clock.next_arrival < len(world.order):
        at_s = world.order_at_s[clock.next_arrival]
        if at_s > clock.now_s:
            break
        stream_number = world.order[clock.next_arrival]
        stream = world.streams[stream_number]
        if clock.entries + stream.reader_end - stream.reader_first > len(world.pool):
            return False
        number, holders = stream.arrived, 0
        stream.arrived += 1
        clock.next_arrival += 1
        for link in range(stream.reader_first, stream.reader_end):
            unit = world.links[link]
            queue, row = world.queues[unit], world.table[unit]
            dropped = settings.shed_s > 0.0 and queue.active and sheds(world, unit, number, at_s)
            if dropped:
                queue.shed += 1
                clock.shed += 1
            if dropped or not queue.active:
                if queue.cursor == number:  # a running call has taken all tuples before it
                    queue.cursor = number + 1
                continue
            holders += 1
            if queue.stream >= 0:
                if row.pending == 0:
                    queue.cursor = number
                queue.seen_s = at_s
                join_queue(world, unit, at_s, 1.0)
            else:
                entry = new_entry(world)
                slot = world.pool[entry]
                slot.arrived_at_s = slot.ideal_at_s = slot.queued_at_s = at_s
                slot.number, slot.mass, slot.owner, slot.holders = number, 1.0, -2 - number, 0
                slot.target = stream_number
                append(world, unit, entry)
            if settings.foresight:
                seconds, outputs = foresee(world, unit, number, at_s)
                row.pending_s += seconds
                row.pending_outputs += outputs
            refresh(world, unit)
        clock.pending_area += holders * (clock.now_s - at_s)
        world.holders[stream.first + number] = holders
        if holders > 0:
            clock.shared_area += clock.now_s - at_s
            store(world, 1)
    return True
