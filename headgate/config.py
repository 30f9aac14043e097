"""The pipeline file: one model, every mistake answered with file, key and what was expected."""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import fields
from pathlib import Path as File
from typing import Annotated, Any, Literal, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from headgate.errors import ConfigRefused
from headgate.model.admission import AdmissionRules
from headgate.model.plan import Share
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import FORMATS, Query, QueryStatistics, Sink, SinkFormat, View
from headgate.model.stream import Stream
from headgate.model.units import Sharing
from headgate.workloads.arrivals import Bursts
from headgate.workloads.forest import arrivals_of

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
Priority = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ArrivalsConfig(_Strict):
    """When tuples arrive in a simulation."""

    rate_per_s: float = Field(gt=0, description="tuples a second outside bursts")
    burst_factor: float = Field(1.0, gt=0, description="how many times the rate in a burst")
    burst_every_s: float = Field(20.0, gt=0, description="seconds from burst to burst")
    burst_for_s: float = Field(0.0, ge=0, description="seconds that a burst lasts")

    @model_validator(mode="after")
    def _bursts_end(self) -> "ArrivalsConfig":
        if self.burst_for_s >= self.burst_every_s:
            raise ValueError("such that burst_for_s is below burst_every_s")
        return self


class StreamConfig(_Strict):
    """A source, as Spark's readStream takes it."""

    format: str = Field(description="any readStream format; `headgate` is the built-in generator")
    options: dict[str, str | int | float | bool] = Field(
        default_factory=dict, description="options of the format, passed on unchanged"
    )
    schema_: str = Field(
        "", alias="schema", description="columns as DDL; empty if the source knows"
    )
    event_time: str | None = Field(None, description="column with the time a tuple speaks of")
    lateness_s: float = Field(
        0.0, ge=0, description="how far behind the greatest event_time so far a tuple may be"
    )
    quiet_s: float | None = Field(
        10.0, ge=0, description="quiet so long, a stream's time goes on as the clock does; or null"
    )
    late_path: str | None = Field(
        None,
        min_length=1,
        description="directory for tuples that come too late for windows; without it they are"
        " counted and dropped",
    )
    arrival_time: str | None = Field(None, description="column from which response times count")
    trigger_s: float | None = Field(
        None, ge=0, description="how often the source is asked; 0.03 by the driver, 0.2 by Spark"
    )
    ingest: Literal["auto", "driver", "spark"] = Field(
        "auto",
        description="auto: the driver asks the sources it can; driver: no others; "
        "spark: Structured Streaming",
    )
    arrivals: ArrivalsConfig | None = Field(None, description="arrivals in a simulation")

    @model_validator(mode="after")
    def _late_by_time(self) -> "StreamConfig":
        if self.late_path is not None and self.event_time is None:
            raise ValueError("such that late_path comes with event_time: else none is late")
        return self


class SinkConfig(_Strict):
    """Where results go."""

    format: str = Field("parquet", description=f"one of {', '.join(FORMATS)}")
    path: str = Field(
        "", description="directory of parquet, json, csv; without it STATE/results/QUERY"
    )
    options: dict[str, str | int | float | bool] = Field(
        default_factory=dict, description="options of the format: see sinks.md"
    )

    def model(self) -> Sink:
        """Gives the sink; what is wrong with it, its `mistake` tells."""
        options = {key: _option(value) for key, value in self.options.items()}
        return Sink(format=cast(SinkFormat, self.format), path=self.path, options=options)


class StatisticsConfig(_Strict):
    """What is known of a query before it has run."""

    cost_s: float = Field(gt=0, description="seconds a tuple")
    selectivity: float = Field(ge=0, le=1, description="tuples out per tuple in")
    overhead_s: float = Field(0.0, ge=0, description="seconds a call")


