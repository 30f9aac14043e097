"""Workloads: all that a simulation runs besides the policy, from a pipeline file or a testbed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path as File
from typing import Any, cast

import numpy as np

from headgate.config import Pipeline, read_pipeline
from headgate.errors import ConfigRefused
from headgate.metrics.report import Report
from headgate.model.arrays import Floats
from headgate.model.network import Network
from headgate.model.units import Level, Sharing
from headgate.policies import Policy
from headgate.runtime.pipeline import policy_of, simulated_options, simulated_parts
from headgate.runtime.policy_text import Spelled
from headgate.runtime.what_if.simulate import simulate
from headgate.runtime.what_if.traces import Trace, replaced
from headgate.workloads.named import named_testbed
from headgate.workloads.testbed import Testbed

DEFAULT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A network, its arrivals, and how they are run.

    Args:
        arrivals: by stream, ascending times in seconds.
        options: for `simulate`: seed, level, workers and the like.
        note: what it is, in words.
        pipeline: the file it was made from, if any.
    """

    name: str
    network: Network
    arrivals: Mapping[str, Floats]
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    pipeline: Pipeline | None = None

    @property
    def level(self) -> Level:
        return cast(Level, self.options.get("level", "query"))

    @property
    def as_on_spark(self) -> bool:
        """Whether it runs as a pipeline on Spark does, with fused calls and nothing foreseen."""
        return bool(self.options.get("together"))

    @property
    def ends_at_s(self) -> float:
        """When the last tuple arrives."""
        return max((float(each[-1]) for each in self.arrivals.values() if len(each)), default=0.0)

    @property
    def usual_policy(self) -> str:
        """The policy where nobody says which: the pipeline file's, else `hr`."""
        return "hr" if self.pipeline is None else self.pipeline.policy.name

    def policy(self, spelled: Spelled) -> Policy:
        """Gives a new policy; one that a pipeline file has parameters for gets those."""
        if self.pipeline is not None and spelled.bare:
            return policy_of(self.pipeline, spelled.text)
        return spelled.make()

    def simulate(
        self,
        policy: str | Spelled = "hr",
        progress: Callable[[float], None] = lambda now_s: None,
    ) -> Report:
        """Runs a policy and reports on it under the name that it was asked for by.

        >>> workload("amos", plan=1, tuples=200).simulate("hr").policy
        'hr'
        """
        spelled = Spelled(policy) if isinstance(policy, str) else policy
        made = self.policy(spelled)
        report = simulate(
            self.network, self.arrivals, policy=made, progress=progress, **self.options
        )
        return replace(report, policy=spelled.text)


def workload(
    of: str | File | Pipeline,
    *,
    seed: int = 0,
    seconds: float | None = None,
    traces: Sequence[Trace | str] = (),
    level: Level | None = None,
    workers: int | None = None,
    train_tuples: int | None = None,
    overhead_s: float | None = None,
    sharing: Sharing | None = None,
    learns: bool = False,
    **options: Any,
) -> Workload:
    """Gives the workload of a pipeline file, or of a testbed by its name.

    Args:
        seed: decides which tuples pass; of a testbed also its queries and arrivals.
        seconds: how long tuples arrive; left out, 60 s of a pipeline and all of a testbed.
        traces: recorded arrivals in place of the streams' own.
        level, workers, train_tuples, overhead_s, sharing, learns: see `simulate`; left out, as the
            file or the testbed has them.
        options: of the testbed.

    Raises:
        UnknownName: there is no such testbed, option or stream.
        ConfigRefused: a value cannot be.
        StatisticsMissing: costs of a pipeline's queries are not known.

    >>> workload("cqc", workload="B", tuples=100).note[:22]
    'workload B: 21 queries'
    """
    asked = {
        "level": level, "workers": workers, "train_tuples": train_tuples,
        "overhead_s": overhead_s, "sharing": sharing, "learns": learns or None,
    }  # fmt: skip
    changes = {key: value for key, value in asked.items() if value is not None}
    found = [each if isinstance(each, Trace) else Trace.of(each) for each in traces]
    if isinstance(of, Pipeline) or _is_file(of):
        pipeline = of if isinstance(of, Pipeline) else read_pipeline(of)
        return _of_pipeline(pipeline, seed, seconds, found, changes, options)
    return _of_testbed(str(of), seed, seconds, found, changes, options)


