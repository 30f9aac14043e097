"""Workloads: what a simulation needs besides the policy, from a pipeline file or a testbed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path as File
from typing import Any, cast

import numpy as np

from headgate.config import Pipeline, read_pipeline
from headgate.errors import ConfigRefused
from headgate.metrics.report import Report
from headgate.model.arrays import Floats
from headgate.model.network.network import Network
from headgate.model.network.units import Level, SharedPriority
from headgate.policies import Policy
from headgate.runtime.pipeline import policy_of, simulated_options, simulated_parts
from headgate.runtime.policy_text import Spelled
from headgate.runtime.what_if.simulate import simulate
from headgate.runtime.what_if.simulation_options import fresh, simulation_options, simulation_values
from headgate.runtime.what_if.traces import Trace, replaced
from headgate.simulation.loop.run import USUAL_TRAIN
from headgate.workloads.testbeds.registry import named_testbed
from headgate.workloads.testbeds.testbed import Testbed

DEFAULT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A network, its arrivals, and the options of its simulation.

    Args:
        arrivals: by stream, ascending times in seconds.
        options: for `simulate`: seed, level, workers and the like.
        note: a description in words.
        pipeline: the pipeline that it comes from, if any.
    """

    name: str
    network: Network = field(repr=False)
    arrivals: Mapping[str, Floats] = field(repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    pipeline: Pipeline | None = field(default=None, repr=False)

    @property
    def level(self) -> Level:
        return cast(Level, self.options.get("level", "query"))

    def train_of(self, policy: Policy) -> str:
        """Return the most tuples of a policy's calls, in words."""
        limit = self.options.get("train_tuples")
        usual = self.options.get("usual_train", USUAL_TRAIN)
        if limit is None or policy.tuples_a_step is None:
            return policy.train_text(usual if limit is None else limit)
        if policy.tuples_a_step <= limit:
            return policy.train_text(usual)
        return f"{policy.train}, at most {limit}" if policy.train else str(limit)

    @property
    def as_on_spark(self) -> bool:
        """Whether it runs as a pipeline on Spark does: with fused calls, foreseeing nothing."""
        return bool(self.options.get("together"))

    @property
    def ends_at_s(self) -> float:
        """When the last tuple arrives."""
        ends_s = (float(times_s[-1]) for times_s in self.arrivals.values() if len(times_s))
        return max(ends_s, default=0.0)

    @property
    def usual_policy(self) -> str:
        """The default policy: that of the pipeline file, else `hr`."""
        return "hr" if self.pipeline is None else self.pipeline.policy.name

    def policy(self, spelled: Spelled) -> Policy:
        """Return a new policy, with the pipeline file's parameters if it is the file's policy."""
        if self.pipeline is not None and spelled.bare:
            return policy_of(self.pipeline, spelled.text)
        return spelled.make()

    def simulate(
        self,
        policy: str | Spelled = "hr",
        progress: Callable[[float], None] = lambda now_s: None,
    ) -> Report:
        """Run a policy and report on it under the text by which it was requested.

        >>> workload("amos", plan=1, tuples=200).simulate("hr").policy
        'hr'
        """
        spelled = Spelled(policy) if isinstance(policy, str) else policy
        new = self.policy(spelled)
        report = simulate(
            self.network, self.arrivals, policy=new, progress=progress, **fresh(self.options)
        )
        return replace(report, policy=spelled.text, train=self.train_of(new))


def workload(
    origin: str | File | Pipeline,
    *,
    seed: int = 0,
    seconds: float | None = None,
    traces: Sequence[Trace | str] = (),
    level: Level | None = None,
    workers: int | None = None,
    train_tuples: int | None = None,
    overhead_s: float | None = None,
    shared_priority: SharedPriority | None = None,
    learns: bool = False,
    **options: Any,
) -> Workload:
    """Return the workload of a pipeline file, or of a testbed by its name.

    Args:
        origin: the pipeline or its file, or the name of the testbed.
        seed: decides which tuples pass and, for a testbed, also its queries and arrivals.
        seconds: how long tuples arrive; by default 60 s of a pipeline and all of a testbed.
        traces: recorded arrivals that replace those of streams.
        level, workers, train_tuples, overhead_s, shared_priority, learns: see `simulate`; by
            default as in the file or the testbed.
        options: options of the testbed, and keys of the section `simulation` of a pipeline file,
            such as `decision_s`.

    Raises:
        UnknownName: there is no such testbed, option or stream.
        ConfigRefused: a value cannot be used.
        StatisticsMissing: costs of a pipeline's queries are unknown.

    >>> workload("cqc", workload="B", tuples=100).note[:22]
    'workload B: 21 queries'
    """
    requested = {
        "level": level, "workers": workers, "train_tuples": train_tuples,
        "overhead_s": overhead_s, "shared_priority": shared_priority, "learns": learns or None,
    }  # fmt: skip
    changes = {key: value for key, value in requested.items() if value is not None}
    charges, options = simulation_values(options)
    parsed = [trace if isinstance(trace, Trace) else Trace.of(trace) for trace in traces]
    if isinstance(origin, Pipeline) or _is_file(origin):
        pipeline = origin if isinstance(origin, Pipeline) else read_pipeline(origin)
        charges = {**pipeline.simulation.values, **charges}
        return _of_pipeline(pipeline, seed, seconds, parsed, changes, charges, options)
    testbed = _of_testbed(str(origin), seed, seconds, parsed, changes, options)
    return replace(testbed, options={**testbed.options, **simulation_options(charges)})


def _is_file(path: str | File) -> bool:
    return File(path).suffix in (".yaml", ".yml") or File(path).is_file()


def _of_pipeline(
    pipeline: Pipeline,
    seed: int,
    seconds: float | None,
    traces: Sequence[Trace],
    changes: Mapping[str, Any],
    charges: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Workload:
    """Return a pipeline as it would run on Spark, with statistics of a run or of the file.

    With charges, or with measured statistics, every query is a box of its own instead.
    """
    for key, value in options.items():
        expected = "left out: it is an option of a testbed"
        raise ConfigRefused(path="pipeline", key=key, value=value, expected=expected)
    for key in ("level", "shared_priority"):
        if changes.get(key, "query") != "query":
            expected = "left out for a pipeline: each of its queries is simulated as one box"
            raise ConfigRefused(path="pipeline", key=key, value=changes[key], expected=expected)
    parts = simulated_parts(pipeline)
    times = {trace.stream_in(parts.network): trace.times_s() for trace in traces}
    longest_s = max((float(times_s[-1]) for times_s in times.values()), default=DEFAULT_S)
    for stream in parts.network.streams:
        if stream.name not in times and not stream.is_derived:
            bursts = pipeline.arrivals_of(stream.name)
            count = bursts.count_by(longest_s if seconds is None else seconds)
            times[stream.name] = bursts.times_s(0, count)
    usual = simulated_options(pipeline)
    triggers = usual["trigger_s"]
    for stream in parts.network.streams:
        if stream.of:
            # A stream that a query fills has no times here: its tuples come when the query runs.
            sources = [name for name in stream.of if name in times]
            source_times = [times[name] for name in sources]
            times[stream.name] = np.sort(np.concatenate([np.zeros(0), *source_times]))
            triggers[stream.name] = min((triggers[name] for name in sources), default=0.0)
    statistics = parts.statistics
    if "overhead_s" in changes:
        every_s = changes["overhead_s"]
        statistics = {
            name: replace(figures, overhead_s=every_s) for name, figures in statistics.items()
        }
    run = {key: changes[key] for key in ("workers", "train_tuples") if key in changes}
    note = "as on Spark, calls fused"
    if charges or "learns" in changes:
        usual = {key: usual[key] for key in ("workers", "train_tuples")}
        run |= {"learns": "learns" in changes, **simulation_options(charges)}
        note = "as one box each, calls not fused"
    return Workload(
        name=pipeline.origins.get("streams", "pipeline"),
        network=parts.network,
        arrivals=_cut(times, seconds),
        options={**usual, "statistics": statistics, "seed": seed, **run},
        note=f"{len(parts.network.paths)} queries {note}",
        pipeline=pipeline,
    )


def _of_testbed(
    name: str,
    seed: int,
    seconds: float | None,
    traces: Sequence[Trace],
    changes: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Workload:
    variant, rest = named_testbed(name, options)
    if traces and variant.takes_arrivals:
        all_options = {**variant.options, **rest}
        times = _trace_times(name, traces, all_options)
        testbed = variant.make(**rest, seed=seed, arrivals=times)
    else:
        testbed = variant.make(**rest, seed=seed)
    arrivals = testbed.arrivals
    if traces and not variant.takes_arrivals:
        arrivals = replaced(name, testbed.network, arrivals, traces)
    recorded = "; arrivals as recorded" if traces and "as given" not in testbed.note else ""
    return Workload(
        name=testbed.name,
        network=testbed.network,
        arrivals=_cut(arrivals, seconds),
        options={"level": variant.level, "seed": seed, **_options(testbed), **changes},
        note=f"{testbed.note}{recorded}",
    )


def _trace_times(testbed: str, traces: Sequence[Trace], options: Mapping[str, Any]) -> Any:
    """Return the times of traces as testbeds take them: one for all queries, or several by stream.

    No more tuples are read than the testbed has of a stream.
    """
    tuples = int(options["tuples"])
    if "streams" in options:
        return {
            trace.stream or f"s{number}": trace.times_s(tuples)
            for number, trace in enumerate(traces)
        }
    if len(traces) > 1:
        expected = "one trace: there is one stream"
        raise ConfigRefused(path=f"testbed '{testbed}'", key="trace", value=None, expected=expected)
    return traces[0].times_s(tuples)


def _options(testbed: Testbed) -> dict[str, Any]:
    """Return the options that a testbed sets for `simulate`."""
    options: dict[str, Any] = {}
    if testbed.selectivities:
        options |= {"selectivities": testbed.selectivities, "interval_s": testbed.interval_s}
    for key in ("tuple_costs", "preloaded", "shared_priority"):
        if value := getattr(testbed, key):
            options[key] = value
    return options


def _cut(arrivals: Mapping[str, Floats], seconds: float | None) -> dict[str, Floats]:
    """Return the arrivals of the first seconds, or all."""
    if seconds is None:
        return dict(arrivals)
    return {
        name: times_s[: int(np.searchsorted(times_s, seconds, side="right"))]
        for name, times_s in arrivals.items()
    }
