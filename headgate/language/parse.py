"""Splitting a SELECT over one stream into a predicate and output expressions, by sqlglot."""

from collections.abc import Iterator, Mapping, Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from headgate.errors import QueryRefused, UnknownName
from headgate.language.tokens import DIALECT, tokens_of
from headgate.model.network.network import Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query

GENERATORS = (exp.Explode, exp.Posexplode, exp.Inline, exp.Stack, exp.Aliases)
GENERATOR_NAMES = {"inline_outer", "json_tuple", "explode_outer", "posexplode_outer", "stack"}
KEYWORDS = (TokenType.SELECT, TokenType.FROM, TokenType.WHERE)


def stream_of(query: Query, streams: Sequence[str]) -> str:
    """Return the stream that a query reads.

    Raises:
        QueryRefused: it reads none, or more than one.
        UnknownName: there is no such stream.
    """
    try:
        trees = [tree for tree in sqlglot.parse(query.sql, read=DIALECT) if tree is not None]
    except SqlglotError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise QueryRefused(
            query=query.name,
            clause="the text",
            reason=f"cannot be read: {reason}",
            fix="correct it",
        ) from error
    if len(trees) != 1:
        raise QueryRefused(
            query=query.name,
            clause="the text",
            reason=f"holds {len(trees)} statements",
            fix="write one statement; register the others as queries of their own",
        )
    tree = trees[0]
    defined = {cte.alias for cte in tree.find_all(exp.CTE)}
    tables = [
        table.name
        for table in tree.find_all(exp.Table)
        if table.name not in defined and not table.find_ancestor(exp.Hint)
    ]
    if len(tables) != 1:
        raise QueryRefused(
            query=query.name,
            clause="FROM",
            reason=f"names {len(tables)} streams",
            fix="read exactly one stream",
        )
    spellings = {stream.lower(): stream for stream in streams}
    if tables[0].lower() not in spellings:
        raise UnknownName(
            kind="stream", name=tables[0], known=streams, where=f"query '{query.name}'"
        )
    return spellings[tables[0].lower()]


def path_of(query: Query, streams: Mapping[str, Sequence[str]]) -> Path:
    """Return the path of a stateless query: select, then project; or the whole, as one operator.

    A query is split only if it is one plain SELECT. A query with a CTE, a subquery, a generator or
    a hint runs whole. The caller compares the parts with Spark's own reading of the text.

    Args:
        streams: column names by stream; if they are unknown, `*` stays `*`.

    >>> query = Query(name="q", sql="SELECT a + 1 AS b FROM s WHERE a > 2", query_class="H")
    >>> path = path_of(query, {"s": ["a"]})
    >>> path.predicate, path.outputs
    ('a > 2', ('a + 1',))
    """
    stream = stream_of(query, list(streams))
    tree = sqlglot.parse_one(query.sql, read=DIALECT)
    parts = _parts(query, tree, streams[stream]) if isinstance(tree, exp.Select) else None
    if parts is None:
        return whole(query, stream)
    return line_of(query, stream, *parts)


def line_of(query: Query, stream: str, predicate: str | None, outputs: tuple[str, ...]) -> Path:
    """Return the path of a predicate, if any, and of the output expressions."""
    operators = [Operator(kind="project", expressions=outputs)]
    if predicate is not None:
        operators.insert(0, Operator(kind="select", expressions=(predicate,)))
    return Path(query=query, stream=stream, operators=tuple(operators))


def whole(query: Query, stream: str) -> Path:
    """Return the path of a query that runs as it is written, as one operator."""
    return Path(
        query=query, stream=stream, operators=(Operator(kind="whole", expressions=(query.sql,)),)
    )


