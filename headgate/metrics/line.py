"""The line of a report for one query, one class or all queries."""

from dataclasses import dataclass
from math import isnan, nan

from headgate.metrics.tally import Summary

IF_IT_APPLIES = (
    "qos", "staleness", "staleness_expected", "weighted_staleness", "tardiness_s",
    "tardiness_max_s", "idle_wait_s",
)  # fmt: skip
"""The figures that only some queries have: QoS needs a graph, tardiness a window by time, idle
waiting a union whose streams waited for each other."""


@dataclass(frozen=True)
class Line:
    """The figures of one query, one class or all queries; NaN where one does not apply."""

    name: str
    tuples_in: int
    response_s: Summary
    slowdown: Summary
    pending: int
    pending_mean: float
    pending_max: int
    busy_s: float
    output_per_s: float = nan
    staleness: float = nan
    """Share of the time in which a tuple that was output later waited, a mean over queries."""
    staleness_expected: float = nan
    """The same with the tuples that still wait: at least one of N will be output with a probability
    of 1 − (1 − S)^N."""
    weighted_staleness: float = nan
    tardiness_s: float = nan
    """How late the results of windows are, as a mean and, in `tardiness_max_s`, as a maximum."""
    tardiness_max_s: float = nan
    idle_wait_s: float = nan
    """The part of the mean response in which results of unions waited for other streams."""
    qos: float = nan
    """Mean utility of the results that were due, by the queries' QoS and loss graphs."""
    shed: int = 0
    backfilled: int = 0
    """Results of tuples that were in the log before the query was added. No other figure of results
    counts them."""

    @property
    def applicable(self) -> dict[str, float]:
        """The figures among IF_IT_APPLIES that this line has, by name."""
        figures = {name: float(getattr(self, name)) for name in IF_IT_APPLIES}
        return {name: value for name, value in figures.items() if not isnan(value)}
