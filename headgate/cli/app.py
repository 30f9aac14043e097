"""The command line application: run, check, policies, testbeds and the commands of other files."""

import json
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from headgate.access import sentence_of
from headgate.cli import (
    adjust,
    catalog,
    operate,
    options,
    page,
    repair,
    replay,
    reproduce,
    simulation,
)
from headgate.cli.output import tables
from headgate.cli.top import top
from headgate.cli.watch import run_each, run_one
from headgate.cli.why import why
from headgate.config import read_pipeline
from headgate.errors import HeadgateError, SparkGone
from headgate.runtime import check as check_file
from headgate.runtime import spelled

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"headgate {version('headgate')}")
        raise typer.Exit


@app.callback()
def headgate(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Run hundreds of continuous queries of different importance in one Spark application.

    Example: headgate run examples/forest.yaml --seconds 20
    """


@app.command()
@options.with_options(options.RunOptions)
def run(request: options.RunOptions) -> None:
    """Run a pipeline on Spark. Several policies run one after the other and are compared.

    With several policies, each has its own folder under the state directory. The folder is emptied
    first.

    Example: headgate run examples/forest.yaml --policy rr,cqc --seconds 20
    """
    options.load_modules(request.module)
    pipeline = read_pipeline(request.file, os.environ, **request.settings)
    chosen = spelled(request.policy or pipeline.policy.name)
    seconds, address = request.seconds, request.address
    if len(chosen) > 1:
        reports = run_each(
            request.file, Path(pipeline.state), chosen, seconds, request.module or [],
            record=request.record, address=address,
        )  # fmt: skip
    else:
        policy, fresh = chosen[0], request.fresh
        reports = [
            run_one(
                pipeline, policy, seconds=seconds, fresh=fresh, address=address,
                by_option=request.policy is not None,
            )
        ]  # fmt: skip
    if request.as_json:
        print(json.dumps([report.to_dict() for report in reports]))
    else:
        tables.show_reports(reports)
    raise typer.Exit(1 if any(report.errors for report in reports) else 0)


@app.command()
@options.with_options(options.RunOptions)
def check(
    request: options.RunOptions,
    show: Annotated[bool, typer.Option(help="Show where each value comes from.")] = False,
) -> None:
    """Check a pipeline file without running it, and show all mistakes with their lines.

    Spark is started once and analyzes all queries. The command takes every option of `run`; those
    without effect on the check are ignored.

    Example: headgate check examples/forest.yaml
    """
    checked = check_file(
        request.file, os.environ, modules=request.module or [], policy=request.policy,
        fresh=request.fresh,
        **request.settings,
    )  # fmt: skip
    if show and checked.pipeline is not None:
        tables.show_settings(checked.pipeline)
    if request.as_json:
        print(json.dumps(checked.to_dict()))
    else:
        tables.show_check(checked)
    raise typer.Exit(2 if checked.mistakes else 0)


app.command(context_settings=options.ANY_OPTION)(simulation.simulate)
app.command(context_settings=options.ANY_OPTION)(simulation.compare)
app.command()(replay.replay)
app.command("reproduce")(reproduce.reproduce_figures)
for command in (
    operate.add, operate.drop, operate.status, operate.health, operate.explain,
    operate.sql, operate.stop, repair.restart, repair.pause, repair.resume, repair.alter,
):  # fmt: skip
    app.command()(command)
app.command("open")(page.open_page)
app.command()(why)
app.command()(top)
app.add_typer(adjust.set_app, name="set")


@app.command()
def policies(
    name: Annotated[
        str | None, typer.Argument(help="The policy to explain. Default: list all.")
    ] = None,
    module: options.MODULES = None,
    as_json: options.JSON = False,
) -> None:
    """List the policies with objective, paper and parameters, or explain one.

    Example: headgate policies cqc
    """
    options.load_modules(module)
    catalog.show_policies(name, as_json=as_json)


@app.command("testbeds")
def list_testbeds(
    name: Annotated[str | None, typer.Argument(help="The testbed to show. Default: all.")] = None,
    as_json: options.JSON = False,
) -> None:
    """List the testbeds of the papers with their variants, options and defaults.

    Example: headgate testbeds sharaf
    """
    catalog.show_testbeds(name, as_json=as_json)


def main(words: Sequence[str] | None = None) -> None:
    """Run a command; print a user's error as a sentence, without a stack trace.

    Args:
        words: what stands after `headgate` on the command line. Default: the process's arguments.
    """
    try:
        app(words, prog_name="headgate")
    except HeadgateError as error:
        print(error, file=sys.stderr)
        sys.exit(1 if isinstance(error, SparkGone) else 2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk, for example
        print(sentence_of(error), file=sys.stderr)
        sys.exit(1)
