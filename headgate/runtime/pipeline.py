"""A pipeline file as input of a simulation: its network, its statistics and its policy."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import Any

from headgate.config import Pipeline
from headgate.errors import ConfigRefused, StatisticsMissing
from headgate.language.paths_without_spark import path_without_spark
from headgate.model.network.derived_streams import lifted
from headgate.model.network.network import Network, Path
from headgate.model.plan import ALL
from headgate.model.query import QueryStatistics
from headgate.model.stream import DERIVED, Stream
from headgate.policies import Policy, policies, policy_named
from headgate.policies.registry import refuse_inside
from headgate.runtime.policy_text import Spelled
from headgate.runtime.recording.statistics_file import recorded_statistics
from headgate.runtime.views import reading_order, refuse_itself


@dataclass(frozen=True)
class PipelineParts:
    """A pipeline's network, and the statistics of its queries: recorded by a run or in the file."""

    network: Network
    statistics: dict[str, QueryStatistics]


def simulated_parts(pipeline: Pipeline) -> PipelineParts:
    """Return the network of a pipeline with its statistics, recorded by a run or in the file.

    Raises:
        StatisticsMissing: a query's statistics are in neither.
    """
    paths, streams = unread_paths(pipeline)
    classes = pipeline.class_models()
    network = Network(tuple(streams), classes, lifted(paths, streams, classes))
    return PipelineParts(network, _statistics_of(pipeline, paths))


def unread_paths(pipeline: Pipeline) -> tuple[list[Path], list[Stream]]:
    """Return the paths of a file's queries and views, parsed without Spark, and all streams.

    Raises:
        ConfigRefused: views read each other in a cycle.
        QueryRefused, UnknownName: as `path_without_spark`.
    """
    streams = list(pipeline.stream_models())
    paths: list[Path] = []
    for query in reading_order(pipeline.query_models()):
        columns: dict[str, Sequence[str]] = {stream.name: () for stream in streams if not stream.of}
        refuse_itself(query)
        path, timelines = path_without_spark(query, columns)
        paths.append(replace(path, into=query.into))
        names = {stream.name for stream in streams}
        streams += [timeline for timeline in timelines if timeline.name not in names]
        if query.into is not None:
            streams.append(Stream(name=query.into, format=DERIVED))
    return paths, streams


def simulated_options(pipeline: Pipeline) -> dict[str, Any]:
    """Return the options with which a simulation runs a pipeline as Spark would."""
    return {
        "workers": pipeline.workers,
        "train_tuples": pipeline.train_tuples or ALL,
        "most_fused": pipeline.most_fused,
        "together": True,
        "trigger_s": {stream.name: stream.asked_every_s for stream in pipeline.stream_models()},
    }


def policy_of(pipeline: Pipeline, text: str | None = None) -> Policy:
    """Return the file's policy with its parameters, or another one from its text."""
    name, parameters = pipeline.policy.name, pipeline.policy.parameters
    if parameters and text in (None, name):
        return policy_named(name, **parameters)
    return Spelled(text or name).make()


def refuse_off_spark(policy: Policy) -> None:
    """Refuse a policy that only a simulation can run, since it foresees single tuples."""
    entry = policies().get(policy.name)
    if entry is not None and ("spark" not in entry.engines or "query" not in entry.levels):
        expected = "one that runs on Spark: this one is for simulations only"
        raise ConfigRefused(path="policy", key="name", value=policy.name, expected=expected)
    refuse_inside(policy, level="query", engine="spark")


def _statistics_of(pipeline: Pipeline, paths: Iterable[Path]) -> dict[str, QueryStatistics]:
    state = File(pipeline.state)
    recorded: dict[str, QueryStatistics] = {}
    for folder in [*sorted(state.glob("*/")), state]:
        recorded.update(recorded_statistics(folder))
    statistics, missing = {}, []
    for path in paths:
        figures = recorded.get(path.query.name, path.query.statistics)
        if figures is None:
            missing.append(path.query.name)
        else:
            statistics[path.query.name] = figures
    if missing:
        raise StatisticsMissing(queries=missing, looked_in=str(state))
    return statistics
