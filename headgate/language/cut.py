"""Cuts a query in two: cheap conditions first, then what calls functions."""

from collections.abc import Sequence
from dataclasses import replace

import sqlglot
from sqlglot import exp

from headgate.errors import QueryRefused
from headgate.language.form import conditions_of
from headgate.language.parse import line_of
from headgate.language.tokens import DIALECT
from headgate.model.network import Path
from headgate.model.query import Sink
from headgate.model.stream import DERIVED, Stream

FIRST, REST = "__first", "__rest"
"""What is put behind a query's name to name its first segment, and the queue behind it."""

_CHEAP = (exp.Connector, exp.Cast, exp.Case, exp.If, exp.Coalesce)


def cut(path: Path, columns: Sequence[str]) -> tuple[Stream, Path, Path]:
    """Gives the queue between, the first segment and the rest.

    The first has the conditions without a function call; the rest has those with one, and what the
    query puts out. Which rows come out is the same: conditions that are joined by AND.

    Args:
        columns: of the query's stream; all of them wait in the queue.

    Raises:
        QueryRefused: one of the two would be empty.
    """
    query = path.query
    if query.allows_shedding:
        raise QueryRefused(
            query=query.name, clause="allows_shedding",
            reason="is not possible for a query that is cut: what waits in between is not in the"
            " log", fix="leave out one of the two",
        )  # fmt: skip
    conditions = conditions_of(path.predicate) if path.predicate and not path.runs_whole else []
    first = [each for each in conditions if not _calls(each)]
    rest = [each for each in conditions if _calls(each)]
    if not first or not (rest or any(map(_calls, path.outputs))):
        raise QueryRefused(
            query=query.name, clause="cut",
            reason="is possible only between a condition without a function call and something"
            " that has one, in a plain SELECT whose conditions are joined by AND",
            fix="leave it out: the query runs as one, or add such a condition",
        )  # fmt: skip
    quoted = tuple("`" + name.replace("`", "``") + "`" for name in columns)
    kept = " AND ".join(first)
    opening = replace(
        query, name=query.name + FIRST, sql=f"SELECT * FROM {path.stream} WHERE {kept}",
        sink=Sink(), statistics=None, cut=False,
    )  # fmt: skip
    queue = Stream(name=query.name + REST, format=DERIVED)
    head = line_of(opening, path.stream, kept, quoted)
    tail = line_of(query, queue.name, " AND ".join(rest) or None, path.outputs)
    return (
        queue,
        replace(head, columns=tuple(columns), into=queue.name),
        replace(tail, columns=path.columns, longest_call=path.longest_call),
    )


def _calls(text: str) -> bool:
    """Tells whether an expression calls a function."""
    tree = sqlglot.parse_one(text, read=DIALECT)
    return any(not isinstance(each, _CHEAP) for each in tree.find_all(exp.Func))
