"""What cannot run as a continuous query yet, by the class of the plan that Spark made of it."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from headgate.errors import QueryRefused
from headgate.language.tokens import tokens_of
from headgate.model.query import Query
from headgate.model.window import HIDDEN

STATELESS = frozenset(
    {
        *("Project", "Filter", "Generate", "SubqueryAlias", "View", "PipeOperator", "ResolvedHint"),
        *("LogicalRDD", "LocalRelation", "OneRowRelation"),
        *("WithCTE", "CTERelationDef", "CTERelationRef"),
    }
)
"""Nodes that take each tuple by itself."""


WITH_TABLES = frozenset(
    {"Join", "LogicalRelation", "DataSourceV2Relation", "HiveTableRelation", "Range"}
)
"""Nodes that join a tuple with stored rows."""


OF_FRAMES = frozenset({"MapInPandas", "MapInArrow"})
"""Nodes of functions over frames, which have to take each tuple by itself."""


@dataclass(frozen=True)
class Refusal:
    clause: str
    reason: str
    fix: str
    keyword: TokenType | None = None


_NO_WINDOW = "cannot run continuously without a window: it needs tuples that have not arrived"
_WINDOW = "write a window behind the stream, as in FROM s [RANGE 60 SECONDS SLIDE 10 SECONDS]"
_BOTH = "write a window behind each stream, as in FROM a [RANGE 9 SECONDS] JOIN b [RANGE 5 SECONDS]"

WHOLE = "give all windows the same SLIDE: the query is computed whole, whenever they close"

NODES = {
    "Aggregate": Refusal("GROUP BY or an aggregate", _NO_WINDOW, _WINDOW, TokenType.GROUP_BY),
    "Sort": Refusal(
        "ORDER BY",
        "cannot run continuously: a stream has no last row, so the order is never known",
        f"drop it and order the results where you read them, or {_WINDOW}",
        TokenType.ORDER_BY,
    ),
    "GlobalLimit": Refusal(
        "LIMIT",
        "cannot run continuously: which rows come first depends on the moment it runs",
        f"drop it and select the rows you want by a condition, or {_WINDOW}",
        TokenType.LIMIT,
    ),
    "Distinct": Refusal(
        "DISTINCT",
        "cannot run continuously: it would have to remember every row for ever",
        f"drop it and make the results distinct where you read them, or {_WINDOW}",
        TokenType.DISTINCT,
    ),
    "Deduplicate": Refusal("DISTINCT", _NO_WINDOW, _WINDOW),
    "Join": Refusal("JOIN", _NO_WINDOW, _BOTH, TokenType.JOIN),
    "LateralJoin": Refusal("LATERAL", _NO_WINDOW, _WINDOW, TokenType.LATERAL),
    "AsOfJoin": Refusal("JOIN", _NO_WINDOW, _BOTH, TokenType.JOIN),
    "Union": Refusal(
        "UNION",
        "cannot be inside a query",
        "write SELECT ... UNION ALL SELECT ... outside all"
        " others, or register one query for each part",
        TokenType.UNION,
    ),
    "Intersect": Refusal("INTERSECT", _NO_WINDOW, _WINDOW, TokenType.INTERSECT),
    "Except": Refusal("EXCEPT", _NO_WINDOW, _WINDOW, TokenType.EXCEPT),
    "Window": Refusal("OVER", _NO_WINDOW, _WINDOW, TokenType.OVER),
    "Sample": Refusal(
        "TABLESAMPLE",
        "has no fixed answer: the same tuple would be in one run's result and not in the next's",
        "sample by a hash of the tuple, as in  WHERE pmod(hash(location), 10) = 0",
        TokenType.TABLE_SAMPLE,
    ),
}

SUBQUERIES = frozenset({"ScalarSubquery", "ListQuery", "Exists", "InSubquery", "LateralSubquery"})
CLOCKS = frozenset(
    {
        *("CurrentTimestamp", "CurrentDate", "CurrentTime", "Now", "LocalTimestamp"),
        *("CurrentBatchTimestamp", "CurrentTimestampLike"),
    }
)


def refuse_stateful(
    query: str,
    sql: str,
    nodes: Iterable[str],
    expressions: Iterable[str],
    allowed: frozenset[str] = frozenset(),
) -> None:
    """Raises QueryRefused unless every node of the plan takes each tuple by itself.

    Args:
        nodes: classes of the analysed plan's nodes, as Spark names them.
        expressions: classes of everything inside them.
        allowed: nodes that are known to do so in this query.
    """
    classes = set(expressions)
    if found := sorted(classes & SUBQUERIES):
        raise QueryRefused(
            query=query, clause=f"a subquery ({found[0]})", reason=_NO_WINDOW,
            fix=f"join stored rows, as in LEFT SEMI JOIN t ON s.k = t.k, or {_WINDOW}",
        )  # fmt: skip
    for node in nodes:
        if node in allowed:
            continue
        if node in NODES:
            raise _refused(query, sql, NODES[node])
        if node not in STATELESS:
            raise QueryRefused(
                query=query, clause=node, reason="cannot run continuously", fix=_WINDOW
            )
    refuse_clocks(query, classes)


def refuse_clocks(query: str, expressions: Iterable[str]) -> None:
    """Refuses an expression that depends on when it is computed."""
    if found := sorted(CLOCKS.intersection(expressions)):
        raise QueryRefused(
            query=query,
            clause=found[0],
            reason="has no fixed answer: it would depend on when the tuple is processed",
            fix="use the tuple's own time column",
        )


def refuse_hidden(query: Query) -> None:
    """Refuses names that begin as those of columns that no user sees: they would not come out."""
    for token in tokens_of(query.sql):
        if token.token_type != TokenType.STRING and token.text.lower().startswith(HIDDEN):
            raise QueryRefused(
                query=query.name, clause=token.text, fix="give it another name", line=token.line,
                reason=f"begins with {HIDDEN}, as columns do that no user sees",
            )  # fmt: skip


def refuse_in_pairs(query: str, nodes: Iterable[str], keeps_stored: bool = False) -> None:
    """Raises QueryRefused unless tuples that are joined as they come give final results.

    Args:
        keeps_stored: whether stored rows come out because there is no tuple for them.
    """
    if keeps_stored:
        reason = "keeps rows of a table that no tuple is joined with, which is never known"
        raise QueryRefused(query=query, clause="JOIN", reason=reason, fix=WHOLE)
    for node in nodes:
        if node not in (*STATELESS, *WITH_TABLES, "LocalLimit"):
            refusal = NODES.get(node)
            clause = refusal.clause if refusal else node
            reason = "over tuples that are joined as they come has no final answer"
            raise QueryRefused(query=query, clause=clause, reason=reason, fix=WHOLE)


def refuse_in_sessions(query: str, nodes: Iterable[str]) -> None:
    """Raises QueryRefused unless tuples are grouped by session, and that is all."""
    found = list(nodes)
    others = [node for node in found if node not in (*STATELESS, "Aggregate")]
    if others or found.count("Aggregate") != 1:
        refusal = NODES.get(others[0] if others else "Aggregate")
        raise QueryRefused(
            query=query, clause=refusal.clause if refusal else others[0],
            reason="cannot be used on sessions: these never are all there",
            fix="drop it, or write a window behind the stream, as in FROM s [RANGE 1 HOUR]",
        )  # fmt: skip


def refuse_luck(query: str, found: str) -> None:
    """Refuses an expression that gives another answer each time."""
    raise QueryRefused(
        query=query,
        clause=found,
        reason="has no fixed answer: after a restart the same tuple could give another result",
        fix="compute it from the tuple's columns, as in hash(location)",
    )


def _refused(query: str, sql: str, refusal: Refusal) -> QueryRefused:
    token = _first(tokens_of(sql), refusal.keyword)
    return QueryRefused(
        query=query,
        clause=refusal.clause,
        reason=refusal.reason,
        fix=refusal.fix,
        line=token.line if token else None,
    )


def _first(tokens: list[Token], kind: TokenType | None) -> Token | None:
    return next((token for token in tokens if token.token_type == kind), None)
