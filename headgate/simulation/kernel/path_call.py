"""One box call over a path, compiled: which tuples pass, and when each of them leaves."""

import numpy as np

from headgate.compiled import compiled
from headgate.model.arrays import Floats, Ints
from headgate.workloads.random_hash import chance


@compiled
def run_train(
    first: int,
    end: int,
    costs_s: Floats,
    selectivities: Floats,
    operators: Ints,
    seed: int,
    fates: "np.typing.NDArray[np.int8]",
    departs_s: Floats,
    passed: Ints,
) -> tuple[int, float]:
    """Run tuples first, ..., end − 1 through a path. Return how many pass, and the seconds spent.

    The numbers of the tuples that pass are written to `passed`, their departures to `departs_s`.
    A tuple pays for every operator that it reaches. If `fates` is not empty, it fixes the outcome
    of every tuple: 1 passes, 0 is dropped by the last operator. Otherwise the outcome is random,
    by (seed, tuple, operator).
    """
    spent_s, count = 0.0, 0
    for number in range(first, end):
        alive = True
        for position in range(len(costs_s)):
            spent_s += costs_s[position]
            if len(fates):
                alive = fates[number] == 1 or position < len(costs_s) - 1
            elif selectivities[position] < 1.0:
                alive = chance(seed, number, operators[position]) < selectivities[position]
            if not alive:
                break
        if alive:
            departs_s[count] = spent_s
            passed[count] = number
            count += 1
    return count, spent_s
