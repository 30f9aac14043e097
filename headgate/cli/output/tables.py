"""Tables of the reports of runs, and the list of settings."""

import sys
from collections.abc import Sequence
from math import isnan

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from headgate.config import Pipeline
from headgate.metrics.line import Line
from headgate.metrics.report import Report
from headgate.runtime import Checked

out = Console(width=None if sys.stdout.isatty() else 100)


def show(table: Table, *, markup: bool = True) -> None:
    """Print a table: on a terminal in its width, elsewhere as wide as its longest cells."""
    if out.is_terminal:
        out.print(table, markup=markup, highlight=markup)
        return
    options = out.options.update(width=MOST_COLUMNS)
    width = Measurement.get(out, options, table).maximum
    wide = Console(width=max(out.width, width))
    wide.print(table, markup=markup, highlight=markup)


MOST_COLUMNS = 1 << 30
"""The width of the widest table in a file or pipe, where no cell may be cut."""

SAME = 1.05
"""Means that differ by a smaller factor count as equal."""


def show_reports(reports: Sequence[Report]) -> None:
    """Print a line for each class and policy, and what to conclude from several policies."""
    out.print("Response time: from the arrival of a tuple to the instant its result is visible.")
    show(_comparison(reports))
    if len(reports) > 1:
        out.print(conclusion(reports[0], reports[-1]), highlight=False)


def conclusion(first: Report, last: Report) -> str:
    """Return what the last policy did for every class, compared with the first, in a sentence."""
    verdicts = [
        _verdict(before.name, before.response_s.mean, after.response_s.mean)
        for before, after in zip(first.classes, last.classes, strict=True)
    ]
    return f"Under {last.policy}, compared with {first.policy}: {'; '.join(verdicts)}."


def _verdict(name: str, before_s: float, after_s: float) -> str:
    """Return how much sooner or later a class is answered.

    >>> _verdict("H", 3.0, 0.5), _verdict("N", 8.0, 10.0)
    ('class H is answered 6.0 times sooner', 'class N waits longer, 1.2 times')
    >>> _verdict("C", 1.0, 1.02), _verdict("C", float("nan"), 1.0)
    ('class C is answered as soon', 'class C has no results to compare')
    """
    if not (before_s > 0 and after_s > 0):
        return f"class {name} has no results to compare"
    if max(before_s, after_s) < SAME * min(before_s, after_s):
        return f"class {name} is answered as soon"
    if after_s < before_s:
        return f"class {name} is answered {before_s / after_s:.1f} times sooner"
    return f"class {name} waits longer, {after_s / before_s:.1f} times"


def live_table(report: Report, policy: str) -> Table:
    """Return the table of a run in progress."""
    table = _empty_table(
        f"{policy}, {report.seconds:.0f} s", "class", "tuples waiting", "results", *_TIMES[:2]
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
    """Print every top-level value and where it comes from."""
    for name, field in type(pipeline).model_fields.items():
        value = getattr(pipeline, name)
        text = f"{len(value)} of them" if name in ("streams", "queries") else value
        origin = pipeline.origins.get(name, "default")
        out.print(f"{name} = {text}  ({origin}): {field.description}", markup=False)


def show_check(checked: Checked) -> None:
    """Print that a pipeline can run, or all its mistakes to stderr; and what is worth knowing."""
    for note in checked.notes:
        print(f"{checked.file}: note: {note}.", file=sys.stderr)
    for mistake in checked.mistakes:
        print(mistake, file=sys.stderr)
    if checked.unread:
        names = ", ".join(checked.unread)
        print(
            f"{checked.file}: not analyzed, since what they read is refused: {names}",
            file=sys.stderr,
        )
    if checked.mistakes:
        count = len(checked.mistakes)
        print(f"{checked.file}: {count} mistake{'s' * (count > 1)}.", file=sys.stderr)
    elif checked.pipeline is not None:
        streams, queries = len(checked.pipeline.streams), len(checked.pipeline.queries)
        counts = f"{_count(streams, 'stream')} and {_count(queries, 'query', 'queries')}"
        print(f"{checked.file}: {counts} can run.")


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


_TIMES = ("mean response", "95 % within", "longest")


def _comparison(reports: Sequence[Report]) -> Table:
    table = _empty_table("", "class", "policy", "results", *_TIMES)
    for position in range(len(reports[0].classes)):
        for report in reports:
            table.add_row(*_cells(report.classes[position], report.policy))
        table.add_section()
    return table


def _cells(line: Line, policy: str) -> list[str]:
    response_s = line.response_s
    times_s = (response_s.mean, response_s.p95, response_s.maximum)
    return [line.name, policy, f"{response_s.count:,}", *map(_s, times_s)]


def _empty_table(title: str, *columns: str) -> Table:
    table = Table(title=title or None, title_justify="left")
    for column in columns:
        table.add_column(column, justify="left" if column in ("class", "policy") else "right")
    return table


def _s(value: float) -> str:
    return "–" if isnan(value) else f"{value:.2f} s" if value < 1000 else f"{value:,.0f} s"
