"""What only a simulation can know: the costs and outputs of tuples that still wait."""

import numpy as np

from headgate.compiled import compiled
from headgate.model.arrays import Floats
from headgate.simulation.kernel.fates import foresee
from headgate.simulation.kernel.queues import step_over
from headgate.simulation.world.pointer import World


class Forecast:
    """The future costs and outputs of waiting tuples, for policies with foresight."""

    def __init__(self, world: World) -> None:
        self._world = world

    def waiting(self, unit: int) -> tuple[Floats, Floats]:
        count = int(self._world.table["pending"][unit])
        seconds, outputs = np.empty(count), np.empty(count)
        _foresee_queue(self._world, unit, seconds, outputs)
        return seconds, outputs


@compiled
def _foresee_queue(world: World, unit: int, seconds: Floats, outputs: Floats) -> None:
    queue = world.queues[unit]
    entry, place = queue.head, queue.cursor
    for number in range(len(seconds)):
        if queue.stream >= 0:
            at_s = world.arrivals[world.streams[queue.stream].first + place]
            seconds[number], outputs[number] = foresee(world, unit, place, at_s)
            place = step_over(world, unit, place + 1)
        else:
            slot = world.pool[entry]
            seconds[number], outputs[number] = foresee(world, unit, slot.number, slot.arrived_at_s)
            entry = slot.next
