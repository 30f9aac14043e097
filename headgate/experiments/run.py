"""One run of a sweep: a testbed, a policy, a seed, and everything that is measured."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from math import isfinite, nan
from pathlib import Path
from time import process_time
from typing import Any, Literal

from headgate.metrics.measures import MEASURES
from headgate.metrics.report import Report
from headgate.model.network.network import Network
from headgate.runtime import Spelled, simulate, workload
from headgate.runtime.what_if.simulate import simulation_of
from headgate.runtime.what_if.workload import Workload
from headgate.simulation.loop.run_report import Worth

Engine = Literal["simulation", "spark"]

Row = tuple[str, float | None, float]
"""A measure, the instant of it if it was measured over time, and its value."""

LIVE_SOURCES = (
    "compiled.py", "config", "extensions", "language", "metrics", "model", "policies", "runtime",
    "scheduler", "spark", "workloads", "experiments/live_run.py", "experiments/pipelines.py",
    "experiments/run.py",
)  # fmt: skip
SOURCES = (
    "metrics", "model", "policies", "scheduler", "simulation", "workloads", "runtime/what_if",
    "runtime/policy_text.py", "experiments/run.py",
)  # fmt: skip
"""Everything that a result depends on, on Spark and in the simulation. A change in any of these
files makes results unusable."""

CHEAPEST = "cheapest operator"
"""As a number of seconds: the cost of the cheapest operator of the network (Sharaf §3.8.3)."""

WHOLE_QUEUES = {"train_tuples": 1_000_000}
"""As settings: a call takes the whole queue, under policies that take one tuple by default, too."""

MOST_CLASSES = 60
"""With more classes than this, measures by class are left out."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """The settings of a run. Figures that need equal runs share one.

    Args:
        options: of the testbed, and those of `headgate.runtime.workload`.
        settings: of the simulation.
        every_s: how far apart samples over time are taken; 0 for none.
        until_s: when the last sample is taken.
        repeats: how often it runs; with 2 or more, `cpu_s` is the least CPU time of them all. The
            first one may still compile.
        engine: what runs it; `live_run` runs those on Spark.
    """

    testbed: str
    policy: str
    seed: int
    options: Mapping[str, Any]
    settings: Mapping[str, Any]
    every_s: float = 0.0
    until_s: float = 0.0
    repeats: int = 1
    engine: Engine = "simulation"

    @property
    def text(self) -> str:
        """The run as JSON, with the keys in order."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def key(self) -> str:
        """The name of the result: a hash of the run, of its traces and of the sources."""
        traces = [_hash_of(Path(trace)) for trace in self.options.get("traces", ())]
        run = replace(self, options={**self.options, "traces": traces}) if traces else self
        return hashlib.sha256(f"{sources(self.engine)}\n{run.text}".encode()).hexdigest()[:32]

    @classmethod
    def of(cls, text: str) -> "Run":
        """Return the run of a text that `text` returned."""
        return cls(**json.loads(text))


@cache
def sources(engine: Engine = "simulation") -> str:
    """Return a hash of all sources that results of an engine depend on."""
    ours = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for name in SOURCES if engine == "simulation" else LIVE_SOURCES:
        place = ours / name
        files = [*place.rglob("*.py"), *place.rglob("*.java")] if place.is_dir() else [place]
        for file in sorted(files):
            digest.update(f"{file.relative_to(ours)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


@cache
def _hash_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def measured(run: Run) -> Iterator[Row]:
    """Simulate a run and yield everything that was measured, without unknown values."""
    subject = workload(run.testbed, seed=run.seed, **run.options)
    settings = {
        key: _cheapest_s(subject.network) if value == CHEAPEST else value
        for key, value in run.settings.items()
    }
    options = {**subject.options, **settings}
    spelled = Spelled(run.policy)
    if run.every_s:
        rows = _over_time(subject.network, subject.arrivals, spelled, options, run)
    else:
        rows = _repeated(subject, spelled, options, run.repeats)
    yield from ((measure, at_s, value) for measure, at_s, value in rows if isfinite(value))


def _cheapest_s(network: Network) -> float:
    operators = [operator for path in network.paths for operator in path.operators]
    operators += [box.operator for box in network.boxes]
    return min(operator.cost_s or 0.0 for operator in operators)


def _repeated(
    subject: Workload, spelled: Spelled, options: Mapping[str, Any], repeats: int
) -> Iterator[Row]:
    spent_s = []
    for _ in range(repeats):
        policy, began_s = spelled.make(), process_time()
        report = simulate(subject.network, subject.arrivals, policy=policy, **options)
        spent_s.append(process_time() - began_s)
    yield from _of_report(report)
    yield "stretch", None, report.seconds / subject.ends_at_s if subject.ends_at_s else nan
    if repeats > 1:
        yield "cpu_s", None, min(spent_s)


def _of_report(report: Report) -> Iterator[Row]:
    for name, measure in MEASURES.items():
        yield name, None, measure.of(report)
    yield "results", None, float(report.total.response_s.count)
    yield "tuples_in", None, float(report.total.tuples_in)
    yield "seconds", None, report.seconds
    yield "decisions", None, float(report.decisions)
    yield "bytes_seconds", None, report.bytes_mean * report.seconds
    overhead_s = report.overhead_s + report.storage_s + report.scheduler_s
    yield "overhead", None, overhead_s
    # The work per result is the processing time of a tuple where no box drops any, as in Aurora.
    response_s = report.total.response_s
    work_s = (report.total.busy_s - overhead_s) / (response_s.count or nan)
    yield "delay", None, response_s.mean - work_s
    if 1 < len(report.classes) <= MOST_CLASSES:
        for line in report.classes:
            for name, measure in MEASURES.items():
                if measure.of_line is not None:
                    yield f"{name}:class={line.name}", None, measure.of(report, line)


def _over_time(
    network: Network, arrivals: Mapping[str, Any], spelled: Spelled, options: Mapping[str, Any],
    run: Run,
) -> Iterator[Row]:  # fmt: skip
    """Yield the measures of each interval, at its end; `results` are counted from the start.

    `charge` is the position in the library of the policy that is in charge of `amos`, and
    `score:NAME` what each policy of the library scores.
    """
    policy = spelled.make()
    simulation = simulation_of(network, arrivals, policy, **options)
    worth = Worth(simulation.world)
    for step in range(1, round(run.until_s / run.every_s) + 1):
        at_s = step * run.every_s
        simulation.run_until(at_s)
        worth.world = simulation.world
        for name, value in worth.measured(at_s).values.items():
            yield name, at_s, value
        yield "results", at_s, float(simulation.world.results["outputs"].sum())
        yield "pending_now", at_s, float(simulation.world.clock["pending"][0])
        names = [inner.name for inner in policy.inside()]
        scores = getattr(policy, "scores", None)
        if scores is not None:
            current = policy.in_charge(at_s).name
            yield "charge", at_s, float(names.index(current)) if current in names else nan
            for name, score in zip(names, scores, strict=True):
                yield f"score:{name}", at_s, float(score)
