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


PARTS: dict[str, Part] = {
    **{name: partial(cqc, name) for name in "ABC"},
    "sharing": sliding.measurements,
    "state": join_state.measurements,
}


if __name__ == "__main__":
    sys.exit(run(PARTS, __doc__ or ""))
