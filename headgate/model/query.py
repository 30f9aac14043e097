"""A query: a named SQL text with a class, a weight and a sink."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import inf
from typing import Any, Literal, get_args

from headgate.errors import ConfigRefused, QueryRefused
from headgate.model.plan import Lane
from headgate.model.qos_graph import QoSGraph
from headgate.model.stream import NAME

SinkFormat = Literal[
    "parquet", "json", "csv", "console", "memory", "callback", "jdbc", "kafka", "stream"
]
FORMATS: tuple[str, ...] = get_args(SinkFormat)
FILES = ("parquet", "json", "csv")
"""Formats that are directories of files. `stream` is the log of a stream that other queries read;
the remaining formats deliver each result to a receiver."""

NEEDED = {
    "jdbc": {"url": "jdbc:postgresql://host/base", "table": "fires", "key": "location, ts"},
    "kafka": {"kafka.bootstrap.servers": "host:9092", "topic": "fires"},
}
"""Options that a format requires, each with an example."""

ALLOWED: dict[str, tuple[str, ...]] = {
    "parquet": ("compression",),
    "console": (),
    "memory": ("rows",),
    "callback": (),
    "stream": ("stream", "event_time", "lateness_s"),
}
"""Options of formats that pass none on. Others are refused: a misspelled one would do nothing."""

COMPRESSIONS = ("zstd", "snappy", "gzip", "lz4", "brotli", "none")

ROW_KEY = "headgate_key"
"""The column of a database table that holds a row's deduplication key."""

Deliver = Callable[[Any, str], object]
"""A function of a result, a pyarrow table, and of the key that identifies it if it comes again."""


Apply = Callable[[Any], Any]
"""A function from one Spark DataFrame to another."""


@dataclass(frozen=True, kw_only=True)
class QueryClass:
    """A class of queries of the same importance (CQC §3); priority 6 gets twice the time of 3."""

    name: str
    priority: float


@dataclass(frozen=True, kw_only=True)
class Sink:
    """Where results go: files, a stream that other queries read, or a delivery.

    There is one file for each range of trains that had results.

    Args:
        path: the directory, for formats of files.
        options: the options of the format, as text. Those of `stream` are `stream`, the name of the
            stream (by default that of the query), `event_time` and `lateness_s`.
    """

    format: SinkFormat = "parquet"
    path: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def has_files(self) -> bool:
        """Whether results are files in a directory."""
        return self.format in FILES

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that identify a row of a database table."""
        names = self.options.get("key", "").split(",")
        return tuple(name.strip() for name in names if name.strip())

    def mistake(self) -> tuple[str, str | None, str] | None:
        """Return the first wrong key, its value and what is expected; None if all is right."""
        if self.format not in FORMATS:
            nearest = get_close_matches(self.format, FORMATS, n=1, cutoff=0.5)
            hint = f"; did you mean '{nearest[0]}'?" if nearest else ""
            return "format", self.format, f"one of {', '.join(FORMATS)}{hint}"
        if self.path and not self.has_files:
            return "path", self.path, f"left out: format '{self.format}' has no directory"
        for key, example in NEEDED.get(self.format, {}).items():
            if not self.options.get(key, "").strip(" ,"):
                wanted = f"given for format '{self.format}', as in  options: {{{key}: '{example}'}}"
                return f"options.{key}", None, wanted
        allowed = ALLOWED.get(self.format, tuple(self.options))
        for key, value in self.options.items():
            if key not in allowed:
                options = f"only {', '.join(allowed)}" if allowed else "none"
                return f"options.{key}", value, f"left out: format '{self.format}' takes {options}"
        compression = self.options.get("compression", "zstd")
        if self.format == "parquet" and compression not in COMPRESSIONS:
            return "options.compression", compression, f"one of {', '.join(COMPRESSIONS)}"
        if self.format == "stream" and (mistake := self._stream_mistake()):
            return mistake
        rows = self.options.get("rows", "1")
        if self.format == "memory" and not (rows.isdecimal() and int(rows)):
            return "options.rows", rows, "a number of rows, 1 or more"
        return None

    def _stream_mistake(self) -> tuple[str, str | None, str] | None:
        name, lateness = self.options.get("stream"), self.options.get("lateness_s", "0")
        if name is not None and not NAME.fullmatch(name):
            return "options.stream", name, "letters, digits and _"
        if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", lateness):
            return "options.lateness_s", lateness, "0 or more seconds"
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


@dataclass(frozen=True, kw_only=True)
class Query:
    """A continuous query.

    Args:
        cut: whether its cheap conditions run as a segment of their own, before the function calls;
            tuples that pass them wait in a queue between the two. None lets the policy decide.
        apply: a function from the DataFrame that the text defines to the results. It works on each
            tuple by itself or, over a window, on the tuples of one window.

    >>> Query(name="fire", sql="SELECT * FROM sensors WHERE heat > 60", query_class="H").weight
    1.0
    """

    name: str
    sql: str
    query_class: str
    sink: Sink = Sink()
    weight: float = 1.0
    deadline_s: float | None = None
    qos: QoSGraph | None = None
    allows_shedding: bool = False
    cut: bool | None = None
    statistics: QueryStatistics | None = None
    apply: Apply | None = None

    @property
    def into(self) -> str | None:
        """The name of the stream that it writes to; None if its results go elsewhere."""
        return self.sink.options.get("stream", self.name) if self.sink.format == "stream" else None

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            self._refuse("name", "must be letters, digits and _", "rename the query")
        if self.weight < 0:
            self._refuse("weight", f"is {self.weight}, below 0", "give a weight of 0 or more")
        if self.deadline_s is not None and self.deadline_s <= 0:
            self._refuse("deadline_s", f"is {self.deadline_s}", "give a deadline above 0 seconds")
        if not self.sql.strip():
            self._refuse("sql", "is empty", "write a SELECT over one of the streams")
        if mistake := self.sink.mistake():
            key, value, expected = mistake
            reason = "is missing" if value is None else f"is {value!r}"
            self._refuse(f"sink {key}", reason, f"it must be {expected}")

    def _refuse(self, clause: str, reason: str, fix: str) -> None:
        raise QueryRefused(query=self.name, clause=clause, reason=reason, fix=fix)


@dataclass(frozen=True, kw_only=True)
class View:
    """A query whose results form a stream of the same name, computed once for all its readers.

    Args:
        event_time: the column with the event time of a tuple, for windows over the view.
        lateness_s: how far behind the view's watermark the event time of a tuple may lie.
        statistics, apply: as in `Query`.

    >>> View(name="parsed", sql="SELECT 1 AS a FROM raw", event_time="ts").query("low").into
    'parsed'
    """

    name: str
    sql: str
    event_time: str | None = None
    lateness_s: float = 0.0
    statistics: QueryStatistics | None = None
    apply: Apply | None = None

    def query(self, query_class: str) -> Query:
        """Return the query that fills the view.

        Args:
            query_class: the lowest class; readers raise it to their own.
        """
        options = {"lateness_s": str(self.lateness_s)}
        if self.event_time is not None:
            options["event_time"] = self.event_time
        return Query(
            name=self.name, sql=self.sql, query_class=query_class, allows_shedding=True, cut=False,
            sink=Sink(format="stream", options=options), statistics=self.statistics,
            apply=self.apply,
        )  # fmt: skip
