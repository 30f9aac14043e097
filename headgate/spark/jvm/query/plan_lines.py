"""Parsers for the lines in which the Java classes describe a plan."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from headgate.model.display.plan_summary import Node, Reading, WindowCall
from headgate.model.network.join_tree import Bound, JoinTree
from headgate.model.window import GIVEN


def window_calls(text: str) -> Iterator[WindowCall]:
    """Yield the calls of window functions in a text of `QueryPlans.windowCalls`, one per line."""
    for line in text.splitlines():
        name, number, *arguments = line.split("\t")
        yield WindowCall(name, int(number) if number else None, tuple(arguments))


def reading_of(
    lines: Sequence[str],
    columns: tuple[str, ...],
    calls: tuple[WindowCall, ...],
    inputs: Mapping[int, str],
    plan: object,
) -> Reading:
    """Build a reading from lines of `QueryPlans.describe`: nodes in pre-order, with depths."""
    rows: list[tuple[int, str, int | None, str, bool]] = []
    expressions: dict[str, int | None] = {}
    random: tuple[str, int | None] | None = None
    for line in lines:
        kind, *words = line.split("\t")
        if kind == "N":
            depth, name, text, detail = words
            rows.append(
                (abs(int(depth)), name, int(text) if text else None, detail, depth.startswith("-"))
            )
        elif kind == "E":
            expressions[words[0]] = int(words[1]) if words[1] else None
        else:
            random = words[0], int(words[1]) if words[1] else None
    nodes: list[Node | None] = [None] * len(rows)
    relations: list[str] = []

    def build(place: int, in_subquery: bool) -> tuple[frozenset[str], int]:
        """Build a node and all nodes below it; return what it reads, and the next place."""
        depth, name, line_number, detail, begins = rows[place]
        within = in_subquery or begins
        if name == "LogicalRDD" and detail and not detail.startswith(GIVEN):
            relations.append(detail)
        sides: list[frozenset[str]] = []
        after = place + 1
        while after < len(rows) and rows[after][0] > depth:
            nested = rows[after][4]
            reads, after = build(after, within)
            if not nested:
                sides.append(reads)
        detail = "" if detail.startswith(GIVEN) else detail
        node = nodes[place] = Node(name, line_number, detail, tuple(sides), within)
        return node.reads, after

    build(0, False)
    return Reading(
        tuple(node for node in nodes if node is not None),
        expressions, random, tuple(relations), columns, calls, inputs, plan=plan,
    )  # fmt: skip


def join_tree(lines: Iterable[str]) -> tuple[JoinTree, dict[int, str]]:
    """Return the tree that lines of `JoinTimes` describe, and the names of its relations' times.

    A join with a relation that is not a stream is left out of the tree: it needs only one tuple at
    a time.

    >>> tree, names = join_tree(["I\\t0", "T", "J\\tInner\\t", "F\\t0\\t1\\t5", "N\\t0\\ta.ts"])
    >>> tree.number, tree.filters, names
    (0, (Bound(earlier=0, later=1, most=5),), {0: 'a.ts'})
    """
    trees: list[JoinTree | None] = []
    names: dict[int, str] = {}
    for line in lines:
        kind, *words = line.split("\t")
        match kind:
            case "I":
                trees.append(JoinTree(number=int(words[0])))
            case "T":
                trees.append(None)
            case "J":
                right, left = trees.pop(), trees.pop()
                if left is not None and right is not None:
                    line_number = int(words[1]) if words[1] else None
                    trees.append(JoinTree(words[0], sides=(left, right), line=line_number))
                else:
                    trees.append(left or right)
            case "N":
                names[int(words[0])] = words[1]
            case _:
                tree, bound = trees.pop(), Bound(*map(int, words))
                assert tree is not None
                if kind == "B":
                    trees.append(replace(tree, bounds=(*tree.bounds, bound)))
                else:
                    trees.append(replace(tree, filters=(*tree.filters, bound)))
    (tree,) = trees
    assert tree is not None
    return tree, names
