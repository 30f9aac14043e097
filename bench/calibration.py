"""Recorded runs and their replays: how far the simulation is from the measurement, by class."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bars import Measurement
from headgate import replay
from parts import run_sides

FOREST = Path(__file__).parents[1] / "examples" / "forest.yaml"
SECONDS = 180
"""Time for twelve bursts. In an overload, the call that happens to run decides how long all others
wait: over the four bursts of a minute, the simulation of one run was 31 % off, and that of three
others 7 or 8 %."""

BAR_PERCENT = 25.0


def measurements(folder: Path) -> Iterator[Measurement]:
    """Yield the error of the worst simulated class, for two overloads and two quiet runs."""
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
    outcome = replay(state)
    errors = {query_class.name: 100 * query_class.error for query_class in outcome.calibration}
    return Measurement(
        what=f"replay of {what}: error of mean response, worst class",
        measured=max(map(abs, errors.values())),
        unit="%",
        bar=BAR_PERCENT,
        at_most=True,
        figures={
            "error_percent": errors,
            "measured_s": {
                query_class.name: query_class.measured_s for query_class in outcome.calibration
            },
            "same_decisions": outcome.same_decisions,
        },
    )
