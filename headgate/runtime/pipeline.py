"""A pipeline file as a simulation takes it: its network, what is known of it, its policy."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

from headgate.config import Pipeline
from headgate.errors import ConfigRefused, StatisticsMissing
from headgate.language.unread import unread_path
from headgate.model.network import Network, Path
from headgate.model.plan import ALL
from headgate.model.query import QueryClass, QueryStatistics
from headgate.policies import Policy, policies, policy_named
from headgate.policies.registry import refuse_inside
from headgate.runtime.recorded import recorded_statistics
from headgate.runtime.spelling import Spelled


@dataclass(frozen=True)
class PipelineParts:
    """A pipeline's network, and by query what a run has recorded or the file gives."""

    network: Network
    statistics: dict[str, QueryStatistics]


def simulated_parts(pipeline: Pipeline) -> PipelineParts:
    """Gives the network of a pipeline, at the costs that a run has recorded or the file gives.

    Raises:
        StatisticsMissing: a query's figures are in neither.
    """
    streams = pipeline.stream_models()
    columns: dict[str, Sequence[str]] = {stream.name: () for stream in streams}
    found = [unread_path(query, columns) for query in pipeline.query_models()]
    paths = tuple(path for path, _ in found)
    timelines = {each.name: each for _, more in found for each in more}
    classes = tuple(
        QueryClass(name=name, priority=priority) for name, priority in pipeline.classes.items()
    )
    network = Network((*streams, *timelines.values()), classes, paths)
    return PipelineParts(network, _known_statistics(pipeline, paths))


def simulated_options(pipeline: Pipeline) -> dict[str, Any]:
    """Gives what makes a simulation run as Spark would: workers, trains, fusion, triggers."""
    return {
        "workers": pipeline.workers,
        "train_tuples": pipeline.train_tuples or ALL,
        "most_fused": pipeline.most_fused,
        "together": True,
        "trigger_s": {stream.name: stream.asked_every_s for stream in pipeline.stream_models()},
    }


def policy_of(pipeline: Pipeline, text: str | None = None) -> Policy:
    """Gives the file's policy with its parameters, or another as it is spelled."""
    if text is None or text == pipeline.policy.name:
        return policy_named(pipeline.policy.name, **pipeline.policy.parameters)
    return Spelled(text).make()


def refuse_off_spark(policy: Policy) -> None:
    """Refuses a policy that only a simulation can have, since it foresees single tuples."""
    entry = policies().get(policy.name)
    if entry is not None and ("spark" not in entry.engines or "query" not in entry.levels):
        expected = "one that runs on Spark: this one is for simulations only"
        raise ConfigRefused(path="policy", key="name", value=policy.name, expected=expected)
    refuse_inside(policy, level="query", engine="spark")


def _known_statistics(pipeline: Pipeline, paths: Iterable[Path]) -> dict[str, QueryStatistics]:
    state = File(pipeline.state)
    recorded: dict[str, QueryStatistics] = {}
    for folder in [*sorted(state.glob("*/")), state]:
        recorded.update(recorded_statistics(folder))
    known, missing = {}, []
    for path in paths:
        figures = recorded.get(path.query.name, path.query.statistics)
        if figures is None:
            missing.append(path.query.name)
        else:
            known[path.query.name] = figures
    if missing:
        raise StatisticsMissing(queries=missing, looked_in=str(state))
    return known
