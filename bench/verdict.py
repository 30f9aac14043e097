"""The outcome of a comparison: a line per class and side, the failures, and the ratios."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from commit_times import Measured
from queries import CLASSES, Selection

LEAST_SHARE = 0.99
ALL = "all"
DISTURBED_CORES = 0.25
"""The generator and this script use less. If other processes use more, the times are spoiled."""

TITLES = {
    "native-fifo": "native FIFO",
    "native-fair": "native FAIR",
    "headgate": "Headgate cqc",
    "headgate-spark": "Headgate cqc, Spark's ingest",
    "headgate-recorded": "Headgate cqc, recorded",
}


@dataclass(frozen=True)
class Line:
    """The rows of a class, or of all queries, on one side; times are None if there are no rows."""

    queries: int
    expected: int
    committed: int
    surplus: int
    mean_s: float | None = None
    p50_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None
    max_s: float | None = None

    @property
    def share(self) -> float:
        return self.committed / self.expected if self.expected else 1.0


@dataclass(frozen=True)
class SideResult:
    """The lines of a side by class and by query, and its errors."""

    side: str
    classes: Mapping[str, Line] = field(default_factory=dict)
    queries: Mapping[str, Line] = field(default_factory=dict)
    errors: Sequence[str] = ()
    conditions: Mapping[str, float] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        """The reasons why the side has failed; empty if it has not."""
        problems = list(self.errors)
        if ALL in self.classes:
            line = self.classes[ALL]
            if line.share < LEAST_SHARE:
                problems.append(f"committed {line.share:.3f} of the expected rows")
            if line.surplus:
                problems.append(f"committed {line.surplus} rows that nobody expected")
        return problems

    def to_dict(self) -> dict[str, Any]:
        return {
            "failed": self.problems,
            "conditions": dict(self.conditions),
            "classes": {name: _plain(line) for name, line in self.classes.items()},
            "queries": {name: _plain(line) for name, line in self.queries.items()},
        }


def lines_of(
    queries: Sequence[Selection], measured: Mapping[str, Measured]
) -> tuple[dict[str, Line], dict[str, Line]]:
    """Return the lines by class, with one line for all, and by query."""
    names = {name: [query for query in queries if query.query_class == name] for name in CLASSES}
    groups = {**names, ALL: list(queries)}
    by_class = {
        name: _line([measured[query.name] for query in group]) for name, group in groups.items()
    }
    return by_class, {query.name: _line([measured[query.name]]) for query in queries}


def ratios(results: Sequence[SideResult]) -> dict[str, dict[str, float | None]]:
    """Return the better native time over Headgate's, by class. A failed native side is left out.

    If both native sides failed, the better of the two is used. Its rows are the fast ones, so the
    ratio is rather too small.
    """
    by_side = {result.side: result for result in results}
    ours = by_side.get("headgate")
    natives = [result for result in results if result.side != "headgate" and result.classes]
    natives = [result for result in natives if not result.problems] or natives
    if ours is None or not ours.classes or not natives:
        return {}
    return {
        name: {
            key: _ratio([getattr(native.classes[name], key) for native in natives], ours, name, key)
            for key in ("mean_s", "p95_s")
        }
        for name in (*CLASSES, ALL)
    }


def table(results: Sequence[SideResult]) -> str:
    """Return the comparison as text; a star marks the times of a side that failed."""
    better = ratios(results)
    first, second = f"{'':6}{'':>8}", f"{'class':6}{'queries':>8}"
    for result in results:
        first += f"  {TITLES[result.side]:^24}"
        second += f"  {'mean s':>8}{'p95 s':>8}{'share':>8}"
    if better:
        first += f"  {'native / Headgate':^18}"
        second += f"  {'mean':>9}{'p95':>9}"
    lines = [first.rstrip(), second]
    for name in (*CLASSES, ALL):
        sizes = [result.classes[name].queries for result in results if result.classes]
        text = f"{name:6}{max(sizes, default=0):8d}"
        for result in results:
            text += "  " + _cells(result, name)
        if better:
            text += f"  {_times(better[name]['mean_s']):>9}{_times(better[name]['p95_s']):>9}"
        lines.append(text)
    lines.append("")
    for result in results:
        lines += _conditions(result) if result.conditions else []
        lines += [f"* {TITLES[result.side]} FAILED: {problem}" for problem in result.problems]
    return "\n".join(lines)


def _conditions(result: SideResult) -> list[str]:
    facts = result.conditions
    lines = [
        f"{TITLES[result.side]}: used {facts['side_cores']:.2f} cores,"
        f" others {facts['other_cores']:.2f}, the host {facts['stolen_cores']:.2f};"
        f" tuples were late by {facts['late_p95_s'] * 1e3:.0f} ms (p95),"
        f" {facts['late_max_s'] * 1e3:.0f} ms at most"
    ]
    if facts["other_cores"] + facts["stolen_cores"] > DISTURBED_CORES:
        lines.append(f"! {TITLES[result.side]} was disturbed: its times are no measurement")
    return lines


def _cells(result: SideResult, name: str) -> str:
    if not result.classes:
        return f"{'-':>8}{'-':>8}{'-':>8}"
    line, star = result.classes[name], "*" if result.problems else ""
    return f"{_seconds(line.mean_s, star):>8}{_seconds(line.p95_s, star):>8}{line.share:8.3f}"


def _seconds(seconds: float | None, star: str) -> str:
    return "-" if seconds is None else f"{seconds:.2f}{star}"


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.1f} x"


def _ratio(native_s: Sequence[float | None], ours: SideResult, name: str, key: str) -> float | None:
    known_s = [seconds for seconds in native_s if seconds is not None]
    our_s = getattr(ours.classes[name], key)
    return min(known_s) / our_s if known_s and our_s else None


def _line(measured: Sequence[Measured]) -> Line:
    responses_s = np.concatenate([rows.responses_s for rows in measured] or [np.zeros(0)])
    times: tuple[float, ...] = ()
    if responses_s.size:
        quantiles = np.quantile(responses_s, (0.5, 0.95, 0.99)).tolist()
        times = (float(responses_s.mean()), *quantiles, float(responses_s.max()))
    return Line(
        len(measured),
        sum(rows.expected for rows in measured),
        sum(rows.committed for rows in measured),
        sum(rows.surplus for rows in measured),
        *times,
    )


def _plain(line: Line) -> dict[str, Any]:
    return {**asdict(line), "share": line.share}
