"""A query: a named SQL text with a class, a weight and a sink."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

from headgate.errors import ConfigRefused, OptionRefused, QueryRefused, UnknownName
from headgate.extensions import sink_entry, sink_names
from headgate.extensions.declared_options import SinkEntry, hint
from headgate.model.argument_types import refuse_types
from headgate.model.display.short_repr import ShortRepr
from headgate.model.drop import ValueGraph
from headgate.model.plan import Lane
from headgate.model.qos_graph import QoSGraph
from headgate.model.stream import NAME, NAME_RULE

Deliver = Callable[[Any, str], object]
"""A function of a result, a pyarrow table, and of the key that identifies it if it comes again."""


TARGET_FILE_MB = 128.0
"""The size of files of collected or compacted results, unless the sink has its own."""


Apply = Callable[[Any], Any]
"""A function from one Spark DataFrame to another."""

OnError = Literal["fail", "dead_letter"]
"""What becomes of a query when an expression fails on a tuple."""


@dataclass(frozen=True, kw_only=True)
class QueryClass:
    """A class of queries of the same importance (CQC §3); priority 6 gets twice the time of 3.

    Args:
        target_s: the mean response time that is asked for, over the last 30 seconds.
    """

    name: str
    priority: float
    target_s: float | None = None

    def __post_init__(self) -> None:
        if self.target_s is not None and not 0 < self.target_s < inf:
            raise ConfigRefused(
                path=f"class '{self.name}'", key="target_s", value=self.target_s,
                expected="above 0 seconds",
            )  # fmt: skip


def query_class_of(name: str, values: float | Mapping[str, float | None]) -> QueryClass:
    """Return a class from its priority, or from a mapping with its fields.

    >>> query_class_of("H", {"priority": 6, "target_s": 0.5})
    QueryClass(name='H', priority=6, target_s=0.5)
    """
    fields: Mapping[str, Any] = values if isinstance(values, Mapping) else {"priority": values}
    for key in fields:
        if key not in (keys := ("priority", "target_s")):
            raise UnknownName(kind="key", name=str(key), known=keys, where=f"class '{name}'")
    if "priority" not in fields:
        raise ConfigRefused(
            path=f"class '{name}'", key="priority", value=None, expected="a number above 0"
        )
    return QueryClass(name=name, **fields)


RHYTHM = ("commit_every_s", "target_file_mb", "compact")
"""The fields of a sink that may change while its query runs."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Sink(ShortRepr):
    """Where results go: files, a stream that other queries read, or a delivery.

    There is one file for each range of trains that had results.

    Args:
        format: the name of a registered sink.
        path: the directory, for formats of files.
        options: the options of the format, as text. Those of `stream` are `stream`, the name of the
            stream (by default that of the query), `event_time` and `lateness_s`.
        commit_every_s: how long results are collected before they become visible as one file.
        target_file_mb: the size from which collected results become visible at once, and up to
            which files are compacted.
        partition_by: columns whose values become directories, as in `location=l7`.
        compact: whether small files are merged, and a manifest lists the files to read.
    """

    format: str = "parquet"
    path: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    commit_every_s: float | None = None
    target_file_mb: float | None = None
    partition_by: tuple[str, ...] = ()
    compact: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.partition_by, list):
            object.__setattr__(self, "partition_by", tuple(self.partition_by))
        refuse_types(self)

    @property
    def collects(self) -> bool:
        """Whether results become visible later than they are committed."""
        return self.commit_every_s is not None or bool(self.partition_by)

    @property
    def target_bytes(self) -> float:
        """The size that files of collected or compacted results should have."""
        return (self.target_file_mb or TARGET_FILE_MB) * 1e6

    @property
    def rhythm(self) -> str:
        """How results become files, in words; empty if every result is a file.

        >>> Sink(commit_every_s=60, partition_by=("day",), compact=True).rhythm
        'a file every 60 s or 128 MB, by day, compacted'
        """
        parts = []
        if self.commit_every_s is not None:
            parts.append(
                f"a file every {self.commit_every_s:g} s or {self.target_bytes / 1e6:g} MB"
            )
        if self.partition_by:
            parts.append(f"by {', '.join(self.partition_by)}")
        return ", ".join(parts + ["compacted"] * self.compact)

    @property
    def has_files(self) -> bool:
        """Whether results are files in a directory."""
        entry = sink_entry(self.format)
        return entry is not None and entry.has_files

    def mistake(self) -> tuple[str, object, str] | None:
        """Return the first wrong key, its value and what is expected; None if all is right."""
        entry = sink_entry(self.format)
        if entry is None:
            names = sink_names()
            return "format", self.format, f"one of {', '.join(names)}{hint(self.format, names)}"
        if self.path and not entry.has_files:
            return "path", self.path, f"left out: format '{self.format}' has no directory"
        try:
            entry.refuse_options(self.options)
        except OptionRefused as refused:
            return refused.key, refused.value, refused.expected
        return self._mistake_in_files(entry)

    def _mistake_in_files(self, entry: SinkEntry) -> tuple[str, object, str] | None:
        """Return the first key about files that is wrong, its value and what is expected."""
        keys = ("commit_every_s", "target_file_mb", "partition_by", "compact")
        for key in keys:
            value = getattr(self, key)
            if value is None or value is False or value == ():
                continue
            if not entry.has_files:
                value = list(value) if isinstance(value, tuple) else value
                return key, value, f"left out: format '{self.format}' writes no files"
            if key.endswith(("_s", "_mb")) and not 0 < value < inf:
                return key, value, f"above 0 {'seconds' if key.endswith('_s') else 'megabytes'}"
        columns = self.partition_by
        if columns and not entry.has_columns:
            expected = f"left out: format '{self.format}' writes rows as text. Write parquet"
            return "partition_by", list(columns), expected
        if not all(isinstance(column, str) and column for column in columns):
            return "partition_by", list(columns), "a list of columns"
        if len({column.lower() for column in columns}) < len(columns):
            return "partition_by", list(columns), "a list that names no column twice"
        if self.target_file_mb is not None and not (self.commit_every_s or self.compact):
            expected = "given together with commit_every_s, after which smaller files become"
            return "target_file_mb", self.target_file_mb, f"{expected} visible, or with compact"
        return None


