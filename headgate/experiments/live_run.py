"""Runs on Spark, one after the other: a pipeline, its arrivals, and what is measured of it."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from math import isfinite, nan
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headgate.experiments.number_text import number_text
from headgate.experiments.papers.amos import SPECIFICATIONS
from headgate.experiments.pipelines import POLL_S, LivePipeline, amos, aurora, cqc
from headgate.experiments.run import Row, Run
from headgate.experiments.sweep import SCHEMA, results
from headgate.metrics.line import Line
from headgate.metrics.report import Report
from headgate.runtime import Headgate, Spelled
from headgate.workloads.arrivals import Bursts

WARM_UP_S, QUIET_PER_S = 3.0, 4.0
"""At first few tuples arrive, so that Spark plans every query. What they give is not measured."""

FLOOD_PER_S, FLOOD_S = 400.0, 0.375
"""What arrives of each stream to measure the capacity: more than the worker can process."""

PATIENCE_S = 120.0
"""How long a run may take to process what has arrived, once the time of arrivals is over."""

CHANGES = 4
"""How often the rate of AMoS's streams changes while a specification is in force."""

SETTINGS: Mapping[str, Any] = {
    "workers": 1, "most_fused": 1, "share": "none", "lane": "driver", "rehearsal_s": 0.0,
}  # fmt: skip
"""One worker and nothing shared, as in the papers: a call is one query, or one operator."""

CAPACITY = "capacity"


