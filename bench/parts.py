"""The runner of a benchmark: it runs the parts in turn and compares every row with its bar."""

import argparse
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from bars import Measurement, table
from machine import facts
from native import Request, compared, interrupt, talk, working_folder
from settings import prepare
from verdict import DISTURBED_CORES, SideResult

Part = Callable[[Path], Iterator[Measurement]]

WARM_UP_S, SECONDS, GRACE_S = 20.0, 30.0, 30.0


def run(parts: Mapping[str, Part], about: str) -> int:
    """Measure all parts, or those named on the command line; return the exit code."""
    arguments = _arguments(parts, about)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    results: list[Measurement] = []
    broken: list[str] = []
    rows: list[dict[str, object]] = []
    began_s = time.perf_counter()
    try:
        with working_folder(arguments.keep) as folder:
            prepare(folder)
            for name in arguments.only or parts:
                talk(f"part '{name}'")
                part = folder / name
                part.mkdir()
                for file in ("classes", "fairscheduler.xml"):
                    (part / file).symlink_to(folder / file)
                try:
                    for result in parts[name](part):
                        talk(table([result]).splitlines()[-1])
                        results.append(result)
                        rows.append({"part": name, "at": facts()["date"], **result.to_dict()})
                except (subprocess.CalledProcessError, LookupError, TypeError) as error:
                    code = getattr(error, "returncode", None)
                    reason = repr(error) if code is None else f"a process ended with code {code}"
                    broken.append(f"part '{name}' could not be measured: {reason}")
                    talk(broken[-1])
    except KeyboardInterrupt:
        talk("interrupted")
        return 130
    print(table(results))
    if arguments.results is not None:
        order = list(parts)
        rows += _earlier_rows(arguments.results, arguments.only or order)
        answer = {
            "machine": facts(),
            "seconds": round(time.perf_counter() - began_s),
            "rows": sorted(rows, key=lambda row: order.index(str(row["part"]))),
            "not measured": broken,
        }
        arguments.results.write_text(json.dumps(answer, indent=1) + "\n")
    missed = [result for result in results if result.verdict == "miss"]
    print(f"{len(missed)} of {sum(result.bar is not None for result in results)} bars missed")
    return 1 if missed or broken else 0


def run_sides(
    folder: Path, sides: tuple[str, ...], *, queries: int, mix: str = "demo", **others: float
) -> dict[str, SideResult]:
    """Run sides one after the other. What goes wrong with a side is in its result."""
    folder.mkdir(exist_ok=True)
    for file in ("classes", "fairscheduler.xml"):
        if not (folder / file).exists():
            (folder / file).symlink_to(folder.parent / file)
    settings = {"rate_per_s": 1500.0, "tick_s": 0.5, "seconds": SECONDS, "grace_s": GRACE_S}
    request = Request(
        queries=queries, warm_up_s=WARM_UP_S, sides=sides, mix=mix, **{**settings, **others}
    )
    results = {side: compared(side, request, folder) for side in sides}
    for side, result in results.items():
        others_cores = result.conditions.get("other_cores", 0.0)
        if others_cores > DISTURBED_CORES:
            talk(f"! {side} was disturbed: others used {others_cores:.2f} cores")
    return results


def figures_of(results: dict[str, SideResult], more: dict[str, object]) -> dict[str, object]:
    sides = {
        side: {
            "conditions": dict(result.conditions),
            "problems": result.problems,
            "classes": {name: asdict(line) for name, line in result.classes.items()},
        }
        for side, result in results.items()
    }
    return {**more, "sides": sides}


def _earlier_rows(file: Path, measured: list[str]) -> list[dict[str, object]]:
    """Return the rows in the file of those parts that were not measured this time."""
    if not file.exists():
        return []
    rows: list[dict[str, object]] = json.loads(file.read_text())["rows"]
    return [row for row in rows if row.get("part") not in measured]


def _arguments(parts: Mapping[str, Part], about: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--only", type=lambda text: text.split(","), help=",".join(parts))
    parser.add_argument(
        "--results",
        type=Path,
        help="write the rows to this file, as JSON; rows of other parts stay",
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep all files, in DIR")
    return parser.parse_args()
