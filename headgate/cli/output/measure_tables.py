"""Tables of simulations and comparisons: measures as rows, policies as columns."""

from collections.abc import Sequence
from math import isclose, isnan

from rich.table import Table

from headgate.cli.output.tables import out, show
from headgate.metrics.line import Line
from headgate.metrics.measures import MEASURES, Measure
from headgate.metrics.report import Report
from headgate.runtime import Comparison, Workload

ROOM = 66
"""Screen columns that the policies share, beside the column of measures."""

WIDEST = 16
"""Most screen columns of a policy; a longer name is folded."""

SILENT_AT_ZERO = ("shed", "scheduler_overhead", "storage_overhead", "call_overhead")
OF_A_CLASS = (
    "mean_response", "p95_response", "max_response", "mean_slowdown", "max_slowdown",
    "output_rate", "qos", "staleness", "tardiness", "queue",
)  # fmt: skip


def show_measures(workload: Workload, reports: Sequence[Report]) -> None:
    """Print every measure that some policy has a value for, and the main ones of each class."""
    seed = workload.options.get("seed", 0)
    out.print(f"{workload.name}, {workload.level} level, seed {seed}", highlight=False)
    out.print(f"{workload.note}", highlight=False, markup=False)
    for group in _fitting(reports):
        show(_table(group))


def show_comparison(comparison: Comparison) -> None:
    """Print the policies from best to worst, those left out, and the verdict."""
    out.print(f"{comparison.workload}: {comparison.note}", highlight=False, markup=False)
    out.print(f"{comparison.label}, {len(comparison.seeds)} seeds", highlight=False)
    table = Table()
    table.add_column("rank", justify="right")
    table.add_column("policy")
    table.add_column("train")
    for name in ("mean", "least", "most", "÷ best"):
        table.add_column(name, justify="right")
    for standing in comparison.standings:
        name = standing.policy if standing.runs_on_spark else f"{standing.policy} *"
        values = (standing.mean, standing.least, standing.most)
        cells = (name, standing.train, *map(number, values), f"{standing.ratio:.2f}")
        table.add_row(str(standing.rank), *cells)
    show(table)
    if not all(standing.runs_on_spark for standing in comparison.standings):
        out.print("* simulation only: it must know the outcome of each tuple", highlight=False)
    for policy, reason in comparison.skipped:
        out.print(f"left out: {policy} {reason}", highlight=False, markup=False)
    out.print(comparison.verdict, highlight=False, markup=False)


def number(value: float) -> str:
    """Return a number with four digits, or all digits before the point; a dash for NaN."""
    if isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def _fitting(reports: Sequence[Report]) -> list[Sequence[Report]]:
    """Split the policies into groups that fit side by side on a screen of 100 columns."""
    groups: list[list[Report]] = [[]]
    for report in reports:
        width = sum(_width(member) for member in [*groups[-1], report])
        if groups[-1] and width > ROOM:
            groups.append([])
        groups[-1].append(report)
    return [*groups]


def _width(report: Report) -> int:
    return min(max(9, len(report.policy)), WIDEST) + 3


def _header(report: Report) -> str:
    """Return a policy's name; in a long one, every parameter has its own line."""
    name = report.policy
    return name if len(name) <= WIDEST else name.replace("(", "(\n").replace(",", ",\n")


def _table(reports: Sequence[Report]) -> Table:
    table = Table()
    table.add_column("")
    for report in reports:
        table.add_column(_header(report), justify="right", max_width=WIDEST, overflow="fold")
    table.add_row("tuples per call, at most", *(report.train for report in reports))
    totals = [report.total for report in reports]
    _add(table, "results", [float(line.response_s.count) for line in totals])
    for measure in MEASURES.values():
        values = [measure.of(report) for report in reports]
        if _says_something(measure, values, reports):
            _add(table, measure.label, values, measure)
    for place, first in enumerate(reports[0].classes):
        if len(reports[0].classes) > 1:
            table.add_section()
            _add_class(table, first.name, reports, [report.classes[place] for report in reports])
    return table


def _add_class(table: Table, name: str, reports: Sequence[Report], lines: Sequence[Line]) -> None:
    _add(table, f"{name}: results", [float(line.response_s.count) for line in lines])
    for measure in (MEASURES[measure_name] for measure_name in OF_A_CLASS):
        pairs = zip(reports, lines, strict=True)
        values = [measure.of(report, line) for report, line in pairs]
        if _says_something(measure, values, reports):
            _add(table, f"{name}: {measure.label}", values, measure)


def _says_something(measure: Measure, values: Sequence[float], reports: Sequence[Report]) -> bool:
    """Return True if a row is worth showing: it has a value, and is not all zero or a repeat."""
    if all(isnan(value) for value in values):
        return False
    if measure.name in SILENT_AT_ZERO and not any(values):
        return False
    lines = [report.total for report in reports]
    same = all(isclose(line.staleness, line.weighted_staleness) for line in lines)
    return not (measure.name == "weighted_staleness" and same)


def _add(table: Table, name: str, values: Sequence[float], measure: Measure | None = None) -> None:
    """Add a row; the best value is bold."""
    numbers = [value for value in values if not isnan(value)]
    best = None
    if measure is not None and len(set(numbers)) > 1:
        best = max(numbers) if measure.more_is_better else min(numbers)
    cells = [f"[bold]{number(value)}[/]" if value == best else number(value) for value in values]
    table.add_row(name, *cells)
