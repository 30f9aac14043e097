"""Measure windows and joins: against native Structured Streaming, with and without sharing.

Every row is printed beside its bar. The exit code is 1 if a bar is missed. Run it on a machine that
does nothing else: a warning follows a part during which others used a quarter of a core.

    python bench/language.py
    python bench/language.py --only A,state --results bench/results/language.json
"""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import join_state
import sliding
from bars import Measurement
from parts import Part, figures_of, run, run_sides

SIDES = ("native-fifo", "native-fair", "headgate")
FIRST_RATE, CRITICAL_P99_S = 1_500.0, 2.0


def cqc(workload: str, folder: Path) -> Iterator[Measurement]:
    """Yield how much sooner CQC's 21 queries over 27 streams answer: class H, and all."""
    results = run_sides(folder, SIDES, queries=21, mix=f"cqc-{workload}")
    natives = [results[side] for side in SIDES[:2]]
    usable = [result for result in natives if not result.problems] or natives
    for name, key, bar in (("H", "p95_s", 10.0), ("all", "mean_s", 3.0)):
        theirs = min(getattr(result.classes[name], key) for result in usable if result.classes)
        ours = getattr(results["headgate"].classes[name], key)
        yield Measurement(
            what=f"CQC {workload}, 1 500 tuples/s: {key[:-2]} of {name}, native / Headgate",
            measured=theirs / ours,
            unit="times",
            bar=bar,
            figures=figures_of(results, {"native_s": theirs, "headgate_s": ours}),
        )


def highest_rate(folder: Path) -> Iterator[Measurement]:
    """Yield the highest rate of the 27 streams of workload A that is carried, doubled at every try.

    A rate is carried if no tuple is left behind and the critical class stays within its target. The
    paper's 1 500 tuples/s of each stream are 40 500 in total.
    """
    carried, figures = 0.0, {}
    rate_per_s = FIRST_RATE
    while True:
        results = run_sides(
            folder / f"{rate_per_s:.0f}", ("headgate",), queries=21, mix="cqc-A",
            rate_per_s=rate_per_s, seconds=20.0, grace_s=10.0,
        )  # fmt: skip
        result = results["headgate"]
        p99_s = result.classes["H"].p99_s if result.classes else None
        figures[f"{rate_per_s:.0f}"] = figures_of(results, {"p99_s": p99_s})
        if p99_s is None or p99_s >= CRITICAL_P99_S or result.problems:
            break
        carried = rate_per_s
        rate_per_s *= 2
    yield Measurement(
        what="CQC A, the highest rate of 27 streams that is carried, doubled at every try",
        measured=carried,
        unit="tuples/s",
        figures=figures,
    )


PARTS: dict[str, Part] = {
    **{name: partial(cqc, name) for name in "ABC"},
    "rate": highest_rate,
    "sharing": sliding.measurements,
    "state": join_state.measurements,
}


if __name__ == "__main__":
    sys.exit(run(PARTS, __doc__ or ""))
