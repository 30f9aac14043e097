"""How simulations and comparisons look: measures as rows, policies as columns."""

from collections.abc import Sequence
from math import isclose, isnan

from rich.table import Table

from headgate.cli.tables import out
from headgate.metrics.measures import MEASURES, Measure
from headgate.metrics.report import Report
from headgate.metrics.run import Line
from headgate.runtime import Comparison, Workload

ROOM = 66
"""Columns of the screen that are left for policies beside the measures."""

WIDEST = 16
"""Columns that a policy has at the most; a longer name is folded."""

SILENT_AT_ZERO = ("shed", "scheduler_overhead", "storage_overhead", "call_overhead")
OF_A_CLASS = (
    "mean_response", "p95_response", "max_response", "mean_slowdown", "max_slowdown",
    "output_rate", "qos", "staleness", "tardiness", "queue",
)  # fmt: skip


def show_measures(workload: Workload, reports: Sequence[Report]) -> None:
    """Prints every measure that some policy has a value for, and the main ones of each class."""
    seed = workload.options.get("seed", 0)
    out.print(f"{workload.name}, {workload.level} level, seed {seed}", highlight=False)
    out.print(f"{workload.note}", highlight=False, markup=False)
    for some in _fitting(reports):
        out.print(_table(some))


def show_comparison(found: Comparison) -> None:
    """Prints the policies from best to worst, those left out, and the verdict."""
    out.print(f"{found.workload}: {found.note}", highlight=False, markup=False)
    out.print(f"{found.label}, {len(found.seeds)} seeds", highlight=False)
    table = Table()
    table.add_column("rank", justify="right")
    table.add_column("policy")
    for name in ("mean", "least", "most", "÷ best"):
        table.add_column(name, justify="right")
    for each in found.standings:
        name = each.policy if each.runs_on_spark else f"{each.policy} *"
        values = (each.mean, each.least, each.most)
        table.add_row(str(each.rank), name, *map(number, values), f"{each.ratio:.2f}")
    out.print(table)
    if not all(each.runs_on_spark for each in found.standings):
        out.print("* in a simulation only: it foresees single tuples", highlight=False)
    for policy, reason in found.skipped:
        out.print(f"left out: {policy} {reason}", highlight=False, markup=False)
    out.print(found.verdict, highlight=False, markup=False)


def number(value: float) -> str:
    """Gives four digits of a number, or all before the point; a dash for what is not known."""
    if isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def _fitting(reports: Sequence[Report]) -> list[Sequence[Report]]:
    """Cuts policies into groups that fit beside each other on a screen of 100 columns."""
    groups: list[list[Report]] = [[]]
    for report in reports:
        width = sum(_width(each) for each in [*groups[-1], report])
        if groups[-1] and width > ROOM:
            groups.append([])
        groups[-1].append(report)
    return [*groups]


def _width(report: Report) -> int:
    return min(max(9, len(report.policy)), WIDEST) + 3


def _header(report: Report) -> str:
    """Gives a policy's name; a long one with every parameter on a line of its own."""
    name = report.policy
    return name if len(name) <= WIDEST else name.replace("(", "(\n").replace(",", ",\n")


def _table(reports: Sequence[Report]) -> Table:
    table = Table()
    table.add_column("")
    for report in reports:
        table.add_column(_header(report), justify="right", max_width=WIDEST, overflow="fold")
    totals = [report.total for report in reports]
    _add(table, "results", [float(line.response_s.count) for line in totals])
    for measure in MEASURES.values():
        values = [measure.of(report) for report in reports]
        if _says_something(measure, values, reports):
            _add(table, measure.label, values, measure)
    for place, each in enumerate(reports[0].classes):
        if len(reports[0].classes) > 1:
            table.add_section()
            _add_class(table, each.name, reports, [report.classes[place] for report in reports])
    return table


def _add_class(table: Table, name: str, reports: Sequence[Report], lines: Sequence[Line]) -> None:
    _add(table, f"{name}: results", [float(line.response_s.count) for line in lines])
    for measure in (MEASURES[each] for each in OF_A_CLASS):
        pairs = zip(reports, lines, strict=True)
        values = [measure.of(report, line) for report, line in pairs]
        if _says_something(measure, values, reports):
            _add(table, f"{name}: {measure.label}", values, measure)


def _says_something(measure: Measure, values: Sequence[float], reports: Sequence[Report]) -> bool:
    """Says whether a row is worth its place: somebody has a value, and it says something new."""
    if all(isnan(value) for value in values):
        return False
    if measure.name in SILENT_AT_ZERO and not any(values):
        return False
    lines = [report.total for report in reports]
    same = all(isclose(line.staleness, line.weighted_staleness) for line in lines)
    return not (measure.name == "weighted_staleness" and same)


def _add(table: Table, name: str, values: Sequence[float], measure: Measure | None = None) -> None:
    """Adds a row; on a screen with colours the best value stands out."""
    known = [value for value in values if not isnan(value)]
    best = None
    if measure is not None and len(set(known)) > 1:
        best = max(known) if measure.more_is_better else min(known)
    cells = [f"[bold]{number(value)}[/]" if value == best else number(value) for value in values]
    table.add_row(name, *cells)
