"""Least squares with coefficients of 0 or more."""

import numpy as np

from headgate.model.arrays import Floats

SWEEPS, CLOSE = 2_000, 1e-9


def least_squares(gram: Floats, target: Floats) -> Floats:
    """Gives the x of 0 or more that minimises ‖A x − y‖², from AᵀA and Aᵀy.

    One coordinate after the other is brought to its best value while the others stay; what would
    go below 0 stops there. The sum of squares is convex, so this ends at the minimum.

    >>> a, y = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([2.0, 1.0])
    >>> least_squares(a.T @ a, a.T @ y).round(6).tolist()
    [1.5, 0.0]
    """
    scale = np.sqrt(np.diag(gram))
    used = np.flatnonzero(scale > 0)
    scale = scale[used]
    unit = gram[np.ix_(used, used)] / np.outer(scale, scale)
    wanted = target[used] / scale
    found, slope = np.zeros(len(used)), -wanted
    for _ in range(SWEEPS):
        most = 0.0
        for at in range(len(used)):
            step = max(-found[at], -slope[at])
            if step:
                found[at] += step
                slope += step * unit[at]
                most = max(most, abs(step))
        if most <= CLOSE * (1.0 + float(found.max(initial=0.0))):
            break
    solution = np.zeros(len(target))
    solution[used] = found / scale
    return solution
