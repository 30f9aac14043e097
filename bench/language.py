"""Measures windows and joins: against native Structured Streaming, with and without sharing.

Every row is printed beside its bar; exits with 1 where one is missed. Run it on a machine that does
nothing else: a part during which others used a quarter of a core says so.

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
    """CQC's 21 queries over 27 streams: response of class H, and of all."""
    found = run_sides(folder, SIDES, queries=21, mix=f"cqc-{workload}")
    natives = [found[side] for side in SIDES[:2]]
    usable = [each for each in natives if not each.problems] or natives
    for name, key, bar in (("H", "p95_s", 10.0), ("all", "mean_s", 3.0)):
        theirs = min(getattr(each.classes[name], key) for each in usable if each.classes)
        own = getattr(found["headgate"].classes[name], key)
        yield Measurement(
            what=f"CQC {workload}, 1 500 tuples/s: {key[:-2]} of {name}, native / Headgate",
            measured=theirs / own,
            unit="times",
            bar=bar,
            figures=figures_of(found, {"native_s": theirs, "headgate_s": own}),
        )


def highest_rate(folder: Path) -> Iterator[Measurement]:
    """The most that the 27 streams of workload A may carry, twice as much at every try.

    Carried is a rate at which nothing is left behind and the critical class stays within its
    target; the paper's 1 500 tuples/s of each stream are 40 500 in all.
    """
    carried, figures = 0.0, {}
    rate_per_s = FIRST_RATE
    while True:
        found = run_sides(
            folder / f"{rate_per_s:.0f}", ("headgate",), queries=21, mix="cqc-A",
            rate_per_s=rate_per_s, seconds=20.0, grace_s=10.0,
        )  # fmt: skip
        result = found["headgate"]
        p99_s = result.classes["H"].p99_s if result.classes else None
        figures[f"{rate_per_s:.0f}"] = figures_of(found, {"p99_s": p99_s})
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
