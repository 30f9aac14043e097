"""Runs that are recorded and replayed: how far a simulation is from what was measured, by class."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bars import Measurement
from headgate import replay
from parts import run_sides

FOREST = Path(__file__).parents[1] / "examples" / "forest.yaml"
SECONDS = 180
"""Twelve bursts. In an overload, who happens to be in a call decides how long everybody waits: over
the four bursts of a minute, one run was simulated 31 % off and three others 7 or 8 %."""

BAR_PERCENT = 25.0


def measurements(folder: Path) -> Iterator[Measurement]:
    """Gives the error of the class that is simulated worst: two overloads, two quiet runs."""
    for policy in ("rr", "cqc"):
        state = folder / f"forest-{policy}"
        command = [
            "headgate.cli",
            "run",
            str(FOREST),
            "--policy",
            policy,
            "--seconds",
            str(SECONDS),
        ]
        command = [sys.executable, "-m", *command, "--record", "--state", str(state)]
        subprocess.run(command, check=True, capture_output=True)
        yield _calibrated(f"the demo, an overload, under {policy}", state)
    for mix, queries, what in (("demo", 50, "50 queries"), ("cqc-A", 21, "CQC A")):
        run_sides(folder / mix, ("headgate-recorded",), queries=queries, mix=mix)
        yield _calibrated(f"{what} under cqc", folder / mix / "headgate-recorded" / "state")


def _calibrated(what: str, state: Path) -> Measurement:
    found = replay(state)
    errors = {each.name: 100 * each.error for each in found.calibration}
    return Measurement(
        what=f"replay of {what}: error of mean response, worst class",
        measured=max(map(abs, errors.values())),
        unit="%",
        bar=BAR_PERCENT,
        at_most=True,
        figures={
            "error_percent": errors,
            "measured_s": {each.name: each.measured_s for each in found.calibration},
            "same_decisions": found.same_decisions,
        },
    )
