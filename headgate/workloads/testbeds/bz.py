"""BZ's testbed: all tuples wait at the start, and the cost of each is known (BZ §6)."""

import numpy as np

from headgate.model.arrays import Floats
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.workloads.random_generators import generator
from headgate.workloads.testbeds.testbed import Testbed
from headgate.workloads.value_checks import between, whole

MS = 1e-3
LEAST_S = 1e-6
"""Least cost of a tuple: a draw at or below zero (5 deviations away) counts as 1 µs."""

CLASSES = (QueryClass(name="all", priority=1.0),)


def latency(
    *, outliers: float = 0.05, tuples: int = 300, selectivity: float = 0.95, seed: int = 0
) -> Testbed:
    """Return two independent operators A and B with full queues: Figure 12.

    Costs in ms: A is N(1, 0.2²) with some outliers of N(6, 1²), B is N(5, 1²).

    Args:
        outliers: the share of A's tuples; a larger share does not change the other tuples.
    """
    _check(outliers, tuples, selectivity)
    costs_s = {
        "A.0": _costs_s("A", tuples, seed, (1.0, 0.2), outliers, (6.0, 1.0)),
        "B.0": _costs_s("B", tuples, seed, (5.0, 1.0)),
    }
    paths = tuple(
        Path(
            query=Query(name=name, sql=f"SELECT * FROM {stream}", query_class="all"),
            stream=stream,
            operators=(_operator(costs_s[f"{name}.0"], selectivity),),
        )
        for name, stream in (("A", "a"), ("B", "b"))
    )
    return Testbed(
        name="bz latency",
        network=Network((_stream("a"), _stream("b")), CLASSES, paths),
        arrivals={"a": np.zeros(tuples), "b": np.zeros(tuples)},
        note=f"operators A and B, {tuples} tuples each at time 0; {outliers:.0%} of A's are "
        "outliers",
        tuple_costs=costs_s,
    )


def memory(
    *, outliers: float = 0.05, tuples: int = 300, selectivity: float = 0.95, seed: int = 0
) -> Testbed:
    """Return a path of two operators, the first of which halves the size of tuples: Figure 13.

    Costs in ms: O1 is N(1, 0.2²) with some outliers of N(10, 1²), O2 is N(5, 1²).

    Args:
        outliers: the share of the tuples at O1; a larger share does not change the other tuples.
    """
    _check(outliers, tuples, selectivity)
    costs_s = {
        "path.0": _costs_s("O1", tuples, seed, (1.0, 0.2), outliers, (10.0, 1.0)),
        "path.1": _costs_s("O2", tuples, seed, (5.0, 1.0)),
    }
    path = Path(
        query=Query(name="path", sql="SELECT * FROM a", query_class="all"),
        stream="a",
        operators=(
            _operator(costs_s["path.0"], selectivity, bytes_out=0.5),
            _operator(costs_s["path.1"], selectivity, bytes_out=0.5),
        ),
    )
    return Testbed(
        name="bz memory",
        network=Network((_stream("a"),), CLASSES, (path,)),
        arrivals={"a": np.zeros(tuples)},
        note=f"a path of two operators, {tuples} tuples at time 0; {outliers:.0%} are outliers at "
        "the first, which halves the size of a tuple",
        tuple_costs=costs_s,
    )


def _costs_s(
    purpose: str,
    tuples: int,
    seed: int,
    usual_ms: tuple[float, float],
    outliers: float = 0.0,
    outlier_ms: tuple[float, float] = (0.0, 0.0),
) -> Floats:
    """Draw the cost of each tuple by mean and deviation; outliers are at random positions."""
    usual, odd = (
        generator(seed, f"{purpose} {kind}").normal(*distribution_ms, tuples)
        for kind, distribution_ms in (("usual", usual_ms), ("outlier", outlier_ms))
    )
    place = generator(seed, f"{purpose} places").permutation(tuples)
    costs_ms = np.where(place < round(outliers * tuples), odd, usual)
    return np.maximum(costs_ms * MS, LEAST_S)


def _operator(costs_s: Floats, selectivity: float, bytes_out: float = 1.0) -> Operator:
    """Return an operator whose cost, for schedulers that use averages, is the mean of `costs_s`."""
    mean_s = float(costs_s.mean())
    return Operator(kind="select", cost_s=mean_s, selectivity=selectivity, bytes_out=bytes_out)


def _check(outliers: float, tuples: int, selectivity: float) -> None:
    between("bz", 0.0, 1.0, outliers=outliers, selectivity=selectivity)
    whole("bz", tuples=tuples)


def _stream(name: str) -> Stream:
    return Stream(name=name, format="headgate", schema="value INT")
