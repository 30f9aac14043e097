"""The verbs of virtual time: simulate and compare. Each parses, calls the runtime, prints."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli import measured, options
from headgate.cli.progress import of_all, of_each
from headgate.errors import ConfigRefused
from headgate.experiments import comparison_page, over_time_page
from headgate.runtime import compare as compare_policies
from headgate.runtime import spelled, workload


def simulate(
    ctx: typer.Context,
    words: options.WORDS = None,
    testbed: options.TESTBED = None,
    policy: options.POLICIES = None,
    seconds: options.SECONDS = None,
    seed: Annotated[int, typer.Option(min=0, help="Of all luck: which tuples pass, testbeds.")] = 0,
    level: options.LEVEL = None,
    train: options.TRAIN = None,
    overhead_s: options.OVERHEAD_S = None,
    workers: options.WORKERS = None,
    sharing: options.SHARING = None,
    learns: options.LEARNS = False,
    trace: options.TRACE = None,
    trace_column: options.TRACE_COLUMN = None,
    trace_scale: options.TRACE_SCALE = None,
    module: options.MODULES = None,
    plot: options.PLOT = None,
    as_json: options.JSON = False,
) -> None:
    """Runs queries in virtual time, without Spark: a pipeline file's, or those of a testbed.

    Of a file, costs and selectivities are those that `headgate run` has recorded in the state
    directory, else those of the file.

    Example: headgate simulate --testbed sharaf --queries 100 --tuples 5000 --policy hr,hnr,bsd
    """
    options.load_modules(module)
    chosen = spelled(policy) if policy else []
    with options.own_options_too(ctx):
        of, settings = options.asked(ctx)
        made = workload(of, seed=seed, **settings)
    chosen = chosen or spelled(made.usual_policy)
    with of_each(chosen, made.ends_at_s) as watch:
        reports = [made.simulate(each, watch(each)) for each in chosen]
    _write(plot, lambda: over_time_page(reports, made.name))
    if as_json:
        print(json.dumps([report.to_dict() for report in reports]))
    else:
        measured.show_measures(made, reports)


def compare(
    ctx: typer.Context,
    objective: Annotated[
        str,
        typer.Option(
            metavar="MEASURE[:class=NAME|:query=NAME]",
            help="What counts: mean_response, p95_response, max_slowdown, memory, qos, ...",
        ),
    ],
    words: options.WORDS = None,
    testbed: options.TESTBED = None,
    policy: options.POLICIES = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds each policy runs on.")] = 5,
    patience_s: Annotated[
        float, typer.Option(min=0, help="Leave out policies that take longer for one seed.")
    ] = 60.0,
    seconds: options.SECONDS = None,
    level: options.LEVEL = None,
    train: options.TRAIN = None,
    overhead_s: options.OVERHEAD_S = None,
    workers: options.WORKERS = None,
    sharing: options.SHARING = None,
    learns: options.LEARNS = False,
    trace: options.TRACE = None,
    trace_column: options.TRACE_COLUMN = None,
    trace_scale: options.TRACE_SCALE = None,
    module: options.MODULES = None,
    plot: options.PLOT = None,
    as_json: options.JSON = False,
) -> None:
    """Runs every policy that applies on the same queries and says which is best, by how much.

    Example: headgate compare --testbed cqc --workload B --objective p95_response:class=H
    """
    options.load_modules(module)
    names = [each.text for each in spelled(policy)] if policy else []
    with options.own_options_too(ctx), of_all() as progress:
        of, settings = options.asked(ctx)
        found = compare_policies(
            of, objective=objective, policies=names, seeds=seeds, patience_s=patience_s,
            progress=progress, **settings,
        )  # fmt: skip
    _write(plot, lambda: comparison_page(found))
    if as_json:
        print(json.dumps(found.to_dict()))
    else:
        measured.show_comparison(found)


def _write(file: Path | None, page: Callable[[], str]) -> None:
    """Writes a page where one is asked for.

    Raises:
        ConfigRefused: the file cannot be written.
    """
    if file is None:
        return
    try:
        file.write_text(page())
    except OSError as error:
        reason = (error.strerror or "it is not").lower()
        raise ConfigRefused(
            path="--plot", key="file", value=str(file), expected=f"writable: {reason}"
        ) from error
    print(f"plot: {file}", file=sys.stderr)
