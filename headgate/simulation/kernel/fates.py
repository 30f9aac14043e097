"""The outcome of a tuple at a box, compiled: its cost, and how many tuples come out."""

from headgate.compiled import compiled
from headgate.simulation.world.pointer import World
from headgate.workloads.random_hash import chance


@compiled
def cost_of(world: World, position: int, number: int) -> float:
    """Return c, the cost of a stage, for one tuple."""
    stage = world.stages[position]
    return world.floats[stage.costs + number] if stage.costs >= 0 else stage.cost_s


@compiled
def copies_of(world: World, position: int, number: int, arrived_at_s: float) -> int:
    """Return how many tuples a stage makes from one: usually 0 or 1, at random."""
    stage, settings = world.stages[position], world.settings[0]
    if stage.fates >= 0:
        return int(world.floats[stage.fates + number])
    selectivity = stage.selectivity
    if stage.drift >= 0:
        interval = min(int(arrived_at_s / settings.drift_s), world.drift.shape[1] - 1)
        selectivity = world.drift[stage.drift, interval]
    whole = int(selectivity)
    rest = selectivity - whole
    if rest > 0 and chance(settings.seed, number, stage.random_key) < rest:
        whole += 1
    return whole


@compiled
def foresee(world: World, unit: int, number: int, arrived_at_s: float) -> tuple[float, float]:
    """Return the seconds that a tuple will take in one call of a unit, and its results."""
    queue = world.queues[unit]
    seconds, tuples = 0.0, 1
    for position in range(queue.first_stage, queue.first_stage + queue.stages):
        seconds += tuples * cost_of(world, position, number)
        tuples *= copies_of(world, position, number, arrived_at_s)
        if tuples == 0:
            break
    return seconds, float(tuples)
