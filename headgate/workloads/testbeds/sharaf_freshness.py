"""The testbed of Sharaf chapter 4: freshness of results, with some bursty streams (§4.4.2)."""

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from headgate.model.arrays import Floats
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query
from headgate.model.stream import Stream
from headgate.workloads.load import busy_share, load, measured_rate_per_s, network_at, work_s
from headgate.workloads.on_off import pareto_on_off
from headgate.workloads.poisson import poisson
from headgate.workloads.random_generators import generator
from headgate.workloads.testbeds.groups import burst_together
from headgate.workloads.testbeds.sharaf import ONE_CLASS, Traits
from headgate.workloads.testbeds.testbed import Testbed
from headgate.workloads.value_checks import above_zero, between, demand, whole

Spacing = Literal["poisson", "on/off"]


def freshness(
    *,
    queries: int = 250,
    streams: int = 10,
    bursty: int = 5,
    burst: int = 10,
    tuples: int = 10_000,
    utilisation: float = 0.95,
    zipf: float = 0.0,
    cost_classes: int = 3,
    unit_s: float = 0.001,
    spacing: Spacing = "poisson",
    arrivals: Mapping[str, Floats] | None = None,
    seed: int = 0,
) -> Testbed:
    """Return the testbed of Figures 36 to 43.

    Queries of two predicates and a projection are spread over the streams at random. Streams are
    Poisson; in the first `bursty` of them, every `burst` tuples arrive with the first. K is the
    time unit (1 ms, our choice) and the rates follow: at a utilization of 1, the mean time between
    arrivals of a stream is the time that all queries need. Predicates test the attributes a1 and a2
    as in chapter 3.

    Args:
        tuples: the number of tuples of each stream.
        zipf: skew of the selectivities 0.1, ... 1.0 towards 1.0; 0 is uniform (Figure 41).
        spacing: `on/off` replaces all streams by Pareto on/off ones, as if they were recorded.
        cost_classes: costs are K·2^i; with 1, all operators have the same cost (Figure 41).
        arrivals: by stream, recorded times instead of the Poisson streams (Figure 43). They then
            determine the rates and K.
    """
    testbed = "sharaf"
    whole(testbed, queries=queries, streams=streams, tuples=tuples, cost_classes=cost_classes)
    whole(testbed, bursty=bursty, least=0)
    above_zero(testbed, utilisation=utilisation, unit_s=unit_s)
    demand(0 <= zipf < np.inf, testbed, "zipf", zipf, "0 or more")
    demand(spacing in get_args(Spacing), testbed, "spacing", spacing, "poisson or on/off")
    if arrivals is None and spacing == "on/off":
        arrivals = {
            f"s{number}": pareto_on_off(1.0, tuples, streams * seed + number)
            for number in range(streams)
        }
    if arrivals is None:
        between(testbed, 0, streams, bursty=bursty)
        names = [f"s{number}" for number in range(streams)]
    else:
        names = list(arrivals)
        demand(len(names) > 0, testbed, "arrivals", None, "of one stream or more")
    traits = _drawn(queries, seed, zipf, cost_classes)
    reads = generator(seed, "streams").integers(0, len(names), queries).tolist()

    def network(unit_s: float) -> Network:
        paths = [
            trait.path(number, unit_s, stream=names[stream])
            for number, (trait, stream) in enumerate(zip(traits, reads, strict=True))
        ]
        models = [Stream(name=name, format="headgate", schema="a1 INT, a2 INT") for name in names]
        return Network(tuple(models), ONE_CLASS, tuple(paths))

    if arrivals is None:
        scaled_network = network(unit_s)
        rate_per_s = utilisation / load(scaled_network, dict.fromkeys(names, 1.0))
        times_s = {
            name: poisson(rate_per_s, tuples, len(names) * seed + number)
            for number, name in enumerate(names)
        }
        for name in names[:bursty]:
            times_s[name] = burst_together(times_s[name], burst=burst)
        kind = f"{streams} Poisson streams, {bursty} in bursts of {burst}"
    else:
        times_s, kind = dict(arrivals), f"{len(names)} streams as given"
        rates = {name: measured_rate_per_s(stream_s) for name, stream_s in times_s.items()}
        scaled_network = network_at(utilisation, network, rates)
    return Testbed(
        name="sharaf freshness",
        network=scaled_network,
        arrivals=times_s,
        note=f"{queries} queries of two predicates and a projection over {kind}; selectivity 0.1 "
        f"to 1.0, Zipf {zipf:g}; {cost_classes} cost classes",
        utilisation=utilisation,
        realised_utilisation=busy_share(times_s, work_s(scaled_network, dict.fromkeys(names, 1.0))),
    )


def stale(*, seed: int = 0) -> Testbed:
    """Return the example of Figure 35: three updates of one query whose operator takes 1 s."""
    operator = Operator(kind="project", expressions=("*",), cost_s=1.0, selectivity=1.0)
    query = Query(name="q0", sql="SELECT * FROM s0", query_class="all")
    streams = (Stream(name="s0", format="headgate", schema="a1 INT, a2 INT"),)
    return Testbed(
        name="sharaf staleness",
        network=Network(
            streams, ONE_CLASS, (Path(query=query, stream="s0", operators=(operator,)),)
        ),
        arrivals={"s0": np.array([1.0, 5.0, 5.5])},
        note="one query of one operator of 1 s; updates at 1, 5 and 5.5 s",
    )


def _drawn(queries: int, seed: int, zipf: float, cost_classes: int) -> list[Traits]:
    rng, ranks = generator(seed, "traits"), np.arange(1, 11)
    chances = ranks**-zipf / (ranks**-zipf).sum()
    percents = 110 - 10 * rng.choice(ranks, queries, p=chances)
    costs = rng.integers(0, cost_classes, queries)
    return [Traits(int(cost), int(percent)) for cost, percent in zip(costs, percents, strict=True)]
