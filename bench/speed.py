"""The speed of the compiled kernel: box calls and decisions per second on Sharaf's testbed.

The testbed has 500 queries × 20 000 tuples at a utilization of 0.95, in trains of one tuple. A box
call is one operator's run on one tuple. Only the loop is timed: before, everything is compiled and
the world is built.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from bars import Measurement
from headgate.model.network.network import Network
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import Level, units_of
from headgate.model.qos_graph import QoSGraph
from headgate.policies import Policy, Selection, policies, policy_named
from headgate.policies.methods.charts import ChartPolicy
from headgate.policies.priority import PriorityPolicy
from headgate.policies.structures import selection as ways
from headgate.runtime.what_if.simulate import simulation_of
from headgate.simulation.loop.run import Simulation
from headgate.workloads.testbeds import sharaf
from headgate.workloads.testbeds.testbed import Testbed

SEED = 1
UTILISATION = 0.95
BOX_CALLS_PER_S = 5e6
DECISIONS_PER_S = 1e6
EXACT = ("qos", "edf", "edf-hr", "fas")
"""Policies that examine every unit that waits, besides the priorities that change with time."""
DEMANDING = ("qos", "qos-bucketed", "edf", "edf-hr")
"""Policies that need QoS graphs or deadlines, which the thesis' testbed does not have."""


@dataclass(frozen=True)
class Size:
    queries: int
    tuples: int
    repeats: int


FULL = Size(500, 20_000, 3)
QUICK = Size(500, 1_000, 1)


@dataclass(frozen=True)
class Timed:
    """A run: wall-clock seconds, CPU seconds, and the counts of the kernel."""

    seconds: float
    cpu_s: float
    box_calls: int
    calls: int
    decisions: int
    examined: int

    @property
    def box_calls_per_s(self) -> float:
        return self.box_calls / self.seconds

    @property
    def decisions_per_s(self) -> float:
        return self.decisions / self.seconds

    def figures(self) -> dict[str, float]:
        return {
            "seconds": self.seconds,
            "cpu_s": self.cpu_s,
            "box_calls": self.box_calls,
            "decisions": self.decisions,
            "box_calls_per_s": self.box_calls_per_s,
            "decisions_per_s": self.decisions_per_s,
            "box_calls_per_cpu_s": self.box_calls / self.cpu_s,
            "decisions_per_cpu_s": self.decisions / self.cpu_s,
            "examined_a_decision": self.examined / max(1, self.decisions),
        }


def measurements(size: Size, only: frozenset[str] = frozenset()) -> Iterator[Measurement]:
    """Yield a line for each policy in compiled form: static ones, exact ones, then the others."""
    kinds = {name: kind_of(name) for name in policies() if not only or name in only}
    for kind in ("static", "exact", "other"):
        for name in [name for name, policy_kind in kinds.items() if policy_kind == kind]:
            timed = best_of(name, size)
            if kind == "static":
                yield Measurement(
                    what=f"{name}: box calls at query level", measured=timed.box_calls_per_s,
                    unit="a second", bar=BOX_CALLS_PER_S, figures=timed.figures(),
                )  # fmt: skip
                beside = best_of(name, size, "operator")
                yield Measurement(
                    what=f"{name}: box calls at operator level", measured=beside.box_calls_per_s,
                    unit="a second", figures=beside.figures(),
                )  # fmt: skip
            else:
                yield Measurement(
                    what=f"{name}: decisions at query level", measured=timed.decisions_per_s,
                    unit="a second", bar=DECISIONS_PER_S if kind == "exact" else None,
                    figures=timed.figures(),
                )  # fmt: skip


def kind_of(name: str) -> str:
    """Return how a policy finds a unit: by a static order, exactly, in another way, or in Python.

    A static priority never changes while costs and selectivities stay the same. An exact one is
    computed for every unit that waits, or compared with that of every other unit.
    """
    entry, policy = policies()[name], policy_named(name)
    if "query" not in entry.levels or _selection(name) is None or policy.foresees:
        return "python"
    if isinstance(policy, PriorityPolicy):
        return "static" if policy.changes == "never" else "exact"
    if _selection(name).pick is ways.rank_pick:
        return "static"
    # If readers share a buffer, a chart's partition serves them by their oldest tuples.
    return "exact" if name in EXACT or isinstance(policy, ChartPolicy) else "other"


def best_of(name: str, size: Size, level: Level = "query") -> Timed:
    """Compile with a small run, then return the fastest of several runs."""
    simulation(name, 20, 50, level).run()
    print(f"{name}, {level} level", file=sys.stderr, flush=True)
    runs = [timed(simulation(name, size.queries, size.tuples, level)) for _ in range(size.repeats)]
    return min(runs, key=lambda run: run.seconds)


def timed(kernel: Simulation) -> Timed:
    """Run a simulation to its end and return its times and counts."""
    began_cpu_s, began_s = time.process_time(), time.perf_counter()
    kernel.run()
    seconds, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    clock = kernel.world.clock[0]
    counts = [int(clock[key]) for key in ("box_calls", "calls", "decisions", "examined")]
    return Timed(seconds, max(cpu_s, 1e-9), *counts)


def simulation(
    name: str | Policy, queries: int, tuples: int, level: Level = "query", keep: bool = False
) -> Simulation:
    """Return the testbed under a policy, before its first instant."""
    policy = policy_named(name) if isinstance(name, str) else name
    bed = testbed(queries, tuples)
    network = demanding(bed.network) if policy.name in DEMANDING else bed.network
    return simulation_of(
        network, bed.arrivals, policy, level=level, train_tuples=1, seed=SEED, keep=keep
    )


@cache
def testbed(queries: int, tuples: int) -> Testbed:
    return sharaf.single_stream(queries=queries, tuples=tuples, utilisation=UTILISATION, seed=SEED)


def demanding(network: Network) -> Network:
    """Return the network with a deadline and a QoS graph per query, multiples of its ideal time."""
    paths = []
    for number, path in enumerate(network.paths):
        ideal_s = sum(operator.cost_s or 0.0 for operator in path.operators)
        full_s = ideal_s * 10.0 ** (1 + number % 4)
        graph = QoSGraph(((0.0, 1.0), (full_s, 1.0), (5.0 * full_s, 0.0)))
        query = replace(path.query, deadline_s=2.0 * full_s, qos=graph)
        paths.append(replace(path, query=query))
    return replace(network, paths=tuple(paths))


@cache
def _selection(name: str) -> Selection | None:
    policy, units = policy_named(name), units_of(testbed(20, 50).network)
    policy.prepare(units)
    return policy.selection(units, unit_table(units), learns=False)
