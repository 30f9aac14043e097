"""What cannot run as a continuous query yet, by the class of the plan that Spark made of it."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from headgate.errors import QueryRefused
from headgate.language.tokens import tokens_of

STATELESS = frozenset(
    {
        *("Project", "Filter", "Generate", "SubqueryAlias", "View", "PipeOperator", "ResolvedHint"),
        *("LogicalRDD", "LocalRelation", "OneRowRelation"),
        *("WithCTE", "CTERelationDef", "CTERelationRef"),
    }
)
"""Nodes that take each tuple by itself."""


@dataclass(frozen=True)
class Refusal:
    clause: str
    reason: str
    fix: str
    keyword: TokenType | None = None


_NO_WINDOW = "cannot run continuously yet: it needs tuples that have not arrived"
_ALONE = "keep to SELECT expressions FROM one stream WHERE condition"

NODES = {
    "Aggregate": Refusal(
        "GROUP BY or an aggregate",
        _NO_WINDOW,
        f"{_ALONE}, and aggregate the results",
        TokenType.GROUP_BY,
    ),
    "Sort": Refusal(
        "ORDER BY",
        "cannot run continuously: a stream has no last row, so the order is never known",
        "drop ORDER BY and order the results where you read them",
        TokenType.ORDER_BY,
    ),
    "GlobalLimit": Refusal(
        "LIMIT",
        "cannot run continuously: which rows come first depends on the moment it runs",
        "drop LIMIT, or select the rows you want by a condition",
        TokenType.LIMIT,
    ),
    "Distinct": Refusal(
        "DISTINCT",
        "cannot run continuously: it would have to remember every row for ever",
        "drop DISTINCT and make the results distinct where you read them",
        TokenType.DISTINCT,
    ),
    "Deduplicate": Refusal(
        "DISTINCT", _NO_WINDOW, "drop DISTINCT and make the results distinct where you read them"
    ),
    "Join": Refusal("JOIN", _NO_WINDOW, _ALONE, TokenType.JOIN),
    "LateralJoin": Refusal("LATERAL", _NO_WINDOW, _ALONE, TokenType.LATERAL),
    "AsOfJoin": Refusal("JOIN", _NO_WINDOW, _ALONE, TokenType.JOIN),
    "Union": Refusal(
        "UNION", "cannot run yet", "register one query for each part", TokenType.UNION
    ),
    "Intersect": Refusal("INTERSECT", _NO_WINDOW, _ALONE, TokenType.INTERSECT),
    "Except": Refusal("EXCEPT", _NO_WINDOW, _ALONE, TokenType.EXCEPT),
    "Window": Refusal("OVER", _NO_WINDOW, "drop the window function", TokenType.OVER),
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


def refuse_stateful(query: str, sql: str, nodes: Iterable[str], expressions: Iterable[str]) -> None:
    """Raises QueryRefused unless every node of the plan takes each tuple by itself.

    Args:
        nodes: classes of the analysed plan's nodes, as Spark names them.
        expressions: classes of everything inside them.
    """
    classes = set(expressions)
    if found := sorted(classes & SUBQUERIES):
        raise QueryRefused(
            query=query, clause=f"a subquery ({found[0]})", reason=_NO_WINDOW, fix=_ALONE
        )
    for node in nodes:
        if node in NODES:
            raise _refused(query, sql, NODES[node])
        if node not in STATELESS:
            raise QueryRefused(
                query=query, clause=node, reason="cannot run continuously", fix=_ALONE
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


def refuse_in_pairs(query: str, nodes: Iterable[str]) -> None:
    """Raises QueryRefused unless tuples that are joined as they come give final results."""
    fix = "give all windows the same SLIDE: the query is computed whole, whenever they close"
    for node in nodes:
        if node not in (*STATELESS, "Join", "LocalLimit"):
            refusal = NODES.get(node)
            clause = refusal.clause if refusal else node
            reason = "over tuples that are joined as they come has no final answer"
            raise QueryRefused(query=query, clause=clause, reason=reason, fix=fix)


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
