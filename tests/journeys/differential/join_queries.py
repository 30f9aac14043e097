"""Queries over two or three streams."""

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
    join = draw.choice("", "LEFT ", "RIGHT ", "FULL ")
    item = draw.item(draw.over(a, "a"), a)
    tree = draw.random.choice([
        leaf(f"SELECT a.k, count(b.id) AS n FROM @0@ {join}JOIN @1@ ON a.k = b.k GROUP BY a.k"),
        Tree(("SELECT a.id AS x, b.id AS y, ", item, f" FROM @0@ {join}JOIN @1@ ON a.k = b.k"
              " AND a.id < b.id + 3")),
        leaf("SELECT count(*) AS n, sum(a.id + b.id) AS t FROM @0@ JOIN @1@ USING (k)"),
        Tree(("SELECT a.id, ", item, " FROM @0@ LEFT ANTI JOIN @1@ ON a.k = b.k"
              " AND a.id > b.id")),
        leaf("SELECT a.id FROM @0@ WHERE a.id IN (SELECT b.id + 1 FROM @1@)"),
    ])  # fmt: skip
    return Case("windows", tree, (a, b), floats=True)


def pairs(draw: Draw) -> Case:
    """Draw a join of tuples of two streams as they arrive."""
    spans = draw.random.sample([s for s, micros in SPANS.items() if micros <= 90 * SECOND], 2)
    a, b = (
        Source(draw.choice(*STREAMS), alias, Window("time", SPANS[span], None, f"RANGE {span}"))
        for alias, span in zip("ab", spans, strict=True)
    )
    join = draw.choice("", "", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
    left, right = draw.over(a, "a"), draw.over(b, "b")
    items: list[str | Tree] = ["a.id AS x, ", Tree((left.any(1), " AS c"))]
    if join not in ("LEFT SEMI", "LEFT ANTI"):
        items += [", b.id AS y, ", Tree((right.any(1), " AS d"))]
    key = draw.choice("a.k = b.k", "a.k = b.k", "a.id % 4 = b.id % 4", "a.k <=> b.k")
    if (a.stream, b.stream) == ("collated", "collated"):
        key = draw.choice("a.ci = b.ci", "a.ai = b.ai", "a.rt = b.rt")
    more = draw.choice("", " AND a.id < b.id + 20", " AND a.id <> b.id")
    where: tuple[str | Tree, ...] = (" WHERE true@final@",)
    if draw.chance(0.5):
        where = (" WHERE (", left.condition(0), ")@final@")
    start = ("SELECT ", *items, f" FROM @0@ {join} JOIN @1@ ON {key}{more}@near@")
    return Case("pairs", Tree((*start, *where)), (a, b), join=join)


def bounded(draw: Draw) -> Case:
    """Draw a join of tuples as they arrive whose conditions bound their times."""
    a, b = (Source(draw.choice(*STREAMS), alias) for alias in "ab")
    spans = [span for span, micros in SPANS.items() if micros <= 45 * SECOND]
    before, behind = draw.choice(*spans), draw.choice(*spans, "0 SECONDS")
    early, late = f"INTERVAL '{before}'", f"INTERVAL '{behind}'"
    times = draw.choice(
        f"b.ts BETWEEN a.ts - {early} AND a.ts + {late}",
        f"b.ts >= a.ts - {early} AND b.ts <= a.ts + {late}",
        f"a.ts <= b.ts + {early} AND a.ts + {late} >= b.ts",
        f"NOT (b.ts < a.ts - {early}) AND b.ts - {late} <= a.ts",
    )
    join = draw.choice("", "", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
    left, right = draw.over(a, "a"), draw.over(b, "b")
    items: list[str | Tree] = ["a.id AS x, ", Tree((left.any(1), " AS c"))]
    if join not in ("LEFT SEMI", "LEFT ANTI"):
        items += [", b.id AS y, ", Tree((right.any(1), " AS d"))]
    key = draw.choice("a.k = b.k AND ", "a.id % 4 = b.id % 4 AND ", "a.k <=> b.k AND ", "")
    where: tuple[str | Tree, ...] = (" WHERE true@final@",)
    if draw.chance(0.4):
        where = (" WHERE (", left.condition(0), ")@final@")
    tree = Tree(("SELECT ", *items, f" FROM @0@ {join} JOIN @1@ ON {key}{times}", *where))
    bounds = SPANS[before], SPANS.get(behind, 0)
    return Case("bounded", tree, (a, b), join=join, bounds=bounds)


def union(draw: Draw) -> Case:
    """Draw a UNION ALL of two streams."""
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


def subqueries_of_windows(draw: Draw) -> Case:
    """Draw EXISTS, IN and scalar subqueries over windows with the same slide."""
    slide = draw.choice(*SLIDES)
    first = draw.choice(*STREAMS, "parsed")
    streams = first, draw.choice(first, *STREAMS)
    a, b = (
        Source(stream, alias, draw.sliding(slide, draw.span(0, 4 * SPANS[slide])))
        for stream, alias in zip(streams, "ab", strict=True)
    )
    item, where = draw.item(draw.over(a, "a"), a), draw.over(b, "b").condition(0)
    tree = draw.random.choice([
        Tree(("SELECT a.id, ", item, " FROM @0@ WHERE EXISTS (SELECT 1 FROM @1@ WHERE b.k = a.k AND"
              " b.id < a.id)")),
        Tree(("SELECT a.id, ", item, " FROM @0@ WHERE NOT EXISTS (SELECT 1 FROM @1@ WHERE b.k = a.k"
              " AND ", where, ")")),
        Tree(("SELECT a.id, a.k FROM @0@ WHERE a.k IN (SELECT b.k FROM @1@ WHERE ", where, ")")),
        leaf("SELECT a.id FROM @0@ WHERE a.id NOT IN (SELECT b.id + 1 FROM @1@)"),
        leaf("SELECT a.id FROM @0@ WHERE a.k NOT IN (SELECT b.k FROM @1@)"),
        Tree(("SELECT a.id, (SELECT max(b.id) FROM @1@ WHERE ", where, ") AS top FROM @0@")),
        leaf("SELECT a.id, (SELECT count(*) FROM @1@ WHERE b.k = a.k) AS n FROM @0@"),
        leaf("SELECT a.k, count(*) AS n FROM @0@ GROUP BY a.k HAVING count(*) >= (SELECT"
             " count(*) / 3 FROM @1@)"),
        Tree(("SELECT a.id, ", item, " FROM @0@ WHERE a.id > (SELECT avg(b.id) FROM @1@)")),
        leaf("SELECT a.id, a.k IN (SELECT b.k FROM @1@) AS known FROM @0@"),
        leaf("SELECT (SELECT count(*) FROM @0@) AS n, (SELECT max(b.id) FROM @1@) AS m"),
        leaf("SELECT a.k FROM @0@ INTERSECT SELECT b.k FROM @1@"),
        leaf("SELECT a.k, a.id FROM @0@ EXCEPT SELECT b.k, b.id - 1 FROM @1@"),
        leaf("SELECT k, x, y FROM (SELECT k, id AS x FROM @0@) JOIN (SELECT k, max(id) AS y FROM"
             " @1@ GROUP BY k) USING (k)"),
    ])  # fmt: skip
    return Case("windows", tree, (a, b), floats=True)


def windows_of_three(draw: Draw) -> Case:
    """Draw outer joins of three windows with the same slide."""
    slide = draw.choice(*SLIDES)
    sources = tuple(
        Source(draw.choice(*STREAMS), alias, draw.sliding(slide, draw.span(0, SPANS[slide])))
        for alias in "abc"
    )
    join, again = (draw.choice("", "LEFT ", "RIGHT ", "FULL ") for _ in range(2))
    tree = draw.random.choice([
        leaf(f"SELECT a.id AS x, b.id AS y, c.id AS z FROM @0@ {join}JOIN @1@ ON a.k = b.k AND a.id"
             f" < b.id {again}JOIN @2@ ON b.k = c.k AND b.id < c.id + 2"),
        leaf(f"SELECT k, count(a.id) AS x, count(b.id) AS y, max(c.id) AS z FROM @0@ {join}JOIN @1@"
             f" USING (k) {again}JOIN @2@ USING (k) GROUP BY k"),
    ])  # fmt: skip
    return Case("windows", tree, sources)


def pairs_by_number(draw: Draw) -> Case:
    """Draw a join of a stream's last tuples with each other, as they arrive.

    Two streams cannot be tested: the order of their tuples depends on the sources.
    """
    stream = draw.choice(*STREAMS)
    a, b = (
        Source(stream, alias, Window("rows", size, None, f"ROWS {size}"))
        for alias, size in zip("ab", draw.random.sample([1, 2, 5, 8, 20], 2), strict=True)
    )
    left, right = draw.over(a, "a"), draw.over(b, "b")
    tree = Tree(
        (
            "SELECT a.id AS x, b.id AS y, ", left.any(1), " AS c, ", right.any(1), " AS d FROM @0@"
            f" JOIN @1@ ON {_key(draw, stream)}@near@", draw.where(left, 0.5),
        )
    )  # fmt: skip
    return Case("pairs", tree, (a, b))


def _key(draw: Draw, stream: str) -> str:
    if stream == "collated":
        return draw.choice("a.ci = b.ci", "a.ai = b.ai", "a.rt = b.rt")
    return draw.choice("a.k = b.k", "a.k <=> b.k", "a.id % 4 = b.id % 4")


def pairs_of_subqueries(draw: Draw) -> Case:
    """Draw an inner join of subqueries or CTEs, as tuples arrive."""
    spans = draw.random.sample([s for s, micros in SPANS.items() if micros <= 45 * SECOND], 2)
    a, b = (
        Source(draw.choice(*STREAMS, "parsed", "again"), alias,
               Window("time", SPANS[span], None, f"RANGE {span}"))
        for alias, span in zip("ab", spans, strict=True)
    )  # fmt: skip
    left, right = draw.over(a, "a"), draw.over(b, "b")
    one = Tree(("SELECT a.k, a.ts, a.id, ", left.any(1), " AS c FROM @0@", draw.where(left, 0.5)))
    two = Tree(("SELECT b.k, b.ts, b.id, ", right.any(1), " AS d FROM @1@", draw.where(right, 0.3)))
    columns = "a.id AS x, b.id AS y, c, d"
    tree = draw.random.choice([
        Tree((f"SELECT {columns} FROM (", one, ") a JOIN (", two, ") b ON a.k = b.k@near@ WHERE"
              " true@final@")),
        Tree((f"SELECT k, {columns} FROM (", one, ") a JOIN (", two, ") b USING (k) WHERE"
              " true@near@@final@")),
        Tree(("WITH a AS (", one, "), b AS (", two, f") SELECT {columns} FROM a, b WHERE a.k = b.k"
              "@near@@final@")),
        Tree(("FROM (", one, ") a |> JOIN (", two, ") b ON a.k = b.k@near@ |> WHERE true@final@"
              f" |> SELECT {columns}")),
    ])  # fmt: skip
    return Case("pairs", tree, (a, b))
