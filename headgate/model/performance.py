"""The performance specification: which metrics count, which way and how much (AMoS §3.2)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum
from typing import Any, Literal, NoReturn, cast, get_args

from headgate.errors import ConfigRefused, UnknownName

METRICS = (
    "mean_response_s",
    "max_response_s",
    "p95_response_s",
    "norm_response_s",
    "mean_slowdown",
    "max_slowdown",
    "norm_slowdown",
    "output_per_s",
    "pending",
    "pending_bytes",
    "qos",
    "staleness",
    "tardiness_s",
)
"""Metrics to choose from. `pending` is the mean total queue size in tuples, `norm_` an ℓ2 norm."""

Quantifier = Literal["minimize", "maximize"]

PLACE = "performance specification"
ROW = "metric:quantifier:weight, as in mean_response_s:minimize:0.6"
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Requirement:
    """One row of a specification: a metric, its quantifier, and its weight as a part of 1."""

    metric: str
    quantifier: Quantifier
    weight: float

    @property
    def sign(self) -> int:
        """q of AMoS eq 2: 1 where more is better, −1 where less is."""
        return 1 if self.quantifier == "maximize" else -1

    def __str__(self) -> str:
        return f"{self.metric}:{self.quantifier}:{self.weight!r}"


@dataclass(frozen=True)
class PerformanceSpecification:
    """Rows whose weights sum to 1. Weights are relative on purpose: AMoS §3.2 asks for no target.

    A specification is immutable; to change a run's specification, replace it.

    Raises:
        UnknownName: a row's metric is not in `METRICS`.
        ConfigRefused: a row, or the sum of the weights, is not valid.
    """

    requirements: tuple[Requirement, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for number, row in enumerate(self.requirements, start=1):
            place = _row(number, row.metric)
            if row.metric not in METRICS:
                where = f"{PLACE}, row {number}"
                raise UnknownName(kind="metric", name=row.metric, known=METRICS, where=where)
            if row.metric in seen:
                _refuse(place, row.metric, "a metric that no other row has: join the two weights")
            if row.quantifier not in get_args(Quantifier):
                _refuse(f"{place}, quantifier", row.quantifier, "minimize or maximize")
            if not 0 <= row.weight <= 1:
                _refuse(f"{place}, weight", row.weight, "between 0 and 1")
            seen.add(row.metric)
        total = fsum(row.weight for row in self.requirements)
        if not self.requirements:
            _refuse("rows", None, f"at least one {ROW[: ROW.index(',')]}")
        if abs(total - 1) > TOLERANCE:
            _refuse("sum of weights", round(total, 12), f"1: {self._correction(total)}")

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def _correction(self, total: float) -> str:
        """Describe how to make the weights sum to 1: change one row if that works, else all."""
        number, last = len(self.requirements), self.requirements[-1]
        weight = round(last.weight + 1 - total, 12)
        if 0 < weight <= 1:
            return f"give {_row(number, last.metric)} {weight:g} instead of {last.weight:g}"
        rows = ", ".join(_row(n, row.metric) for n, row in enumerate(self.requirements, start=1))
        return f"divide the weight of each row by it ({rows})" if total else f"give {rows} weights"


Rows = str | Iterable[Mapping[str, Any] | Requirement] | PerformanceSpecification


def specification_of(rows: Rows) -> PerformanceSpecification:
    """Return the specification written as a compact text, or as a list of rows.

    >>> str(specification_of("mean_response_s:minimize:0.6, output_per_s:maximize:0.4"))
    'mean_response_s:minimize:0.6,output_per_s:maximize:0.4'
    >>> table_3 = [
    ...     {"metric": "pending", "quantifier": "minimize", "weight": 0.75},
    ...     {"metric": "mean_response_s", "quantifier": "minimize", "weight": 0.25},
    ... ]
    >>> [row.sign for row in specification_of(table_3).requirements]
    [-1, -1]
    """
    if isinstance(rows, PerformanceSpecification):
        return rows
    if isinstance(rows, str):
        texts = [text for text in rows.split(",") if text.strip()]
        requirements = [
            _from_text(number, text.strip()) for number, text in enumerate(texts, start=1)
        ]
    elif isinstance(rows, Iterable) and not isinstance(rows, Mapping):
        requirements = [_from_row(number, row) for number, row in enumerate(rows, start=1)]
    else:
        _refuse("rows", rows, f"a list of rows, or a text of {ROW}")
    return PerformanceSpecification(tuple(requirements))


def _from_text(number: int, text: str) -> Requirement:
    parts = [part.strip() for part in text.split(":")]
    if len(parts) != 3:
        _refuse(f"row {number}", text, ROW)
    return _requirement(number, *parts)


def _from_row(number: int, row: Any) -> Requirement:
    if isinstance(row, Requirement):
        return row
    keys = ("metric", "quantifier", "weight")
    if not isinstance(row, Mapping):
        _refuse(f"row {number}", row, f"a mapping of {', '.join(keys)}")
    for key in row:
        if key not in keys:
            where = f"{PLACE}, row {number}"
            raise UnknownName(kind="key", name=str(key), known=keys, where=where)
    for key in keys:
        if key not in row:
            _refuse(f"row {number}", dict(row), f"complete: add its {key}")
    return _requirement(number, row["metric"], row["quantifier"], row["weight"])


def _requirement(number: int, metric: Any, quantifier: Any, weight: Any) -> Requirement:
    try:
        value = float(weight)
    except (TypeError, ValueError):
        _refuse(f"{_row(number, metric)}, weight", weight, "a number between 0 and 1")
    return Requirement(str(metric), cast(Quantifier, quantifier), value)


def _row(number: int, metric: object) -> str:
    return f"row {number} ({metric})"


def _refuse(key: str, value: object, expected: str) -> NoReturn:
    raise ConfigRefused(path=PLACE, key=key, value=value, expected=expected)
