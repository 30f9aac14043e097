"""The sections of queries and views: SQL, class, sink, statistics."""

from datetime import date
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from headgate.config.section import Options, Section, named, option_texts
from headgate.config.start_position import since
from headgate.extensions.built_in_sinks import SINKS
from headgate.model.query import OnError, Sink


class SinkConfig(Section):
    """Where the results of a query go."""

    format: str = Field(
        "parquet",
        description=f"one of {', '.join(entry.name for entry in SINKS)}, or a sink of an installed"
        " package",
    )
    path: str = Field(
        "", description="directory for parquet, json, csv files; if not set, STATE/results/QUERY"
    )
    options: Options = Field(
        default_factory=dict, description="options of the format: see sinks.md"
    )
    commit_every_s: float | None = Field(
        None,
        gt=0,
        description="seconds for which results are collected before they become visible as one"
        " file; if not set, every result is a file",
    )
    target_file_mb: float | None = Field(
        None,
        gt=0,
        description="megabytes at which collected results become visible at once, and up to which"
        " files are compacted; if not set, 128",
    )
    partition_by: list[str] = Field(
        default_factory=list,
        description="columns whose values become directories, as in `location=l7` (parquet)",
    )
    compact: bool = Field(
        False,
        description="whether small files are merged in the background; the file `_manifest` then"
        " lists the files to read",
    )

    def model(self) -> Sink:
        """Return the sink, unchecked: `Sink.mistake` describes what is wrong with it."""
        return Sink(
            format=self.format,
            path=self.path,
            options=option_texts(self.options),
            commit_every_s=self.commit_every_s,
            target_file_mb=self.target_file_mb,
            partition_by=tuple(self.partition_by),
            compact=self.compact,
        )


class StatisticsConfig(Section):
    """Cost and selectivity of a query that has not run yet."""

    cost_s: float = Field(gt=0, description="seconds per tuple")
    selectivity: float = Field(ge=0, le=1, description="tuples out per tuple in")
    overhead_s: float = Field(0.0, ge=0, description="seconds per call")


def _on_error() -> Any:
    return Field(
        "fail",
        description="what happens if an expression fails on a tuple: the query fails (`fail`), or"
        " the tuple goes to the query's dead letters and the others are delivered (`dead_letter`)",
    )


def _place(value: object) -> object:
    """Return the place at which a query begins as a text; YAML reads a time as more than that."""
    text = value.isoformat() if isinstance(value, date) else value
    if isinstance(text, str):
        since(text)
    return text


class ValueConfig(Section):
    """The utility of a query's tuples by the value of a column: the least useful are shed first."""

    column: str = Field(min_length=1, description="a numeric column of the stream")
    points: list[tuple[float, float]] = Field(
        min_length=1,
        description="points of value and utility, in ascending value, as in [[20, 0], [40, 1]]",
    )


class QueryConfig(Section):
    """A continuous query."""

    sql: str = Field(pattern=r"\S", description="one SELECT, over streams or views")
    class_: str = Field(alias="class", description="name of one of the `classes`")
    sink: Annotated[SinkConfig, BeforeValidator(named("format"))] = Field(
        default_factory=SinkConfig,
        description="where the results go; `sink: json` is short for `sink: {format: json}`",
    )
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
    loss: list[tuple[float, float]] | None = Field(
        None,
        description="utility of the results by the share of tuples that are dropped, from 0 to 1,"
        " as in [[0, 1], [0.2, 0.9], [1, 0]]; if not set, it falls evenly",
    )
    value: ValueConfig | None = Field(
        None, description="by the value of which column tuples are dropped; if not set, at random"
    )
    from_: Annotated[str, BeforeValidator(_place)] = Field(
        "oldest",
        alias="from",
        description="where a new query begins: with the `oldest` tuple in the log, `now`, or with"
        " the first that arrived at a time, such as 2026-03-01T09:30",
    )
    on_error: OnError = _on_error()
    cut: bool | None = Field(
        None,
        description="whether the cheap conditions run first, with a queue between them and the"
        " function calls; if not set, the policy decides",
    )
    statistics: StatisticsConfig | None = Field(
        None, description="cost and selectivity, for a simulation before the first run"
    )


class ViewConfig(Section):
    """A query whose results form a stream of the same name, computed once for all readers."""

    sql: str = Field(pattern=r"\S", description="one SELECT, over streams or other views")
    event_time: str | None = Field(None, description="column with the event time of a tuple")
    lateness_s: float = Field(
        0.0,
        ge=0,
        description="seconds that a tuple's event time may lie behind the view's watermark before"
        " the tuple is late",
    )
    on_error: OnError = _on_error()
    statistics: StatisticsConfig | None = Field(
        None, description="cost and selectivity, for a simulation before the first run"
    )
