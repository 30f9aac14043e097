"""Measure the Spark engine against native Structured Streaming and against the machine's limits.

Every row is printed beside its bar. The exit code is 1 if a bar is missed. Run it on a machine that
does nothing else: a warning follows a part during which others used a quarter of a core.

    python bench/spark.py
    python bench/spark.py --only low,streams --results bench/results/spark.json
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import calibration
import many_streams
import saturation
from bars import Measurement
from parts import Part, figures_of, run, run_sides
from sides import REPORTED
from verdict import SideResult

CRITICAL_P99_S = 2.0


def against_native(folder: Path) -> Iterator[Measurement]:
    """Yield, for 50 selections, native over Headgate: the response by class, and the CPU time."""
    sides = ("native-fifo", "native-fair", "headgate")
    results = run_sides(folder, sides, queries=50)
    ours = results["headgate"]
    natives = [results[side] for side in sides[:2]]
    usable = [native for native in natives if not native.problems] or natives
    for name in ("H", "C", "N", "all"):
        for key, bar in (("p95_s", 10.0 if name == "H" else None), ("mean_s", 3.0)):
            theirs = min(getattr(native.classes[name], key) for native in usable if native.classes)
            headgate_s = getattr(ours.classes[name], key)
            yield Measurement(
                what=f"50 queries: {key[:-2]} response of {name}, native / Headgate",
                measured=theirs / headgate_s,
                unit="times",
                bar=bar if name != "all" else None,
                figures=figures_of(results, {"native_s": theirs, "headgate_s": headgate_s}),
            )
    cpu = {side: _cpu_s_per_million(result) for side, result in results.items()}
    yield Measurement(
        what="50 queries: CPU seconds per million tuples, native / Headgate",
        measured=min(cpu[side] for side in sides[:2]) / cpu["headgate"],
        unit="times",
        bar=5.0,
        figures={"cpu_s_per_million": cpu},
    )


def low_load(folder: Path) -> Iterator[Measurement]:
    """Yield the response of one and of six queries with hardly any load: nobody else waits."""
    sides = ("native-fifo", "headgate", "headgate-spark")
    for queries in (1, 6):
        results = run_sides(
            folder / str(queries), sides, queries=queries, mix="distinct", rate_per_s=150.0,
            tick_s=0.1, seconds=20.0, grace_s=5.0,
        )  # fmt: skip
        native_s = results["native-fifo"].classes["all"].mean_s or 0.0
        for side, bar, way in (
            ("headgate", 0.5, "asked by the driver"),
            ("headgate-spark", 1.5, "through Structured Streaming"),
        ):
            headgate_s = results[side].classes["all"].mean_s or 0.0
            yield Measurement(
                what=f"{queries} at low load, {way}: mean response, Headgate / native",
                measured=headgate_s / native_s,
                unit="times",
                bar=bar,
                at_most=True,
                figures=figures_of(results, {"native_s": native_s, "headgate_s": headgate_s}),
            )


def sustained(folder: Path) -> Iterator[Measurement]:
    """Yield the queries that two cores carry.

    Queries are carried if the critical class answers within two seconds and no tuple is left
    behind.
    """
    for mix, queries in (("distinct", 500), ("constants", 2000)):
        results = run_sides(
            folder / mix, ("headgate",), queries=queries, mix=mix, seconds=20.0, grace_s=15.0
        )
        result = results["headgate"]
        p99_s = result.classes["H"].p99_s if result.classes else None
        carried = p99_s is not None and p99_s < CRITICAL_P99_S and not result.problems
        figures = figures_of(results, {"p99_s": p99_s, "problems": result.problems})
        yield Measurement(
            what=f"queries carried of {queries}, {mix} (p99 of H {p99_s or 0:.2f} s)",
            measured=float(queries if carried else 0),
            unit="queries",
            bar=float(queries),
            figures=figures,
        )
        reported = folder / mix / "headgate" / REPORTED
        if mix == "distinct" and reported.exists():
            report = json.loads(reported.read_text())
            for key, bar, what in (
                ("scheduler_s", 1.0, "hearing and deciding"),
                ("loop_s", None, "that and keeping the figures"),
            ):
                yield Measurement(
                    what=f"scheduler at {queries} units, of the time of a step: {what}",
                    measured=100 * report[key] / max(report["busy_s"], 1e-9),
                    unit="%",
                    bar=bar,
                    at_most=True,
                    figures=report,
                )
    carried_natively = 0
    for queries in (6, 24):
        results = run_sides(
            folder / f"native-{queries}", ("native-fifo",), queries=queries, mix="distinct",
            seconds=20.0, grace_s=15.0,
        )  # fmt: skip
        result = results["native-fifo"]
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
    "replay": calibration.measurements,
}


def _cpu_s_per_million(result: SideResult) -> float:
    """Return the CPU seconds per million input tuples, scaled to those that were answered."""
    share = result.classes["all"].share if result.classes else 0.0
    return result.conditions["side_cores"] / (1500.0 * max(share, 1e-9)) * 1e6


if __name__ == "__main__":
    sys.exit(run(PARTS, __doc__ or ""))
