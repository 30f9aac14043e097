"""The verbs: run, check, simulate, policies. Each parses, calls the runtime, prints."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from headgate.cli import tables
from headgate.cli.watch import run_each, run_one
from headgate.config import read_pipeline
from headgate.errors import HeadgateError, UnknownName
from headgate.metrics.report import Report
from headgate.policies import policies as known_policies
from headgate.runtime import load, simulate_pipeline

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Runs hundreds of continuous queries of different importance on one Spark application.",
)

FILE = Annotated[str, typer.Argument(metavar="FILE", help="The pipeline file.")]
POLICIES = Annotated[
    str | None, typer.Option("--policy", help="Policies, comma-separated; else that of the file.")
]
JSON = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.command()
def run(
    file: FILE,
    policy: POLICIES = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            min=1, help="Take in tuples for so long, then finish them; else until Ctrl-C."
        ),
    ] = None,
    state: Annotated[
        str | None, typer.Option(help="State directory; else that of the file.")
    ] = None,
    fresh: Annotated[bool, typer.Option(help="Empty the state directory first.")] = False,
    as_json: JSON = False,
) -> None:
    """Runs a pipeline on Spark; several policies run one after the other and are compared.

    With several policies each has a folder of its own under the state directory, emptied first.

    Example: headgate run examples/forest.yaml --policy rr,cqc --seconds 20
    """
    pipeline = read_pipeline(file, os.environ, **({"state": state} if state else {}))
    names = _names(policy, pipeline.policy.name)
    if len(names) > 1:
        reports = run_each(file, Path(pipeline.state), names, seconds)
    else:
        reports = [run_one(pipeline, names[0], seconds=seconds, fresh=fresh)]
    _print(reports, as_json)
    raise typer.Exit(1 if any(report.errors for report in reports) else 0)


@app.command()
def check(
    file: FILE,
    show: Annotated[bool, typer.Option(help="Say where each value comes from.")] = False,
) -> None:
    """Checks a pipeline file without running it; Spark analyses the queries.

    Example: headgate check examples/forest.yaml
    """
    pipeline = read_pipeline(file, os.environ)
    if show:
        tables.show_settings(pipeline)
    with TemporaryDirectory() as state:
        load(pipeline, state=Path(state)).stop()
    print(f"{file}: {len(pipeline.streams)} streams and {len(pipeline.queries)} queries can run.")


@app.command()
def simulate(
    file: FILE,
    policy: POLICIES = None,
    seconds: Annotated[float, typer.Option(min=0.001, help="How long tuples arrive.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Decides which tuples pass.")] = 0,
    as_json: JSON = False,
) -> None:
    """Runs a pipeline's queries in virtual time, without Spark, a table for each policy.

    Costs and selectivities are those that `headgate run` has recorded in the state directory, else
    those of the file.

    Example: headgate simulate examples/forest.yaml --policy hr,hnr,cqc --seconds 600
    """
    pipeline = read_pipeline(file, os.environ)
    names = _names(policy, pipeline.policy.name)
    with tables.progress(len(names) * seconds) as advance:
        reports = [
            simulate_pipeline(
                pipeline, policy=name, seconds=seconds, seed=seed, progress=advance(at)
            )
            for at, name in enumerate(names)
        ]
    _print(reports, as_json)


@app.command()
def policies(
    name: Annotated[str | None, typer.Argument(help="One policy, explained.")] = None,
    as_json: JSON = False,
) -> None:
    """Lists the policies with paper and objective, or explains one.

    Example: headgate policies cqc
    """
    entries = known_policies()
    if name is not None and name not in entries:
        raise UnknownName(kind="policy", name=name, known=entries)
    tables.show_policies(list(entries.values()), only=name, as_json=as_json)


def main() -> None:
    """Runs the command line; an error of the user's is a sentence, not a stack trace."""
    try:
        app()
    except HeadgateError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def _print(reports: Sequence[Report], as_json: bool) -> None:
    if as_json:
        print(json.dumps([report.to_dict() for report in reports]))
    else:
        tables.show_reports(reports)


def _names(policy: str | None, default: str) -> list[str]:
    names = [name.strip() for name in (policy or default).split(",") if name.strip()]
    for name in names:
        if name not in known_policies():
            raise UnknownName(kind="policy", name=name, known=known_policies())
    return names
