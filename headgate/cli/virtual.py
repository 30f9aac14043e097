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


@options.of_a_workload
def simulate(
    ctx: typer.Context,
    seed: Annotated[int, typer.Option(min=0, help="Of all luck: which tuples pass, testbeds.")] = 0,
) -> None:
    """Runs queries in virtual time, without Spark: a pipeline file's, or those of a testbed.

    Of a file, costs and selectivities are those that `headgate run` has recorded in the state
    directory, else those of the file.

    Example: headgate simulate --testbed sharaf --queries 100 --tuples 5000 --policy hr,hnr,bsd
    """
    chosen = options.policies(ctx)
    with options.own_options_too(ctx):
        of, settings = options.asked(ctx)
        made = workload(of, seed=seed, **settings)
    chosen = chosen or spelled(made.usual_policy)
    with of_each(chosen, made.ends_at_s) as watch:
        reports = [made.simulate(each, watch(each)) for each in chosen]
    _write(ctx.params["plot"], lambda: over_time_page(reports, made.name))
    if ctx.params["as_json"]:
        print(json.dumps([report.to_dict() for report in reports]))
    else:
        measured.show_measures(made, reports)


@options.of_a_workload
def compare(
    ctx: typer.Context,
    objective: Annotated[
        str,
        typer.Option(
            metavar="MEASURE[:class=NAME|:query=NAME]",
            help="What counts: mean_response, p95_response, max_slowdown, memory, qos, ...",
        ),
    ],
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds each policy runs on.")] = 5,
    patience_s: Annotated[
        float, typer.Option(min=0, help="Leave out policies that take longer for one seed.")
    ] = 60.0,
) -> None:
    """Runs every policy that applies on the same queries and says which is best, by how much.

    Example: headgate compare --testbed cqc --workload B --objective p95_response:class=H
    """
    names = [each.text for each in options.policies(ctx)]
    with options.own_options_too(ctx), of_all() as progress:
        of, settings = options.asked(ctx)
        found = compare_policies(
            of, objective=objective, policies=names, seeds=seeds, patience_s=patience_s,
            progress=progress, **settings,
        )  # fmt: skip
    _write(ctx.params["plot"], lambda: comparison_page(found))
    if ctx.params["as_json"]:
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
