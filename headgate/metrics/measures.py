"""The measures of a run by name: title, unit, which way is better, and where a report has them."""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Literal

from headgate.errors import ConfigRefused, UnknownName
from headgate.metrics.line import Line
from headgate.metrics.report import Report

Scope = Literal["all", "class", "query"]


@dataclass(frozen=True)
class Measure:
    """One number of a report.

    `of_line` computes it for a query, a class or all queries. If that is None, the number exists
    for the whole run only, and `of_run` computes it.
    """

    name: str
    title: str
    unit: str = ""
    of_line: Callable[[Line], float] | None = None
    of_run: Callable[[Report], float] | None = None
    more_is_better: bool = False

    @property
    def label(self) -> str:
        """The title and the unit, for an axis or a row."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def of(self, report: Report, line: Line | None = None) -> float:
        """Return the number for a line of a report, by default the total; NaN if unknown."""
        if self.of_line is not None:
            return float(self.of_line(line or report.total))
        return float(self.of_run(report)) if self.of_run is not None and line is None else nan


def _norm(norm: float, count: int) -> float:
    return norm if count else nan


_ALL = (
    Measure("mean_response", "response, mean", "s", lambda line: line.response_s.mean),
    Measure("p95_response", "response, 95 %", "s", lambda line: line.response_s.p95),
    Measure("max_response", "response, maximum", "s", lambda line: line.response_s.maximum),
    Measure(
        "norm_response", "response, ℓ2 norm", "s",
        lambda line: _norm(line.response_s.norm, line.response_s.count),
    ),
    Measure("mean_slowdown", "slowdown, mean", "", lambda line: line.slowdown.mean),
    Measure("p95_slowdown", "slowdown, 95 %", "", lambda line: line.slowdown.p95),
    Measure("max_slowdown", "slowdown, maximum", "", lambda line: line.slowdown.maximum),
    Measure(
        "norm_slowdown", "slowdown, ℓ2 norm", "",
        lambda line: _norm(line.slowdown.norm, line.slowdown.count),
    ),
    Measure(
        "output_rate", "output rate", "1/s", lambda line: line.output_per_s, more_is_better=True
    ),
    Measure("qos", "QoS, mean utility", "", lambda line: line.qos, more_is_better=True),
    Measure("staleness", "staleness", "", lambda line: line.staleness),
    Measure("weighted_staleness", "staleness, weighted", "", lambda line: line.weighted_staleness),
    Measure("tardiness", "tardiness, mean", "s", lambda line: line.tardiness_s),
    Measure("max_tardiness", "tardiness, maximum", "s", lambda line: line.tardiness_max_s),
    Measure("queue", "queue size, mean", "tuples", lambda line: line.pending_mean),
    Measure("max_queue", "queue size, maximum", "tuples", lambda line: line.pending_max),
    Measure("queue_bytes", "queue size, mean", "bytes", of_run=lambda run: run.bytes_mean),
    Measure("max_queue_bytes", "queue size, maximum", "bytes", of_run=lambda run: run.bytes_max),
    Measure("memory", "memory, mean", "tuples", of_run=lambda run: run.memory_mean),
    Measure("max_memory", "memory, maximum", "tuples", of_run=lambda run: run.memory_max),
    Measure("shed", "shed", "tuples", lambda line: line.shed),
    Measure("scheduler_overhead", "overhead of decisions", "s", of_run=lambda run: run.scheduler_s),
    Measure("storage_overhead", "overhead of storage", "s", of_run=lambda run: run.storage_s),
    Measure("call_overhead", "overhead of box calls", "s", of_run=lambda run: run.overhead_s),
    Measure("box_calls", "box calls", "", of_run=lambda run: run.box_calls or run.calls),
    Measure("utilisation", "utilisation", "", of_run=lambda run: run.utilisation),
)  # fmt: skip

MEASURES = {measure.name: measure for measure in _ALL}
"""Every measure, in the order in which a table shows them."""


@dataclass(frozen=True)
class Objective:
    """What a comparison is about: a measure of all queries, of a class or of one query."""

    measure: Measure
    scope: Scope = "all"
    name: str = ""

    def __str__(self) -> str:
        where = f":{self.scope}={self.name}" if self.name else ""
        return f"{self.measure.name}{where}"

    @property
    def label(self) -> str:
        """The objective in words, for a title or an axis."""
        where = f" of {self.scope} {self.name}" if self.name else ""
        return f"{self.measure.title}{where}" + (
            f" ({self.measure.unit})" if self.measure.unit else ""
        )

    def of(self, report: Report) -> float:
        """Return the value of the objective in a report.

        Raises:
            UnknownName: the report has no such class or query.
        """
        if self.scope == "all":
            return self.measure.of(report)
        lines = report.classes if self.scope == "class" else report.queries
        by_name = {line.name: line for line in lines}
        if self.name not in by_name:
            raise UnknownName(
                kind=self.scope, name=self.name, known=by_name, where=f"objective '{self}'"
            )
        return self.measure.of(report, by_name[self.name])


def objective_of(text: str) -> Objective:
    """Parse an objective: a measure, then perhaps `:class=NAME` or `:query=NAME`.

    Raises:
        UnknownName: there is no such measure.
        ConfigRefused: the text has another form, or the measure exists for the whole run only.

    >>> objective_of("p95_response:class=H").label
    'response, 95 % of class H (s)'
    """
    name, _, where = text.strip().partition(":")
    if name not in MEASURES:
        raise UnknownName(kind="measure", name=name, known=MEASURES, where=f"objective '{text}'")
    scope, _, member = where.partition("=")
    if where in ("", "all"):
        return Objective(MEASURES[name])
    if scope not in ("class", "query") or not member:
        expected = "all, class=NAME or query=NAME after the colon, as in p95_response:class=H"
        raise ConfigRefused(path="objective", key=name, value=where, expected=expected)
    if MEASURES[name].of_line is None:
        expected = "left out: it is of the whole run only"
        raise ConfigRefused(path="objective", key=name, value=where, expected=expected)
    return Objective(MEASURES[name], "class" if scope == "class" else "query", member)
