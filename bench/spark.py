"""Measures the Spark engine against native Structured Streaming and against the machine's limits.

Every row is printed beside its bar; exits with 1 where one is missed. Run it on a machine that does
nothing else: a part during which others used a quarter of a core says so.

    python bench/spark.py
    python bench/spark.py --only low,streams --results bench/results/spark.json
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import many_streams
import saturation
from bars import Measurement, table
from machine import facts
from native import Request, compared, interrupt, talk, working_folder
from settings import prepare
from sides import REPORTED
from verdict import DISTURBED_CORES, SideResult

Part = Callable[[Path], Iterator[Measurement]]

WARM_UP_S, SECONDS, GRACE_S = 20.0, 30.0, 30.0
CRITICAL_P99_S = 2.0


def against_native(folder: Path) -> Iterator[Measurement]:
    """50 selections of three classes: response by class, and what they cost in CPU time."""
    sides = ("native-fifo", "native-fair", "headgate")
    found = _sides(folder, sides, queries=50)
    ours = found["headgate"]
    natives = [found[side] for side in sides[:2]]
    usable = [each for each in natives if not each.problems] or natives
    for name in ("H", "C", "N", "all"):
        for key, bar in (("p95_s", 10.0 if name == "H" else None), ("mean_s", 3.0)):
            theirs = min(getattr(each.classes[name], key) for each in usable if each.classes)
            own = getattr(ours.classes[name], key)
            yield Measurement(
                what=f"50 queries: {key[:-2]} response of {name}, native / Headgate",
                measured=theirs / own,
                unit="times",
                bar=bar if name != "all" else None,
                figures=_figures(found, {"native_s": theirs, "headgate_s": own}),
            )
    cpu = {side: _cpu_s_per_million(result) for side, result in found.items()}
    yield Measurement(
        what="50 queries: CPU seconds per million tuples, native / Headgate",
        measured=min(cpu[side] for side in sides[:2]) / cpu["headgate"],
        unit="times",
        bar=5.0,
        figures={"cpu_s_per_million": cpu},
    )


def low_load(folder: Path) -> Iterator[Measurement]:
    """One query and six, hardly any load: what a result waits for when nobody else does."""
    sides = ("native-fifo", "headgate", "headgate-spark")
    for queries in (1, 6):
        found = _sides(
            folder / str(queries), sides, queries=queries, mix="distinct", rate_per_s=150.0,
            tick_s=0.1, seconds=20.0, grace_s=5.0,
        )  # fmt: skip
        native_s = found["native-fifo"].classes["all"].mean_s or 0.0
        for side, bar, way in (
            ("headgate", 0.5, "asked by the driver"),
            ("headgate-spark", 1.5, "through Structured Streaming"),
        ):
            own_s = found[side].classes["all"].mean_s or 0.0
            yield Measurement(
                what=f"{queries} at low load, {way}: mean response, Headgate / native",
                measured=own_s / native_s,
                unit="times",
                bar=bar,
                at_most=True,
                figures=_figures(found, {"native_s": native_s, "headgate_s": own_s}),
            )


def sustained(folder: Path) -> Iterator[Measurement]:
    """Queries that two cores carry: the critical class within two seconds, nothing left behind."""
    for mix, queries in (("distinct", 500), ("constants", 2000)):
        found = _sides(
            folder / mix, ("headgate",), queries=queries, mix=mix, seconds=20.0, grace_s=15.0
        )
        result = found["headgate"]
        p99_s = result.classes["H"].p99_s if result.classes else None
        carried = p99_s is not None and p99_s < CRITICAL_P99_S and not result.problems
        figures = _figures(found, {"p99_s": p99_s, "problems": result.problems})
        yield Measurement(
            what=f"queries carried of {queries}, {mix} (p99 of H {p99_s or 0:.2f} s)",
            measured=float(queries if carried else 0),
            unit="queries",
            bar=float(queries),
            figures=figures,
        )
        reported = folder / mix / "headgate" / REPORTED
        if mix == "distinct" and reported.exists():
            own = json.loads(reported.read_text())
            for key, bar, what in (
                ("scheduler_s", 1.0, "hearing and deciding"),
                ("loop_s", None, "that and keeping the figures"),
            ):
                yield Measurement(
                    what=f"scheduler at {queries} units, of the time of a step: {what}",
                    measured=100 * own[key] / max(own["busy_s"], 1e-9),
                    unit="%",
                    bar=bar,
                    at_most=True,
                    figures=own,
                )
    carried_natively = 0
    for queries in (6, 24):
        found = _sides(
            folder / f"native-{queries}", ("native-fifo",), queries=queries, mix="distinct",
            seconds=20.0, grace_s=15.0,
        )  # fmt: skip
        result = found["native-fifo"]
        p99_s = result.classes["H"].p99_s if result.classes else None
        if p99_s is None or p99_s >= CRITICAL_P99_S or result.problems:
            break
        carried_natively = queries
    yield Measurement(
        what="queries carried by native, of 6 and 24", measured=carried_natively, unit="queries"
    )


PARTS: dict[str, Part] = {
    "native": against_native,
    "low": low_load,
    "sustained": sustained,
    "saturation": saturation.measurements,
    "streams": many_streams.measurements,
}


def main() -> int:
    asked = _arguments()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    found: list[Measurement] = []
    broken: list[str] = []
    rows: list[dict[str, object]] = []
    began_s = time.perf_counter()
    try:
        with working_folder(asked.keep) as folder:
            prepare(folder)
            for name in asked.only or PARTS:
                talk(f"part '{name}'")
                part = folder / name
                part.mkdir()
                for file in ("classes", "fairscheduler.xml"):
                    (part / file).symlink_to(folder / file)
                try:
                    for each in PARTS[name](part):
                        talk(table([each]).splitlines()[-1])
                        found.append(each)
                        rows.append({"part": name, "at": facts()["date"], **each.to_dict()})
                except (subprocess.CalledProcessError, LookupError, TypeError) as error:
                    code = getattr(error, "returncode", None)
                    why = repr(error) if code is None else f"a process ended with code {code}"
                    broken.append(f"part '{name}' could not be measured: {why}")
                    talk(broken[-1])
    except KeyboardInterrupt:
        talk("interrupted")
        return 130
    print(table(found))
    if asked.results is not None:
        order = list(PARTS)
        rows += _kept(asked.results, asked.only or order)
        answer = {
            "machine": facts(),
            "seconds": round(time.perf_counter() - began_s),
            "rows": sorted(rows, key=lambda row: order.index(str(row["part"]))),
            "not measured": broken,
        }
        asked.results.write_text(json.dumps(answer, indent=1) + "\n")
    missed = [each for each in found if each.verdict == "miss"]
    print(f"{len(missed)} of {sum(each.bar is not None for each in found)} bars missed")
    return 1 if missed or broken else 0


def _sides(
    folder: Path, sides: tuple[str, ...], *, queries: int, mix: str = "demo", **others: float
) -> dict[str, SideResult]:
    """Runs sides one after the other; what goes wrong with one is in its result."""
    folder.mkdir(exist_ok=True)
    for file in ("classes", "fairscheduler.xml"):
        if not (folder / file).exists():
            (folder / file).symlink_to(folder.parent / file)
    settings = {"rate_per_s": 1500.0, "tick_s": 0.5, "seconds": SECONDS, "grace_s": GRACE_S}
    request = Request(
        queries=queries, warm_up_s=WARM_UP_S, sides=sides, mix=mix, **{**settings, **others}
    )
    found = {side: compared(side, request, folder) for side in sides}
    for side, result in found.items():
        others_cores = result.conditions.get("other_cores", 0.0)
        if others_cores > DISTURBED_CORES:
            talk(f"! {side} was disturbed: others used {others_cores:.2f} cores")
    return found


def _kept(file: Path, measured: list[str]) -> list[dict[str, object]]:
    """Gives the rows of parts that were not measured this time, as the file has them."""
    if not file.exists():
        return []
    rows: list[dict[str, object]] = json.loads(file.read_text())["rows"]
    return [row for row in rows if row.get("part") not in measured]


def _cpu_s_per_million(result: SideResult) -> float:
    """Gives the CPU time of a million tuples in, scaled to those that were answered."""
    share = result.classes["all"].share if result.classes else 0.0
    return result.conditions["side_cores"] / (1500.0 * max(share, 1e-9)) * 1e6


def _figures(found: dict[str, SideResult], more: dict[str, object]) -> dict[str, object]:
    sides = {
        side: {
            "conditions": dict(result.conditions),
            "problems": result.problems,
            "classes": {name: asdict(line) for name, line in result.classes.items()},
        }
        for side, result in found.items()
    }
    return {**more, "sides": sides}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=lambda text: text.split(","), help=",".join(PARTS))
    parser.add_argument(
        "--results",
        type=Path,
        help="write the rows to this file, as JSON; rows of other parts stay",
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep all files in a folder there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
