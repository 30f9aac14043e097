"""The command replay: parse, call the runtime, print."""

import json
import sys
from math import inf, isnan
from typing import Annotated

import typer
from rich.table import Table

from headgate.cli import options
from headgate.cli.output.measure_tables import number
from headgate.cli.output.tables import out, show
from headgate.runtime import Calibration, Replay, spelled
from headgate.runtime import replay as replay_run

RECORDING = Annotated[
    str,
    typer.Argument(
        metavar="RECORDING",
        help="A state directory, its `recording` folder, or one file of that folder.",
    ),
]


def replay(
    recording: RECORDING,
    policy: options.POLICIES = None,
    module: options.MODULES = None,
    last_minutes: Annotated[
        float | None,
        typer.Option(
            "--last",
            metavar="MINUTES",
            min=0.01,
            help="Report on the results of the last minutes only. Default: the whole run.",
        ),
    ] = None,
    as_json: options.JSON = False,
) -> None:
    """Simulate a recorded run under other policies, without Spark.

    The policy that ran is simulated too. The calibration is how far that simulation is from what
    was measured.

    Example: headgate replay state/forest --policy rr,hr
    """
    options.load_modules(module)
    chosen = [parsed.text for parsed in spelled(policy)] if policy else []
    last_s = inf if last_minutes is None else last_minutes * 60
    result = replay_run(
        recording, chosen, lambda text: print(f"simulating {text}", file=sys.stderr), last_s
    )
    if as_json:
        print(json.dumps(result.to_dict()))
    else:
        show_replay(result)


def show_replay(result: Replay) -> None:
    """Print a line for each class and policy, the measured run first, then the calibration."""
    out.print("response time in seconds and slowdown by class", highlight=False)
    table = Table()
    for name in ("class", "policy", "results", "mean s", "p95 s", "slowdown", "p95"):
        table.add_column(name, justify="left" if name in ("class", "policy") else "right")
    for place in range(len(result.measured.classes)):
        for report in (result.measured, *result.reports):
            line = report.classes[place]
            values = (
                float(line.response_s.count), line.response_s.mean, line.response_s.p95,
                line.slowdown.mean, line.slowdown.p95,
            )  # fmt: skip
            table.add_row(line.name, report.policy, *map(number, values))
        table.add_section()
    show(table)
    costs = result.costs
    out.print(
        f"cost model: {costs.steps} steps, mean error {costs.error:.0%}; a call takes"
        f" {costs.crowding:.0%} longer for each other call at the same time",
        highlight=False,
    )
    same = "the same decisions" if result.same_decisions else "other decisions"
    out.print(f"with the same events, the policy makes {same}", highlight=False)
    if result.difference:
        out.print(result.difference, highlight=False, markup=False)
    for calibration in result.calibration:
        out.print(_calibration_text(calibration), highlight=False)
    if not result.holds:
        out.print(
            "the simulation of the recorded run is more than 25 % off: do not trust the others",
            highlight=False,
        )


def _calibration_text(calibration: Calibration) -> str:
    if isnan(calibration.error):
        return f"calibration of class {calibration.name}: no results"
    return (
        f"calibration of class {calibration.name}: simulated {number(calibration.simulated_s)} s,"
        f" measured {number(calibration.measured_s)} s, {calibration.error:+.0%}"
    )
