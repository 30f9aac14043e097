"""The pipeline file: its model, and errors that name the file, the key and the expected value."""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path as File
from typing import Annotated, Any, Literal, cast, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from headgate.errors import ConfigRefused, UnknownKey
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

    rate_per_s: float = Field(gt=0, description="tuples per second outside bursts")
    burst_factor: float = Field(1.0, gt=0, description="factor on the rate during a burst")
    burst_every_s: float = Field(20.0, gt=0, description="seconds from one burst to the next")
    burst_for_s: float = Field(0.0, ge=0, description="seconds that a burst lasts")

    @model_validator(mode="after")
    def _bursts_end(self) -> "ArrivalsConfig":
        if self.burst_for_s >= self.burst_every_s:
            raise ValueError("a mapping in which burst_for_s is below burst_every_s")
        return self


class StreamConfig(_Strict):
    """A source of tuples, described as for Spark's `readStream`."""

    format: str = Field(description="any readStream format; `headgate` is the built-in generator")
    options: dict[str, str | int | float | bool] = Field(
        default_factory=dict, description="options of the format, passed to it unchanged"
    )
    schema_: str = Field(
        "", alias="schema", description="columns as Spark DDL; empty if the source has its own"
    )
    event_time: str | None = Field(None, description="column with the event time of a tuple")
    lateness_s: float = Field(
        0.0,
        ge=0,
        description="seconds that a tuple's event time may lie behind the greatest one so far"
        " before the tuple is late",
    )
    quiet_s: float | None = Field(
        10.0,
        ge=0,
        description="seconds without a tuple after which the stream's time advances with the"
        " clock, so that its windows close; null: it waits for the next tuple",
    )
    late_path: str | None = Field(
        None,
        min_length=1,
        description="directory for tuples that arrive too late for their windows; if not set, they"
        " are counted and dropped",
    )
    arrival_time: str | None = Field(
        None,
        description="timestamp column from which response times are measured; if not set, a tuple"
        " arrives when Headgate first reads it",
    )
    trigger_s: float | None = Field(
        None,
        ge=0,
        description="seconds between two polls of the source; if not set, 0.03 where the driver"
        " polls, 0.2 where Spark does",
    )
    ingest: Literal["auto", "driver", "spark"] = Field(
        "auto",
        description="who polls the source. auto: the driver if it can, else Structured Streaming;"
        " driver: the driver, and other sources are refused; spark: Structured Streaming",
    )
    arrivals: ArrivalsConfig | None = Field(None, description="when tuples arrive in a simulation")

    @model_validator(mode="after")
    def _late_by_time(self) -> "StreamConfig":
        if self.late_path is not None and self.event_time is None:
            raise ValueError("a mapping with event_time beside late_path: else no tuple is late")
        return self


class SinkConfig(_Strict):
    """Where the results of a query go."""

    format: str = Field("parquet", description=f"one of {', '.join(FORMATS)}")
    path: str = Field(
        "", description="directory for parquet, json, csv files; if not set, STATE/results/QUERY"
    )
    options: dict[str, str | int | float | bool] = Field(
        default_factory=dict, description="options of the format: see sinks.md"
    )

    def model(self) -> Sink:
        """Return the sink, unchecked: `Sink.mistake` describes what is wrong with it."""
        options = {key: _option(value) for key, value in self.options.items()}
        return Sink(format=cast(SinkFormat, self.format), path=self.path, options=options)


class StatisticsConfig(_Strict):
    """Cost and selectivity of a query that has not run yet."""

    cost_s: float = Field(gt=0, description="seconds per tuple")
    selectivity: float = Field(ge=0, le=1, description="tuples out per tuple in")
    overhead_s: float = Field(0.0, ge=0, description="seconds per call")


class QueryConfig(_Strict):
    """A continuous query."""

    sql: str = Field(pattern=r"\S", description="one SELECT, over streams or views")
    class_: str = Field(alias="class", description="name of one of the `classes`")
    sink: SinkConfig = Field(default_factory=SinkConfig, description="where the results go")
    weight: float = Field(
        1.0,
        ge=0,
        description="how much the query's freshness counts (policy fas), and its results when"
        " tuples are shed",
    )
    deadline_s: float | None = Field(
        None,
        gt=0,
        description="seconds after arrival at which a result is due (policies edf, edf-hr)",
    )
    qos: list[tuple[float, float]] | None = Field(
        None,
        description="QoS graph (policies qos, qos-bucketed): points of latency in seconds and"
        " utility, which never rises, as in [[0, 1], [2, 1], [5, 0]]",
    )
    allows_shedding: bool = Field(
        False, description="whether the query's tuples may be dropped in overload"
    )
    cut: bool | None = Field(
        None,
        description="whether the cheap conditions run first, with a queue between them and the"
        " function calls; if not set, the policy decides",
    )
    statistics: StatisticsConfig | None = Field(
        None, description="cost and selectivity, for a simulation before the first run"
    )


class ViewConfig(_Strict):
    """A query whose results form a stream of the same name, computed once for all readers."""

    sql: str = Field(pattern=r"\S", description="one SELECT, over streams or other views")
    event_time: str | None = Field(None, description="column with the event time of a tuple")
    lateness_s: float = Field(
        0.0,
        ge=0,
        description="seconds that a tuple's event time may lie behind the view's watermark before"
        " the tuple is late",
    )
    statistics: StatisticsConfig | None = Field(
        None, description="cost and selectivity, for a simulation before the first run"
    )


