"""Metrics of an interval where tuples that still wait count as if they left now."""

from collections.abc import Mapping

from headgate.model.network.unit_table import UnitTable


def with_waiting(
    values: Mapping[str, float], outputs: float, table: UnitTable, now_s: float
) -> dict[str, float]:
    """Return the values of `Measured`, with each waiting tuple as S outputs of its present age.

    Other metrics stay as they are. Without it, a policy that outputs nothing is not measured, and
    one that outputs only what is quick looks better than it is.
    """
    rows = table[table["pending"] > 0]
    counts = rows["pending"] * rows["selectivity"]
    ages_s = (now_s - rows["mean_arrived_at_s"]).clip(0.0)
    oldest_s = (now_s - rows["head_arrived_at_s"]).clip(0.0)
    slowdowns, oldest = ages_s / rows["ideal_s"], oldest_s / rows["ideal_s"]
    total = outputs + float(counts.sum())
    result = dict(values)
    sums = {"mean_response_s": counts @ ages_s, "mean_slowdown": counts @ slowdowns}
    for metric, waited in sums.items():
        before = values[metric] * outputs if outputs else 0.0
        if total > 0:
            result[metric] = (before + float(waited)) / total
    squares = {"norm_response_s": counts @ ages_s**2, "norm_slowdown": counts @ slowdowns**2}
    for metric, waited in squares.items():
        result[metric] = (values[metric] ** 2 + float(waited)) ** 0.5
    for metric, most in (("max_response_s", oldest_s), ("max_slowdown", oldest)):
        largest = float(most.max(initial=0.0))
        result[metric] = max(values[metric], largest) if outputs else largest
    return result