def _parts(
    query: Query, tree: exp.Select, columns: Sequence[str]
) -> tuple[str | None, tuple[str, ...]] | None:
    """Split a plain text at SELECT, FROM, WHERE and the commas between outputs; else return None.

    The parts are the user's own words, not sqlglot's rewriting of them: sqlglot turns `24D` into a
    cast, for example, and Spark must see what was written.
    """
    used = {key for key, value in tree.args.items() if value}
    if used - {"expressions", "from_", "where"} or tree.find(exp.Subquery, exp.Hint):
        return None
    if tree.find(*GENERATORS) or any(
        function.name.lower() in GENERATOR_NAMES for function in tree.find_all(exp.Anonymous)
    ):
        return None
    table = tree.find(exp.Table)
    if table is None or {key for key, value in table.args.items() if value} - {"this", "alias"}:
        return None
    if table.args.get("alias") and table.args["alias"].args.get("columns"):
        return None
    own_names = {table.alias_or_name.lower(), table.name.lower()}
    if any(
        name.name.lower() in own_names
        for function in tree.find_all(exp.Lambda)
        for name in function.expressions
    ):
        return None
    if _has_inner_star(tree) or _uses_own_alias(tree, columns):
        return None
    clauses = _clauses(tokens_of(query.sql))
    items = _split(clauses[TokenType.SELECT])
    if len(items) != len(tree.expressions):
        return None
    outputs: list[str] = []
    for item, words in zip(tree.expressions, items, strict=True):
        if item.is_star:
            if any(value for star in item.find_all(exp.Star) for value in star.args.values()):
                return None
            outputs += ["`" + column.replace("`", "``") + "`" for column in columns] or ["*"]
        else:
            outputs.append(_words(query.sql, _unaliased(item, words), own_names))
    where = clauses.get(TokenType.WHERE)
    return (_words(query.sql, where, own_names) if where else None), tuple(outputs)


def _has_inner_star(tree: exp.Select) -> bool:
    """Return True if a star is inside an expression, as in struct(*).

    Such a star would include the log's own column.
    """
    items = {id(item) for item in tree.expressions}
    return any(
        id(star) not in items and id(star.parent) not in items for star in tree.find_all(exp.Star)
    )


def _uses_own_alias(tree: exp.Select, columns: Sequence[str]) -> bool:
    """Return True if an output uses the alias of another, as in a + 1 AS b, b * 2 AS c."""
    aliases = {item.alias.lower() for item in tree.expressions if isinstance(item, exp.Alias)}
    aliases -= {column.lower() for column in columns}
    return any(
        name.name.lower() in aliases
        for item in tree.expressions
        for name in item.find_all(exp.Column)
    )


def _clauses(tokens: list[Token]) -> dict[TokenType, list[Token]]:
    """Return the tokens of each clause, without its keyword."""
    clauses: dict[TokenType, list[Token]] = {}
    current: list[Token] = []
    before = None
    for token, depth in _depths(tokens):
        compares = before == TokenType.DISTINCT  # a IS DISTINCT FROM b
        before = token.token_type
        if depth == 0 and not compares and before in KEYWORDS:
            current = clauses.setdefault(token.token_type, [])
        elif before == TokenType.ALL and current is clauses.get(TokenType.SELECT) and not current:
            continue
        elif token.token_type != TokenType.SEMICOLON:
            current.append(token)
    return clauses


def _split(tokens: list[Token]) -> list[list[Token]]:
    items: list[list[Token]] = [[]]
    for token, depth in _depths(tokens):
        if depth == 0 and token.token_type == TokenType.COMMA:
            items.append([])
        else:
            items[-1].append(token)
    return items


def _depths(tokens: list[Token]) -> Iterator[tuple[Token, int]]:
    opening = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
    closing = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
    depth = 0
    for token in tokens:
        depth -= token.token_type in closing
        yield token, depth
        depth += token.token_type in opening


def _unaliased(item: exp.Expression, words: list[Token]) -> list[Token]:
    if not isinstance(item, exp.Alias):
        return words
    words = words[:-1]
    return words[:-1] if words[-1].token_type == TokenType.ALIAS else words


def _words(sql: str, tokens: list[Token], own_names: set[str]) -> str:
    """Return the text of the tokens, without the stream's own name before columns."""
    text, place = "", tokens[0].start
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        qualifies = after is not None and after.token_type == TokenType.DOT
        begins = before is None or before.token_type != TokenType.DOT
        if qualifies and begins and token.text.lower() in own_names and after is not None:
            text, place = text + sql[place : token.start], after.end + 1
    return text + sql[place : tokens[-1].end + 1]
