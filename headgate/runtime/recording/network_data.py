"""Networks and statistics as plain data, for the lines of a recording."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import Query, QueryClass, QueryStatistics
from headgate.model.stream import Ingest, Stream

_FIGURES = ("cost_s", "selectivity", "overhead_s", "lane")


def _by_name(figures: Any) -> Any:
    return dict(zip(_FIGURES, figures, strict=False)) if isinstance(figures, list) else figures


RecordedStatistics = Annotated[
    QueryStatistics,
    BeforeValidator(_by_name),
    PlainSerializer(lambda statistics: [getattr(statistics, name) for name in _FIGURES]),
]
"""The statistics of a query, written as a list of figures. Old recordings do not have the lane."""


class StreamData(BaseModel):
    """A stream without its options."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    format: str
    trigger_s: float | None
    ingest: Ingest
    tuple_bytes: float
    of: tuple[str, ...] = ()

    def stream(self) -> Stream:
        return Stream(**dict(self))


class PathData(BaseModel):
    """The path of a query, without the sink."""

    model_config = ConfigDict(populate_by_name=True)

    name: str
    sql: str
    query_class: str = Field(alias="class")
    stream: str
    weight: float
    deadline_s: float | None
    qos: tuple[tuple[float, float], ...] | None
    allows_shedding: bool = Field(alias="shed")
    operators: tuple[Operator, ...]
    columns: tuple[str, ...]
    into: str | None = None
    first_of: str | None = None
    loss: tuple[tuple[float, float], ...] | None = None

    @classmethod
    def of(cls, path: Path) -> Self:
        query = path.query
        return cls(
            name=query.name, sql=query.sql, query_class=query.query_class, stream=path.stream,
            weight=query.weight, deadline_s=query.deadline_s,
            qos=None if query.qos is None else query.qos.points,
            allows_shedding=query.allows_shedding, operators=path.operators, columns=path.columns,
            into=path.into, first_of=path.first_of,
            loss=None if query.loss is None else query.loss.points,
        )  # fmt: skip

    def path(self) -> Path:
        query = Query(
            name=self.name, sql=self.sql, query_class=self.query_class, weight=self.weight,
            deadline_s=self.deadline_s, allows_shedding=self.allows_shedding,
            qos=None if self.qos is None else QoSGraph(self.qos),
            loss=None if self.loss is None else QoSGraph(self.loss),
        )  # fmt: skip
        return Path(
            query=query, stream=self.stream, operators=self.operators, columns=self.columns,
            into=self.into, first_of=self.first_of,
        )  # fmt: skip


class NetworkData(BaseModel):
    """A network, without options and paths of sources and sinks."""

    streams: tuple[StreamData, ...]
    classes: tuple[QueryClass, ...]
    queries: tuple[PathData, ...]

    @classmethod
    def of(cls, network: Network) -> Self:
        return cls(
            streams=tuple(map(StreamData.model_validate, network.streams)),
            classes=network.classes,
            queries=tuple(map(PathData.of, network.paths)),
        )

    def network(self) -> Network:
        streams = tuple(stream.stream() for stream in self.streams)
        return Network(streams, self.classes, tuple(query.path() for query in self.queries))
