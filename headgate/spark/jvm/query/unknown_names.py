"""Errors for names that Spark cannot resolve, with the most similar name that exists."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches

from pyspark.errors import AnalysisException, PySparkException

from headgate.errors import QueryRefused
from headgate.model.query import Query
from headgate.spark.jvm.errors import reason_of

MOST_NAMES = 10
"""The most names that a fix lists if no name is similar."""


def unresolved(
    query: Query,
    text: str,
    error: AnalysisException,
    tables: Callable[[], Iterable[str]],
    functions: Callable[[], Iterable[str]],
) -> QueryRefused:
    """Return the error for a text that Spark can parse but not analyze.

    Args:
        text: the text that Spark has parsed; its lines are those of the query's own text.
        tables: returns the names of streams, tables and views.
        functions: returns the names of functions.
    """
    parameters = error.getMessageParameters() or {}
    condition = error.getCondition() or ""
    clause = next(iter(parameters.values()), "the text")
    reason = f"is refused by Spark: {reason_of(error)}"
    proposal = parameters.get("proposal", "")
    fix = f"use one of {proposal}" if proposal else "correct the text"
    if condition.startswith("UNRESOLVED_COLUMN"):
        name = parameters.get("objectName", "")
        clause, reason = f"column {name}", "does not exist in the stream"
        if near := nearest(name, proposal.split(", ")):
            fix = f"write {near}"
    elif condition in ("UNRESOLVED_ROUTINE", "UNRESOLVABLE_TABLE_VALUED_FUNCTION"):
        name = parameters.get("routineName") or parameters.get("name", "")
        clause, reason = f"function {name}", "does not exist"
        near = nearest(name, functions())
        fix = f"write {near}" if near else "use a function of Spark SQL"
        fix = f"{fix}, or register yours in the session that you pass in"
    elif condition == "TABLE_OR_VIEW_NOT_FOUND":
        name, table_names = parameters.get("relationName", ""), sorted(set(tables()))
        clause, reason = f"table or stream {name}", "does not exist"
        if near := nearest(name, table_names):
            fix = f"write {near}"
        elif table_names:
            more = ", ..." if len(table_names) > MOST_NAMES else ""
            fix = f"read one of {', '.join(table_names[:MOST_NAMES])}{more}"
        else:
            fix = "add the stream to the pipeline, or create the table"
    line = _line(text, error)
    return QueryRefused(query=query.name, clause=clause, reason=reason, fix=fix, line=line)


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate whose last part is most similar to that of a name; None if none is.

    >>> nearest("`s`.`temprature`", ["`s`.`location`", "`s`.`temperature`"])
    '`s`.`temperature`'
    """
    candidate_by_last = {_last(candidate): candidate for candidate in candidates}
    matches = get_close_matches(_last(name), candidate_by_last, n=1, cutoff=0.6)
    return candidate_by_last[matches[0]] if matches else None


def _last(name: str) -> str:
    return name.rsplit(".", 1)[-1].strip("`").lower()


def _line(sql: str, error: PySparkException) -> int | None:
    contexts = error.getQueryContext()
    if not contexts:
        return None
    return sql.count("\n", 0, max(0, contexts[0].startIndex())) + 1
