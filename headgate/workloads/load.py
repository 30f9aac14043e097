"""The load of a network: expected work per tuple, and the share of time that it takes."""

from collections.abc import Callable, Mapping

import numpy as np

from headgate.model.arrays import Floats
from headgate.model.network.graph import Graph
from headgate.model.network.network import Network
from headgate.workloads.value_checks import above_zero, demand


def measured_rate_per_s(times_s: Floats) -> float:
    """Return the inverse of the mean time between arrivals.

    >>> measured_rate_per_s(np.array([1.0, 1.5, 3.0]))
    1.0
    """
    usable = len(times_s) > 1 and bool((np.diff(times_s) >= 0).all()) and times_s[-1] > times_s[0]
    demand(usable, "arrivals", "times", None, "two or more, ascending, not all at the same time")
    return float((len(times_s) - 1) / (times_s[-1] - times_s[0]))


def work_s(network: Network, rates_per_s: Mapping[str, float]) -> dict[str, float]:
    """Return the expected seconds of work for one tuple of each stream.

    Args:
        rates_per_s: by stream; the work of window joins and aggregates depends on the rates.
    """
    numbers = {network.stream_number(name): rate for name, rate in rates_per_s.items()}
    graph = Graph(network, numbers)
    totals_s = [0.0] * len(network.streams)
    for node in graph.nodes:
        for side, streams in enumerate(node.streams):
            for stream in streams:
                totals_s[stream] += graph.mean_cost_s(node.number, side)
    return {stream.name: total for stream, total in zip(network.streams, totals_s, strict=True)}


def load(network: Network, rates_per_s: Mapping[str, float]) -> float:
    """Return the expected work per second; 1 is all that one machine can do."""
    works_s = work_s(network, rates_per_s)
    return sum(rate * works_s[name] for name, rate in rates_per_s.items())


def network_at(
    utilisation: float, build: Callable[[float], Network], rates_per_s: Mapping[str, float]
) -> Network:
    """Return the network whose expected load is `utilisation` (Sharaf §3.7).

    Args:
        build: builds the network from K, the seconds that its costs are multiples of.
    """
    above_zero("testbed", utilisation=utilisation)
    return build(utilisation / load(build(1.0), rates_per_s))


def busy_share(arrivals: Mapping[str, Floats], each_s: Mapping[str, float | Floats]) -> float:
    """Return the share of a run in which a work-conserving machine is busy.

    The run lasts from the first arrival until the last work is done. With heavy-tailed arrivals the
    share is well below the work over the mean time between arrivals: work that piles up near the
    end is still done after it, and earlier idle time is lost.

    Args:
        each_s: by stream, the work of a tuple, or an array with the work of each of its tuples.

    >>> busy_share({"s": np.array([0.0, 1.0, 6.0])}, {"s": 2.0})
    0.75
    """
    times_s = np.concatenate([arrivals[name] for name in arrivals])
    works_s = np.concatenate(
        [np.broadcast_to(each_s[name], len(arrivals[name])) for name in arrivals]
    )
    order = np.argsort(times_s, kind="stable")
    times_s, works_s = times_s[order], works_s[order]
    total_s = works_s.sum()
    done_before_s = np.cumsum(works_s) - works_s
    ends_at_s = (times_s + total_s - done_before_s).max()
    return float(total_s / (ends_at_s - times_s[0]))
