"""The verb replay: parses, calls the runtime, prints."""

import json
from math import isnan
from typing import Annotated

import typer
from rich.table import Table

from headgate.cli import options
from headgate.cli.measured import number
from headgate.cli.tables import out
from headgate.runtime import Calibration, Replay, spelled
from headgate.runtime import replay as replay_run

RECORDING = Annotated[
    str,
    typer.Argument(metavar="RECORDING", help="A state directory, its recording, or one file."),
]


def replay(
    recording: RECORDING,
    policy: options.POLICIES = None,
    module: options.MODULES = None,
    as_json: options.JSON = False,
) -> None:
    """Simulates what a recorded run would have been under other policies, without Spark.

    The policy that ran is simulated too: how far that is from what was measured is the calibration.

    Example: headgate replay state/forest --policy rr,hr
    """
    options.load_modules(module)
    chosen = [each.text for each in spelled(policy)] if policy else []
    found = replay_run(recording, chosen)
    if as_json:
        print(json.dumps(found.to_dict()))
    else:
        show_replay(found)


def show_replay(found: Replay) -> None:
    """Prints a line for each class and policy, what was measured first, then the calibration."""
    out.print("response time in seconds and slowdown by class", highlight=False)
    table = Table()
    for name in ("class", "policy", "results", "mean s", "p95 s", "slowdown", "p95"):
        table.add_column(name, justify="left" if name in ("class", "policy") else "right")
    for place in range(len(found.measured.classes)):
        for report in (found.measured, *found.reports):
            line = report.classes[place]
            values = (
                float(line.response_s.count), line.response_s.mean, line.response_s.p95,
                line.slowdown.mean, line.slowdown.p95,
            )  # fmt: skip
            table.add_row(line.name, report.policy, *map(number, values))
        table.add_section()
    out.print(table)
    costs = found.costs
    out.print(
        f"cost model: {costs.steps} steps, mean error {costs.error:.0%}; a call takes"
        f" {costs.crowding:.0%} longer for each other under way",
        highlight=False,
    )
    same = "the same decisions" if found.same_decisions else "other decisions"
    out.print(f"told the same events again, the policy makes {same}", highlight=False)
    for each in found.calibration:
        out.print(_said(each), highlight=False)
    if not found.holds:
        out.print(
            "the simulation of the recorded run is more than 25 % off: do not trust the others",
            highlight=False,
        )


def _said(each: Calibration) -> str:
    if isnan(each.error):
        return f"calibration of class {each.name}: no results"
    return (
        f"calibration of class {each.name}: simulated {number(each.simulated_s)} s, measured"
        f" {number(each.measured_s)} s, {each.error:+.0%}"
    )
