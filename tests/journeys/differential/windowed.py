"""Queries over windows of one stream."""

from differential.cases import Case
from differential.columns import LAYOUTS, quoted
from differential.draw import SLIDES, SPANS, Draw
from differential.tree import Tree, leaf

KEYS = {
    *("k", "g", "b", "i8", "d", "f", "n", "s", "dt", "t", "x", "st", "window", "true", "null"),
    *("1a", "a.b", "ci", "ai", "rt", "t0", "sp", "mo", "nothing", "date", "count"),
}
UNORDERED = ("variant", "map", "interval", "void", "struct", "")
GROUPED = {
    "ci": "lower(ci COLLATE UTF8_BINARY)",
    "ai": "translate(lower(ai COLLATE UTF8_BINARY), 'é', 'e')",
    "rt": "rtrim(rt COLLATE UTF8_BINARY)",
}
"""Of collated keys, what does not depend on which tuple of a group came first."""


def _bounds(draw: Draw) -> str:
    return draw.choice("", "", ", @end@ AS until", ", @start@ AS since, @end@ AS until")


def tuples(draw: Draw) -> Case:
    """Draw a query over the tuples of a window, without groups."""
    source = draw.source(draw.window())
    over = draw.over(source)
    item, bounds, where = draw.item(over, source), _bounds(draw), draw.where(over, 0.6)
    kind = item.children[0].kind.partition("<")[0].split(" ")[0]
    ordered = kind not in UNORDERED
    tree = draw.random.choice([
        Tree(("SELECT id, ", item, f"{bounds} FROM @0@", where)),
        Tree(("SELECT * FROM @0@", where)),
        Tree(("SELECT DISTINCT k, ", item, " FROM @0@")) if ordered
        else leaf("SELECT DISTINCT k FROM @0@"),
        Tree(("SELECT id, ", item, f"{bounds} FROM @0@", where,
              " ORDER BY c0, id LIMIT 3" if ordered else " ORDER BY id DESC LIMIT 3")),
        Tree(("SELECT id, row_number() OVER (PARTITION BY k ORDER BY ts, id) AS p, ", item,
              " FROM @0@")),
        Tree(("SELECT id, sum(n) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
              " AS t FROM (SELECT id, length(k) AS n FROM @0@", where, ")")),
        leaf("SELECT id, k FROM @0@ QUALIFY rank() OVER (PARTITION BY k ORDER BY id) = 1"),
    ])  # fmt: skip
    return Case("windows", tree, (source,), floats=True)


def groups(draw: Draw) -> Case:
    """Draw aggregates of a window."""
    source = draw.source(draw.window())
    over = draw.over(source)
    aggregates, bounds, where = draw.aggregates(over), _bounds(draw), draw.where(over)
    keys = [column for column in LAYOUTS[source.stream].columns if column in KEYS]
    name = draw.choice(*keys)
    key = quoted(name)
    shown = GROUPED.get(name, key) if source.stream == "collated" else key
    having = draw.choice("", "", " HAVING count(*) > 1", " HAVING min(id) < 30")
    by_key = Tree((f"SELECT {shown} AS key, ", aggregates, f"{bounds} FROM @0@", where,
                   f" GROUP BY {key}{having}"))  # fmt: skip
    tree = draw.random.choice([
        Tree(("SELECT ", aggregates, f"{bounds} FROM @0@", where)),
        by_key,
        by_key,
        Tree(("SELECT id % 3 AS r, ", aggregates, " FROM @0@", where, f" GROUP BY id % 3{having}")),
        Tree(("SELECT k, ", aggregates, " FROM @0@", where, " GROUP BY k ORDER BY k LIMIT 2")),
        Tree(("SELECT k, id % 2 AS r, ", aggregates, " FROM @0@", where,
              " GROUP BY ROLLUP (k, id % 2)")),
        Tree((f"SELECT DISTINCT {shown} AS key, count(*) AS n FROM @0@", where,
              f" GROUP BY {key}")),
        Tree(("SELECT max(n) AS most FROM (SELECT k, count(*) AS n FROM @0@", where,
              " GROUP BY k) q")),
    ])  # fmt: skip
    return Case("windows", tree, (source,), floats=True)


def window_function(draw: Draw) -> Case:
    """Draw aggregates by Spark's `window(...)`."""
    source = draw.source()
    over = draw.over(source)
    slide = draw.choice(*SLIDES)
    size = draw.span(SPANS[slide], 6 * SPANS[slide])
    call = f"window(ts, '{size}')" if size == slide else f"window(ts, '{size}', '{slide}')"
    key, shown = draw.random.choice([("", ""), ("k, ", "k, "), ("id % 2, ", "id % 2 AS r, ")])
    bounds = draw.choice("", ", window.start AS since", ", window.end AS until", ", window AS w")
    having = draw.choice("", "", " HAVING count(*) > 1")
    tree = Tree(
        (
            f"SELECT {shown}", draw.aggregates(over), f"{bounds}@close@ FROM @0@",
            draw.where(over), f" GROUP BY {key}{call}{having}",
        )
    )  # fmt: skip
    return Case("window()", tree, (source,), floats=True)


def sessions(draw: Draw) -> Case:
    """Draw aggregates by `session_window(...)`."""
    source = draw.source()
    over = draw.over(source)
    gap = draw.choice("1 SECOND", "2500 MILLISECONDS", "5 SECONDS", "10 SECONDS")
    key = draw.choice("", "k, ")
    bounds = draw.choice("", ", session_window.start AS since", ", session_window.end AS until")
    having = draw.choice("", " HAVING count(*) > 1")
    tree = Tree(
        (
            f"SELECT {key}", draw.aggregates(over), f"{bounds}@close@ FROM @0@",
            draw.where(over), f" GROUP BY {key}session_window(ts, '{gap}'){having}",
        )
    )  # fmt: skip
    return Case("session_window()", tree, (source,), floats=True)
