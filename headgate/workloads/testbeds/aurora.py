"""Aurora's testbed: application trees of universal boxes with latency QoS graphs (§5.1)."""

from collections.abc import Sequence

import numpy as np

from headgate.model.network.network import Box, Network, Path
from headgate.model.network.operator import Operator
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.workloads.load import busy_share, load, work_s
from headgate.workloads.random_generators import generator
from headgate.workloads.testbeds.groups import gathered
from headgate.workloads.testbeds.testbed import Testbed
from headgate.workloads.value_checks import above_zero, between, demand, whole

TIGHT = QoSGraph(((0.0, 1.0), (0.001, 1.0), (1.0, 0.0)))
LOOSE = QoSGraph(((0.0, 1.0), (4.0, 1.0), (5.0, 0.0)))
"""The two graphs of §6.1."""

THREE_POINTS = QoSGraph(((0.0, 1.0), (0.5, 1.0), (2.0, 0.0)))
"""Utility 1 up to 0.5 s and 0 from 2 s on. §5.1 has the shape of the graph, not the values."""


def trees(
    *,
    apps: int = 5,
    depth: int = 5,
    fanout: int = 3,
    capacity: float = 0.9,
    selectivity: float = 1.0,
    cost_s: tuple[float, float] = (0.0001, 0.001),
    tuples: int = 100_000,
    burst: int = 1,
    average_fanout: bool = False,
    least_selectivity: float | None = None,
    backlog: bool = False,
    rate_per_s: float = 0.0,
    graphs: Sequence[QoSGraph] = (THREE_POINTS,),
    seed: int = 0,
) -> Testbed:
    """Return application trees: boxes with `fanout` children each, rooted at an output (§5.1).

    Every leaf reads a stream of its own; every other box reads one queue that its children fill.
    All streams have the same rate, such that the expected work is `capacity` of the machine.
    Tuples are evenly spaced, each stream with a random phase. Departs from §5.1, which calls the
    fan-out an average: here every box has exactly that many children, unless `average_fanout` is
    set.

    Args:
        cost_s: the least and the greatest cost; costs are uniform between them.
        tuples: of all streams together; each stream gets its share, rounded up.
        burst: the number of tuples of a stream that are collected and delivered at once (§5.4).
        average_fanout: a box has 1 to 2 `fanout` − 1 children, all numbers equally likely.
        least_selectivity: selectivities are uniform from this one to `selectivity`.
        rate_per_s: the rate of each stream; 0 leaves it to `capacity`.
        backlog: all tuples wait when the run begins, as in Figure 7.
        graphs: one of these is drawn for each application.
    """
    testbed = "aurora"
    whole(testbed, apps=apps, depth=depth, fanout=fanout, tuples=tuples, burst=burst)
    demand(rate_per_s >= 0, testbed, "rate_per_s", rate_per_s, "0 or more")
    above_zero(testbed, capacity=capacity, least_cost_s=cost_s[0], most_cost_s=cost_s[1])
    demand(
        cost_s[0] <= cost_s[1], testbed, "cost_s", cost_s, "the least and the most, in this order"
    )
    least = selectivity if least_selectivity is None else least_selectivity
    between(testbed, 0.0, 1.0, selectivity=selectivity, least_selectivity=least)
    demand(len(graphs) > 0, testbed, "graphs", list(graphs), "one QoS graph or more")
    costs, chosen = generator(seed, "costs"), generator(seed, "graphs")
    passing, children = generator(seed, "selectivities"), generator(seed, "children")
    streams: list[Stream] = []
    boxes: list[Box] = []
    paths: list[Path] = []
    for app in range(apps):
        first = len(streams)
        root = f"app{app}_0"
        level = [root]
        numbered = 1
        for deep in range(depth):
            below: list[str] = []
            for name in level:
                if deep < depth - 1:
                    count = int(children.integers(1, 2 * fanout)) if average_fanout else fanout
                    inputs = tuple(f"app{app}_{numbered + child}" for child in range(count))
                    numbered += count
                    below.extend(inputs)
                else:
                    inputs = (f"in{len(streams)}",)
                    streams.append(Stream(name=inputs[0], format="headgate", schema="value INT"))
                operator = Operator(
                    kind="map",
                    cost_s=float(costs.uniform(*cost_s)),
                    selectivity=float(passing.uniform(least, selectivity)),
                )
                boxes.append(Box(name=name, operator=operator, inputs=inputs))
            level = below
        sql = " UNION ALL ".join(f"SELECT * FROM {stream.name}" for stream in streams[first:])
        graph = graphs[int(chosen.integers(len(graphs)))]
        query = Query(name=f"app{app}", sql=sql, query_class="all", qos=graph)
        paths.append(Path(query=query, output=root))
    classes = (QueryClass(name="all", priority=1.0),)
    network = Network(tuple(streams), classes, tuple(paths), tuple(boxes))
    full = load(network, {stream.name: 1.0 for stream in streams})
    if rate_per_s > 0:
        capacity = rate_per_s * full
    else:
        rate_per_s = capacity / full
    stream_tuples = -(-tuples // len(streams))
    phases = generator(seed, "phases").random(len(streams))
    arrivals = {
        stream.name: np.zeros(stream_tuples)
        if backlog
        else gathered(rate_per_s, stream_tuples, burst=burst, phase=float(phase))
        for stream, phase in zip(streams, phases, strict=True)
    }
    return Testbed(
        name="aurora trees",
        network=network,
        arrivals=arrivals,
        note=f"{apps} application trees, depth {depth}, fan-out {fanout}; costs {cost_s[0]:g} to "
        f"{cost_s[1]:g} s, selectivity {selectivity:g}; {len(streams)} streams of "
        f"{rate_per_s:.4g} tuples/s, bursts of {burst}",
        utilisation=capacity,
        realised_utilisation=busy_share(arrivals, work_s(network, dict.fromkeys(arrivals, 1.0))),
    )


def tight_and_loose(
    *, apps: int = 20, depth: int = 5, capacity: float = 0.7, tuples: int = 100_000, seed: int = 0
) -> Testbed:
    """Return straight lines of boxes with a tight or a loose QoS graph each, drawn at random.

    This is the testbed of Figure 11 (§6.1) and, with 200 applications, of Figure 13. §6.3 does not
    say which graphs its 200 applications have; they get the same two.
    """
    return trees(
        apps=apps,
        depth=depth,
        fanout=1,
        capacity=capacity,
        tuples=tuples,
        graphs=(TIGHT, LOOSE),
        seed=seed,
    )
