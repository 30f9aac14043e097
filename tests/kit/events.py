"""Events of a run, written by hand."""

import numpy as np

from headgate.model.events import StepFinished, TrainArrived
from headgate.model.plan import BoxCall


def arrival(at_s: float, stream: int, *tuples: int) -> TrainArrived:
    times_s = np.full(len(tuples), at_s)
    return TrainArrived(at_s, stream, np.array(tuples), times_s, times_s)


def end(
    at_s: float,
    units: tuple[int, ...],
    tuples: int,
    *responses_s: list[float],
    seconds: float = 1.0,
) -> StepFinished:
    call = BoxCall(0, units, 0, 0, 1, tuples)
    arrays = tuple(np.array(values_s) for values_s in responses_s)
    return StepFinished(
        at_s, call, seconds, tuple(len(values_s) for values_s in responses_s), arrays
    )