class QueryConfig(_Strict):
    """A continuous query."""

    sql: str = Field(pattern=r"\S", description="one SELECT over one stream")
    class_: str = Field(alias="class", description="one of the classes")
    sink: SinkConfig = Field(default_factory=SinkConfig, description="where results go")
    weight: float = Field(
        1.0, ge=0, description="how much its freshness counts (fas) and its results (shedding)"
    )
    deadline_s: float | None = Field(
        None, gt=0, description="when a result is due after arrival (policies edf, edf-hr)"
    )
    qos: list[tuple[float, float]] | None = Field(
        None,
        description="QoS graph: points of latency in seconds and utility, falling (policies qos, "
        "qos-bucketed), as [[0, 1], [2, 1], [5, 0]]",
    )
    allows_shedding: bool = Field(False, description="whether tuples may be dropped in overload")
    cut: bool | None = Field(
        None,
        description="run cheap conditions first, with a queue before what calls functions; left"
        " out, it is the policy's choice",
    )
    statistics: StatisticsConfig | None = Field(None, description="for simulation without a run")


class ViewConfig(_Strict):
    """A query whose results are a stream of its name, computed once for all who read it."""

    sql: str = Field(pattern=r"\S", description="one SELECT, over streams or other views")
    event_time: str | None = Field(None, description="column with the time a tuple speaks of")
    lateness_s: float = Field(
        0.0, ge=0, description="how far below the view's watermark the time of a tuple may be"
    )
    statistics: StatisticsConfig | None = Field(None, description="for simulation without a run")


class PolicyConfig(_Strict):
    """The policy and its parameters: every key but `name` is a parameter."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str = Field("cqc", description="see `headgate policies`")

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class SparkConfig(_Strict):
    """The local session that `headgate run` starts."""

    master: str = Field("local[*]", description="any Spark master")
    config: dict[str, str] = Field(default_factory=dict, description="passed on unchanged")


class Pipeline(_Strict):
    """A whole pipeline file."""

    state: str = Field(description="directory of log, journal, results and statistics")
    policy: PolicyConfig = Field(default_factory=PolicyConfig, description="who runs next")
    workers: int = Field(2, ge=1, description="jobs under way at once")
    train_tuples: int | None = Field(
        None, ge=1, description="tuples a step takes at the most; all that wait if not given"
    )
    most_fused: int = Field(256, ge=1, description="queries that may share a call; 1 is no fusion")
    retention_s: float = Field(3600.0, ge=0, description="how long passed trains are kept")
    rehearsal_s: float = Field(
        12.0, ge=0, description="seconds to warm up and measure new queries before the first tuple"
    )
    memory_bytes: int = Field(
        512 << 20, gt=0, description="what trains and results in memory may take"
    )
    log_bytes: int = Field(
        10 << 30,
        gt=0,
        description="what the log may take on disk, with all that waits there, before sources wait"
        " and tuples are shed where queries allow it",
    )
    share: Share = Field(
        "class", description="between which queries equal parts run once: one class, all, none"
    )
    sharing: Sharing = Field(
        "pdt",
        description="what queries that share a call are worth to a policy that ranks by rates:"
        " those that raise the value of all (pdt), the best (max) or all (sum)",
    )
    record: bool = Field(False, description="keep what happens in STATE/recording, for a replay")
    call_timeout_s: float = Field(
        300.0, gt=0, description="how long a call may take; its query has failed then"
    )
    most_text_bytes: int = Field(
        AdmissionRules.most_text_bytes, gt=0, description="how long a query's text may be, in UTF-8"
    )
    most_nesting: int = Field(
        AdmissionRules.most_nesting,
        gt=0,
        description="how deep brackets, CASEs and comments of a text may be inside each other",
    )
    most_plan_nodes: int = Field(
        AdmissionRules.most_plan_nodes,
        gt=0,
        description="operators and expressions that a query may have, subqueries included",
    )
    analysis_timeout_s: float = Field(
        AdmissionRules.analysis_timeout_s,
        gt=0,
        description="seconds that Spark may take to parse and analyze a query's text",
    )
    allows_paths: bool = Field(
        AdmissionRules.allows_paths,
        description="whether queries may read files by their path, as in ``parquet.`/data/a` ``;"
        " the state directory never",
    )
    allows_reflection: bool = Field(
        AdmissionRules.allows_reflection,
        description="whether queries may call Java methods: `reflect`, `java_method`,"
        " `try_reflect`",
    )
    spark: SparkConfig = Field(default_factory=SparkConfig, description="the Spark session")
    classes: dict[str, Priority] = Field(
        default_factory=lambda: {"default": 1.0}, description="priority by class", min_length=1
    )
    streams: dict[Name, StreamConfig] = Field(description="streams by name", min_length=1)
    views: dict[Name, ViewConfig] = Field(
        default_factory=dict, description="views by name: streams that are made of others"
    )
    queries: dict[Name, QueryConfig] = Field(description="queries by name", min_length=1)
    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def origins(self) -> dict[str, str]:
        """Where each value that is not a default comes from."""
        return self._origins

    def admission_rules(self) -> AdmissionRules:
        """Return what a query's text may cost and do."""
        keys = [field.name for field in fields(AdmissionRules)]
        return AdmissionRules(**{key: getattr(self, key) for key in keys})

    def stream_models(self) -> tuple[Stream, ...]:
        return tuple(
            Stream(
                name=name,
                format=each.format,
                options={key: _option(value) for key, value in each.options.items()},
                schema=each.schema_,
                event_time=each.event_time,
                lateness_s=each.lateness_s,
                quiet_s=each.quiet_s,
                late_path=each.late_path,
                arrival_time=each.arrival_time,
                trigger_s=each.trigger_s,
                ingest=each.ingest,
            )
            for name, each in self.streams.items()
        )

    def query_models(self) -> tuple[Query, ...]:
        """Return the queries, behind those that fill the views."""
        lowest = min(self.classes, key=lambda name: self.classes[name])
        views = tuple(
            View(
                name=name,
                sql=each.sql,
                event_time=each.event_time,
                lateness_s=each.lateness_s,
                statistics=QueryStatistics(**each.statistics.model_dump())
                if each.statistics
                else None,
            ).query(lowest)
            for name, each in self.views.items()
        )
        return views + tuple(
            Query(
                name=name,
                sql=each.sql,
                query_class=each.class_,
                sink=each.sink.model(),
                weight=each.weight,
                deadline_s=each.deadline_s,
                qos=QoSGraph(tuple(each.qos)) if each.qos else None,
                allows_shedding=each.allows_shedding,
                cut=each.cut,
                statistics=QueryStatistics(**each.statistics.model_dump())
                if each.statistics
                else None,
            )
            for name, each in self.queries.items()
        )

    def arrivals_of(self, stream: str) -> Bursts:
        """Gives a stream's arrivals for a simulation: of the generator, else of the file."""
        each = self.streams[stream]
        if each.arrivals is not None:
            return Bursts(**each.arrivals.model_dump())
        if each.format == "headgate":
            return arrivals_of({key: str(value) for key, value in each.options.items()})
        raise ConfigRefused(
            path=f"stream '{stream}'",
            key="arrivals",
            value=None,
            expected="given for a simulation, as in  arrivals: {rate_per_s: 1500}",
        )


