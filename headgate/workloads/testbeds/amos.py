"""AMoS's testbed: the two query plans of Figure 4, with a mean arrival rate that changes (§4.1).

Published: Poisson arrivals whose mean changes every 5 s; a join window of 200 ms, its selectivity
counted per pair of tuples; in plan 2, selectivity 0.25 and processing time 0.25 of Op4. The rest
of Figure 4 is not legible, so it is chosen here. Plan 1 is a line of four operators whose third is
the selective one, so that its lower envelope has two segments and Chain differs from FIFO. Plan 2
filters two streams, joins them and filters the result. Processing times are relative; one factor
sets the utilization.
"""

from collections.abc import Callable
from math import ceil, prod

from headgate.model.network.network import Box, Network, Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.workloads.poisson import changing_poisson, changing_rates
from headgate.workloads.testbeds.testbed import Testbed
from headgate.workloads.value_checks import above_zero, whole

PLAN_1 = ((0.8, 0.5), (0.9, 0.5), (0.2, 0.5), (0.5, 2.0))
"""Selectivity and processing time of Op1 to Op4."""

PLAN_2 = ((0.5, 0.5), (0.8, 0.5), (0.05, 1.0), (0.25, 0.25))
"""The same for plan 2: Op1 and Op2 filter one stream each, Op3 joins them, Op4 filters."""

CLASSES = (QueryClass(name="all", priority=1.0),)


def plan_1(
    *,
    utilisation: float = 0.8,
    rate_per_s: float = 100.0,
    tuples: int = 20_000,
    every_s: float = 5.0,
    swing: float = 0.75,
    seed: int = 0,
) -> Testbed:
    """Return plan 1 of Figure 4: one stream through four operators.

    Args:
        swing: the mean rate is uniform from 1 − swing to 1 + swing times `rate_per_s`.
    """

    def network(unit_s: float) -> Network:
        operators = [_select(selectivity, time * unit_s) for selectivity, time in PLAN_1]
        query = Query(name="plan1", sql="SELECT * FROM data1", query_class="all")
        path = Path(query=query, stream="data1", operators=tuple(operators))
        return Network((_stream("data1"),), CLASSES, (path,))

    return _testbed(
        "amos plan 1", network, 1, utilisation, rate_per_s, tuples, every_s, swing, seed
    )


def line(
    *,
    operators: int = 30,
    utilisation: float = 0.8,
    rate_per_s: float = 100.0,
    tuples: int = 20_000,
    every_s: float = 5.0,
    swing: float = 0.75,
    seed: int = 0,
) -> Testbed:
    """Return one stream through any number of equal operators (§4.1: plans of 2 to 90 operators).

    All plans let through the same share of the tuples as plan 1 does.
    """
    whole("amos", operators=operators)
    passing = prod(selectivity for selectivity, _ in PLAN_1) ** (1 / operators)

    def network(unit_s: float) -> Network:
        filters = (_select(passing, unit_s),) * operators
        query = Query(name="line", sql="SELECT * FROM data1", query_class="all")
        path = Path(query=query, stream="data1", operators=filters)
        return Network((_stream("data1"),), CLASSES, (path,))

    return _testbed(
        f"amos line of {operators}", network, 1, utilisation, rate_per_s, tuples, every_s, swing,
        seed,
    )  # fmt: skip


def plan_2(
    *,
    utilisation: float = 0.8,
    rate_per_s: float = 100.0,
    tuples: int = 20_000,
    every_s: float = 5.0,
    swing: float = 0.75,
    window_s: float = 0.2,
    seed: int = 0,
) -> Testbed:
    """Return plan 2 of Figure 4: two streams, a window join, and a select on its result."""
    above_zero("amos", window_s=window_s)
    (left, left_time), (right, right_time), (match, join_time), (last, last_time) = PLAN_2

    def network(unit_s: float) -> Network:
        join = Operator(
            kind="join", cost_s=join_time * unit_s, selectivity=match, window_s=window_s
        )
        boxes = (
            Box(name="op1", operator=_select(left, left_time * unit_s), inputs=("data1",)),
            Box(name="op2", operator=_select(right, right_time * unit_s), inputs=("data2",)),
            Box(name="op3", operator=join, inputs=("op1", "op2")),
            Box(name="op4", operator=_select(last, last_time * unit_s), inputs=("op3",)),
        )
        window = f"[RANGE {window_s} SECONDS]"
        sql = f"SELECT * FROM data1 {window} JOIN data2 {window} ON data1.value = data2.value"
        query = Query(name="plan2", sql=sql, query_class="all")
        streams = (_stream("data1"), _stream("data2"))
        return Network(streams, CLASSES, (Path(query=query, output="op4"),), boxes)

    return _testbed(
        "amos plan 2", network, 2, utilisation, rate_per_s, tuples, every_s, swing, seed
    )


def _testbed(
    name: str,
    network: Callable[[float], Network],
    streams: int,
    utilisation: float,
    rate_per_s: float,
    tuples: int,
    every_s: float,
    swing: float,
    seed: int,
) -> Testbed:
    above_zero("amos", utilisation=utilisation, rate_per_s=rate_per_s, every_s=every_s)
    whole("amos", tuples=tuples)
    intervals = ceil(2 * tuples / (rate_per_s * every_s)) + 1
    arrivals = {}
    for number in range(streams):
        stream_seed = streams * seed + number
        rates_per_s = changing_rates(rate_per_s, intervals, stream_seed, swing=swing)
        arrivals[f"data{number + 1}"] = changing_poisson(
            rates_per_s, tuples, stream_seed, every_s=every_s
        )
    return Testbed.at(
        utilisation,
        network,
        arrivals,
        name=name,
        note=f"Poisson, {rate_per_s:g} tuples/s a stream; the mean changes every {every_s:g} s by "
        f"up to {swing:.0%}",
    )


def _select(selectivity: float, cost_s: float) -> Operator:
    return Operator(kind="select", cost_s=cost_s, selectivity=selectivity)


def _stream(name: str) -> Stream:
    return Stream(name=name, format="headgate", schema="value INT")
