"""A testbed: the network, the arrivals and the settings of a paper's experiment."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Self

import numpy as np

from headgate.model.arrays import Floats
from headgate.model.network.network import Network
from headgate.model.network.units import SharedPriority
from headgate.workloads.load import busy_share, measured_rate_per_s, network_at, work_s
from headgate.workloads.value_checks import demand


@dataclass(frozen=True, kw_only=True)
class Testbed:
    """Everything that a run needs besides the policy.

    Args:
        arrivals: by stream, ascending times in seconds.
        note: the settings in words, those of the paper and those that we chose.
        utilisation: expected work per second, as requested.
        realised_utilisation: the share of the run in which the machine is expected to be busy.
        selectivities: by box, its true selectivity in each interval, if it changes. The operator
            has the selectivity that a scheduler without measurements assumes. The boxes of a plain
            path are called `query.position`.
        interval_s: how long each interval lasts; the first begins at time 0, the last has no end.
        tuple_costs: by box, the seconds that each tuple of its stream takes there, if the costs of
            single tuples are known (BZ §6).
        preloaded: by box, the number of tuples that wait in its queue when the run begins.
        shared_priority: how shared operators are scheduled, if the network has any.
    """

    __test__ = False  # for pytest: not a test, although the name begins with Test

    name: str
    network: Network
    arrivals: Mapping[str, Floats]
    note: str
    utilisation: float | None = None
    realised_utilisation: float | None = None
    selectivities: Mapping[str, Floats] = field(default_factory=dict)
    interval_s: float = inf
    tuple_costs: Mapping[str, Floats] = field(default_factory=dict)
    preloaded: Mapping[str, int] = field(default_factory=dict)
    shared_priority: SharedPriority | None = None

    def __post_init__(self) -> None:
        for name, times_s in self.arrivals.items():
            self.network.stream_number(name, where="arrivals")
            ascending = bool((np.diff(times_s) >= 0).all())
            demand(ascending, f"stream '{name}'", "arrivals", None, "in ascending order of time")

    @classmethod
    def at(
        cls,
        utilisation: float,
        build: Callable[[float], Network],
        arrivals: Mapping[str, Floats],
        *,
        name: str,
        note: str,
        shared_priority: SharedPriority | None = None,
    ) -> Self:
        """Return the testbed whose expected load is `utilisation` at the mean rates of arrivals.

        Args:
            build: builds the network from K, the seconds that its costs are multiples of.
        """
        rates_per_s = {stream: measured_rate_per_s(times_s) for stream, times_s in arrivals.items()}
        network = network_at(utilisation, build, rates_per_s)
        return cls(
            name=name,
            network=network,
            arrivals=arrivals,
            note=note,
            utilisation=utilisation,
            realised_utilisation=busy_share(arrivals, work_s(network, rates_per_s)),
            shared_priority=shared_priority,
        )
