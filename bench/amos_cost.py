"""The cost of AMoS itself: the share of a run that it needs to choose among ten policies.

The run is Sharaf's testbed with one choice per second of virtual time, the default. Three parts are
timed from outside, in CPU seconds: the calls of AMoS, the measuring of what AMoS is told, and the
change of policy. The compiled form of a policy is built once, but at every turn it must be told of
every unit.
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
from headgate.simulation.loop import compiled_loop

LIBRARY = "rr,fcfs,mtiq,chain,hr,hnr,bsd,lsf,brt,srpt"
MOST_SHARE = 0.01
QUICK = speed.Size(500, 8_000, 1)


def measurements(size: speed.Size) -> Iterator[Measurement]:
    """Yield AMoS's share of the run's CPU time, then its parts."""
    print("amos", file=sys.stderr, flush=True)
    with compiled_runs():
        _run(speed.Size(size.queries, max(400, size.tuples // 4), 1))  # compiles all ten
        runs = [_run(size) for _ in range(size.repeats)]
    spent = min(runs, key=lambda run: run["run"])
    figures = {
        "policies": LIBRARY.split(","), "turns": spent["turns"], "cpu_s": spent["run"],
        "virtual_s": spent["virtual"], "hearing_s": spent["hear"], "measuring_s": spent["measure"],
        "switching_s": spent["switch"],
    }  # fmt: skip
    amos_s = spent["hear"] + spent["measure"]
    yield Measurement(
        what="amos: its share of the run's CPU time", measured=amos_s / spent["run"], unit="",
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
    """Run once and return the CPU seconds by part."""
    spent: Counter[str] = Counter()
    amos = policy_named("amos", policies=LIBRARY)
    simulation = speed.simulation(amos, size.queries, size.tuples)
    worth: Any = simulation._worth
    _time(spent, "in_charge", amos, "in_charge")
    _time(spent, "heard", amos, "hear")
    _time(spent, "measure", worth, "measured")
    _time(spent, "went_on", simulation, "_go_on")
    KERNEL.clear()
    timed = speed.timed(simulation)
    return {
        "run": timed.cpu_s,
        "virtual": simulation.now_s,
        "turns": sum(amos.turns),
        "hear": spent["in_charge"] + spent["heard"],
        "measure": spent["measure"],
        "switch": spent["went_on"] - spent["in_charge"] - KERNEL["kernel"],
    }


KERNEL: Counter[str] = Counter()


@contextmanager
def compiled_runs() -> Iterator[None]:
    """Count the CPU seconds inside the compiled loop while the context is open."""
    before = compiled_loop.run
    _time(KERNEL, "kernel", compiled_loop, "run")
    try:
        yield
    finally:
        compiled_loop.run = before


def _time(spent: Counter[str], key: str, owner: Any, name: str) -> None:
    """Replace a method by one that adds its CPU seconds to `spent[key]`."""
    method: Callable[..., Any] = getattr(owner, name)

    def counted(*arguments: Any) -> Any:
        began_s = time.process_time()
        try:
            return method(*arguments)
        finally:
            spent[key] += time.process_time() - began_s

    setattr(owner, name, counted)
