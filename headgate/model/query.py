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
"""Formats that are directories of files. `stream` is the log of a stream that others read; the
rest deliver each result to somebody."""

NEEDED = {
    "jdbc": {"url": "jdbc:postgresql://host/base", "table": "fires", "key": "location, ts"},
    "kafka": {"kafka.bootstrap.servers": "host:9092", "topic": "fires"},
}
"""Options that a format cannot do without, each with an example."""

ALLOWED: dict[str, tuple[str, ...]] = {
    "parquet": ("compression",),
    "console": (),
    "memory": ("rows",),
    "callback": (),
    "stream": ("stream", "event_time", "lateness_s"),
}
"""Options of formats that pass none on: a misspelt one would do nothing."""

COMPRESSIONS = ("zstd", "snappy", "gzip", "lz4", "brotli", "none")

ROW_KEY = "headgate_key"
"""The column, in a table of a database, of a row's deduplication key."""

Deliver = Callable[[Any, str], object]
"""Takes a result, a pyarrow table, and the key to recognise it by when it comes once more."""


Apply = Callable[[Any], Any]
"""Makes a DataFrame of Spark of another."""


@dataclass(frozen=True, kw_only=True)
class QueryClass:
    """An importance that queries share (CQC §3); priority 6 gets twice the time of 3."""

    name: str
    priority: float


@dataclass(frozen=True, kw_only=True)
class Sink:
    """Where results go: files, one for each range of trains that had results, a stream that other
    queries read, or a delivery.

    Args:
        path: the directory, for formats of files.
        options: what the format takes, as text. Of `stream`: `stream`, its name (that of the query
            if left out), `event_time` and `lateness_s`.
    """

    format: SinkFormat = "parquet"
    path: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def has_files(self) -> bool:
        """Tells whether results are files of a directory."""
        return self.format in FILES

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that a row of a database is known by."""
        names = self.options.get("key", "").split(",")
        return tuple(name.strip() for name in names if name.strip())

    def mistake(self) -> tuple[str, str | None, str] | None:
        """Gives what is wrong: the key, its value, and what it must be; None if nothing is."""
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
                known = f"only {', '.join(allowed)}" if allowed else "none"
                return f"options.{key}", value, f"left out: format '{self.format}' takes {known}"
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
    """What is known of a query: c̄ and o in seconds, S as tuples out per tuple in (of a join it may
    be above 1).

    `alone_s` is what a tuple cost when the query ran alone, 0 where that is not known: in company
    it pays only its share of what several need. c̄ and o are those of the `lane` that it took last.
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
        cut: whether its cheap conditions run as a segment of their own, before what calls
            functions; tuples that pass them wait in a queue between the two. None leaves it to the
            policy.
        apply: a function that makes the results, a DataFrame, of what the text gives: of each tuple
            by itself or, behind a window, of the tuples of one window.

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
        """The name of the stream that it writes to; None where its results leave."""
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
    """A query whose results are a stream of its name: what several queries need, computed once.

    Args:
        event_time: the column with the time a tuple speaks of, for windows over the view.
        lateness_s: how far below the view's watermark the time of a tuple may be.
        statistics, apply: as of a query.

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
            query_class: the lowest; its readers lift it.
        """
        options = {"lateness_s": str(self.lateness_s)}
        if self.event_time is not None:
            options["event_time"] = self.event_time
        return Query(
            name=self.name, sql=self.sql, query_class=query_class, allows_shedding=True, cut=False,
            sink=Sink(format="stream", options=options), statistics=self.statistics,
            apply=self.apply,
        )  # fmt: skip
