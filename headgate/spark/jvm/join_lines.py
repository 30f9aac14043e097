"""Joins of streams as `JoinTimes.java` describes them, line by line."""

from collections.abc import Iterable
from dataclasses import replace

from headgate.model.join_tree import Bound, JoinTree


def join_tree(lines: Iterable[str]) -> tuple[JoinTree, dict[int, str]]:
    """Return the tree that some lines describe, and the names of its relations' times.

    A join with something that is no stream is not part of the tree: it takes each row by itself.

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
                    at = int(words[1]) if words[1] else None
                    trees.append(JoinTree(words[0], sides=(left, right), line=at))
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
