"""A testbed: the network and the arrivals of a paper's experiment, and what a run of it needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

import numpy as np

from headgate.model.arrays import Floats
from headgate.model.network import Network
from headgate.model.units import Sharing
from headgate.workloads.demands import demand


@dataclass(frozen=True, kw_only=True)
class Testbed:
    """All that a run needs besides the policy.

    Args:
        arrivals: by stream, ascending times in seconds.
        note: the settings in words, those of the paper and those that we chose.
        utilisation: expected work a second, as asked for.
        realised_utilisation: the share of the run in which the machine is expected to be busy.
        selectivities: by box, its true selectivity in each interval, where it changes; the operator
            holds what a scheduler that never measures believes. The boxes of a plain path are
            called `query.position`.
        interval_s: how long each lasts; the first begins at time 0, the last one stays.
        tuple_costs: by box, the seconds that each tuple of its stream takes there, where that is
            known tuple by tuple (BZ §6).
        preloaded: by box, tuples that wait in its queue when the run begins.
        sharing: how shared operators are run, where the network has some.
    """

    __test__ = False  # tells pytest that this is no test, though its name begins like one

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
    sharing: Sharing | None = None

    def __post_init__(self) -> None:
        for name, times_s in self.arrivals.items():
            self.network.stream_number(name, where="arrivals")
            ascending = bool((np.diff(times_s) >= 0).all())
            demand(ascending, f"stream '{name}'", "arrivals", None, "in ascending order of time")
