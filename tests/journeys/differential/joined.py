"""Queries over two streams."""

from differential.cases import Case, Source, Window
from differential.draw import SLIDES, SPANS, Draw
from differential.tree import Tree, leaf
from differential.world import SECOND

STREAMS = ("plain", "date", "wild", "collated")


def windows(draw: Draw) -> Case:
    """Draw a join of two windows with the same slide."""
    slide = draw.choice(*SLIDES)
    a, b = (
        Source(
            draw.choice(*STREAMS), alias, draw.sliding(slide, draw.span(0, 4 * SPANS[slide]))
        )
        for alias in "ab"
    )  # fmt: skip
    how = draw.choice("", "LEFT ", "RIGHT ", "FULL ")
    item = draw.item(draw.over(a, "a"), a)
    tree = draw.random.choice([
        leaf(f"SELECT a.k, count(b.id) AS n FROM @0@ {how}JOIN @1@ ON a.k = b.k GROUP BY a.k"),
        Tree(("SELECT a.id AS x, b.id AS y, ", item, f" FROM @0@ {how}JOIN @1@ ON a.k = b.k"
              " AND a.id < b.id + 3")),
        leaf("SELECT count(*) AS n, sum(a.id + b.id) AS t FROM @0@ JOIN @1@ USING (k)"),
        Tree(("SELECT a.id, ", item, " FROM @0@ LEFT ANTI JOIN @1@ ON a.k = b.k"
              " AND a.id > b.id")),
        leaf("SELECT a.id FROM @0@ WHERE a.id IN (SELECT b.id + 1 FROM @1@)"),
    ])  # fmt: skip
    return Case("windows", tree, (a, b), floats=True)


def pairs(draw: Draw) -> Case:
    """Draw a join of tuples of two streams as they come."""
    spans = draw.random.sample([s for s, micros in SPANS.items() if micros <= 90 * SECOND], 2)
    a, b = (
        Source(draw.choice(*STREAMS), alias, Window("time", SPANS[span], None, f"RANGE {span}"))
        for alias, span in zip("ab", spans, strict=True)
    )
    how = draw.choice("", "", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
    left, right = draw.over(a, "a"), draw.over(b, "b")
    items: list[str | Tree] = ["a.id AS x, ", Tree((left.any(1), " AS c"))]
    if how not in ("LEFT SEMI", "LEFT ANTI"):
        items += [", b.id AS y, ", Tree((right.any(1), " AS d"))]
    key = draw.choice("a.k = b.k", "a.k = b.k", "a.id % 4 = b.id % 4", "a.k <=> b.k")
    if (a.stream, b.stream) == ("collated", "collated"):
        key = draw.choice("a.ci = b.ci", "a.ai = b.ai", "a.rt = b.rt")
    more = draw.choice("", " AND a.id < b.id + 20", " AND a.id <> b.id")
    where: tuple[str | Tree, ...] = (" WHERE true@final@",)
    if draw.chance(0.5):
        where = (" WHERE (", left.condition(0), ")@final@")
    start = ("SELECT ", *items, f" FROM @0@ {how} JOIN @1@ ON {key}{more}@near@")
    return Case("pairs", Tree((*start, *where)), (a, b), join=how)


def union(draw: Draw) -> Case:
    """Draw the tuples of two streams."""
    a, b = (Source(draw.choice("plain", "date", "window", "wild")) for _ in "ab")
    one, two = draw.over(a), draw.over(b)
    kind = draw.choice("int", "string", "double", "date", "decimal(10,2)")
    tree = Tree(
        (
            "SELECT id, ", one.value(kind, 1), " AS y FROM @0@", draw.where(one, 0.4),
            " UNION ALL SELECT id + 100, ", two.value(kind, 1), " FROM @1@", draw.where(two, 0.4),
        )
    )  # fmt: skip
    return Case("union", tree, (a, b))
