"""Queries over windows of one stream."""

from differential.cases import Case, Source
from differential.collation_queries import PLAIN
from differential.columns import LAYOUTS, quoted
from differential.draw import SLIDES, SPANS, Draw
from differential.tree import Tree, leaf

KEYS = {
    *("k", "g", "b", "i8", "d", "f", "n", "s", "dt", "t", "x", "st", "window", "true", "null"),
    *("1a", "a.b", "ci", "ai", "rt", "t0", "sp", "mo", "nothing", "date", "count"),
}
UNORDERED = ("variant", "map", "interval", "void", "struct", "")


def _bounds(draw: Draw, source: Source) -> str:
    if "window" in (source.stream, source.alias):
        return ""
    return draw.choice("", "", ", @end@ AS until", ", @start@ AS since, @end@ AS until")


def tuples(draw: Draw) -> Case:
    """Draw a query over the tuples of a window, without groups."""
    source = draw.source(draw.window())
    over = draw.over(source)
    item, bounds, where = draw.item(over, source), _bounds(draw, source), draw.where(over, 0.6)
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
    aggregates, bounds, where = draw.aggregates(over), _bounds(draw, source), draw.where(over)
    keys = [column for column in LAYOUTS[source.stream].columns if column in KEYS]
    name = draw.choice(*keys)
    key = quoted(name)
    item = PLAIN.get(name, key).format(key) if source.stream == "collated" else key
    having = draw.choice("", "", " HAVING count(*) > 1", " HAVING min(id) < 30")
    by_key = Tree((f"SELECT {item} AS key, ", aggregates, f"{bounds} FROM @0@", where,
                   f" GROUP BY {key}{having}"))  # fmt: skip
    tree = draw.random.choice([
        Tree(("SELECT ", aggregates, f"{bounds} FROM @0@", where)),
        by_key,
        by_key,
        Tree(("SELECT id % 3 AS r, ", aggregates, " FROM @0@", where, f" GROUP BY id % 3{having}")),
        Tree(("SELECT k, ", aggregates, " FROM @0@", where, " GROUP BY k ORDER BY k LIMIT 2")),
        Tree(("SELECT k, id % 2 AS r, ", aggregates, " FROM @0@", where,
              " GROUP BY ROLLUP (k, id % 2)")),
        Tree((f"SELECT DISTINCT {item} AS key, count(*) AS n FROM @0@", where,
              f" GROUP BY {key}")),
        Tree(("SELECT max(n) AS most FROM (SELECT k, count(*) AS n FROM @0@", where,
              " GROUP BY k) q")),
    ])  # fmt: skip
    return Case("windows", tree, (source,), floats=True)