def _is_file(of: str | File) -> bool:
    return File(of).suffix in (".yaml", ".yml") or File(of).is_file()


def _of_pipeline(
    pipeline: Pipeline,
    seed: int,
    seconds: float | None,
    traces: Sequence[Trace],
    changes: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Workload:
    """Gives a pipeline as it would run on Spark, at the costs that are recorded or in the file."""
    for key, value in options.items():
        expected = "left out: it is an option of a testbed"
        raise ConfigRefused(path="pipeline", key=key, value=value, expected=expected)
    for key in ("level", "sharing", "learns"):
        if changes.get(key, "query") != "query":
            expected = "left out for a pipeline: its queries are known as one box each"
            raise ConfigRefused(path="pipeline", key=key, value=changes[key], expected=expected)
    parts = simulated_parts(pipeline)
    times = {trace.stream_in(parts.network): trace.times_s() for trace in traces}
    longest_s = max((float(each[-1]) for each in times.values()), default=DEFAULT_S)
    for stream in parts.network.streams:
        if stream.name not in times and not stream.is_derived:
            bursts = pipeline.arrivals_of(stream.name)
            count = bursts.count_by(longest_s if seconds is None else seconds)
            times[stream.name] = bursts.times_s(0, count)
    usual = simulated_options(pipeline)
    triggers = usual["trigger_s"]
    for stream in parts.network.streams:
        if stream.of:
            # What queries make of it comes when they have run.
            sources = [each for each in stream.of if each in times]
            found = [times[each] for each in sources]
            times[stream.name] = np.sort(np.concatenate([np.zeros(0), *found]))
            triggers[stream.name] = min((triggers[each] for each in sources), default=0.0)
    known = parts.statistics
    if "overhead_s" in changes:
        every_s = changes["overhead_s"]
        known = {name: replace(each, overhead_s=every_s) for name, each in known.items()}
    run = {key: changes[key] for key in ("workers", "train_tuples") if key in changes}
    return Workload(
        name=pipeline.origins.get("streams", "pipeline"),
        network=parts.network,
        arrivals=_cut(times, seconds),
        options={**usual, "statistics": known, "seed": seed, **run},
        note=f"{len(parts.network.paths)} queries as on Spark, calls fused",
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
        given = {**variant.options, **rest}
        made = variant.make(**rest, seed=seed, arrivals=_given(name, traces, given))
    else:
        made = variant.make(**rest, seed=seed)
    arrivals = made.arrivals
    if traces and not variant.takes_arrivals:
        arrivals = replaced(name, made.network, arrivals, traces)
    recorded = "; arrivals as recorded" if traces and "as given" not in made.note else ""
    return Workload(
        name=made.name,
        network=made.network,
        arrivals=_cut(arrivals, seconds),
        options={"level": variant.level, "seed": seed, **_options(made), **changes},
        note=f"{made.note}{recorded}",
    )


def _given(testbed: str, traces: Sequence[Trace], options: Mapping[str, Any]) -> Any:
    """Gives traces as testbeds take them: one for all queries, or by stream where there are some.

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
    """Gives what a testbed asks of `simulate`, as far as it asks for something."""
    asked: dict[str, Any] = {}
    if testbed.selectivities:
        asked |= {"selectivities": testbed.selectivities, "interval_s": testbed.interval_s}
    for key in ("tuple_costs", "preloaded", "sharing"):
        if value := getattr(testbed, key):
            asked[key] = value
    return asked


def _cut(arrivals: Mapping[str, Floats], seconds: float | None) -> dict[str, Floats]:
    """Gives the arrivals of the first seconds, or all."""
    if seconds is None:
        return dict(arrivals)
    return {
        name: times_s[: int(np.searchsorted(times_s, seconds, side="right"))]
        for name, times_s in arrivals.items()
    }
