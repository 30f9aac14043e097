"""Queries that need one tuple at a time, alone or with a stored table."""

from differential.cases import Case, Source
from differential.columns import quoted, written
from differential.draw import Draw
from differential.tree import Tree, leaf, listed
from differential.world import STORED

NAMES = (
    *("true", "null", "false", "window", "select", "from", "1", "1a", "end", "date", "count"),
    *("a.b", "a`b", "current_date", "interval", "timestamp", "*", "ß", "struct", "0x1", "_"),
)
"""Names of output columns that mean something else without backticks."""


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
    """Draw a query with a generator function: explode and its relatives."""
    source = Source(draw.choice("plain", "wild"), draw.choice("", "x"))
    over = draw.over(source, "")
    array, pairs = over.value("array<int>", 1), over.value("map<string,int>", 1)
    texts, where = over.value("array<string>", 1), draw.where(over)
    tree = draw.random.choice([
        Tree(("SELECT id, explode(", array, ") AS y FROM @0@", where)),
        Tree(("SELECT explode_outer(", pairs, ") FROM @0@")),
        Tree(("SELECT id, posexplode(", texts, ") AS (p, y) FROM @0@")),
        Tree(("SELECT inline(sta) FROM @0@", where)),
        Tree(("SELECT stack(2, g, ", over.value("int", 1), ", 7, 8) AS (a, b) FROM @0@")),
        Tree(("SELECT id, y, length(y) AS n FROM @0@ LATERAL VIEW explode(", texts, ") t AS y",
              where)),
        Tree(("SELECT id, y FROM @0@ LATERAL VIEW OUTER explode(", array, ") t AS y")),
        leaf("SELECT id, json_tuple(js, 'a', 'b') AS (a, b) FROM @0@"),
        Tree(("SELECT id, q.col AS y FROM @0@, LATERAL explode(", array, ") q")),
        Tree(("SELECT id, y, z FROM @0@, LATERAL (SELECT ", over.value("int", 1), " AS y, id + 1"
              " AS z) WHERE z > 3")),
        Tree((f"SELECT id, label FROM @0@ LEFT JOIN LATERAL (SELECT label FROM {STORED} p WHERE"
              f" p.k = {source.alias or source.stream}.k AND ", over.condition(0), ") ON true")),
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


def piped(draw: Draw) -> Case:
    """Draw a query in pipe syntax, or with FROM first."""
    source = draw.source()
    over = draw.over(source)
    item, condition = draw.item(over, source), over.condition()
    name = written(source.alias or source.stream)
    tree = draw.random.choice([
        Tree(("FROM @0@ |> WHERE ", condition, " |> SELECT id, ", item)),
        Tree(("FROM @0@ |> EXTEND ", item, " |> SELECT id, c0, k")),
        Tree(("FROM @0@ |> SELECT id, k, ", item, " |> WHERE id % 2 = 0 |> DROP k")),
        leaf("FROM @0@ |> AS q |> WHERE q.id > 3 |> SELECT q.id, q.k AS `window`"),
        leaf("FROM @0@ |> SET k = concat(k, '!') |> SELECT k, id |> SELECT k"),
        Tree(("SELECT id, k, ", item, " FROM @0@ |> WHERE k IS NOT NULL")),
        leaf(f"FROM @0@ |> JOIN {STORED} p ON {name}.k = p.k |> SELECT id, label"),
        Tree(("FROM @0@ SELECT id, ", item, " WHERE ", condition)),
        Tree(("FROM (SELECT id, ", item, " FROM @0@) q SELECT q.*, q.id AS again")),
    ])  # fmt: skip
    return Case("stateless", tree, (source,))


def renamed(draw: Draw) -> Case:
    """Draw output columns with the names of literals, keywords and numbers."""
    source = draw.source()
    over = draw.over(source)
    one, two, three = (quoted(name) for name in draw.random.sample(NAMES, 3))
    first, second = over.any(1), over.any(1)
    inner = Tree(("SELECT id, ", first, f" AS {one}, ", second, f" AS {two} FROM @0@"))
    tree = draw.random.choice([
        Tree((inner, draw.where(over, 0.4))),
        Tree((f"SELECT {two}, {one} AS {three}, id AS {two[:-1]}2` FROM (", inner, ") q")),
        Tree((f"SELECT {one} FROM (", inner, f") AS {three} WHERE {three}.{two} IS NOT NULL")),
        Tree((f"WITH {three} AS (", inner, f") SELECT {three}.* FROM {three} WHERE {one} IS NULL")),
        Tree(("SELECT named_struct('a', ", first, f", 'b', id) AS {one}, id + 1 AS {two} FROM"
              " @0@")),
    ])  # fmt: skip
    return Case("stateless", tree, (source,))
