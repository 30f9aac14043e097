"""The command line application: run, check, policies, testbeds and the commands of other files."""

import json
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from headgate.access import sentence_of
from headgate.cli import catalog, operate, options, replayed, tables, virtual
from headgate.cli.watch import run_each, run_one
from headgate.config import read_pipeline
from headgate.errors import HeadgateError, SparkGone
from headgate.runtime import load, spelled

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
def run(
    file: options.FILE,
    policy: options.POLICIES = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            min=1,
            help="Accept tuples for this long, then finish them. Default: until stopped or Ctrl-C.",
        ),
    ] = None,
    state: Annotated[
        str | None, typer.Option(help="State directory. Default: that of the file.")
    ] = None,
    fresh: Annotated[bool, typer.Option(help="Begin with an empty state directory.")] = False,
    control: Annotated[
        bool,
        typer.Option("--control/--no-control", help="Let other commands query and change the run."),
    ] = True,
    record: Annotated[
        bool, typer.Option("--record", help="Record the run, for `headgate replay`.")
    ] = False,
    module: options.MODULES = None,
    as_json: options.JSON = False,
) -> None:
    """Run a pipeline on Spark. Several policies run one after the other and are compared.

    With several policies, each has its own folder under the state directory. The folder is emptied
    first.

    Example: headgate run examples/forest.yaml --policy rr,cqc --seconds 20
    """
    options.load_modules(module)
    flags = {key: value for key, value in {"state": state, "record": record}.items() if value}
    pipeline = read_pipeline(file, os.environ, **flags)
    chosen = spelled(policy or pipeline.policy.name)
    if len(chosen) > 1:
        reports = run_each(
            file, Path(pipeline.state), chosen, seconds, module or [],
            record=record, controlled=control,
        )  # fmt: skip
    else:
        reports = [run_one(pipeline, chosen[0], seconds=seconds, fresh=fresh, controlled=control)]
    if as_json:
        print(json.dumps([report.to_dict() for report in reports]))
    else:
        tables.show_reports(reports)
    raise typer.Exit(1 if any(report.errors for report in reports) else 0)


@app.command()
def check(
    file: options.FILE,
    show: Annotated[bool, typer.Option(help="Show where each value comes from.")] = False,
) -> None:
    """Check a pipeline file without running it. Spark analyzes the queries.

    Example: headgate check examples/forest.yaml
    """
    pipeline = read_pipeline(file, os.environ)
    if show:
        tables.show_settings(pipeline)
    with TemporaryDirectory() as state:
        load(pipeline, state=Path(state)).stop()
    print(f"{file}: {len(pipeline.streams)} streams and {len(pipeline.queries)} queries can run.")


app.command(context_settings=options.ANY_OPTION)(virtual.simulate)
app.command(context_settings=options.ANY_OPTION)(virtual.compare)
app.command()(replayed.replay)
for command in (
    operate.add, operate.drop, operate.status, operate.explain, operate.sql, operate.stop,
):  # fmt: skip
    app.command()(command)
app.add_typer(operate.set_app, name="set")


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
