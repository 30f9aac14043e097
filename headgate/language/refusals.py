"""Refusals: what cannot run as a continuous query, by the operators of Spark's plan."""

from collections.abc import Iterable
from dataclasses import dataclass

from headgate.errors import QueryRefused
from headgate.extensions import sink_entry
from headgate.extensions.built_in_sinks import SINKS
from headgate.model.display.plan_summary import Node, Reading
from headgate.model.query import Query

STATELESS = frozenset(
    {
        *("Project", "Filter", "Generate", "SubqueryAlias", "View", "PipeOperator", "ResolvedHint"),
        *("LogicalRDD", "LocalRelation", "OneRowRelation", "LateralJoin"),
    }
)
"""Operators that process each tuple by itself; a LATERAL subquery is checked separately."""

WITH_TABLES = frozenset(
    {"Join", "LogicalRelation", "DataSourceV2Relation", "HiveTableRelation", "Range"}
)
"""Operators that join a tuple with stored rows."""

OF_FRAMES = frozenset({"MapInPandas", "MapInArrow"})
"""Operators of functions over frames, which must process each tuple by itself."""

KEEPS_LEFT = ("Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti", "ExistenceJoin")
KEEPS_RIGHT = ("Inner", "Cross", "RightOuter")
"""Joins that keep no row of the other side without a matching row of this side."""

CLOCKS = frozenset(
    {
        *("CurrentTimestamp", "CurrentDate", "CurrentTime", "Now", "LocalTimestamp"),
        *("CurrentBatchTimestamp", "CurrentTimestampLike"),
        *("'now'", "'today'", "'tomorrow'", "'yesterday'"),
    }
)
RANDOM = frozenset(
    {
        *("Rand", "Randn", "RandStr", "Uniform", "Uuid", "Shuffle", "AesEncrypt"),
        *("MonotonicallyIncreasingID", "SparkPartitionID"),
        *("InputFileName", "InputFileBlockStart", "InputFileBlockLength"),
    }
)
"""Expressions without a fixed answer; Spark considers some of them deterministic."""


@dataclass(frozen=True)
class Refusal:
    clause: str
    reason: str
    fix: str


NO_WINDOW = "cannot run continuously without a window: it needs tuples that have not arrived"
_WINDOW = "write a window after the stream, as in FROM s [RANGE 60 SECONDS SLIDE 10 SECONDS]"
BOTH = "write a window after each stream, as in FROM a [RANGE 9 SECONDS] JOIN b [RANGE 5 SECONDS]"

NODES = {
    "Aggregate": Refusal("GROUP BY or an aggregate", NO_WINDOW, _WINDOW),
    "Sort": Refusal(
        "ORDER BY",
        "cannot run continuously: a stream has no last row, so the order is never known",
        f"drop it and order the results where you read them, or {_WINDOW}",
    ),
    "GlobalLimit": Refusal(
        "LIMIT",
        "cannot run continuously: which rows come first depends on the moment it runs",
        f"drop it and select the rows you want by a condition, or {_WINDOW}",
    ),
    "Distinct": Refusal(
        "DISTINCT",
        "cannot run continuously: it would have to remember every row forever",
        f"drop it and make the results distinct where you read them, or {_WINDOW}",
    ),
    "Deduplicate": Refusal("DISTINCT", NO_WINDOW, _WINDOW),
    "Join": Refusal("JOIN", NO_WINDOW, BOTH),
    "AsOfJoin": Refusal("JOIN", NO_WINDOW, BOTH),
    "Union": Refusal(
        "UNION",
        "cannot be nested inside a query",
        "write SELECT ... UNION ALL SELECT ... at the top level, or register one query per part",
    ),
    "Intersect": Refusal("INTERSECT", NO_WINDOW, _WINDOW),
    "Except": Refusal("EXCEPT", NO_WINDOW, _WINDOW),
    "Window": Refusal("OVER", NO_WINDOW, _WINDOW),
    "Sample": Refusal(
        "TABLESAMPLE",
        "has no fixed answer: the same tuple would be in one run's result and not in the next's",
        "sample by a hash of the tuple, as in  WHERE pmod(hash(location), 10) = 0",
    ),
}
NODES["LocalLimit"] = NODES["GlobalLimit"]
_NOT_FIXED = ("Sample", "GlobalLimit", "LocalLimit")
"""Operators refused over stored rows, too: the rows that they leave may differ from run to run."""