def read_mapping(path: str | File) -> dict[Any, Any]:
    """Reads a YAML file that holds a mapping.

    Raises:
        ConfigRefused: the file is missing, or is not that.
    """
    try:
        text = File(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigRefused(
            path=str(path), key="", value=None, expected=f"a readable file: {reason.lower()}"
        ) from error
    try:
        data = yaml.load(text, Loader=_NoTwins)
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        line = f" (line {place.line + 1})" if place else ""
        problem = getattr(error, "problem", None) or "not YAML"
        raise ConfigRefused(
            path=str(path), key="", value=None, expected=f"valid YAML{line}: {problem}"
        ) from error
    if not isinstance(data, dict):
        raise ConfigRefused(path=str(path), key="", value=None, expected="a mapping of keys")
    return data


def read_pipeline(
    path: str | File, environment: Mapping[str, str] | None = None, **flags: Any
) -> Pipeline:
    """Reads and checks a pipeline file; relative directories are taken from the working directory.

    A value comes from the defaults, the file, the environment (`HEADGATE_STATE` for `state`) or a
    flag; the last that gives one wins.

    Raises:
        ConfigRefused: the file is missing, is not YAML, or a value is wrong.
    """
    data = read_mapping(path)
    outside = {} if environment is None else environment
    changes = {
        key: outside[variable]
        for key in Pipeline.model_fields
        if (variable := f"HEADGATE_{key.upper()}") in outside
        and key not in ("streams", "views", "queries")
    }
    try:
        pipeline = Pipeline.model_validate({**data, **changes, **flags})
    except ValidationError as error:
        raise _refused(str(path), error, changes) from error
    _check_names(str(path), pipeline)
    _check_queries(str(path), pipeline.queries, pipeline.classes)
    pipeline.origins.update(dict.fromkeys(data, str(path)))
    pipeline.origins.update({key: f"HEADGATE_{key.upper()}" for key in changes})
    pipeline.origins.update(dict.fromkeys(flags, "flag"))
    return pipeline


class _NoTwins(yaml.SafeLoader):
    """Refuses a key that is there twice, which YAML would let win in silence."""


def _mapping(loader: _NoTwins, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    seen = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable):
            raise yaml.MarkedYAMLError(
                problem="a key must be a plain word", problem_mark=key_node.start_mark
            )
        if key in seen:
            raise yaml.MarkedYAMLError(
                problem=f"the name '{key}' is there twice", problem_mark=key_node.start_mark
            )
        seen.add(key)
    return dict(yaml.SafeLoader.construct_mapping(loader, node, deep=True))


_NoTwins.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _option(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refused(path: str, error: ValidationError, changes: Mapping[str, str]) -> ConfigRefused:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"] if part != "[key]")
    value, expected = first.get("input"), first["msg"]
    if key in changes:
        path, key = "the environment", f"HEADGATE_{key.upper()}"
    if first["type"] == "missing":
        value, expected = None, "given: it has no default"
    elif first["type"] == "extra_forbidden":
        value, expected = None, "left out: there is no such key"
    else:
        expected = expected.removeprefix("Input should be ").removeprefix("Value error, ")
        if expected.startswith("String should match"):
            expected = "a SELECT" if key.endswith(".sql") else "letters, digits and _"
    return ConfigRefused(path=path, key=key, value=value, expected=expected)


class Fragment(_Strict):
    """Streams, views and queries for a Headgate that runs already."""

    streams: dict[Name, StreamConfig] = Field(default_factory=dict)
    views: dict[Name, ViewConfig] = Field(default_factory=dict)
    queries: dict[Name, QueryConfig] = Field(default_factory=dict)


def fragment_of(data: object, where: str, classes: Mapping[str, float]) -> Pipeline:
    """Checks streams, views and queries as those of a pipeline file; gives them, nothing else.

    Args:
        classes: priority by class.

    Raises:
        ConfigRefused: a value is wrong, or nothing is given.
    """
    try:
        found = Fragment.model_validate(data if isinstance(data, dict) else {})
    except ValidationError as error:
        raise _refused(where, error, {}) from error
    if not (found.streams or found.views or found.queries):
        raise ConfigRefused(
            path=where, key="", value=None, expected="a mapping with streams, views or queries"
        )
    _check_names(where, found)
    _check_queries(where, found.queries, classes)
    return Pipeline.model_construct(
        state="", streams=found.streams, views=found.views, queries=found.queries,
        classes=dict(classes),
    )  # fmt: skip


def _check_names(where: str, found: Pipeline | Fragment) -> None:
    """Refuse a view that has the name of a stream or of a query."""
    for name in found.views:
        for kind, others in (("stream", found.streams), ("query", found.queries)):
            if name in others:
                raise ConfigRefused(
                    path=where,
                    key=f"views.{name}",
                    value=name,
                    expected=f"another name: a {kind} has it",
                )


def _check_queries(
    where: str, queries: Mapping[str, QueryConfig], classes: Collection[str]
) -> None:
    for name, query in queries.items():
        if query.class_ not in classes:
            raise ConfigRefused(
                path=where,
                key=f"queries.{name}.class",
                value=query.class_,
                expected=f"one of {', '.join(classes)}",
            )
        if mistake := query.sink.model().mistake():
            key, value, expected = mistake
            raise ConfigRefused(
                path=where, key=f"queries.{name}.sink.{key}", value=value, expected=expected
            )
