"""Samples of the pending tuples, one per interval of a run, compiled."""

from headgate.compiled import borrowing
from headgate.simulation.world.pointer import World


@borrowing
def note(world: World) -> float:
    """Record the pending tuples and bytes, once per interval.

    Return an instant before which there is nothing more to record: just before the interval's end.
    """
    clock = world.clock[0]
    number = int(clock.now_s / world.settings[0].sample_s)
    if number < len(world.samples) and not world.samples[number].seen:
        sample = world.samples[number]
        sample.seen = True
        sample.pending, sample.bytes = clock.pending, clock.bytes
        for class_number in range(len(world.class_pending)):
            world.class_samples[number, class_number] = world.class_pending[class_number]
    return (number + 1) * (1.0 - 1e-9) * world.settings[0].sample_s
