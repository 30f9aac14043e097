"""Explanations of how a query runs, as plain data and as text."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path as File
from typing import Any

from headgate.config import Pipeline
from headgate.errors import UnknownName
from headgate.language.paths_without_spark import path_without_spark
from headgate.model.network.derived_streams import producers
from headgate.model.network.network import Path
from headgate.model.query import Query
from headgate.runtime.recording.statistics_file import recorded_statistics

MOST_NAMES = 10
UNITS = {"tuple_cost_s": "s a tuple", "overhead_s": "s a call", "ideal_s": "s"}
LABELS = {"tuple_cost_s": "cost", "overhead_s": "overhead", "ideal_s": "ideal time"}


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """How a query runs. If it does not run, most fields from `state` on are empty."""

    query: str
    query_class: str
    stream: str
    sql: str
    operators: list[dict[str, Any]]
    sink: str
    policy: str
    reads: list[str] = field(default_factory=list)
    state: str | None = None
    cause: str | None = None
    shares_code_with: list[str] = field(default_factory=list)
    shape: str | None = None
    group_sql: str | None = None
    lane: str | None = None
    train: str | None = None
    order: str | None = None
    shedding: str | None = None
    unmet: str | None = None
    statistics: dict[str, float | None] = field(default_factory=dict)
    next_train: int | None = None
    behind: int | None = None

    @classmethod
    def of(
        cls, paths: Sequence[Path], policy: str, query_class: str | None = None
    ) -> "Explanation":
        """Return the explanation of a query from its segments alone, without a run.

        Args:
            query_class: the class that it runs in, if readers of its stream have raised it.
        """
        query = paths[-1].query
        operators: list[dict[str, Any]] = []
        for path in paths:
            if operators:
                operators.append({"kind": "queue", "expressions": [path.stream]})
            operators += [
                {"kind": operator.kind, "expressions": list(operator.expressions)}
                for operator in path.operators
                if path.first_of is None or operator.kind == "select"
            ]
        return cls(
            query=query.name, query_class=query_class or query.query_class,
            stream=paths[0].stream, sql=query.sql, operators=operators,
            sink=sink_text(query, query.sink.path),
            policy=policy,
            reads=list(paths[0].reads),
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Explanation":
        """Return the explanation that `to_dict` was called on."""
        return cls(**data)

    def text(self) -> str:
        """Return the explanation as text for a screen."""
        rows = [
            (operator["kind"], ", ".join(operator["expressions"])) for operator in self.operators
        ]
        rows.append(("sink", self.sink))
        if self.state is not None:
            rows.append(("state", self.state + (f": {self.cause}" if self.cause else "")))
        if self.group_sql is not None:
            rows.append(("shares", _names(self.shares_code_with)))
            rows.append(("shape", str(self.shape)))
            rows.append(("group SQL", self.group_sql))
        if self.lane is not None:
            rows.append(("lane", self.lane))
        if self.train is not None:
            rows.append(("train", self.train))
        if self.order is not None:
            rows.append(("order", self.order))
        if self.shedding is not None:
            rows.append(("shedding", self.shedding))
        if self.unmet is not None:
            rows.append(("not met", self.unmet))
        for key, value in self.statistics.items():
            cell = "not known" if value is None else f"{value:.4g} {UNITS.get(key, '')}".rstrip()
            rows.append((LABELS.get(key, key), cell))
        if self.next_train is not None:
            rows.append(("cursor", f"train {self.next_train}, {self.behind} tuples behind"))
        rows.append(("policy", self.policy))
        head = f"{self.query} (class {self.query_class}) over {', '.join(self.reads)}"
        return "\n".join([head, *(f"  {name:<11} {value}".rstrip() for name, value in rows)])


def sink_text(query: Query, folder: str) -> str:
    """Return the sink of a query in words."""
    text = f"{query.sink.format} {query.into or folder}".rstrip()
    return f"{text} ({query.sink.rhythm})" if query.sink.rhythm else text


def explained(pipeline: Pipeline, name: str) -> Explanation:
    """Explain a query of a pipeline file that does not run, with statistics of earlier runs.

    Raises:
        UnknownName: the file has no such query.
    """
    queries = {query.name: query for query in pipeline.query_models()}
    if name not in queries:
        raise UnknownName(kind="query", name=name, known=queries)
    columns: dict[str, Sequence[str]] = {stream.name: () for stream in pipeline.stream_models()}
    columns |= dict.fromkeys(producers(queries.values()), ())
    path, timelines = path_without_spark(queries[name], columns)
    facts = Explanation.of([path], pipeline.policy.name).to_dict()
    facts["reads"] = [stream for timeline in timelines for stream in timeline.of] or [path.stream]
    if queries[name].sink.has_files and not queries[name].sink.path:
        facts["sink"] = sink_text(queries[name], str(File(pipeline.state) / "results" / name))
    figures = recorded_statistics(File(pipeline.state)).get(name, queries[name].statistics)
    if figures is not None:
        facts["statistics"] = {
            "selectivity": figures.selectivity,
            "tuple_cost_s": figures.cost_s,
            "overhead_s": figures.overhead_s,
            "ideal_s": figures.overhead_s + figures.cost_s,
        }
    return Explanation.from_dict(facts)


def number(value: float) -> float | None:
    """Return a number that JSON can hold; None for NaN and ∞, which mean unknown."""
    return float(value) if isfinite(value) else None


def _names(names: Sequence[str]) -> str:
    if not names:
        return "its code with nobody"
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"its code with {', '.join(names[:MOST_NAMES])}{more}"