@dataclass(frozen=True, kw_only=True)
class QueryStatistics:
    """Measured figures of a query: c̄, S and o.

    `cost_s` is c̄ and `overhead_s` is o, both of the `lane` that the query used last. `selectivity`
    is S, tuples out per tuple in; for a join it may be above 1. `alone_s` is the cost per tuple of
    the query running alone, 0 if unknown: in a shared call a query pays only its share.
    """

    cost_s: float
    selectivity: float
    overhead_s: float = 0.0
    alone_s: float = 0.0
    lane: Lane = "driver"

    def __post_init__(self) -> None:
        if not 0 < self.cost_s < inf:
            self._refuse("cost_s", "above 0 seconds")
        if not 0 <= self.selectivity < inf:
            self._refuse("selectivity", "0 or more")
        if not 0 <= self.overhead_s < inf:
            self._refuse("overhead_s", "0 or more seconds")

    def _refuse(self, key: str, expected: str) -> None:
        raise ConfigRefused(path="statistics", key=key, value=getattr(self, key), expected=expected)


@dataclass(frozen=True, kw_only=True, repr=False)
class Query(ShortRepr):
    """A continuous query.

    Args:
        loss: the utility of its results by the share of tuples that are dropped, from 0 to 1; None:
            it falls evenly, from 1 to 0.
        value: the utility of its tuples by the value of a column; then those that are worth least
            are dropped first. None: any are.
        cut: whether its cheap conditions run as a segment of their own, before the function calls;
            tuples that pass them wait in a queue between the two. None lets the policy decide.
        start_from: where a new query begins: with the `oldest` tuple in the log, `now`, or with the
            first that arrived at a time or later. The log counts for its windows in any case.
        on_error: what happens if an expression fails on a tuple: the query fails, or the tuple goes
            to its dead letters and the results are those without it.
        apply: a function from the DataFrame that the text defines to the results. It works on each
            tuple by itself or, over a window, on the tuples of one window.

    >>> Query(name="fire", sql="SELECT * FROM sensors WHERE heat > 60", query_class="H", weight=2)
    Query(name='fire', sql='SELECT * FROM sensors WHERE heat > 60', query_class='H', weight=2)
    """

    name: str
    sql: str
    query_class: str
    sink: Sink = Sink()
    weight: float = 1.0
    deadline_s: float | None = None
    qos: QoSGraph | None = None
    allows_shedding: bool = False
    loss: QoSGraph | None = None
    value: ValueGraph | None = None
    cut: bool | None = None
    statistics: QueryStatistics | None = None
    apply: Apply | None = None
    start_from: str = "oldest"
    on_error: OnError = "fail"

    @property
    def into(self) -> str | None:
        """The name of the stream that it writes to; None if its results go elsewhere."""
        return self.sink.options.get("stream", self.name) if self.sink.format == "stream" else None

    def __post_init__(self) -> None:
        refuse_types(self)
        if not NAME.fullmatch(self.name):
            self._refuse("name", f"must be {NAME_RULE}", "rename the query")
        if not 0 <= self.weight < inf:
            fix = "give a finite weight of 0 or more"
            self._refuse("weight", f"is {self.weight}", fix)
        if self.deadline_s is not None and not 0 < self.deadline_s < inf:
            self._refuse("deadline_s", f"is {self.deadline_s}", "give a deadline above 0 seconds")
        try:
            self.sql.encode()
        except UnicodeEncodeError:
            self._refuse("sql", "is not valid Unicode", "correct its text")
        if not self.sql.strip():
            self._refuse("sql", "is empty", "write a SELECT over one of the streams")
        if mistake := self.sink.mistake():
            key, value, expected = mistake
            reason = "is missing" if value is None else f"is {value!r}"
            self._refuse(f"sink {key}", reason, f"it must be {expected}")

    def _refuse(self, clause: str, reason: str, fix: str) -> None:
        raise QueryRefused(query=self.name, clause=clause, reason=reason, fix=fix)


