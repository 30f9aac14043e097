"""A comparison of the kernel and a SimPy model: the same tuples leave at the same instants."""

import time
from collections.abc import Iterator

import numpy as np

import simpy_model
import speed
from bars import Measurement
from headgate.model.arrays import Floats

TIMES = 100.0
"""How many times faster than the whole SimPy model the kernel must be, at full size."""
POLICIES = ("hr", "bsd")
MODELS = {"whole model": False, "lean model": True}
"""Whether a model is the lean one, by the model's name: see `simpy_model`."""
EVENTS = 200_000
FULL = ((100, 400), (500, 100))
QUICK = ((20, 100),)
TOLERANCE_S = 1e-9


def measurements(sizes: tuple[tuple[int, int], ...], whole: speed.Size) -> Iterator[Measurement]:
    """Yield how many times more box calls per second the kernel makes, by policy, model and size.

    A box call takes SimPy the same time however many tuples there are. So the last line of a policy
    and a model compares the kernel at full size with SimPy at the largest size that SimPy ran. Then
    comes the ratio for a SimPy that does nothing but wait once per box call. No model with an event
    per box call can have a smaller ratio; the rest is what the model does besides waiting.
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
    costs = f"a bare event {event_ns:.0f} ns, a box call {call_ns:.0f} ns"
    return Measurement(
        what=f"times SimPy: events alone, {policy}: {costs}",
        measured=event_ns / call_ns,
        unit="times",
        figures={"event_ns": event_ns, "box_call_ns": call_ns},
    )


def a_bare_event_s(repeats: int) -> float:
    """Return the seconds of an event in a process that only waits."""
    event_costs_s = []
    for _ in range(repeats):
        began_s = time.perf_counter()
        simpy_model.bare_events(EVENTS)
        event_costs_s.append((time.perf_counter() - began_s) / EVENTS)
    return min(event_costs_s)


def best_in_simpy(
    policy: str, queries: int, tuples: int, repeats: int, *, lean: bool = False
) -> speed.Timed:
    """Return the fastest of several runs in SimPy; each of them must agree with the kernel.

    Raises:
        AssertionError: a result came from another query or at another instant.
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
    """Return query, arrival and departure of every result in SimPy, and the times of the run."""
    bed = speed.testbed(queries, tuples)
    arrived_at_s = bed.arrivals["packets"]
    model = simpy_model.model_of(bed.network, arrived_at_s, speed.SEED, lean=lean)
    began_cpu_s, began_s = time.process_time(), time.perf_counter()
    done = simpy_model.run(model, policy)
    seconds, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    calls = queries * tuples
    timed = speed.Timed(seconds, cpu_s, done.box_calls, calls, calls, 0)
    result_queries, numbers, at_s = np.array(done.left).reshape(-1, 3).T
    return np.column_stack([result_queries, arrived_at_s[numbers.astype(np.int64)], at_s]), timed


def in_kernel(policy: str, queries: int, tuples: int) -> Floats:
    """Return query, arrival and departure of every result in the kernel."""
    simulation = speed.simulation(policy, queries, tuples, keep=True)
    simulation.run()
    count = int(simulation.world.clock["kept"][0])
    results: Floats = simulation.world.kept[: 3 * count].reshape(-1, 3)
    return results


def assert_same(some: Floats, others: Floats) -> None:
    """Compare two lists of results, whatever their order."""
    assert some.shape == others.shape, f"{len(some)} and {len(others)} tuples left"
    ordered = [results[np.lexsort(results.T[::-1])] for results in (some, others)]
    apart_s = float(np.abs(ordered[0] - ordered[1]).max(initial=0.0))
    assert apart_s <= TOLERANCE_S, f"departures lie {apart_s} s apart"


def _several(policy: str, queries: int, tuples: int, repeats: int) -> speed.Timed:
    runs = [speed.timed(speed.simulation(policy, queries, tuples)) for _ in range(3 * repeats)]
    return min(runs, key=lambda run: run.seconds)
