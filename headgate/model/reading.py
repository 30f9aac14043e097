"""Spark's reading of a query: its analyzed plan as a small tree of ours."""

from collections.abc import Mapping
from dataclasses import dataclass, field


class NotPossible(Exception):
    """A plan cannot be computed as wanted: which operator prevents it, and its line if known."""

    def __init__(self, operator: str, line: int | None = None) -> None:
        super().__init__(operator)
        self.operator, self.line = operator, line


@dataclass(frozen=True)
class Node:
    """An operator of the plan.

    Args:
        kind: the name of its class in Spark.
        line: where it stands in the text, if known.
        detail: the kind of a join; the name of a relation whose rows are streamed.
        sides: for each child, the streamed relations that it reads.
        in_subquery: whether it belongs to a subquery in an expression.
    """

    kind: str
    line: int | None
    detail: str
    sides: tuple[frozenset[str], ...]
    in_subquery: bool

    @property
    def reads(self) -> frozenset[str]:
        """The streamed relations that it reads, itself included."""
        own = {self.detail} if self.kind == "LogicalRDD" and self.detail else set()
        return frozenset(own).union(*self.sides)


@dataclass(frozen=True)
class WindowCall:
    """A call of window(...) or session_window(...), with its arguments as they are written."""

    name: str
    line: int | None
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """What Spark made of a text.

    Args:
        nodes: the operators, from the output down.
        expressions: the classes of all expressions, with the line of the first.
        random: an expression without a fixed answer, and its line.
        relations: the streamed relations that it reads, one for each time it does.
        inputs: the streams of relations with a window clause, by number.
        schema: names and types of the columns, as Spark's JSON.
        plan: the analyzed plan; opaque to everybody but the engine.
    """

    nodes: tuple[Node, ...]
    expressions: Mapping[str, int | None]
    random: tuple[str, int | None] | None
    relations: tuple[str, ...]
    columns: tuple[str, ...]
    calls: tuple[WindowCall, ...] = ()
    inputs: Mapping[int, str] = field(default_factory=dict)
    schema: str = ""
    plan: object = field(default=None, compare=False, repr=False)
