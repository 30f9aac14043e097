"""The decision whether to cut a query, by the measured statistics of its two segments."""

from collections.abc import Mapping

from headgate.model.network.network import FIRST, REST
from headgate.model.query import QueryStatistics

TUPLES = 5_000
"""Size of the train for which a cut must pay: that of a stream under load."""


def cut_pays(query: str, statistics: Mapping[str, QueryStatistics]) -> bool:
    """Return True if a cut pays, or if its segments were never measured, so that they will be.

    A segment falls by (1 − σ) / τ on the query's progress chart. The rest must fall less steeply
    than the first; else both are one piece of the lower envelope, and nothing would run between
    them (BZ §3). And the work that is put off, that of the rest on the tuples that pass, must
    exceed the overhead of the call that a cut adds.
    """
    first, rest = statistics.get(query + FIRST), statistics.get(query + REST)
    if first is None or rest is None:
        return True
    work_s = TUPLES * first.selectivity * rest.cost_s
    if work_s < rest.overhead_s:
        return False
    first_slope = (1 - first.selectivity) / (first.overhead_s / TUPLES + first.cost_s)
    rest_slope = first.selectivity / (rest.overhead_s / TUPLES + first.selectivity * rest.cost_s)
    return first_slope > rest_slope
