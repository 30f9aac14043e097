"""When the rows of a join are final, and how long its tuples are needed.

A row of a join is a combination of tuples, at most one of each relation. A row with a tuple of
every relation is final at once. A row that lacks one, because of an outer join, is final when no
tuple that would change it can arrive any more. The bounds on times in the joins limit how much
later than the row's own tuples such a tuple may be, and how much earlier. This limits how long
tuples are needed.

A row never depends on another tuple of a relation that it already has a tuple of, because a join
compares its rows with other relations only. So how long a row waits can be counted from the first
of its tuples alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from math import inf

from headgate.model.network.join_tree import Bound, JoinTree
from headgate.model.window import Join

LONGEST = 2**60
"""A limit in microseconds that can be added to any time; a greater bound counts as none."""

Distances = dict[tuple[int, int], float]
"""By two relations, how much later than the time of the first the time of the second may be."""


class Unbounded(Exception):
    """A join that does not bound how much later than `earlier` the time of `later` may be.

    Args:
        either: whether it does not bound the opposite direction, either.
        line: the line of the join, if known.
    """

    def __init__(self, earlier: int, later: int, either: bool, line: int | None) -> None:
        super().__init__(earlier, later)
        self.earlier, self.later, self.either, self.line = earlier, later, either, line


@dataclass(frozen=True)
class _Rows:
    """The rows of a tree of joins, and the distances in time that matter for them.

    Args:
        relations: the relations whose tuples the rows contain.
        within: distances between two tuples of a row.
        later: distances from a tuple of a row to any tuple that the row depends on.
        earlier: distances from any tuple that a row depends on to a tuple of the row.
        firsts: relations that can be the first one, from the left, that a row has a tuple of.
        waiting: the same, for rows that are put out only when they are final.
    """

    relations: tuple[int, ...]
    within: Distances
    later: Distances
    earlier: Distances
    firsts: frozenset[int]
    waiting: frozenset[int] = frozenset()


def in_windows(tree: JoinTree, sizes: Sequence[int]) -> JoinTree:
    """Return a tree with the bounds of windows: joined tuples lie in each other's windows."""
    if not tree.sides:
        return tree
    left, right = (side.numbers for side in tree.sides)
    pairs = (*product(left, right), *product(right, left))
    bounds = tuple(Bound(one, other, sizes[one]) for one, other in pairs)
    sides = tuple(in_windows(side, sizes) for side in tree.sides)
    return replace(tree, sides=sides, bounds=bounds, filters=())


def times_of(tree: JoinTree) -> tuple[Join, tuple[int, ...]]:
    """Return when the rows of a join are put out, and the size of each relation's window.

    Raises:
        Unbounded: tuples would be needed forever.

    >>> near = Bound(0, 1, 5), Bound(1, 0, 2)
    >>> tree = JoinTree("LeftOuter", sides=(JoinTree(), JoinTree(number=1)), bounds=near)
    >>> times_of(tree)
    (Join(reach=8, firsts=(0,), waits=(5, 0), complete=True), (5, 2))
    """
    rows = _rows_of(_with_filters(tree, ()))
    every = (rows.within, rows.later, rows.earlier)
    numbers = range(1 + max(tree.numbers))
    waits = {n: _greatest([rows.later], {n}, numbers) for n in rows.waiting}
    spans = {n: _greatest([rows.earlier], numbers, {n}) for n in rows.waiting}
    needed = [waits[n] + spans[n] + 1 for n in rows.waiting]
    reach = max(_greatest([rows.within], numbers, numbers), *needed, 0)
    if reach >= LONGEST:
        raise _unbounded(tree, every)
    join = Join(
        reach=int(reach),
        firsts=tuple(n for n in rows.relations if n in rows.waiting),
        waits=tuple(int(waits.get(n, 0)) for n in numbers),
        complete=all(inner.kind in _ROWS_OF_BOTH for inner in tree.joins),
    )
    sizes = (_greatest(every, {n}, numbers) for n in numbers)
    return join, tuple(int(min(size, LONGEST)) for size in sizes)


_ROWS_OF_BOTH = ("Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter")


def _with_filters(tree: JoinTree, filters: Iterable[Bound]) -> JoinTree:
    """Return a tree in which each bound belongs to the join that brings its relations together.

    A condition above a join removes every row that lacks one of the tuples that it compares. So the
    remaining rows are bounded as if the join itself had the condition.
    """
    if not tree.sides:
        return tree
    left, right = (set(side.numbers) for side in tree.sides)
    above = [*filters, *tree.filters, *(tree.bounds if _is_inner(tree) else ())]
    crossing = [
        bound
        for bound in dict.fromkeys((*above, *tree.bounds))
        if (bound.earlier in left) != (bound.later in left)
    ]
    sides = tuple(
        _with_filters(side, [b for b in above if {b.earlier, b.later} <= numbers])
        for side, numbers in zip(tree.sides, (left, right), strict=True)
    )
    return replace(tree, sides=sides, bounds=tuple(crossing), filters=())


