"""Expected arrivals: what the recent past of each stream suggests for the near future."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headgate.model.arrays import Floats
from headgate.simulation.world.pointer import World
from headgate.workloads.random_generators import generator

RECENT_S = 2.0
"""The shortest past that counts, in horizons, for the rate of a stream."""


@dataclass(frozen=True)
class Expected:
    """Arrival times by stream, and all of them in order, as a world has them."""

    times_s: tuple[Floats, ...]
    order: NDArray[np.int32]
    order_at_s: Floats


def recent_per_s(world: World, stream: int, now_s: float) -> float:
    """Return the rate of a stream in the recent past."""
    row = world.streams[stream]
    first, count = int(row["first"]), int(row["arrived"])
    past = world.arrivals[first : first + count]
    span_s = min(now_s, RECENT_S)
    recent = count - int(np.searchsorted(past, now_s - span_s, side="right"))
    return recent / span_s if span_s > 0 else 0.0


def expected_arrivals(
    world: World, now_s: float, horizon_s: float, train: int, seed: int
) -> Expected:
    """Return random arrivals for a horizon: Poisson, at the rate of the recent past.

    Args:
        train: how many tuples come as one, at the time of the one in their middle.
    """
    times: list[Floats] = []
    for stream in range(len(world.streams)):
        random = generator(seed, "future", stream)
        number = int(random.poisson(recent_per_s(world, stream, now_s) * horizon_s))
        times_s = np.sort(now_s + random.random(number) * horizon_s)
        times.append(times_s[train // 2 :: train])
    return _in_order(times)


def true_arrivals(world: World, until_s: float) -> Expected:
    """Return the arrivals that will really come until an instant, as an oracle knows them."""
    times: list[Floats] = []
    for row in world.streams:
        begin = int(row["first"] + row["arrived"])
        end = begin + int(np.count_nonzero(world.order[_coming(world, until_s)] == len(times)))
        times.append(world.arrivals[begin:end])
    return _in_order(times)


def _coming(world: World, until_s: float) -> slice:
    end = int(np.searchsorted(world.order_at_s, until_s, side="right"))
    return slice(int(world.clock["next_arrival"][0]), end)


def _in_order(times: list[Floats]) -> Expected:
    sizes = [len(times_s) for times_s in times]
    streams = np.repeat(np.arange(len(times), dtype=np.int32), sizes)
    at_s = np.concatenate(times) if times else np.zeros(0)
    order = np.argsort(at_s, kind="stable")
    return Expected(tuple(times), streams[order], at_s[order])
