"""Queries that compare texts by a collation: in groups, keys, sort orders and joins."""

from differential.cases import Case, Source
from differential.draw import SLIDES, SPANS, Draw
from differential.tree import Tree, leaf

PLAIN = {
    "ci": "lower({0} COLLATE UTF8_BINARY)",
    "ai": "translate(lower({0} COLLATE UTF8_BINARY), 'é', 'e')",
    "rt": "rtrim({0} COLLATE UTF8_BINARY)",
}
"""Expressions over collated columns that have the same value for all equal texts."""


def windows(draw: Draw) -> Case:
    """Draw groups, distinct values, extremes or sort orders of a window."""
    source = Source("collated", draw.choice("", "x"), draw.window())
    name = draw.choice(*PLAIN)
    plain, where = PLAIN[name].format(name), draw.where(draw.over(source), 0.4)
    collation = draw.choice("UTF8_LCASE", "UNICODE_CI", "UNICODE_AI", "UTF8_LCASE_RTRIM")
    tree = draw.random.choice([
        Tree((f"SELECT {plain} AS y, count(*) AS n, sum(v) AS t FROM @0@", where,
              f" GROUP BY {name}")),
        Tree((f"SELECT count(DISTINCT {name}) AS n, count(DISTINCT ci, rt) AS m FROM @0@", where)),
        Tree((f"SELECT count(*) AS n FROM (SELECT DISTINCT {name} FROM @0@", where, ")")),
        Tree((f"SELECT {PLAIN[name].format(f'min({name})')} AS y,"
              f" {PLAIN[name].format(f'max({name})')} AS z FROM @0@", where)),
        Tree(("SELECT id FROM @0@", where, f" ORDER BY {name} DESC NULLS LAST, id LIMIT 3")),
        Tree((f"SELECT id, dense_rank() OVER (ORDER BY {name}) AS r FROM @0@", where)),
        Tree(("SELECT count(*) AS n FROM @0@", where, f" GROUP BY k COLLATE {collation}")),
        leaf(f"SELECT id FROM @0@ WHERE {name} IN ('A', 'É', 'a ', 'b')"),
        Tree(("SELECT count(*) AS n, max(id) AS top FROM @0@", where,
              f" GROUP BY ROLLUP ({name}, k)")),
    ])  # fmt: skip
    return Case("windows", tree, (source,), floats=True)


def joins(draw: Draw) -> Case:
    """Draw a join or a subquery of windows by collated keys."""
    slide = draw.choice(*SLIDES)
    a, b = (
        Source("collated", alias, draw.sliding(slide, draw.span(0, 4 * SPANS[slide])))
        for alias in "ab"
    )
    name, join = draw.choice(*PLAIN), draw.choice("", "LEFT ", "FULL ")
    tree = draw.random.choice([
        leaf(f"SELECT a.id AS x, b.id AS y FROM @0@ {join}JOIN @1@ ON a.{name} = b.{name} AND"
             " a.id < b.id"),
        leaf(f"SELECT count(*) AS n FROM @0@ {join}JOIN @1@ USING ({name})"),
        leaf(f"SELECT a.id FROM @0@ WHERE a.{name} IN (SELECT b.{name} FROM @1@ WHERE b.id >"
             " a.id)"),
        leaf(f"SELECT a.id FROM @0@ WHERE NOT EXISTS (SELECT 1 FROM @1@ WHERE b.{name} <=>"
             f" a.{name} AND b.id <> a.id)"),
        leaf(f"SELECT count(*) AS n FROM (SELECT a.{name} FROM @0@ EXCEPT SELECT b.{name} FROM @1@"
             " WHERE b.id % 2 = 0)"),
    ])  # fmt: skip
    return Case("windows", tree, (a, b))
