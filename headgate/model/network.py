"""The network: every query's path of operators from its stream to its output."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from headgate.errors import ConfigRefused, UnknownName
from headgate.model.operator import Operator
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream


@dataclass(frozen=True, kw_only=True)
class Path:
    """A query taken apart: the operators a tuple passes, and the names of what comes out."""

    query: Query
    stream: str
    operators: tuple[Operator, ...]
    columns: tuple[str, ...] = ()

    @property
    def predicate(self) -> str | None:
        """The SQL that decides whether a tuple passes; None when all do."""
        selects = [op.expressions[0] for op in self.operators if op.kind == "select"]
        return selects[0] if selects else None

    @property
    def outputs(self) -> tuple[str, ...]:
        """The SQL of the output columns."""
        return next((op.expressions for op in self.operators if op.kind == "project"), ())

    @property
    def runs_whole(self) -> bool:
        """Whether the query could not be taken apart and runs as Spark accepts it."""
        return any(op.kind == "whole" for op in self.operators)


@dataclass(frozen=True)
class Network:
    """Streams, classes and paths, numbered by position; a unit's number is its path's position."""

    streams: tuple[Stream, ...]
    classes: tuple[QueryClass, ...]
    paths: tuple[Path, ...]

    def __post_init__(self) -> None:
        _refuse_twins("stream", (stream.name for stream in self.streams))
        _refuse_twins("class", (each.name for each in self.classes))
        _refuse_twins("query", (path.query.name for path in self.paths))
        for each in self.classes:
            if not 0 < each.priority < inf:
                raise ConfigRefused(
                    path="classes",
                    key=each.name,
                    value=each.priority,
                    expected="above 0 and finite",
                )
        for path in self.paths:
            self.class_number(path.query.query_class, where=f"query '{path.query.name}'")
            self.stream_number(path.stream, where=f"query '{path.query.name}'")
            if not path.operators:
                raise ConfigRefused(
                    path=f"query '{path.query.name}'",
                    key="operators",
                    value=None,
                    expected="at least one operator",
                )

    def class_number(self, name: str, where: str = "") -> int:
        return _position("class", name, [each.name for each in self.classes], where)

    def stream_number(self, name: str, where: str = "") -> int:
        return _position("stream", name, [stream.name for stream in self.streams], where)

    def unit_number(self, query: str) -> int:
        return _position("query", query, [path.query.name for path in self.paths], "")


def _position(kind: str, name: str, names: list[str], where: str) -> int:
    if name not in names:
        raise UnknownName(kind=kind, name=name, known=names, where=where)
    return names.index(name)


def _refuse_twins(kind: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ConfigRefused(
                path=f"{kind} '{name}'",
                key="name",
                value=name,
                expected=f"unique: two {kind}s have it",
            )
        seen.add(name)