class ViewQuery(Query):
    """The query that fills a view; its class is that of its readers."""


@dataclass(frozen=True, kw_only=True, repr=False)
class View(ShortRepr):
    """A query whose results form a stream of the same name, computed once for all its readers.

    Args:
        event_time: the column with the event time of a tuple, for windows over the view.
        lateness_s: how far behind the view's watermark the event time of a tuple may lie.
        statistics, apply, on_error: as in `Query`.

    >>> View(name="parsed", sql="SELECT 1 AS a FROM raw", event_time="ts").query("low").into
    'parsed'
    """

    name: str
    sql: str
    event_time: str | None = None
    lateness_s: float = 0.0
    statistics: QueryStatistics | None = None
    apply: Apply | None = None
    on_error: OnError = "fail"

    def __post_init__(self) -> None:
        refuse_types(self)

    def query(self, query_class: str) -> ViewQuery:
        """Return the query that fills the view.

        Args:
            query_class: the lowest class; readers raise it to their own.
        """
        options = {"lateness_s": str(self.lateness_s)}
        if self.event_time is not None:
            options["event_time"] = self.event_time
        return ViewQuery(
            name=self.name, sql=self.sql, query_class=query_class, allows_shedding=True, cut=False,
            sink=Sink(format="stream", options=options), statistics=self.statistics,
            apply=self.apply, on_error=self.on_error,
        )  # fmt: skip
