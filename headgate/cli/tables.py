"""Tables: how the reports of runs and settings look on a screen."""

import sys
from collections.abc import Sequence
from math import isnan

from rich.console import Console
from rich.table import Table

from headgate.config import Pipeline
from headgate.metrics.report import Report
from headgate.metrics.run import Line

out = Console(width=None if sys.stdout.isatty() else 100)


def show_reports(reports: Sequence[Report]) -> None:
    """Prints a line for each class and policy, and the last policy against the first."""
    out.print("response time in seconds, slowdown and pending tuples by class")
    out.print(_comparison(reports))
    for report in reports:
        busy_s = report.total.busy_s or 1.0
        scheduler = f", scheduler {report.scheduler_s:.2f} s" if report.scheduler_s else ""
        out.print(
            f"{report.policy}: {report.seconds:.1f} s, {report.calls} calls that kept workers busy"
            f" for {busy_s:.1f} s, overhead {report.overhead_s / busy_s:.0%} of it{scheduler}",
            highlight=False,
        )
    if len(reports) > 1:
        first, last = reports[0], reports[-1]
        for before, after in zip(first.classes, last.classes, strict=True):
            ratio = before.response_s.mean / after.response_s.mean
            faster = f"{ratio:.1f} times sooner" if ratio >= 1 else f"{1 / ratio:.1f} times later"
            out.print(
                f"class {before.name}: {last.policy} answers {faster} than {first.policy} (mean)"
            )


def live_table(report: Report, policy: str) -> Table:
    """Gives the table of a run under way."""
    table = _empty_table(
        f"{policy}, {report.seconds:.0f} s", "class", "pending", "results", *_TIMES[:2]
    )
    for line in report.classes:
        response_s = line.response_s
        table.add_row(
            line.name,
            f"{line.pending:,}",
            f"{response_s.count:,}",
            _s(response_s.mean),
            _s(response_s.p95),
        )
    return table


def show_settings(pipeline: Pipeline) -> None:
    """Prints every top-level value and where it comes from."""
    for name, field in type(pipeline).model_fields.items():
        value = getattr(pipeline, name)
        shown = f"{len(value)} of them" if name in ("streams", "queries") else value
        origin = pipeline.origins.get(name, "default")
        out.print(f"{name} = {shown}  ({origin}): {field.description}", markup=False)


_TIMES = ("mean s", "p95 s", "max s", "ℓ2 s")


def _comparison(reports: Sequence[Report]) -> Table:
    table = _empty_table(
        "", "class", "policy", "results", *_TIMES, "slowed", "p95", "pending", "max"
    )
    for position in range(len(reports[0].classes)):
        for report in reports:
            table.add_row(*_cells(report.classes[position], report.policy))
        table.add_section()
    return table


def _cells(line: Line, policy: str) -> list[str]:
    response_s, slowdown = line.response_s, line.slowdown
    return [
        line.name,
        policy,
        _count(response_s.count),
        _s(response_s.mean),
        _s(response_s.p95),
        _s(response_s.maximum),
        _count(response_s.norm),
        _s(slowdown.mean),
        _s(slowdown.p95),
        _count(line.pending_mean),
        _count(line.pending_max),
    ]


def _empty_table(title: str, *columns: str) -> Table:
    table = Table(title=title or None, title_justify="left")
    for column in columns:
        table.add_column(column, justify="left" if column in ("class", "policy") else "right")
    return table


def _s(value: float) -> str:
    return "–" if isnan(value) else f"{value:.2f}" if value < 1000 else f"{value:,.0f}"


def _count(value: float) -> str:
    """Gives a number that a table of 100 letters has room for.

    >>> _count(99_999.4), _count(1_271_200)
    ('99,999', '1.271 M')
    """
    return f"{value:,.0f}" if value < 999_999.5 else f"{value / 1e6:,.3f} M"
