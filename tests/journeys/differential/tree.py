"""SQL texts as trees, so that parts of them can be swapped, replaced and dropped."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Tree:
    """A piece of SQL: text with smaller pieces in it.

    Args:
        kind: the type of an expression; empty for any other piece.
        optional: whether the text around the piece stays valid without it.
    """

    parts: tuple["str | Tree", ...]
    kind: str = ""
    optional: bool = False

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    @property
    def children(self) -> list["Tree"]:
        return [part for part in self.parts if isinstance(part, Tree)]

    def nodes(self) -> Iterator["Tree"]:
        """Yield this tree and all below it, from the top."""
        yield self
        for child in self.children:
            yield from child.nodes()

    def replaced(self, old: "Tree", new: "Tree | str") -> "Tree":
        """Return a copy in which one piece, compared by identity, is replaced by another.

        A part without the old piece stays the same object, so that its pieces keep their identity.
        """
        parts = tuple(
            new if part is old else part.replaced(old, new) if isinstance(part, Tree) else part
            for part in self.parts
        )
        if all(one is other for one, other in zip(parts, self.parts, strict=True)):
            return self
        return Tree(parts, self.kind, self.optional)


def leaf(text: str, kind: str = "") -> Tree:
    """Return a piece that contains no smaller ones."""
    return Tree((text,), kind)


def listed(trees: list[Tree], separator: str = ", ") -> Tree:
    """Return a piece that joins others with a separator."""
    parts: list[str | Tree] = []
    for tree in trees:
        parts += [tree, separator]
    return Tree(tuple(parts[:-1]))


_OPERANDS = re.compile(r"\b(\w+) ([-+*/%<>]|\|\||<=|>=|div) (\w+)\b")
_NUMBER = re.compile(r"(?<![\w.'])\d+(?![\w.'])")


def sibling(random: Random, tree: Tree) -> Tree:
    """Return a similar text: operands swapped, or a literal changed.

    An engine may wrongly answer one such text with the result of the other.
    """
    nodes = [node for node in tree.nodes() if node.kind]
    random.shuffle(nodes)
    for node in nodes:
        children = [child for child in node.children if child.kind]
        if len(children) > 1 and random.random() < 0.6:
            first, second = random.sample(children, 2)
            spot = Tree(("",))
            swapped = node.replaced(first, spot).replaced(second, first).replaced(spot, second)
            if swapped.text != node.text:
                return tree.replaced(node, swapped) if node is not tree else swapped
        for part in node.parts:
            if isinstance(part, str) and (changed := _changed(random, part)) != part:
                parts = tuple(changed if other is part else other for other in node.parts)
                fresh = Tree(parts, node.kind, node.optional)
                return tree.replaced(node, fresh) if node is not tree else fresh
    return tree


def _changed(random: Random, text: str) -> str:
    """Swap the operands of an operator in a text, or change a number or a word."""
    if _OPERANDS.search(text) and random.random() < 0.7:
        return _OPERANDS.sub(r"\3 \2 \1", text, count=1)
    if _NUMBER.search(text):
        return _NUMBER.sub(lambda match: str(int(match.group()) + 1), text, count=1)
    for old, new in (("true", "false"), ("false", "true"), (" AND ", " OR "), (" < ", " > ")):
        if old in text:
            return text.replace(old, new, 1)
    return text
