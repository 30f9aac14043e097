"""A report: what a run or a simulation was worth, as frozen data."""

from dataclasses import asdict, dataclass, replace
from math import isnan, nan
from typing import Any

from headgate.metrics.run import Line, RunMetrics
from headgate.metrics.tally import Summary


@dataclass(frozen=True)
class Report:
    """One line a class, one a query, one for all.

    `seconds` is the time that passed, from the first event to the last; `scheduler_s` is what the
    scheduler itself used of it to hear and to decide, `loop_s` that and what it took to keep these
    figures; `overhead_s` is what calls took of the workers' time however many tuples they had.
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
    """Samples: seconds from the start, then the pending tuples of each class in order."""
    errors: tuple[str, ...] = ()
    storage_s: float = 0.0
    """What the storage manager took; `scheduler_s` and `overhead_s` are the other two parts."""
    loop_s: float = 0.0
    decisions: int = 0
    box_calls: int = 0
    utilisation: float = nan
    """Share of the workers' time that calls took."""
    bytes_mean: float = nan
    bytes_max: float = nan
    memory_mean: float = nan
    """Tuples in memory, one that several queues or windows hold counted once (BZ §4); the most."""
    memory_max: float = nan
    over_time: tuple[tuple[float, ...], ...] = ()
    """Samples: seconds, pending tuples and bytes, then of the results since the last sample their
    number, mean response, mean slowdown and mean utility."""

    @classmethod
    def of(
        cls,
        policy: str,
        metrics: RunMetrics,
        scheduler_s: float = 0.0,
        errors: tuple[Exception, ...] = (),
        loop_s: float = 0.0,
    ) -> "Report":
        """Gives the report of what the metrics have heard so far."""
        return cls(
            policy=policy,
            seconds=metrics.seconds,
            calls=metrics.calls,
            scheduler_s=scheduler_s,
            loop_s=loop_s,
            overhead_s=metrics.overhead_s,
            total=metrics.total(),
            classes=tuple(metrics.by_class()),
            queries=tuple(metrics.by_query()),
            pending_over_time=tuple(metrics.pending_over_time.rows),
            errors=tuple(str(error) for error in errors),
            decisions=metrics.calls,
            over_time=metrics.results_over_time.rows(),
        )

    def to_dict(self) -> dict[str, Any]:
        """Gives plain data for JSON; what is not known (NaN) is None."""
        plain: dict[str, Any] = _with_none(asdict(self))
        return plain

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Report":
        """Gives the report that `to_dict` was called on."""
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
