"""When rows of a join are final, and how long its tuples are needed."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.language.join_times import LONGEST, Unbounded, in_windows, times_of
from headgate.model.network.join_tree import Bound, JoinTree
from headgate.model.window import Join

A, B, C = (JoinTree(number=number) for number in range(3))
NEAR = Bound(0, 1, 5), Bound(1, 0, 2)


def join(kind: str, left: JoinTree, right: JoinTree, *bounds: Bound, line: int = 1) -> JoinTree:
    return JoinTree(kind, sides=(left, right), bounds=bounds, line=line)


def test_an_inner_join_needs_tuples_as_far_back_as_a_partner_may_lie() -> None:
    assert times_of(join("Inner", A, B, *NEAR)) == (Join(reach=5, waits=(0, 0)), (5, 2))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("LeftOuter", Join(reach=8, firsts=(0,), waits=(5, 0))),
        ("RightOuter", Join(reach=8, firsts=(1,), waits=(0, 2))),
        ("FullOuter", Join(reach=8, firsts=(0, 1), waits=(5, 2))),
        ("LeftSemi", Join(reach=8, firsts=(0,), waits=(5, 0), complete=False)),
        ("LeftAnti", Join(reach=8, firsts=(0,), waits=(5, 0), complete=False)),
    ],
)
def test_a_tuple_waits_for_the_last_partner_that_it_can_have(kind: str, expected: Join) -> None:
    assert times_of(join(kind, A, B, *NEAR)) == (expected, (5, 2))


def test_windows_bound_every_two_relations() -> None:
    tree = join("LeftOuter", join("LeftOuter", A, B), C)
    expected = Join(reach=1 + 1 + 4, firsts=(0,), waits=(1, 0, 0))
    assert times_of(in_windows(tree, [1, 2, 4]))[0] == expected


def test_inner_joins_bound_relations_by_way_of_others() -> None:
    by_c = [Bound(0, 2, 3), Bound(2, 0, 0), Bound(1, 2, 0), Bound(2, 1, 0)]
    tree = join("Inner", join("Inner", A, B), C, *by_c)
    assert times_of(tree) == (Join(reach=3, waits=(0, 0, 0)), (3, 0, 0))


def test_a_relation_that_may_be_absent_bounds_no_others() -> None:
    """In a LEFT JOIN d ON b.ts = d.ts AND c.ts = d.ts, rows without d leave b and c far apart."""
    ab = [Bound(0, 1, 10), Bound(1, 0, 10)]
    ac = [Bound(0, 2, 10), Bound(2, 0, 10)]
    d = [Bound(1, 3, 0), Bound(3, 1, 0), Bound(2, 3, 0), Bound(3, 2, 0)]
    tree = join("LeftOuter", join("LeftOuter", join("LeftOuter", A, B, *ab), C, *ac),
                JoinTree(number=3), *d)  # fmt: skip
    assert times_of(tree)[1][1] == 20


def test_conditions_above_a_join_bound_what_it_lets_through() -> None:
    tree = join("LeftOuter", A, B)
    assert times_of(replace(tree, filters=NEAR)) == times_of(replace(tree, bounds=NEAR))
    above = join("Inner", tree, C, *NEAR, Bound(0, 2, 1), Bound(2, 0, 1))
    assert times_of(above)[0].waits[0] == 5


@pytest.mark.parametrize("kind", ["Inner", "LeftOuter", "FullOuter", "LeftAnti"])
def test_a_missing_bound_is_named_with_the_line(kind: str) -> None:
    with pytest.raises(Unbounded) as one:
        times_of(join(kind, A, B, NEAR[1], Bound(0, 1, LONGEST), line=7))
    assert (one.value.earlier, one.value.later) == (0, 1)
    assert (one.value.either, one.value.line) == (False, 7)
    with pytest.raises(Unbounded) as none:
        times_of(join("Inner", join(kind, A, B, line=4), C, line=7))
    assert (none.value.either, none.value.line) == (True, 4)


def test_an_outer_join_does_not_bound_what_its_left_side_keeps() -> None:
    with pytest.raises(Unbounded):
        times_of(join("LeftOuter", join("Inner", A, B), C, *NEAR, Bound(0, 2, 1), Bound(2, 0, 1)))


# ---- The promise itself, over every tuple of small joins ----

Tuples = dict[int, list[int]]
Row = dict[int, int | None]
KINDS = ("Inner", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi", "LeftAnti")


@st.composite
def trees(draw: st.DrawFn, first: int = 0, count: int | None = None) -> tuple[JoinTree, list[int]]:
    """Draw a tree, and the relations whose tuples its rows have."""
    count = draw(st.integers(2, 4)) if count is None else count
    if count == 1:
        return JoinTree(number=first), [first]
    place = draw(st.integers(1, count - 1))
    left, ours = draw(trees(first, place))
    right, theirs = draw(trees(first + place, count - place))
    kind = draw(st.sampled_from(KINDS))
    bounds: list[Bound] = []
    for _ in range(draw(st.integers(1, 2))):
        one, other = draw(st.sampled_from(ours)), draw(st.sampled_from(theirs))
        low = draw(st.integers(-3, 3))
        high = low + draw(st.integers(0, 3))
        bounds += [Bound(one, other, high), Bound(other, one, -low)]
    if kind in ("LeftSemi", "LeftAnti"):
        return JoinTree(kind, sides=(left, right), bounds=tuple(bounds)), ours
    tree, relations = JoinTree(kind, sides=(left, right)), [*ours, *theirs]
    filters: list[Bound] = []
    if draw(st.booleans()):
        earlier, later = draw(st.permutations(relations))[:2]
        filters.append(Bound(earlier, later, draw(st.integers(0, 3))))
    if draw(st.integers(0, 2)):
        return replace(tree, bounds=tuple(bounds), filters=tuple(filters)), relations
    return replace(tree, filters=(*bounds, *filters)), relations


def rows_of(tree: JoinTree, tuples: Tuples) -> list[Row]:
    """Return the rows of a join, by the times of their tuples."""
    return [row for row in _joined(tree, tuples) if _match(tree.filters, row)]


def _joined(tree: JoinTree, tuples: Tuples) -> list[Row]:
    if not tree.sides:
        return [{tree.number: time} for time in tuples[tree.number]]
    left, right = (rows_of(side, tuples) for side in tree.sides)
    matches = [(n, m) for n, one in enumerate(left) for m, other in enumerate(right)
               if _match(tree.bounds, {**one, **other})]  # fmt: skip
    of_left, of_right = {n for n, _ in matches}, {m for _, m in matches}
    if tree.kind in ("LeftSemi", "LeftAnti"):
        return [row for n, row in enumerate(left) if (n in of_left) == (tree.kind == "LeftSemi")]
    rows: list[Row] = [{**left[n], **right[m]} for n, m in matches]
    if tree.kind in ("LeftOuter", "FullOuter"):
        nothing: Row = dict.fromkeys(_relations(tree.sides[1]))
        rows += [{**row, **nothing} for n, row in enumerate(left) if n not in of_left]
    if tree.kind in ("RightOuter", "FullOuter"):
        nothing = dict.fromkeys(_relations(tree.sides[0]))
        rows += [{**nothing, **row} for m, row in enumerate(right) if m not in of_right]
    return rows


def _relations(tree: JoinTree) -> list[int]:
    if not tree.sides:
        return [tree.number]
    left = _relations(tree.sides[0])
    return left if tree.kind in ("LeftSemi", "LeftAnti") else [*left, *_relations(tree.sides[1])]


def _match(bounds: tuple[Bound, ...], row: Row) -> bool:
    for bound in bounds:
        earlier, later = row[bound.earlier], row[bound.later]
        if earlier is None or later is None or later - earlier > bound.most:
            return False
    return True


@given(trees(), st.data())
def test_rows_depend_on_no_tuple_beyond_what_is_promised(
    drawn: tuple[JoinTree, list[int]], data: st.DataObject
) -> None:
    tree, relations = drawn
    times = st.lists(st.integers(0, 14), max_size=3, unique=True)
    tuples: Tuples = {number: sorted(data.draw(times)) for number in tree.numbers}
    promise, _ = times_of(tree)
    rows = rows_of(tree, tuples)
    waiting: list[Row] = []
    for row in rows:
        present = [time for time in row.values() if time is not None]
        if promise.complete and len(present) == len(relations):
            assert max(present) - min(present) <= promise.reach
        else:
            waiting.append(row)
            assert next(number for number in relations if row[number] is not None) in promise.firsts
    for first in promise.firsts:
        for time in tuples[first]:
            end = time + promise.waits[first]
            seen = {n: [t for t in some if end - promise.reach <= t <= end]
                    for n, some in tuples.items()}  # fmt: skip
            final = [row for row in waiting if _leads(row, relations, first, time)]
            early = [
                row
                for row in rows_of(tree, seen)
                if _leads(row, relations, first, time)
                and not (promise.complete and None not in row.values())
            ]
            assert early == final


def _leads(row: Row, relations: list[int], first: int, time: int) -> bool:
    before = relations[: relations.index(first)]
    return row[first] == time and all(row[number] is None for number in before)
