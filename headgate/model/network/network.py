"""The network: the operators of all queries, from the streams to the outputs."""

from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

from headgate.errors import ConfigRefused, UnknownName
from headgate.model.kind import SINGLE_TUPLES, Kind
from headgate.model.network.operator import Operator
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream

FIRST, REST = "__first", "__rest"
"""Suffixes of a query's name: of its first segment, and of the queue behind that segment."""


@dataclass(frozen=True)
class Condition:
    """One of the conditions that a query joins by AND.

    Args:
        never_fails: whether it has a value, possibly NULL, for every row.
        calls: whether it calls a function.
    """

    text: str
    never_fails: bool
    calls: bool = False


@dataclass(frozen=True, kw_only=True)
class Box:
    """A named operator that others may read from: shared parts, joins, unions, forks.

    Args:
        inputs: names of streams and of other boxes. A join has two, the left and the right one. A
            union has any number. Any other box reads all its inputs through one queue.
    """

    name: str
    operator: Operator
    inputs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Path:
    """A query split into operators: what its tuples pass through, and its output columns.

    Args:
        stream, operators: for a query with a line of operators of its own.
        output: for any other query, the name of the box whose tuples are its results.
        columns: the names of the output columns.
        conditions: the conditions that are joined by AND.
        calls: whether an output column calls a function.
        into: the derived stream that it fills; None where its results go to a sink.
        first_of: for the first segment of a query that is cut, the name of the query. The stream
            that the segment fills is hidden, and the path over that stream is the rest.
        key: the same number for queries that produce the same rows; column names may differ.
        plan: the plan that the engine computes it from; opaque to all other code.
        schema: the names and types of the output columns, as Spark's JSON.
        kind: which tuples it needs at a time. If it needs several, its stream is a timeline.
        version: how many texts the query has had, counting this one.
        since_s: the version begins with the first train that arrived at this instant or later; None
            means that it continues where the version before it stands.
    """

    query: Query
    stream: str = ""
    operators: tuple[Operator, ...] = ()
    columns: tuple[str, ...] = ()
    schema: str = ""
    output: str | None = None
    conditions: tuple[Condition, ...] = ()
    calls: bool = False
    into: str | None = None
    first_of: str | None = None
    key: int = 0
    plan: object = field(default=None, compare=False, repr=False)
    kind: Kind = SINGLE_TUPLES
    version: int = 1
    since_s: float | None = -inf

    @property
    def is_rest(self) -> bool:
        """Whether this is the rest of a query that is cut."""
        return self.stream == self.query.name + REST

    @property
    def known_as(self) -> str:
        """The name of its statistics; the rest of a cut query has statistics of its own."""
        return self.query.name + (REST if self.is_rest else "")

    @property
    def reads(self) -> tuple[str, ...]:
        """The streams whose tuples it reads, each once; for a timeline, those it consists of."""
        return self.kind.streams or (self.stream,)

    @property
    def predicate(self) -> str | None:
        """The SQL that decides whether a tuple passes; None if all tuples pass."""
        selects = [op.expressions[0] for op in self.operators if op.kind == "select"]
        return selects[0] if selects else None

    @property
    def outputs(self) -> tuple[str, ...]:
        """The SQL of the output columns."""
        return next((op.expressions for op in self.operators if op.kind == "project"), ())

    @property
    def runs_whole(self) -> bool:
        """Whether the query could not be split into operators and runs as one."""
        return any(op.kind == "whole" for op in self.operators)


