"""Networks and statistics as plain data, for the lines of a recording."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from headgate.model.network import Network, Path
from headgate.model.operator import Operator
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import Query, QueryClass, QueryStatistics
from headgate.model.stream import Stream


def stream_data(stream: Stream) -> dict[str, Any]:
    """Return a stream as data, without its options."""
    keys = ("name", "format", "trigger_s", "ingest", "tuple_bytes", "of")
    return {key: getattr(stream, key) for key in keys}


def stream_of(data: Mapping[str, Any]) -> Stream:
    """Return a stream from its data."""
    return Stream(**{**data, "of": tuple(data.get("of", ()))})


def path_data(path: Path) -> dict[str, Any]:
    """Return the path of a query as data, without the sink."""
    query = path.query
    return {
        "name": query.name, "sql": query.sql, "class": query.query_class, "stream": path.stream,
        "weight": query.weight, "deadline_s": query.deadline_s,
        "qos": None if query.qos is None else query.qos.points, "shed": query.allows_shedding,
        "operators": [asdict(operator) for operator in path.operators], "columns": path.columns,
        "into": path.into, "first_of": path.first_of,
    }  # fmt: skip


def path_of(data: Mapping[str, Any]) -> Path:
    """Return the path of a query from its data."""
    points = data["qos"]
    query = Query(
        name=data["name"], sql=data["sql"], query_class=data["class"], weight=data["weight"],
        deadline_s=data["deadline_s"], allows_shedding=data["shed"],
        qos=None if points is None else QoSGraph(tuple((x, y) for x, y in points)),
    )  # fmt: skip
    operators = tuple(
        Operator(**{**operator, "expressions": tuple(operator["expressions"])})
        for operator in data["operators"]
    )
    return Path(
        query=query, stream=data["stream"], operators=operators, columns=tuple(data["columns"]),
        into=data.get("into"), first_of=data.get("first_of"),
    )  # fmt: skip


def network_data(network: Network) -> dict[str, Any]:
    """Return a network as data, without options and paths of sources and sinks."""
    streams = [stream_data(stream) for stream in network.streams]
    paths = [path_data(path) for path in network.paths]
    classes = [asdict(query_class) for query_class in network.classes]
    return {"streams": streams, "classes": classes, "queries": paths}


def network_of(data: Mapping[str, Any]) -> Network:
    """Return a network from its data."""
    return Network(
        tuple(map(stream_of, data["streams"])),
        tuple(QueryClass(**query_class) for query_class in data["classes"]),
        tuple(map(path_of, data["queries"])),
    )


def figures_of(statistics: Mapping[str, QueryStatistics]) -> dict[str, list[Any]]:
    """Return statistics by query as data."""
    return {
        name: [figures.cost_s, figures.selectivity, figures.overhead_s, figures.lane]
        for name, figures in statistics.items()
    }


def statistics_of(data: Mapping[str, Sequence[Any]]) -> dict[str, QueryStatistics]:
    """Return statistics by query from their data."""
    return {
        name: QueryStatistics(
            cost_s=cost_s, selectivity=selectivity, overhead_s=overhead_s, lane=(*lane, "driver")[0]
        )
        for name, (cost_s, selectivity, overhead_s, *lane) in data.items()
    }
