"""Queries that look at one tuple at a time, alone or with stored rows."""

from differential.cases import Case, Source
from differential.draw import Draw
from differential.tree import Tree, leaf, listed
from differential.world import STORED


def projection(draw: Draw) -> Case:
    """Draw columns computed from a tuple."""
    source = draw.source()
    over = draw.over(source)
    start = draw.choice("SELECT id, ", "SELECT id, ", "SELECT ", "SELECT *, ")
    items = listed(draw.items(over, source))
    return Case("stateless", Tree((start, items, " FROM @0@", draw.where(over, 0.3))), (source,))


def selection(draw: Draw) -> Case:
    """Draw a condition on a tuple."""
    source = draw.source()
    columns = draw.choice("*", "id", "id, k, ts", "k AS `a b`, id")
    condition = draw.over(source).condition(2)
    return Case("stateless", Tree((f"SELECT {columns} FROM @0@ WHERE ", condition)), (source,))


def nested(draw: Draw) -> Case:
    """Draw a subquery in FROM, or CTEs."""
    source = draw.source()
    over = draw.over(source)
    inner = Tree(("SELECT id AS n, ", over.any(1), " AS y FROM @0@", draw.where(over, 0.6)))
    start, end = draw.random.choice([
        ("SELECT n, y FROM (", ") q WHERE n % 2 = 0"),
        ("WITH q AS (", ") SELECT q.y, q.n + 1 AS m FROM q WHERE q.y IS NOT NULL"),
        ("WITH q AS (", "), r AS (SELECT n, y AS z FROM q) SELECT * FROM r"),
        ("SELECT y AS `true`, n AS `null`, y AS `window` FROM (", ")"),
    ])  # fmt: skip
    return Case("stateless", Tree((start, inner, end)), (source,))


def several_rows_of_one(draw: Draw) -> Case:
    """Draw a generator: explode and its relatives."""
    source = Source(draw.choice("plain", "wild"), draw.choice("", "x"))
    over = draw.over(source, "")
    array, pairs = over.value("array<int>", 1), over.value("map<string,int>", 1)
    texts, where = over.value("array<string>", 1), draw.where(over)
    tree = draw.random.choice([
        Tree(("SELECT id, explode(", array, ") AS y FROM @0@", where)),
        Tree(("SELECT explode_outer(", pairs, ") FROM @0@")),
        Tree(("SELECT id, posexplode(", texts, ") AS (p, y) FROM @0@")),
        Tree(("SELECT inline(sta) FROM @0@", where)),
        Tree(("SELECT stack(2, id, ", over.value("int", 1), ", 7, 8) AS (a, b) FROM @0@")),
        Tree(("SELECT id, y, length(y) AS n FROM @0@ LATERAL VIEW explode(", texts, ") t AS y",
              where)),
        Tree(("SELECT id, y FROM @0@ LATERAL VIEW OUTER explode(", array, ") t AS y")),
        leaf("SELECT id, json_tuple(js, 'a', 'b') AS (a, b) FROM @0@"),
        Tree(("SELECT id, q.col AS y FROM @0@, LATERAL explode(", array, ") q")),
    ])  # fmt: skip
    return Case("stateless", tree, (source,))


def with_stored_rows(draw: Draw) -> Case:
    """Draw a join with a stored table, or a subquery over it."""
    source = Source(draw.choice("plain", "date", "window", "wild"), "x")
    over = draw.over(source)
    item, where = draw.item(over, source), draw.where(over, 0.3)
    tree = draw.random.choice([
        Tree(("SELECT x.id, p.label, ", item, f" FROM @0@ JOIN {STORED} p ON x.k = p.k")),
        Tree((f"SELECT x.id, p.label FROM @0@ LEFT JOIN {STORED} p ON x.k = p.k AND ",
              over.condition(0))),
        Tree(("SELECT x.id, ", item, f" FROM @0@ LEFT SEMI JOIN {STORED} p ON x.k <=> p.k")),
        Tree(("SELECT x.id, ", item, f" FROM @0@ LEFT ANTI JOIN {STORED} p ON x.k = p.k")),
        Tree((f"SELECT k, label, id FROM @0@ JOIN {STORED} USING (k)", where)),
        Tree(("SELECT x.id, ", item, f" FROM @0@ WHERE x.k IN (SELECT k FROM {STORED}"
              " WHERE g < 2)")),
        Tree(("SELECT x.id, ", item, f" FROM @0@ WHERE EXISTS (SELECT 1 FROM {STORED} p"
              " WHERE p.k = x.k)")),
        Tree((f"SELECT x.id, (SELECT max(g) FROM {STORED}) AS top, ", item, " FROM @0@")),
        Tree((f"SELECT x.id, (SELECT count(*) FROM {STORED} p WHERE p.k = x.k) AS n FROM @0@",
              where)),
        Tree(("SELECT x.id, q.n, ", item, " FROM @0@ JOIN (SELECT k, count(*) AS n FROM"
              f" {STORED} GROUP BY k) q ON x.k = q.k")),
    ])  # fmt: skip
    return Case("stateless", tree, (source,))
