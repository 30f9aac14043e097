"""A whole pipeline file: every key with its type, unit, default and a sentence."""

from dataclasses import fields
from typing import Annotated, Any

from pydantic import ConfigDict, Field, PrivateAttr

from headgate.config.query import QueryConfig, ViewConfig
from headgate.config.section import Name, Section, option_texts
from headgate.config.stream import StreamConfig
from headgate.errors import ConfigRefused
from headgate.extensions import Options, source_entry
from headgate.model.admission import AdmissionRules
from headgate.model.plan import Share
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import Query, QueryStatistics, View
from headgate.model.stream import Stream
from headgate.model.units import SharedPriority
from headgate.workloads.arrivals import Bursts

Priority = Annotated[float, Field(gt=0, allow_inf_nan=False)]


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
        default_factory=dict, description="Spark settings, passed on unchanged"
    )


class Pipeline(Section):
    """A whole pipeline file."""

    state: str = Field(description="directory for the log, the journal, results and statistics")
    policy: PolicyConfig = Field(
        default_factory=PolicyConfig, description="the rule that decides which query runs next"
    )
    workers: int = Field(2, ge=1, description="calls that may run at the same time")
    train_tuples: int | None = Field(
        None, ge=1, description="maximum tuples per step; if not set, all that are pending"
    )
    most_fused: int = Field(256, ge=1, description="maximum queries per call; 1 turns fusion off")
    retention_s: float = Field(
        3600.0, ge=0, description="seconds that trains are kept after every query has passed them"
    )
    rehearsal_s: float = Field(
        12.0, ge=0, description="seconds to warm up and measure new queries before the first tuple"
    )
    memory_bytes: int = Field(
        512 << 20, gt=0, description="maximum bytes of memory for trains and results"
    )
    log_bytes: int = Field(
        10 << 30,
        gt=0,
        description="maximum bytes on disk for the log and for results that wait for a sink; then"
        " sources wait, and tuples are shed where queries allow it",
    )
    share: Share = Field(
        "class",
        description="which queries share equal parts, so that these run once: those of one class,"
        " all, none",
    )
    shared_priority: SharedPriority = Field(
        "pdt",
        description="which queries of a shared call count for its priority, where a policy ranks"
        " by rates: those that raise the value of the whole (pdt), the best (max) or all (sum)",
    )
    record: bool = Field(
        False, description="whether to record all events in STATE/recording, for a replay"
    )
    call_timeout_s: float = Field(
        300.0, gt=0, description="maximum seconds per call; a query whose call takes longer fails"
    )
    most_text_bytes: int = Field(
        AdmissionRules.most_text_bytes,
        gt=0,
        description="maximum bytes of a query's text, in UTF-8",
    )
    most_nesting: int = Field(
        AdmissionRules.most_nesting,
        gt=0,
        description="maximum levels of nested brackets, CASEs and comments in a query's text",
    )
    most_plan_nodes: int = Field(
        AdmissionRules.most_plan_nodes,
        gt=0,
        description="maximum operators and expressions in a query's plan, subqueries included",
    )
    analysis_timeout_s: float = Field(
        AdmissionRules.analysis_timeout_s,
        gt=0,
        description="maximum seconds for Spark to parse and analyze a query's text",
    )
    allows_paths: bool = Field(
        AdmissionRules.allows_paths,
        description="whether queries may read files by their path, as in ``parquet.`/data/a` ``;"
        " never files in the state directory",
    )
    allows_reflection: bool = Field(
        AdmissionRules.allows_reflection,
        description="whether queries may call Java methods: `reflect`, `java_method`,"
        " `try_reflect`",
    )
    spark: SparkConfig = Field(default_factory=SparkConfig, description="the Spark session")
    classes: dict[str, Priority] = Field(
        default_factory=lambda: {"default": 1.0},
        description="priority by class name; higher is more important",
        min_length=1,
    )
    streams: dict[Name, StreamConfig] = Field(description="streams by name", min_length=1)
    views: dict[Name, ViewConfig] = Field(
        default_factory=dict, description="views by name: streams computed from other streams"
    )
    queries: dict[Name, QueryConfig] = Field(description="queries by name", min_length=1)
    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def origins(self) -> dict[str, str]:
        """The origin of each value that is not a default: the file, a variable or a flag."""
        return self._origins

    def admission_rules(self) -> AdmissionRules:
        """Return the limits and permissions for the texts of queries."""
        keys = [field.name for field in fields(AdmissionRules)]
        return AdmissionRules(**{key: getattr(self, key) for key in keys})

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
                late_path=stream.late_path,
                arrival_time=stream.arrival_time,
                trigger_s=stream.trigger_s,
                ingest=stream.ingest,
            )
            for name, stream in self.streams.items()
        )

    def query_models(self) -> tuple[Query, ...]:
        """Return the queries that fill the views, followed by the others."""
        lowest = min(self.classes, key=lambda name: self.classes[name])
        views = tuple(
            View(
                name=name,
                sql=view.sql,
                event_time=view.event_time,
                lateness_s=view.lateness_s,
                statistics=QueryStatistics(**view.statistics.model_dump())
                if view.statistics
                else None,
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
