"""A query: a named SQL text with a class, a weight and a sink."""

from dataclasses import dataclass
from math import inf
from typing import Literal

from headgate.errors import ConfigRefused, QueryRefused
from headgate.model.qos_graph import QoSGraph
from headgate.model.stream import NAME

SinkFormat = Literal["parquet", "json"]


@dataclass(frozen=True, kw_only=True)
class QueryClass:
    """An importance that queries share (CQC §3); priority 6 gets twice the time of 3."""

    name: str
    priority: float


@dataclass(frozen=True, kw_only=True)
class Sink:
    """Where results go: a directory of files, one for each range of trains that had results."""

    format: SinkFormat = "parquet"
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class QueryStatistics:
    """What is known of a query: c̄ and o in seconds, S as tuples out per tuple in."""

    cost_s: float
    selectivity: float
    overhead_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.cost_s < inf:
            self._refuse("cost_s", "above 0 seconds")
        if not 0 <= self.selectivity <= 1:
            self._refuse("selectivity", "between 0 and 1")
        if not 0 <= self.overhead_s < inf:
            self._refuse("overhead_s", "0 or more seconds")

    def _refuse(self, key: str, expected: str) -> None:
        raise ConfigRefused(path="statistics", key=key, value=getattr(self, key), expected=expected)


@dataclass(frozen=True, kw_only=True)
class Query:
    """A continuous query.

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
    statistics: QueryStatistics | None = None

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            self._refuse("name", "must be letters, digits and _", "rename the query")
        if self.weight < 0:
            self._refuse("weight", f"is {self.weight}, below 0", "give a weight of 0 or more")
        if self.deadline_s is not None and self.deadline_s <= 0:
            self._refuse("deadline_s", f"is {self.deadline_s}", "give a deadline above 0 seconds")
        if not self.sql.strip():
            self._refuse("sql", "is empty", "write a SELECT over one of the streams")

    def _refuse(self, clause: str, reason: str, fix: str) -> None:
        raise QueryRefused(query=self.name, clause=clause, reason=reason, fix=fix)