@dataclass(frozen=True, kw_only=True)
class LiveTestbed:
    """How a testbed of the simulation runs on Spark.

    Args:
        make: returns the pipeline.
        shape: its arguments that decide its capacity.
        others: its other arguments.
        load: the option that has the load.
        options: what live panels set besides the options of the simulated ones.
        flood: the policy under which the capacity is measured.
    """

    make: Callable[..., LivePipeline]
    shape: tuple[str, ...]
    others: tuple[str, ...] = ()
    load: str
    options: Mapping[str, Any]
    flood: str = "rr"

    def common(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a simulated panel that apply on Spark, too."""
        names = (*self.shape, *self.others, self.load)
        return {name: options[name] for name in names if name in options}


LIVE = {
    # Its three workloads have the same kinds of queries in other classes, so one capacity.
    "cqc": LiveTestbed(
        make=cqc, shape=("steps",), others=("workload", "only"), load="load", options={},
    ),
    "amos": LiveTestbed(
        make=amos, shape=("plan", "steps"), others=("swing",), load="utilisation",
        options={"utilisation": 0.8, "swing": 0.75, "specifications": SPECIFICATIONS},
    ),
    "aurora": LiveTestbed(
        make=aurora, shape=("apps", "steps"), load="capacity", options={},
        flood="aaat(traversal=mc)",
    ),
}  # fmt: skip
"""The testbeds that run on Spark, by name."""


def run_live(
    session: SparkSession,
    runs: Sequence[Run],
    cache: str,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[DataFrame, dict[str, float]]:
    """Run what the cache does not have; return all results, and the capacities by key.

    The policies take turns, seed by seed. A result is kept as soon as it is there.

    Args:
        progress: called with the number of runs that are done.
    """
    earlier = results(session, cache)
    capacities = {row.key: row.value for row in earlier.where(f"measure = '{CAPACITY}'").collect()}
    have = {row.key for row in earlier.select("key").distinct().collect()}
    waiting = sorted((run for run in runs if run.key not in have), key=lambda run: run.seed)
    done, warm = len(runs) - len(waiting), set[str]()
    progress(done)
    for run in waiting:
        flood = flood_of(run)
        if flood.key not in warm:
            capacity_per_s(session, flood)  # in a cold JVM, so that it only warms up
            warm.add(flood.key)
        if flood.key not in capacities:
            # The better of two: what else the machine does can only slow a run down.
            capacities[flood.key] = max(capacity_per_s(session, flood) for _ in range(2))
            _keep(session, flood, [(CAPACITY, None, capacities[flood.key])], cache)
        load = run.options[LIVE[run.testbed].load]
        rows = list(measured(session, run, load * capacities[flood.key]))
        _keep(session, run, rows, cache)
        done += 1
        progress(done)
    return results(session, cache), capacities


def rates_text(runs: Sequence[Run], capacities: Mapping[str, float]) -> str:
    """Return a sentence with the rates at which the load of these runs is 1."""
    rates = []
    for flood in {flood.key: flood for flood in map(flood_of, runs)}.values():
        shape = LIVE[flood.testbed].shape
        names = [f"{name} {flood.options[name]}" for name in shape if name in flood.options]
        rate = number_text(capacities[flood.key], 3)
        rates.append(f"{rate} ({', '.join(names)})" if names else rate)
    return f"A load of 1 was, in tuples/s of each stream: {', '.join(rates)}."


def flood_of(run: Run) -> Run:
    """Return the run that measures the capacity for another run."""
    testbed = LIVE[run.testbed]
    names = (*testbed.shape, "warm_up_s")
    options = {name: run.options[name] for name in names if name in run.options}
    return replace(run, policy=testbed.flood, seed=0, options={**options, "seconds": FLOOD_S})


def _keep(session: SparkSession, run: Run, rows: Sequence[Row], cache: str) -> None:
    keyed = [(run.key, *row) for row in rows]
    session.createDataFrame(keyed, SCHEMA).coalesce(1).write.mode("append").parquet(cache)


def capacity_per_s(session: SparkSession, flood: Run) -> float:
    """Return how many tuples of each stream a worker processes per second of its own time."""
    before, after = _reports(session, flood, FLOOD_PER_S)
    return FLOOD_PER_S * FLOOD_S / (after.total.busy_s - before.total.busy_s)


def measured(session: SparkSession, run: Run, rate_per_s: float) -> Iterator[Row]:
    """Run a pipeline and yield what was measured, from the warm-up to the end or by phase."""
    reports = _reports(session, run, rate_per_s)
    phases = [f":phase={name}" for name in _phases(run)] or [""]
    for phase, before, after in zip(phases, reports[:-1], reports[1:], strict=True):
        for measure, value in _between(before, after, run.options["seconds"]):
            if isfinite(value):
                yield f"{measure}{phase}", None, value


def _reports(session: SparkSession, run: Run, rate_per_s: float) -> list[Report]:
    """Run a pipeline; return its reports after the warm-up, after each phase and at the end."""
    testbed, options = LIVE[run.testbed], run.options
    warm_up_s, seconds = options["warm_up_s"], options["seconds"]
    arrivals = _arrivals(rate_per_s, options)
    tuples = arrivals.count_by(warm_up_s + seconds * (len(_phases(run)) or 1))
    feed = {name: str(value) for name, value in asdict(arrivals).items()}
    names = (*testbed.shape, *testbed.others)
    arguments = {name: options[name] for name in names if name in options}
    if run.testbed == "aurora":
        arguments["superboxes"] = run.policy.startswith("aaat")
    pipeline = testbed.make({**feed, "tuples": str(tuples)}, rate_per_s, run.seed, **arguments)
    with _started(session, pipeline, run.policy) as gate:
        gate.wait(warm_up_s)
        reports = [gate.report()]
        for specification in _phases(run).values():
            if run.policy.startswith("amos("):
                gate.set_specification(specification)
            gate.wait(seconds)
            reports.append(gate.report())
        if not _phases(run):
            gate.wait(seconds)
            _finish(gate, pipeline, tuples)
            reports.append(gate.report())
        _raise_failures(gate)
    return reports


def _phases(run: Run) -> dict[str, str]:
    """Return the specifications that are in force in turn, by figure; none without AMoS."""
    specifications: dict[str, str] = run.options.get("specifications", {})
    return specifications


def _arrivals(rate_per_s: float, options: Mapping[str, Any]) -> Bursts:
    """Return arrivals at a rate after a quiet warm-up; with a swing, at a rate that changes."""
    seconds, swing = options["seconds"], options.get("swing")
    if swing is None:
        return Bursts(
            rate_per_s=QUIET_PER_S, burst_factor=rate_per_s / QUIET_PER_S,
            burst_every_s=options["warm_up_s"] + seconds, burst_for_s=seconds,
        )  # fmt: skip
    return Bursts(
        rate_per_s=rate_per_s * (1 - swing), burst_factor=(1 + swing) / (1 - swing),
        burst_every_s=2 * seconds / CHANGES, burst_for_s=seconds / CHANGES,
    )  # fmt: skip


@contextmanager
def _started(session: SparkSession, pipeline: LivePipeline, policy: str) -> Iterator[Headgate]:
    with TemporaryDirectory(prefix="headgate-live-", ignore_cleanup_errors=True) as folder:
        gate = Headgate(
            session, state=folder, policy=Spelled(policy).make(), classes=pipeline.classes,
            **SETTINGS,
        )  # fmt: skip
        try:
            for stream in pipeline.streams:
                gate.add_stream(stream)
            for view in pipeline.views:
                gate.add_view(view)
            for query in pipeline.queries:
                gate.add_query(query)
            gate.start()
            yield gate
        finally:
            gate.stop()


def _finish(gate: Headgate, pipeline: LivePipeline, tuples: int) -> None:
    """Wait until the tuples of all streams have arrived and are processed."""
    ends_at_s = time.monotonic() + PATIENCE_S
    while (missing := tuples * len(pipeline.streams) - _arrived(gate, pipeline)) > 0:
        _raise_failures(gate)
        if time.monotonic() > ends_at_s:
            raise TimeoutError(f"{missing} tuples have not arrived after {PATIENCE_S:g} s")
        gate.wait(POLL_S / 2)
    if not gate.drain(PATIENCE_S):
        raise TimeoutError(f"not all is processed after {PATIENCE_S:g} s: {gate.accounts()}")


def _arrived(gate: Headgate, pipeline: LivePipeline) -> int:
    accounts = gate.accounts()
    return sum(accounts[name].arrived for name in pipeline.readers)


def _raise_failures(gate: Headgate) -> None:
    for query in gate.queries:
        if (failure := query.exception()) is not None:
            raise failure


def _between(before: Report, after: Report, arriving_s: float) -> Iterator[tuple[str, float]]:
    """Yield what was measured between two reports of a run."""
    seconds = after.seconds - before.seconds
    yield from _of_line(before, after, before.total, after.total)
    for line_before, line in zip(before.classes, after.classes, strict=True):
        for name, value in _of_line(before, after, line_before, line):
            yield f"{name}:class={line.name}", value
    parts_s = {
        "call_overhead": after.overhead_s - before.overhead_s,
        "storage_overhead": after.storage_s - before.storage_s,
        "scheduler_overhead": after.scheduler_s - before.scheduler_s,
    }
    yield from parts_s.items()
    yield "overhead", sum(parts_s.values())
    yield "seconds", seconds
    yield "stretch", seconds / arriving_s
    yield "utilisation", (after.total.busy_s - before.total.busy_s) / seconds


def _of_line(
    before: Report, after: Report, line_before: Line, line: Line
) -> Iterator[tuple[str, float]]:
    seconds = after.seconds - before.seconds
    results_before, responses_s = line_before.response_s, line.response_s
    count = responses_s.count - results_before.count
    sum_s = responses_s.mean * responses_s.count
    if results_before.count:
        sum_s -= results_before.mean * results_before.count
    yield "mean_response", sum_s / count if count else nan
    yield "output_rate", count / seconds
    area = line.pending_mean * after.seconds - line_before.pending_mean * before.seconds
    yield "queue", area / seconds
