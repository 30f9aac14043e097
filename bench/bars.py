"""The lines of a benchmark: a measurement, the bar it must reach, and whether it does."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["pass", "miss", ""]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One measured number and the bar it must reach.

    Args:
        bar: the least value that passes, or the greatest if `at_most`.
        figures: other figures of the same measurement, for the file of results.
    """

    what: str
    measured: float
    unit: str
    bar: float | None = None
    at_most: bool = False
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        if self.bar is None:
            return ""
        reached = self.measured <= self.bar if self.at_most else self.measured >= self.bar
        return "pass" if reached else "miss"

    def to_dict(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "measured": self.measured,
            "unit": self.unit,
            "bar": self.bar,
            "bar_is": "at most" if self.at_most else "at least",
            "verdict": self.verdict,
            **self.figures,
        }


def table(measurements: Sequence[Measurement]) -> str:
    """Return the measurements as a table of text."""
    width = max(len(row.what) for row in measurements)
    lines = [f"{'what':{width}}  {'measured':>12}  {'bar':>12}  unit"]
    for row in measurements:
        bar = ""
        if row.bar is not None:
            bar = f"{'≤' if row.at_most else '≥'} {row.bar:g}"
        line = f"{row.what:{width}}  {_number(row.measured):>12}  {bar:>12}  {row.unit}"
        lines.append(f"{line}  {row.verdict.upper() if row.verdict == 'miss' else row.verdict}")
    return "\n".join(line.rstrip() for line in lines)


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
