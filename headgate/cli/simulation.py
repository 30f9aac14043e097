"""The commands of virtual time: simulate and compare. Each parses, calls the runtime, prints."""

import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from headgate.cli import options
from headgate.cli.output import measure_tables
from headgate.cli.output.progress import overall_bar, policy_bars
from headgate.errors import ConfigRefused
from headgate.runtime import compare as compare_policies
from headgate.runtime import spelled, workload


@options.with_options(options.WITH_CHARGES)
def simulate(
    shared: options.SimulationOptions,
    ctx: typer.Context,
    seed: Annotated[
        int,
        typer.Option(
            min=0, help="Seed for every random choice: arrivals, selectivities, testbeds."
        ),
    ] = 0,
) -> None:
    """Run queries in virtual time, without Spark: those of a pipeline file or of a testbed.

    For a file, costs and selectivities are those that `headgate run` has recorded in the state
    directory, or those of the file if there is no record.

    Example: headgate simulate --testbed sharaf --queries 100 --tuples 5000 --policy hr,hnr,bsd
    """
    _refuse_plot(shared.plot)
    chosen = options.policies(shared)
    with options.suggesting_options(ctx):
        source, settings = options.simulation_request(ctx.command.name, shared)
        simulated = workload(source, seed=seed, **settings)
    chosen = chosen or spelled(simulated.usual_policy)
    with policy_bars(chosen, simulated.ends_at_s) as watch:
        reports = [simulated.simulate(policy, watch(policy)) for policy in chosen]
    _write(shared.plot, lambda plots: plots.over_time_page(reports, simulated.name))
    if shared.as_json:
        print(json.dumps([report.to_dict() for report in reports]))
    else:
        measure_tables.show_measures(simulated, reports)


@options.with_options(options.WITH_CHARGES)
def compare(
    shared: options.SimulationOptions,
    ctx: typer.Context,
    objective: Annotated[
        str,
        typer.Option(
            metavar="MEASURE[:class=NAME|:query=NAME]",
            help="Measure to compare: mean_response, p95_response, max_slowdown, memory, qos, ...",
        ),
    ],
    seeds: Annotated[
        int, typer.Option(min=1, help="Number of seeds that each policy runs with.")
    ] = 5,
    patience_s: Annotated[
        float,
        typer.Option(min=0, help="Leave out policies that take longer than this for one seed."),
    ] = 60.0,
) -> None:
    """Run every applicable policy on the same queries; show which is best, and by how much.

    Example: headgate compare --testbed cqc --workload B --objective p95_response:class=H
    """
    _refuse_plot(shared.plot)
    names = [policy.text for policy in options.policies(shared)]
    with options.suggesting_options(ctx), overall_bar() as progress:
        source, settings = options.simulation_request(ctx.command.name, shared)
        comparison = compare_policies(
            source, objective=objective, policies=names, seeds=seeds, patience_s=patience_s,
            progress=progress, **settings,
        )  # fmt: skip
    _write(shared.plot, lambda plots: plots.comparison_page(comparison))
    if shared.as_json:
        print(json.dumps(comparison.to_dict()))
    else:
        measure_tables.show_comparison(comparison)


def _refuse_plot(file: str | None) -> None:
    """Raise ConfigRefused if a plot is wanted and the library that draws it is not installed."""
    if file is not None and find_spec("plotly") is None:
        raise ConfigRefused(
            path="--plot",
            key="plotly",
            value=None,
            expected="installed: pip install 'headgate[plots]'",
        )


def _write(file: str | None, page: Callable[[ModuleType], str]) -> None:
    """Write a page if a file for it is named.

    Args:
        page: returns the page, drawn by `headgate.experiments.plots`.

    Raises:
        ConfigRefused: the file cannot be written.
    """
    if file is None:
        return
    from headgate.experiments import plots  # noqa: PLC0415  # plotly is an extra

    try:
        Path(file).write_text(page(plots))
    except OSError as error:
        reason = (error.strerror or "it is not").lower()
        raise ConfigRefused(
            path="--plot", key="file", value=file, expected=f"writable: {reason}"
        ) from error
    print(f"plot: {file}", file=sys.stderr)
