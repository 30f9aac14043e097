"""Least squares with non-negative coefficients."""

import numpy as np

from headgate.model.arrays import Floats

SWEEPS, CLOSE = 2_000, 1e-9


def least_squares(gram: Floats, target: Floats) -> Floats:
    """Return the x ≥ 0 that minimizes ‖A x − y‖², from AᵀA and Aᵀy.

    Coordinate descent: one coordinate after the other is set to its best value while the others
    stay, but not below 0. The sum of squares is convex, so this ends at the minimum.

    >>> a, y = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([2.0, 1.0])
    >>> least_squares(a.T @ a, a.T @ y).round(6).tolist()
    [1.5, 0.0]
    """
    scale = np.sqrt(np.diag(gram))
    used = np.flatnonzero(scale > 0)
    scale = scale[used]
    unit = gram[np.ix_(used, used)] / np.outer(scale, scale)
    wanted = target[used] / scale
    scaled, slope = np.zeros(len(used)), -wanted
    for _ in range(SWEEPS):
        most = 0.0
        for index in range(len(used)):
            step = max(-scaled[index], -slope[index])
            if step:
                scaled[index] += step
                slope += step * unit[index]
                most = max(most, abs(step))
        if most <= CLOSE * (1.0 + float(scaled.max(initial=0.0))):
            break
    solution = np.zeros(len(target))
    solution[used] = scaled / scale
    return solution