class PolicyConfig(_Strict):
    """The policy and its parameters: every key except `name` is a parameter."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str = Field("cqc", description="name of the policy; `headgate policies` lists them")

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class SparkConfig(_Strict):
    """The Spark session that `headgate run` starts."""

    master: str = Field("local[*]", description="any Spark master")
    config: dict[str, str] = Field(
        default_factory=dict, description="Spark settings, passed on unchanged"
    )


class Pipeline(_Strict):
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
    sharing: Sharing = Field(
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
                options={key: _option(value) for key, value in stream.options.items()},
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
            ConfigRefused: the stream has no `arrivals` and is not generated.
        """
        settings = self.streams[stream]
        if settings.arrivals is not None:
            return Bursts(**settings.arrivals.model_dump())
        if settings.format == "headgate":
            return arrivals_of({key: str(value) for key, value in settings.options.items()})
        raise ConfigRefused(
            path=f"stream '{stream}'",
            key="arrivals",
            value=None,
            expected="given for a simulation, as in  arrivals: {rate_per_s: 1500}",
        )


def read_mapping(path: str | File) -> dict[Any, Any]:
    """Read a YAML file that holds a mapping.

    Raises:
        ConfigRefused: the file cannot be read, is not YAML, or holds no mapping.
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
    """Read and check a pipeline file. Relative directories are relative to the working directory.

    A value comes from the defaults, the file, the environment (`HEADGATE_STATE` for `state`) or a
    flag; the last of these that has the value wins.

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
        raise _refused(str(path), error, changes, Pipeline) from error
    _check_names(str(path), pipeline)
    _check_queries(str(path), pipeline.queries, pipeline.classes)
    pipeline.origins.update(dict.fromkeys(data, str(path)))
    pipeline.origins.update({key: f"HEADGATE_{key.upper()}" for key in changes})
    pipeline.origins.update(dict.fromkeys(flags, "flag"))
    return pipeline


class _NoTwins(yaml.SafeLoader):
    """A YAML loader that refuses a key that appears twice, where YAML would take the last one."""


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
                problem=f"the key '{key}' appears twice", problem_mark=key_node.start_mark
            )
        seen.add(key)
    return dict(yaml.SafeLoader.construct_mapping(loader, node, deep=True))


_NoTwins.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _option(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refused(
    path: str, error: ValidationError, changes: Mapping[str, str], model: type[BaseModel]
) -> ConfigRefused:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"] if part != "[key]")
    value, expected = first.get("input"), first["msg"]
    if first["type"] == "extra_forbidden":
        return UnknownKey(path=path, key=key, keys=_keys(model, first["loc"][:-1]))
    if key in changes:
        path, key = "the environment", f"HEADGATE_{key.upper()}"
    if first["type"] == "missing":
        value, expected = None, "given: it has no default"
    else:
        expected = expected.removeprefix("Input should be ").removeprefix("Value error, ")
        if expected.startswith("String should match"):
            expected = "a SELECT" if key.endswith(".sql") else "letters, digits and _"
    return ConfigRefused(path=path, key=key, value=value, expected=expected)


def _keys(model: type[BaseModel], place: Sequence[int | str]) -> list[str]:
    """Return the keys that a mapping at a place of the file may have.

    >>> _keys(Pipeline, ("streams", "sensors", "arrivals"))
    ['rate_per_s', 'burst_factor', 'burst_every_s', 'burst_for_s']
    """
    for part in place:
        field = next(
            (field for name, field in model.model_fields.items() if part in (name, field.alias)),
            None,  # a name that the user has chosen, as that of a stream
        )
        model = model if field is None else next(_models(field.annotation), model)
    return [field.alias or name for name, field in model.model_fields.items()]


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models inside a type, such as that of `dict[str, StreamConfig]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


class Fragment(_Strict):
    """Streams, views and queries to add to a running Headgate."""

    streams: dict[Name, StreamConfig] = Field(default_factory=dict)
    views: dict[Name, ViewConfig] = Field(default_factory=dict)
    queries: dict[Name, QueryConfig] = Field(default_factory=dict)


def fragment_of(data: object, where: str, classes: Mapping[str, float]) -> Pipeline:
    """Return streams, views and queries, checked as those of a pipeline file are.

    Args:
        where: the file or request that they come from, for errors.
        classes: priority by class.

    Raises:
        ConfigRefused: a value is wrong, or there is no stream, view or query.
    """
    try:
        fragment = Fragment.model_validate(data if isinstance(data, dict) else {})
    except ValidationError as error:
        raise _refused(where, error, {}, Fragment) from error
    if not (fragment.streams or fragment.views or fragment.queries):
        raise ConfigRefused(
            path=where, key="", value=None, expected="a mapping with streams, views or queries"
        )
    _check_names(where, fragment)
    _check_queries(where, fragment.queries, classes)
    return Pipeline.model_construct(
        state="", streams=fragment.streams, views=fragment.views, queries=fragment.queries,
        classes=dict(classes),
    )  # fmt: skip


def _check_names(where: str, parts: Pipeline | Fragment) -> None:
    """Raise ConfigRefused if a view has the name of a stream or of a query."""
    for name in parts.views:
        for kind, others in (("stream", parts.streams), ("query", parts.queries)):
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
