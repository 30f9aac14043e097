"""A whole pipeline file: every key with its type, unit, default and a sentence."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PrivateAttr

from headgate.config.query import QueryConfig, ViewConfig
from headgate.config.section import Name, Section, alone, named, option_texts
from headgate.config.simulation import SimulationConfig
from headgate.config.stream import StreamConfig
from headgate.errors import ConfigRefused
from headgate.extensions import Options, source_entry
from headgate.model.drop import ValueGraph
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import Query, QueryClass, QueryStatistics, View
from headgate.model.settings import Settings
from headgate.model.stream import Stream
from headgate.workloads.arrivals import Bursts


def _without_nul(path: str) -> str:
    if "\0" in path:
        raise ValueError("a path without NUL")
    return path


Folder = Annotated[str, AfterValidator(_without_nul)]
Priority = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ClassConfig(Section):
    """A class of queries; `H: 6` is short for `H: {priority: 6}`."""

    priority: Priority = Field(description="importance; higher is more important")
    target_s: float | None = Field(
        None,
        gt=0,
        description="mean response time, in seconds over the last 30 seconds, above which tuples"
        " are shed where queries allow it",
    )


class PolicyConfig(Section):
    """The policy and its parameters: every key except `name` is a parameter."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str = Field("cqc", description="name of the policy; `headgate policies` lists them")

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class SparkConfig(Section):
    """The Spark session that `headgate run` starts."""

    master: str = Field("local[*]", description="any Spark master")
    config: dict[str, str] = Field(
        default_factory=dict,
        description="Spark settings, passed on unchanged; nothing prints them: they may be secret",
        repr=False,
    )


class Pipeline(Settings):
    """A whole pipeline file: the keys below, and the settings."""

    state: Folder = Field(description="directory for the log, the journal, results and statistics")
    policy: Annotated[PolicyConfig, BeforeValidator(named("name"))] = Field(
        default_factory=PolicyConfig,
        description="the rule that decides which query runs next; `policy: cqc` is short for"
        " `policy: {name: cqc}`",
    )
    spark: SparkConfig = Field(default_factory=SparkConfig, description="the Spark session")
    classes: dict[str, Annotated[ClassConfig, BeforeValidator(alone("priority"))]] = Field(
        default_factory=lambda: {"default": ClassConfig(priority=1.0)},
        description="classes by name, each with its priority; higher is more important",
        min_length=1,
    )
    streams: dict[Name, StreamConfig] = Field(description="streams by name", min_length=1)
    views: dict[Name, ViewConfig] = Field(
        default_factory=dict, description="views by name: streams computed from other streams"
    )
    queries: dict[Name, QueryConfig] = Field(description="queries by name", min_length=1)
    simulation: SimulationConfig = Field(
        default_factory=SimulationConfig,
        description="charges and options of `headgate simulate` and `compare`",
    )
    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def origins(self) -> dict[str, str]:
        """The origin of each value that is not a default: the file, a variable or a flag."""
        return self._origins

    def class_models(self) -> tuple[QueryClass, ...]:
        return tuple(
            QueryClass(name=name, priority=section.priority, target_s=section.target_s)
            for name, section in self.classes.items()
        )

    def stream_models(self) -> tuple[Stream, ...]:
        return tuple(
            Stream(
                name=name,
                format=stream.format,
                options=option_texts(stream.options),
                schema=stream.schema_,
                event_time=stream.event_time,
                lateness_s=stream.lateness_s,
                quiet_s=stream.quiet_s,
                max_delay_s=stream.max_delay_s,
                late_path=stream.late_path,
                arrival_time=stream.arrival_time,
                trigger_s=stream.trigger_s,
                ingest=stream.ingest,
            )
            for name, stream in self.streams.items()
        )

    def query_models(self) -> tuple[Query, ...]:
        """Return the queries that fill the views, followed by the others."""
        lowest = min(self.classes, key=lambda name: self.classes[name].priority)
        views = tuple(
            View(
                name=name,
                sql=view.sql,
                event_time=view.event_time,
                lateness_s=view.lateness_s,
                statistics=QueryStatistics(**view.statistics.model_dump())
                if view.statistics
                else None,
                on_error=view.on_error,
            ).query(lowest)
            for name, view in self.views.items()
        )
        return views + tuple(
            Query(
                name=name,
                sql=query.sql,
                query_class=query.class_,
                sink=query.sink.model(),
                weight=query.weight,
                deadline_s=query.deadline_s,
                qos=QoSGraph(tuple(query.qos)) if query.qos else None,
                allows_shedding=query.allows_shedding,
                loss=QoSGraph(tuple(query.loss)) if query.loss else None,
                value=ValueGraph(query.value.column, tuple(query.value.points))
                if query.value
                else None,
                start_from=query.from_,
                on_error=query.on_error,
                cut=query.cut,
                statistics=QueryStatistics(**query.statistics.model_dump())
                if query.statistics
                else None,
            )
            for name, query in self.queries.items()
        )

    def arrivals_of(self, stream: str) -> Bursts:
        """Return a stream's arrivals for a simulation: its `arrivals`, or the generator's.

        Raises:
            ConfigRefused: the stream has no `arrivals`, and neither has its source.
        """
        settings = self.streams[stream]
        if settings.arrivals is not None:
            return Bursts(**settings.arrivals.model_dump())
        entry = source_entry(settings.format)
        if entry is not None and entry.arrivals is not None:
            arrivals: Bursts = entry.arrivals(Options(option_texts(settings.options)))
            return arrivals
        raise ConfigRefused(
            path=f"stream '{stream}'",
            key="arrivals",
            value=None,
            expected="given for a simulation, as in  arrivals: {rate_per_s: 1500}",
        )
