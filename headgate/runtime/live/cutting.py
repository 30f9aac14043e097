"""Whether it pays to cut a query, by what runs have measured of its two segments."""

from collections.abc import Mapping

from headgate.model.network import FIRST, REST
from headgate.model.query import QueryStatistics

TUPLES = 5_000
"""The size of train that it must pay for: one of a stream under load."""


def cut_pays(query: str, known: Mapping[str, QueryStatistics]) -> bool:
    """Predicts whether a cut pays; what was never measured in two is cut, and so measured.

    The rest must fall less fast than the first on the chart of the query, (1 − σ) / τ a piece: else
    they are one piece of its lower envelope, and nothing would run between them (BZ §3). And what
    is put off, the rest's work on the tuples that pass, must exceed the call that a cut adds.
    """
    first, rest = known.get(query + FIRST), known.get(query + REST)
    if first is None or rest is None:
        return True
    work_s = TUPLES * first.selectivity * rest.cost_s
    if work_s < rest.overhead_s:
        return False
    falls = (1 - first.selectivity) / (first.overhead_s / TUPLES + first.cost_s)
    falls_later = first.selectivity / (rest.overhead_s / TUPLES + first.selectivity * rest.cost_s)
    return falls > falls_later
