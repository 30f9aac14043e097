"""What is pending, noted once in every interval of a run, compiled."""

from headgate.compiled import borrowing
from headgate.simulation.world.pointer import World


@borrowing
def note(world: World) -> float:
    """Notes what is pending, where nobody has done so in the present interval.

    Gives an instant until which there is nothing more to note, a hair before the interval's end.
    """
    clock = world.clock[0]
    number = int(clock.now_s / world.settings[0].sample_s)
    if number < len(world.samples) and not world.samples[number].seen:
        sample = world.samples[number]
        sample.seen = True
        sample.pending, sample.bytes = clock.pending, clock.bytes
        for each in range(len(world.class_pending)):
            world.class_samples[number, each] = world.class_pending[each]
    return (number + 1) * (1.0 - 1e-9) * world.settings[0].sample_s
