"""The command that reproduces the papers' figures: parse, call the sweep, print the verdicts."""

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headgate.cli.output.progress import overall_bar
from headgate.experiments.report import VERDICTS, counts

IDS = Annotated[
    list[str] | None,
    typer.Argument(metavar="FIGURE...", help="Figures such as sharaf-07.", show_default=False),
]


def reproduce_figures(
    ids: IDS = None,
    paper: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="All figures of aurora, amos, cqc, sharaf or bz."),
    ] = None,
    all_figures: Annotated[bool, typer.Option("--all", help="All figures of all papers.")] = False,
    listing: Annotated[
        bool, typer.Option("--list", help="List the figures and run nothing.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer values, queries, tuples and seeds: minutes.")
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Number of seeds. Default: the paper's, or 5; 2 with --quick."),
    ] = None,
    master: Annotated[str, typer.Option(help="The Spark that the runs are tasks of.")] = "local[*]",
    report: Annotated[
        str, typer.Option(metavar="FOLDER", help="Where the report is written.")
    ] = "report",
    cache: Annotated[
        str, typer.Option(metavar="FOLDER", help="Where results are kept for later calls.")
    ] = "state/reproduce",
    traces: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Parquet files of recorded arrivals, for more panels."),
    ] = None,
    live: Annotated[
        bool,
        typer.Option("--live", help="Afterwards, also measure on Spark what the engine can run."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print report.json.")] = False,
) -> None:
    """Reproduce figures of the papers by simulation, and write a report with their statements.

    The runs are tasks of one Spark job per batch. Results are kept: an interrupted command goes on
    where it stopped, and figures that read the same runs share them. With --live, the runs on Spark
    follow one after the other.

    Example: headgate reproduce sharaf-07 --quick
    """
    from headgate.experiments.reproduce import chosen, reproduce  # noqa: PLC0415  # imports Spark

    experiments = chosen(
        ids or (), paper=paper, all_figures=all_figures or listing, live=live and not listing
    )
    if listing:
        for experiment in experiments:
            print(f"{experiment.id:<11} {experiment.title}")
        return
    with overall_bar() as progress:
        reproduction = reproduce(
            experiments, quick=quick, seeds=seeds, master=master, report=report, cache=cache,
            traces=traces,
            progress=lambda done, total: progress(f"{done} of {total} runs", done / (total or 1)),
        )  # fmt: skip
    if as_json:
        print(json.dumps({"figures": reproduction.figures}))
    else:
        _show(reproduction.figures)
    print(f"report: {reproduction.page}", file=sys.stderr)


def _show(figures: list[dict[str, Any]]) -> None:
    table = Table("figure", "the paper's statement", "here", "measured")
    for figure in figures:
        for statement in figure["statements"]:
            verdict = VERDICTS[statement["holds"]]
            table.add_row(figure["id"], statement["text"], verdict, statement["measured"])
    Console().print(table)
    numbers = counts(figures)
    print(", ".join(f"{numbers[verdict]} {text}" for verdict, text in VERDICTS.items()))
