"""What AMoS itself costs: the share of a run that it takes to score and choose, with ten policies.

Sharaf's testbed, one choice a second of virtual time, which is the default. Timed from outside, in
CPU seconds: what AMoS hears and answers, measuring what it hears, and apart from that what changing
the policy costs the run: its compiled form is made once, and then told of every unit at each turn.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import speed
from bars import Measurement
from headgate.policies import policy_named
from headgate.simulation.loop import drive

LIBRARY = "rr,fcfs,mtiq,chain,hr,hnr,bsd,lsf,brt,srpt"
MOST_SHARE = 0.01
QUICK = speed.Size(500, 8_000, 1)


def measurements(size: speed.Size) -> Iterator[Measurement]:
    """Gives AMoS's share of the run's CPU time, and the parts of it."""
    print("amos", file=sys.stderr, flush=True)
    with compiled_runs():
        _run(speed.Size(size.queries, max(400, size.tuples // 4), 1))  # compiles all ten
        runs = [_run(size) for _ in range(size.repeats)]
    spent = min(runs, key=lambda each: each["run"])
    figures = {
        "policies": LIBRARY.split(","), "turns": spent["turns"], "cpu_s": spent["run"],
        "virtual_s": spent["virtual"], "hearing_s": spent["hear"], "measuring_s": spent["measure"],
        "switching_s": spent["switch"],
    }  # fmt: skip
    own_s = spent["hear"] + spent["measure"]
    yield Measurement(
        what="amos: its share of the run's CPU time", measured=own_s / spent["run"], unit="",
        bar=MOST_SHARE, at_most=True, figures=figures,
    )  # fmt: skip
    for what, seconds in (
        ("hearing, scoring, choosing", spent["hear"]),
        ("measuring what it hears", spent["measure"]),
        ("changing the policy", spent["switch"]),
    ):
        yield Measurement(
            what=f"amos: {what}", measured=seconds / max(1, spent["turns"]) * 1e6, unit="µs a turn"
        )


def _run(size: speed.Size) -> dict[str, Any]:
    """Runs once; gives CPU seconds by part."""
    spent: Counter[str] = Counter()
    amos = policy_named("amos", policies=LIBRARY)
    made = speed.simulation(amos, size.queries, size.tuples)
    worth: Any = made._worth
    _time(spent, "in_charge", amos, "in_charge")
    _time(spent, "heard", amos, "hear")
    _time(spent, "measure", worth, "measured")
    _time(spent, "went_on", made, "_go_on")
    KERNEL.clear()
    timed = speed.timed(made)
    return {
        "run": timed.cpu_s,
        "virtual": made.now_s,
        "turns": sum(amos.turns),
        "hear": spent["in_charge"] + spent["heard"],
        "measure": spent["measure"],
        "switch": spent["went_on"] - spent["in_charge"] - KERNEL["kernel"],
    }


KERNEL: Counter[str] = Counter()


@contextmanager
def compiled_runs() -> Iterator[None]:
    """Counts the CPU seconds inside the compiled loop, as long as it lasts."""
    before = drive.run
    _time(KERNEL, "kernel", drive, "run")
    try:
        yield
    finally:
        drive.run = before


def _time(spent: Counter[str], key: str, owner: Any, name: str) -> None:
    """Lets a method count its CPU seconds."""
    method: Callable[..., Any] = getattr(owner, name)

    def counted(*arguments: Any) -> Any:
        began_s = time.process_time()
        try:
            return method(*arguments)
        finally:
            spent[key] += time.process_time() - began_s

    setattr(owner, name, counted)
