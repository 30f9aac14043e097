"""A report: the metrics of a run or a simulation, as frozen data."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import isnan, nan
from typing import Any

from headgate.metrics.line import IF_IT_APPLIES, Line
from headgate.metrics.run import RunMetrics
from headgate.metrics.tally import Summary
from headgate.model.display.html_table import table_html


@dataclass(frozen=True, repr=False)
class Report:
    """The metrics of a run: a line per class, a line per query and a line for all.

    `seconds` is the time from the first event to the last. `scheduler_s` is the part of it that the
    scheduler spent on events and decisions; `loop_s` also includes the time to keep these metrics.
    `overhead_s` is the workers' time that calls took regardless of their number of tuples.
    """

    policy: str
    seconds: float
    calls: int
    scheduler_s: float
    overhead_s: float
    total: Line
    classes: tuple[Line, ...]
    queries: tuple[Line, ...]
    pending_over_time: tuple[tuple[float, ...], ...] = ()
    """Samples: seconds from the start, then the pending tuples of each class, in order."""
    errors: tuple[str, ...] = ()
    storage_s: float = 0.0
    """Time of the storage manager; `scheduler_s` and `overhead_s` are the other two overheads."""
    loop_s: float = 0.0
    decisions: int = 0
    box_calls: int = 0
    utilisation: float = nan
    """Share of the workers' time that was spent in calls."""
    bytes_mean: float = nan
    bytes_max: float = nan
    memory_mean: float = nan
    """Mean of the tuples in memory; one in several queues or windows counts once (BZ §4)."""
    memory_max: float = nan
    dead_letters: Mapping[str, int] = field(default_factory=dict)
    """By query, over all its runs: the tuples at which an expression of it failed."""
    train: str = ""
    """The most tuples of a call in words, in a simulation."""
    over_time: tuple[tuple[float, ...], ...] = ()
    """Samples: seconds, pending tuples and bytes, then of the results since the last sample: their
    number, mean response, mean slowdown and mean utility."""

    def __repr__(self) -> str:
        response_s = self.total.response_s
        return (
            f"Report(policy={self.policy!r}, queries={len(self.queries)},"
            f" seconds={self.seconds:.4g}, results={response_s.count},"
            f" mean_response_s={response_s.mean:.4g}, errors={len(self.errors)})"
        )

    def _repr_html_(self) -> str:
        heads = ("class", "results", "mean s", "p95 s", "slowdown", "waiting")
        rows = [
            (line.name, line.response_s.count, line.response_s.mean, line.response_s.p95,
             line.slowdown.mean, line.pending_mean)
            for line in (*self.classes, self.total)
        ]  # fmt: skip
        return table_html(f"{self.policy}, {self.seconds:.4g} s", heads, rows)

    @classmethod
    def of(
        cls,
        policy: str,
        metrics: RunMetrics,
        scheduler_s: float = 0.0,
        errors: tuple[Exception, ...] = (),
        loop_s: float = 0.0,
        workers: int = 0,
        storage_s: float = 0.0,
    ) -> "Report":
        """Return the report of the metrics so far.

        Args:
            workers: the number of workers; 0 if unknown.
        """
        total = metrics.total()
        return cls(
            policy=policy,
            seconds=metrics.seconds,
            calls=metrics.calls,
            scheduler_s=scheduler_s,
            loop_s=loop_s,
            storage_s=storage_s,
            overhead_s=metrics.overhead_s,
            total=total,
            classes=tuple(metrics.by_class()),
            queries=tuple(metrics.by_query()),
            pending_over_time=tuple(metrics.pending_over_time.rows),
            errors=tuple(str(error) for error in errors),
            decisions=metrics.calls,
            utilisation=total.busy_s / (workers * metrics.seconds or nan),
            bytes_mean=metrics.bytes_mean,
            bytes_max=metrics.bytes_max,
            over_time=metrics.results_over_time.rows(),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON.

        A figure of a line that does not apply, such as the QoS of a query without a graph, is left
        out; NaN elsewhere, which means unknown, becomes None.
        """
        plain = asdict(self)
        for line in (plain["total"], *plain["classes"], *plain["queries"]):
            for name in IF_IT_APPLIES:
                if isnan(line[name]):
                    del line[name]
        with_none: dict[str, Any] = _with_none(plain)
        return with_none

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Report":
        """Return the report that `to_dict` was called on."""
        lines = {
            "total": _line(data["total"]),
            "classes": tuple(map(_line, data["classes"])),
            "queries": tuple(map(_line, data["queries"])),
            "pending_over_time": tuple(map(tuple, data["pending_over_time"])),
            "over_time": tuple(tuple(_number(v) for v in row) for row in data["over_time"]),
        }
        return replace(cls(**{**_with_nan(data), **lines}), errors=tuple(data["errors"]))


def _line(data: dict[str, Any]) -> Line:
    sums = {key: Summary(**_with_nan(data[key])) for key in ("response_s", "slowdown")}
    return Line(**{**_with_nan(data), **sums})


def _number(value: float | None) -> float:
    return nan if value is None else value


def _with_nan(values: dict[str, Any]) -> dict[str, Any]:
    return {name: nan if value is None else value for name, value in values.items()}


def _with_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_none(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_none(part) for part in value]
    return None if isinstance(value, float) and isnan(value) else value