@dataclass(frozen=True)
class Network:
    """Streams, classes, queries (as paths) and shared boxes, numbered by position.

    Args:
        ids: by path, a number that no other path ever has. The position of a path changes when
            others are dropped, its id does not. Left out where nothing is dropped: then it is the
            position.
    """

    streams: tuple[Stream, ...]
    classes: tuple[QueryClass, ...]
    paths: tuple[Path, ...]
    boxes: tuple[Box, ...] = ()
    ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        assert len(self.ids) in (0, len(self.paths)), "an id for every path, or none"
        _refuse_twins("stream", (stream.name for stream in self.streams))
        _refuse_twins("class", (query_class.name for query_class in self.classes))
        _refuse_twins("query", (path.query.name for path in self.paths))
        _refuse_twins("box", (box.name for box in self.boxes))
        _refuse_twins("input", [*self._stream_numbers, *self._box_numbers])
        for query_class in self.classes:
            if not 0 < query_class.priority < inf:
                raise ConfigRefused(
                    path="classes",
                    key=query_class.name,
                    value=query_class.priority,
                    expected="above 0 and finite",
                )
        for box in self.boxes:
            self._check_inputs(box)
        self._refuse_cycles()
        for path in self.paths:
            self._check_query(path)

    def class_number(self, name: str, where: str = "") -> int:
        return _position("class", name, self._class_numbers, where)

    def stream_number(self, name: str, where: str = "") -> int:
        return _position("stream", name, self._stream_numbers, where)

    def box_number(self, name: str, where: str = "") -> int:
        return _position("box", name, self._box_numbers, where)

    def unit_number(self, query: str) -> int:
        return _position("query", query, self._query_numbers, "")

    @cached_property
    def places(self) -> dict[int, int]:
        """By id, the position of a path."""
        return {number: place for place, number in enumerate(self.ids or range(len(self.paths)))}

    def path_of(self, number: int) -> Path:
        """Return the path with an id.

        Raises:
            UnknownName: there is none; the query was dropped, for example.
        """
        place = self.places.get(number)
        if place is None:
            raise UnknownName(kind="query id", name=str(number), known=map(str, self.places))
        return self.paths[place]

    def only(self, ids: Container[int]) -> "Network":
        """Return the network without the paths whose ids are not among these."""
        if all(number in ids for number in self.places):
            return self
        left = {number: place for number, place in self.places.items() if number in ids}
        paths = tuple(self.paths[place] for place in left.values())
        return replace(self, paths=paths, ids=tuple(left))

    @cached_property
    def importance(self) -> dict[str, float]:
        """By name of a stream, the highest priority among the classes of its readers."""
        priorities = {query_class.name: query_class.priority for query_class in self.classes}
        importance: dict[str, float] = {}
        for path in self.paths:
            for name in path.reads:
                priority = priorities[path.query.query_class]
                importance[name] = max(importance.get(name, 0.0), priority)
        return importance

    @cached_property
    def _class_numbers(self) -> dict[str, int]:
        return {query_class.name: number for number, query_class in enumerate(self.classes)}

    @cached_property
    def _stream_numbers(self) -> dict[str, int]:
        return {stream.name: number for number, stream in enumerate(self.streams)}

    @cached_property
    def _box_numbers(self) -> dict[str, int]:
        return {box.name: number for number, box in enumerate(self.boxes)}

    @cached_property
    def _query_numbers(self) -> dict[str, int]:
        return {path.query.name: number for number, path in enumerate(self.paths)}

    def _check_inputs(self, box: Box) -> None:
        where, count = f"box '{box.name}'", len(box.inputs)
        for name in box.inputs:
            if name not in self._stream_numbers and name not in self._box_numbers:
                names = [*self._stream_numbers, *self._box_numbers]
                raise UnknownName(kind="input", name=name, known=names, where=where)
        two = box.operator.kind == "join"
        if (count != 2) if two else (count < 1):
            expected = "the left and the right input" if two else "one input or more"
            raise ConfigRefused(path=where, key="inputs", value=box.inputs, expected=expected)

    def _refuse_cycles(self) -> None:
        inputs = {box.name: box.inputs for box in self.boxes}
        done = set(self._stream_numbers)
        left = list(inputs)
        while left:
            later = [name for name in left if not done.issuperset(inputs[name])]
            if len(later) == len(left):
                raise ConfigRefused(
                    path="network",
                    key="boxes",
                    value=" -> ".join(_cycle(inputs, set(left))),
                    expected="without a cycle: no tuple would ever leave it",
                )
            done.update(set(left).difference(later))
            left = later

    def _check_query(self, path: Path) -> None:
        where = f"query '{path.query.name}'"
        self.class_number(path.query.query_class, where=where)
        if path.into is not None:
            self.stream_number(path.into, where=where)
        if path.output is not None:
            self.box_number(path.output, where=where)
        else:
            self.stream_number(path.stream, where=where)
        if bool(path.operators) == (path.output is not None):
            expected = "at least one operator" if path.output is None else "left out beside output"
            raise ConfigRefused(path=where, key="operators", value=None, expected=expected)


def _cycle(inputs: dict[str, tuple[str, ...]], left: set[str]) -> list[str]:
    """Return the boxes of one cycle, in the direction in which tuples would run."""
    walk = [min(left)]
    while walk[-1] not in walk[:-1]:
        walk.append(next(name for name in inputs[walk[-1]] if name in left))
    return walk[walk.index(walk[-1]) :][::-1]


def _position(kind: str, name: str, numbers: dict[str, int], where: str) -> int:
    if name not in numbers:
        raise UnknownName(kind=kind, name=name, known=numbers, where=where)
    return numbers[name]


def _refuse_twins(kind: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ConfigRefused(
                path=f"{kind} '{name}'",
                key="name",
                value=name,
                expected=f"unique: another {kind} has it",
            )
        seen.add(name)
