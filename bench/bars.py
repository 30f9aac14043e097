"""What a benchmark says: a line per measurement, the bar it must reach, and whether it does."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["pass", "miss", ""]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One number. `bar` is what it must reach: at least, or at most where `at_most` says so.

    Args:
        figures: what else was measured with it, for the file of results.
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
    """Gives the measurements as text."""
    width = max(len(each.what) for each in measurements)
    lines = [f"{'what':{width}}  {'measured':>12}  {'bar':>12}  unit"]
    for each in measurements:
        bar = ""
        if each.bar is not None:
            bar = f"{'≤' if each.at_most else '≥'} {each.bar:g}"
        line = f"{each.what:{width}}  {_number(each.measured):>12}  {bar:>12}  {each.unit}"
        lines.append(f"{line}  {each.verdict.upper() if each.verdict == 'miss' else each.verdict}")
    return "\n".join(line.rstrip() for line in lines)


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
