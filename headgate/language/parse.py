"""Takes a SELECT over one stream apart into a predicate and output expressions, by sqlglot."""

from collections.abc import Mapping, Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token

from headgate.errors import QueryRefused, UnknownName
from headgate.model.network import Path
from headgate.model.operator import Operator
from headgate.model.query import Query

DIALECT = "spark"


def tokens_of(sql: str) -> list[Token]:
    """Gives the words of a text; none where sqlglot cannot read it."""
    try:
        return sqlglot.tokenize(sql, read=DIALECT)
    except SqlglotError:
        return []


def stream_of(query: Query, streams: Sequence[str]) -> str:
    """Gives the stream a query reads.

    Raises:
        QueryRefused: it reads none, or more than one.
        UnknownName: there is no such stream.
    """
    try:
        tree = sqlglot.parse_one(query.sql, read=DIALECT)
    except SqlglotError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise QueryRefused(
            query=query.name, clause="the text", reason=f"cannot be read: {reason}", fix="correct it"
        ) from error
    defined = {cte.alias for cte in tree.find_all(exp.CTE)}
    tables = [table.name for table in tree.find_all(exp.Table) if table.name not in defined]
    if len(tables) != 1:
        raise QueryRefused(
            query=query.name,
            clause="FROM",
            reason=f"names {len(tables)} streams",
            fix="read exactly one stream",
        )
    known = {stream.lower(): stream for stream in streams}
    if tables[0].lower() not in known:
        raise UnknownName(
            kind="stream", name=tables[0], known=streams, where=f"query '{query.name}'"
        )
    return known[tables[0].lower()]


def path_of(query: Query, streams: Mapping[str, Sequence[str]]) -> Path:
    """Gives the path of a stateless query: select, then project; or the whole, as one operator.

    A query is taken apart only when it is one plain SELECT: what has a CTE, a subquery, a generator
    or a hint runs whole. The caller holds the parts against Spark's own reading of the text.

    Args:
        streams: column names by stream; a stream without known columns keeps `*` whole.

    >>> path = path_of(Query(name="q", sql="SELECT a + 1 AS b FROM s WHERE a > 2", query_class="H"), {"s": ["a"]})
    >>> path.predicate, path.outputs
    ('a > 2', ('a + 1',))
    """
    stream = stream_of(query, list(streams))
    tree = sqlglot.parse_one(query.sql, read=DIALECT)
    parts = _parts(tree, streams[stream]) if isinstance(tree, exp.Select) else None
    if parts is None:
        return whole(query, stream)
    predicate, outputs = parts
    operators = [Operator(kind="project", expressions=outputs)]
    if predicate is not None:
        operators.insert(0, Operator(kind="select", expressions=(predicate,)))
    return Path(query=query, stream=stream, operators=tuple(operators))


def whole(query: Query, stream: str) -> Path:
    """Gives the path of a query that runs as it is written."""
    return Path(
        query=query, stream=stream, operators=(Operator(kind="whole", expressions=(query.sql,)),)
    )


def _parts(tree: exp.Select, columns: Sequence[str]) -> tuple[str | None, tuple[str, ...]] | None:
    plain = {"expressions", "from_", "where", "kind", "hint", "operation_modifiers"}
    used = {key for key, value in tree.args.items() if value}
    if used - plain or tree.find(exp.Subquery, exp.Hint) or not used >= {"expressions", "from_"}:
        return None
    table = tree.find(exp.Table)
    if table is None or any(value for key, value in table.args.items() if key not in ("this", "alias")):
        return None
    own_names = {table.alias_or_name.lower(), table.name.lower()}
    outputs: list[str] = []
    for item in tree.expressions:
        if item.is_star:
            if item.args.get("except_") or item.find(exp.Star).args.get("except_") or not columns:
                return None
            outputs += [f"`{column}`" for column in columns]
        else:
            outputs.append(_sql(item.unalias(), own_names))
    where = tree.args.get("where")
    return (_sql(where.this, own_names) if where else None), tuple(outputs)


def _sql(expression: exp.Expression, own_names: set[str]) -> str:
    """Writes an expression without the stream's own name in front of its columns."""
    bare = expression.copy()
    for column in bare.find_all(exp.Column):
        if column.table.lower() in own_names:
            column.set("table", None)
    return bare.sql(dialect=DIALECT)
