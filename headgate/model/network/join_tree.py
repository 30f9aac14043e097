"""How a query joins streams, and how far apart the times of joined tuples may lie."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """A condition on two relations: time of `later` ≤ time of `earlier` + `most`.

    Args:
        most: in microseconds; negative where `later` has to come before `earlier`.
    """

    earlier: int
    later: int
    most: int


@dataclass(frozen=True)
class JoinTree:
    """A streamed relation, or a join of two trees.

    Args:
        kind: the name of the join in Spark; empty for a relation.
        number: the number of the relation.
        bounds: bounds on times in the join's own condition.
        filters: bounds on times in conditions above the join.
        line: the line of the join in the text, if known.
    """

    kind: str = ""
    number: int = 0
    sides: tuple["JoinTree", ...] = ()
    bounds: tuple[Bound, ...] = ()
    filters: tuple[Bound, ...] = ()
    line: int | None = None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of its relations, from left to right."""
        if not self.sides:
            return (self.number,)
        return tuple(number for side in self.sides for number in side.numbers)

    @property
    def joins(self) -> Iterator["JoinTree"]:
        """The joins, from the innermost to the outermost."""
        for side in self.sides:
            yield from side.joins
        if self.sides:
            yield self