def window_function(draw: Draw) -> Case:
    """Draw aggregates by Spark's `window(...)`."""
    source = draw.timed()
    over = draw.over(source)
    slide = draw.choice(*SLIDES)
    size = draw.span(SPANS[slide], 6 * SPANS[slide])
    call = f"window(ts, '{size}')" if size == slide else f"window(ts, '{size}', '{slide}')"
    key, item = draw.random.choice([("", ""), ("k, ", "k, "), ("id % 2, ", "id % 2 AS r, ")])
    bounds = draw.choice("", ", window.start AS since", ", window.end AS until", ", window AS w")
    having = draw.choice("", "", " HAVING count(*) > 1")
    tree = Tree(
        (
            f"SELECT {item}", draw.aggregates(over), f"{bounds}@close@ FROM @0@",
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


def piped(draw: Draw) -> Case:
    """Draw a window in pipe syntax, or with FROM first."""
    source = draw.source(draw.window())
    over = draw.over(source)
    item, where, aggregates = draw.item(over, source), over.condition(), draw.aggregates(over)
    tree = draw.random.choice([
        Tree(("FROM @0@ |> WHERE ", where, " |> AGGREGATE ", aggregates, " GROUP BY k")),
        Tree(("FROM @0@ |> AGGREGATE ", aggregates)),
        Tree(("FROM @0@ |> SELECT id, k, ", item, " |> ORDER BY id DESC |> LIMIT 2")),
        leaf("FROM @0@ |> AGGREGATE count(*) AS n GROUP BY k |> WHERE n > 1 |> SELECT n"),
        Tree(("FROM @0@ |> WHERE ", where, " |> SELECT DISTINCT k")),
        Tree(("FROM @0@ SELECT k, ", aggregates, " WHERE ", where, " GROUP BY k")),
        Tree(("FROM @0@ SELECT id, ", item, " ORDER BY id LIMIT 3")),
    ])  # fmt: skip
    return Case("windows", tree, (source,), floats=True)


def ranked(draw: Draw) -> Case:
    """Draw a query with ranking functions, QUALIFY or ORDER BY inside a window."""
    source = draw.timed(draw.window())
    over = draw.over(source)
    where, bounds = draw.where(over, 0.4), _bounds(draw, source)
    rank = draw.choice("rank()", "dense_rank()", "row_number()", "ntile(2)", "percent_rank()")
    tree = draw.random.choice([
        Tree((f"SELECT id, k{bounds} FROM @0@", where,
              f" QUALIFY {rank} OVER (PARTITION BY k ORDER BY id DESC) <= 2")),
        Tree((f"SELECT * FROM (SELECT k, count(*) AS n{bounds} FROM @0@", where,
              f" GROUP BY k) QUALIFY {rank} OVER (ORDER BY n DESC, k) <= 1")),
        Tree(("SELECT id, lag(id, 1) OVER (PARTITION BY k ORDER BY id) AS p, lead(k) OVER (ORDER BY"
              " id) AS q FROM @0@", where)),
        Tree((f"SELECT id, k, {rank} OVER (ORDER BY id) AS r{bounds} FROM @0@", where,
              " ORDER BY r DESC, id LIMIT 4")),
        Tree(("SELECT id, k, @end@ AS until FROM @0@", where,
              " ORDER BY @end@, id DESC LIMIT 2")),
        Tree(("SELECT * FROM (SELECT k, max(id) AS top FROM @0@", where,
              f" GROUP BY k) QUALIFY {rank} OVER (ORDER BY top) = 1")),
    ])  # fmt: skip
    return Case("windows", tree, (source,), floats=True)


def _called(draw: Draw, column: str = "ts") -> str:
    slide = draw.choice(*SLIDES)
    size = draw.span(SPANS[slide], 6 * SPANS[slide])
    return f"window({column}, '{size}'" + ("" if size == slide else f", '{slide}'") + ")"


def function_over_subquery(draw: Draw) -> Case:
    """Draw `window(...)` over a subquery or a CTE."""
    source = draw.timed()
    over = draw.over(source)
    where = draw.where(over, 0.6)
    having = draw.choice("", " HAVING count(*) > 1")
    inner = Tree(("SELECT ts, k, id, ", over.any(1), " AS y FROM @0@", where))
    items = "count(*) AS n, count(y) AS m, max(id) AS top"
    call = _called(draw)
    bounds = draw.choice("", ", window.start AS since", ", window.end AS until")
    tree = draw.random.choice([
        Tree((f"SELECT {items}{bounds}@close@ FROM (", inner, f") q GROUP BY {call}{having}")),
        Tree((f"SELECT k, {items}{bounds}@close@ FROM (", inner, f") GROUP BY k, {call}{having}")),
        Tree(("WITH q AS (", inner, f") SELECT k, {items}{bounds}@close@ FROM q GROUP BY {call}, k"
              f"{having}")),
        Tree(("WITH q AS (", inner, "), r AS (SELECT * FROM q WHERE id % 3 > 0)"
              f" SELECT {items}@close@ FROM r GROUP BY {_called(draw, 'r.ts')}")),
    ])  # fmt: skip
    return Case("window()", tree, (source,), floats=True)


def ordered_function(draw: Draw) -> Case:
    """Draw `window(...)` with ORDER BY and LIMIT, or with QUALIFY: both within each window."""
    source = draw.timed()
    where, call = draw.where(draw.over(source)), _called(draw)
    columns = "k, count(*) AS n, max(id) AS top, window.end AS until"
    if draw.chance(0.5):
        rank = draw.choice("row_number()", "rank()", "dense_rank()")
        best = f"{rank} OVER (PARTITION BY until ORDER BY n DESC, k) <= 1"
        grouped = f" GROUP BY k, {call}) QUALIFY {best}"
        tree = Tree((f"SELECT * FROM (SELECT {columns}@close@ FROM @0@", where, grouped))
        return Case("window()", tree, (source,))
    order = draw.choice("window.end, n DESC, k", "n, k NULLS LAST", "window.end DESC, top DESC")
    tree = Tree((f"SELECT {columns}@close@ FROM @0@", where, f" GROUP BY k, {call}@order@"))
    return Case("window()", tree, (source,), order=order, limit=draw.random.randint(1, 3))


def sessions_over_subquery(draw: Draw) -> Case:
    """Draw `session_window(...)` over a subquery or a CTE."""
    source = draw.source()
    over = draw.over(source)
    inner = Tree(("SELECT ts, k, id, ", over.any(1), " AS y FROM @0@", draw.where(over, 0.6)))
    gap = draw.choice("1 SECOND", "2500 MILLISECONDS", "5 SECONDS")
    items = "k, count(y) AS m, max(id) AS top, session_window.end AS until@close@"
    grouped = f"GROUP BY k, session_window(ts, '{gap}')"
    tree = draw.random.choice([
        Tree((f"SELECT {items} FROM (", inner, f") q {grouped}")),
        Tree(("WITH q AS (", inner, f") SELECT {items} FROM q {grouped}")),
    ])  # fmt: skip
    return Case("session_window()", tree, (source,), floats=True)


def calls_in_window(draw: Draw) -> Case:
    """Draw a query that calls Spark's `window(...)` or `session_window(...)` inside a window."""
    source = draw.source(draw.sliding("1 MINUTE", draw.choice("1 MINUTE", "90 SECONDS")))
    where = draw.where(draw.over(source), 0.4)
    call = draw.choice("window(ts, '10 SECONDS')", "window(ts, '20 SECONDS', '10 SECONDS')",
                       "session_window(ts, '5 SECONDS')")  # fmt: skip
    tree = draw.random.choice([
        Tree((f"SELECT {call}.end AS e, count(*) AS n, max(id) AS top FROM @0@", where,
              f" GROUP BY {call}")),
        Tree(("SELECT k, count(*) AS n FROM @0@", where, f" GROUP BY k, {call}")),
    ])  # fmt: skip
    return Case("windows", tree, (source,))