def _is_inner(tree: JoinTree) -> bool:
    return tree.kind in ("Inner", "Cross")


def _rows_of(tree: JoinTree) -> _Rows:
    if not tree.sides:
        return _Rows((tree.number,), {}, {}, {}, frozenset({tree.number}))
    if all(_is_inner(join) for join in tree.joins):
        return _inner_rows(tree)
    left, right = map(_rows_of, tree.sides)
    cross = _cross(left, right, tree.bounds) | _cross(right, left, tree.bounds)
    within = left.within | right.within | cross
    firsts, waiting = _firsts(tree.kind, left, right)
    later, earlier = left.later | right.later, left.earlier | right.earlier
    for one, other in ((left, right), (right, left)):
        later |= _through(one, other, cross)
        earlier |= _through(one, other, cross, backward=True)
    if tree.kind in _ROWS_OF_BOTH:
        relations = (*left.relations, *right.relations)
        return _Rows(relations, within, later, earlier, firsts, waiting)
    return _Rows(left.relations, left.within, later, earlier, firsts, waiting)


def _inner_rows(tree: JoinTree) -> _Rows:
    """Return the rows of inner joins: all conditions hold, and rows depend on their tuples only."""
    numbers = tree.numbers
    within: Distances = dict.fromkeys(permutations(numbers, 2), inf)
    for bound in (bound for join in tree.joins for bound in join.bounds):
        pair = bound.earlier, bound.later
        within[pair] = min(within[pair], bound.most)
    for middle, first, last in permutations(numbers, 3):
        way = within[first, middle] + within[middle, last]
        within[first, last] = min(within[first, last], way)
    return _Rows(numbers, within, within, within, frozenset({numbers[0]}))


def _firsts(kind: str, left: _Rows, right: _Rows) -> tuple[frozenset[int], frozenset[int]]:
    """Return the first relations of all rows, and of rows that are put out only when final."""
    matched = left.waiting | (left.firsts if right.waiting else frozenset())
    match kind:
        case "Inner" | "Cross":
            return left.firsts, matched
        case "RightOuter":
            return left.firsts | right.firsts, matched | right.firsts
        case "FullOuter":
            return left.firsts | right.firsts, left.firsts | right.firsts
    return left.firsts, left.firsts


def _cross(one: _Rows, other: _Rows, bounds: Iterable[Bound]) -> Distances:
    """Return distances from one side's relations to the other's, where a join matches two rows."""
    distances: Distances = dict.fromkeys(product(one.relations, other.relations), inf)
    links = [b for b in bounds if b.earlier in one.relations and b.later in other.relations]
    for (first, last), bound in product(tuple(distances), links):
        length = _to(one.within, first, bound.earlier) + bound.most
        length += _to(other.within, bound.later, last)
        distances[first, last] = min(distances[first, last], length)
    return distances


def _through(one: _Rows, other: _Rows, cross: Distances, *, backward: bool = False) -> Distances:
    """Return distances from one side's relations to all that rows of the other side depend on.

    Args:
        backward: return the distances in the opposite direction.
    """
    depends = other.earlier if backward else other.later
    beyond = {number for pair in depends for number in pair} | set(other.relations)
    distances: Distances = {}
    for first, last in product(one.relations, beyond):
        if backward:
            ways = (_to(depends, last, number) + cross[number, first] for number in other.relations)
            distances[last, first] = max(ways)
        else:
            ways = (cross[first, number] + _to(depends, number, last) for number in other.relations)
            distances[first, last] = max(ways)
    return distances


def _to(distances: Distances, first: int, last: int) -> float:
    return 0 if first == last else distances[first, last]


def _greatest(
    all_distances: Iterable[Distances], firsts: Iterable[int], lasts: Iterable[int]
) -> float:
    """Return the greatest of the distances from some relations to others; at least 0."""
    pairs = set(product(firsts, lasts))
    lengths = (
        length for distances in all_distances for pair, length in distances.items() if pair in pairs
    )
    return max((0, *lengths))


def _unbounded(tree: JoinTree, every: Iterable[Distances]) -> Unbounded:
    missing = [
        pair for distances in every for pair, length in distances.items() if length >= LONGEST
    ]
    (earlier, later), line = next(
        (pair, join.line)
        for join in tree.joins
        for pair in missing
        if set(pair) <= set(join.numbers)
    )
    return Unbounded(earlier, later, (later, earlier) in missing, line)