def keeps_stored(reading: Reading) -> bool:
    """Return True if a join puts out stored rows because no tuple matches them."""
    return any(
        (left and not right and node.detail not in KEEPS_LEFT)
        or (right and not left and node.detail not in KEEPS_RIGHT)
        for node, left, right in _joins(reading)
    )


def stream_joins(reading: Reading) -> list[Node]:
    """Return the joins of streams with each other."""
    return [node for node, left, right in _joins(reading) if left and right]


def _joins(reading: Reading) -> list[tuple[Node, frozenset[str], frozenset[str]]]:
    return [
        (node, node.sides[0], node.sides[1])
        for node in reading.nodes
        if node.kind == "Join" and len(node.sides) == 2
    ]


def refuse_stateful(query: Query, reading: Reading, allowed: frozenset[str] = frozenset()) -> None:
    """Raise QueryRefused unless every operator processes each tuple by itself.

    Args:
        allowed: further operators that do so in this query.
    """
    for node in reading.nodes:
        if node.in_subquery and node.reads:
            raise QueryRefused(
                query=query.name, clause="a subquery over a stream", reason=NO_WINDOW,
                fix=f"{_WINDOW}, and the same SLIDE after every other", line=node.line,
            )  # fmt: skip
        if node.kind in allowed or not (node.reads or node.kind in _NOT_FIXED):
            continue
        if node.kind in NODES:
            raise _refused(query, node)
        if node.kind not in STATELESS:
            raise QueryRefused(
                query=query.name, clause=node.kind, reason="cannot run continuously", fix=_WINDOW,
                line=node.line,
            )  # fmt: skip
    refuse_unfixed(query, reading)


def refuse_sample(query: Query, reading: Reading) -> None:
    """Raise QueryRefused for TABLESAMPLE, whose answer is not fixed even in a window."""
    for node in reading.nodes:
        if node.kind == "Sample":
            raise _refused(query, node)


def refuse_unfixed(query: Query, reading: Reading) -> None:
    """Raise QueryRefused for an expression that depends on when or how often it is computed."""
    for name in sorted(CLOCKS.intersection(reading.expressions)):
        raise QueryRefused(
            query=query.name,
            clause=name,
            reason="has no fixed answer: it would depend on when the tuple is processed",
            fix="use the tuple's own time column",
            line=reading.expressions[name],
        )
    random = reading.random
    for name in sorted(RANDOM.intersection(reading.expressions)):
        random = name, reading.expressions[name]
    if random is not None:
        raise QueryRefused(
            query=query.name,
            clause=random[0],
            reason="has no fixed answer: after a restart the same tuple could give another result",
            fix="compute it from the tuple's columns, as in hash(location)",
            line=random[1],
        )


def refuse_twin_columns(query: Query, columns: Iterable[str]) -> None:
    """Raise QueryRefused if two columns have the same name and the sink identifies columns by name.

    Names that differ only in case count as the same.
    """
    entry = sink_entry(query.sink.format)
    if entry is not None and entry.by_position:
        return
    by_position = [entry.name for entry in SINKS if entry.by_position]
    names: set[str] = set()
    for column in columns:
        if column.lower() in names:
            raise QueryRefused(
                query=query.name, clause=f"column `{column}`",
                reason=f"comes out twice, and {query.sink.format} knows columns by name alone",
                fix="give one of the two another name with AS, or use a sink of format"
                f" {' or '.join((', '.join(by_position[:-1]), by_position[-1]))}",
            )  # fmt: skip
        names.add(column.lower())


def clause_of(kind: str) -> str:
    """Return the name of an operator in a text."""
    return NODES[kind].clause if kind in NODES else {"LateralJoin": "LATERAL"}.get(kind, kind)


def _refused(query: Query, node: Node) -> QueryRefused:
    refusal = NODES[node.kind]
    return QueryRefused(
        query=query.name,
        clause=refusal.clause,
        reason=refusal.reason,
        fix=refusal.fix,
        line=node.line,
    )
