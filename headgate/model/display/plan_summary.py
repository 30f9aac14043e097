"""Spark's reading of a query: a summary of its analyzed plan, independent of Spark."""

from collections.abc import Mapping
from dataclasses import dataclass, field


class NotPossible(Exception):
    """A plan that cannot be computed as required: the operator that prevents it, and its line."""

    def __init__(self, operator: str, line: int | None = None) -> None:
        super().__init__(operator)
        self.operator, self.line = operator, line


@dataclass(frozen=True)
class Node:
    """An operator of the plan.

    Args:
        kind: the name of its class in Spark.
        line: its line in the text, if known.
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
        """The streamed relations that it reads, including itself."""
        itself = {self.detail} if self.kind == "LogicalRDD" and self.detail else set()
        return frozenset(itself).union(*self.sides)


@dataclass(frozen=True)
class WindowCall:
    """A call of window(...) or session_window(...), with its arguments as written."""

    name: str
    line: int | None
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """What Spark has found in the text of a query.

    Args:
        nodes: the operators, from the output down.
        expressions: the classes of all expressions, each with the line of its first use.
        random: a nondeterministic expression, and its line.
        relations: the streamed relations that the query reads, once per use.
        inputs: by number, the streams of relations with a window clause.
        schema: names and types of the columns, as Spark's JSON.
        plan: the analyzed plan; opaque to all code but the engine.
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
