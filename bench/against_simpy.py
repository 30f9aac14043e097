"""The kernel against the same model in SimPy: the same tuples leave at the same instants."""

import time
from collections.abc import Iterator

import numpy as np

import simpy_model
import speed
from bars import Measurement
from headgate.model.arrays import Floats

TIMES = 100.0
"""What the kernel must be faster by than the model that does what it does, at full size."""
POLICIES = ("hr", "bsd")
MODELS = {"whole model": False, "lean model": True}
"""The models by name, and whether it is the lean one: see `simpy_model`."""
EVENTS = 200_000
FULL = ((100, 400), (500, 100))
QUICK = ((20, 100),)
TOLERANCE_S = 1e-9


def measurements(sizes: tuple[tuple[int, int], ...], whole: speed.Size) -> Iterator[Measurement]:
    """Gives how many times more box calls a second the kernel makes, by policy, model and size.

    SimPy's calls take the same time however many tuples there are; so the last line of a policy and
    a model has the kernel at full size over SimPy at the largest size that it ran. Then comes what
    the ratio would be if SimPy did nothing but wait once a box call: no model with an event a box
    can have a smaller one, and what lies above comes from what the model does beside.
    """
    event_s = a_bare_event_s(whole.repeats)
    for policy in POLICIES:
        speed.simulation(policy, 20, 50).run()
        for queries, tuples in sizes:
            ours = _several(policy, queries, tuples, whole.repeats)
            theirs = {
                name: best_in_simpy(policy, queries, tuples, whole.repeats, lean=lean)
                for name, lean in MODELS.items()
            }
            for name, timed in theirs.items():
                yield _ratio(f"{name}, {policy}, {queries} × {tuples}", ours, timed)
        ours = speed.best_of(policy, whole)
        for name, timed in theirs.items():
            what = f"{name}, {policy}, kernel at {whole.queries} × {whole.tuples}"
            yield _ratio(what, ours, timed, None if MODELS[name] else TIMES)
        yield _with_bare_events(policy, ours, event_s)


def _ratio(
    what: str, ours: speed.Timed, theirs: speed.Timed, bar: float | None = None
) -> Measurement:
    return Measurement(
        what=f"times SimPy: {what}",
        measured=ours.box_calls_per_s / theirs.box_calls_per_s,
        unit="times",
        bar=bar,
        figures={"kernel": ours.figures(), "simpy": theirs.figures()},
    )


def _with_bare_events(policy: str, ours: speed.Timed, event_s: float) -> Measurement:
    event_ns, call_ns = event_s * 1e9, 1e9 / ours.box_calls_per_s
    found = f"a bare event {event_ns:.0f} ns, a box call {call_ns:.0f} ns"
    return Measurement(
        what=f"times SimPy: events alone, {policy}: {found}",
        measured=event_ns / call_ns,
        unit="times",
        figures={"event_ns": event_ns, "box_call_ns": call_ns},
    )


def a_bare_event_s(repeats: int) -> float:
    """Gives what an event costs in a process that only waits."""
    found = []
    for _ in range(repeats):
        began_s = time.perf_counter()
        simpy_model.bare_events(EVENTS)
        found.append((time.perf_counter() - began_s) / EVENTS)
    return min(found)


def best_in_simpy(
    policy: str, queries: int, tuples: int, repeats: int, *, lean: bool = False
) -> speed.Timed:
    """Gives the fastest of some runs in SimPy, each of which must agree with the kernel.

    Raises:
        AssertionError: a tuple left elsewhere or at another instant.
    """
    ours, runs = in_kernel(policy, queries, tuples), []
    for _ in range(repeats):
        theirs, timed = in_simpy(policy, queries, tuples, lean=lean)
        assert_same(theirs, ours)
        runs.append(timed)
    return min(runs, key=lambda run: run.seconds)


def in_simpy(
    policy: str, queries: int, tuples: int, *, lean: bool = False
) -> tuple[Floats, speed.Timed]:
    """Gives query, arrival and departure of all that left in SimPy, and how long that took."""
    bed = speed.testbed(queries, tuples)
    arrived_at_s = bed.arrivals["packets"]
    model = simpy_model.model_of(bed.network, arrived_at_s, speed.SEED, lean=lean)
    began_cpu_s, began_s = time.process_time(), time.perf_counter()
    done = simpy_model.run(model, policy)
    seconds, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    calls = queries * tuples
    timed = speed.Timed(seconds, cpu_s, done.box_calls, calls, calls, 0)
    of, numbers, at_s = np.array(done.left).reshape(-1, 3).T
    return np.column_stack([of, arrived_at_s[numbers.astype(np.int64)], at_s]), timed


def in_kernel(policy: str, queries: int, tuples: int) -> Floats:
    """Gives query, arrival and departure of all that left in the kernel."""
    made = speed.simulation(policy, queries, tuples, keep=True)
    made.run()
    count = int(made.world.clock["kept"][0])
    found: Floats = made.world.kept[: 3 * count].reshape(-1, 3)
    return found


def assert_same(some: Floats, others: Floats) -> None:
    """Compares what left, whatever the order in which it is listed."""
    assert some.shape == others.shape, f"{len(some)} and {len(others)} tuples left"
    ordered = [each[np.lexsort(each.T[::-1])] for each in (some, others)]
    apart_s = float(np.abs(ordered[0] - ordered[1]).max(initial=0.0))
    assert apart_s <= TOLERANCE_S, f"departures lie {apart_s} s apart"


def _several(policy: str, queries: int, tuples: int, repeats: int) -> speed.Timed:
    runs = [speed.timed(speed.simulation(policy, queries, tuples)) for _ in range(3 * repeats)]
    return min(runs, key=lambda run: run.seconds)
