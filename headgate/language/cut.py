"""Cuts a query in two: cheap conditions first, then what calls functions."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

import sqlglot
from sqlglot import exp

from headgate.errors import QueryRefused
from headgate.language.form import conditions_of
from headgate.language.parse import line_of
from headgate.language.tokens import DIALECT
from headgate.model.network import FIRST, REST, Path
from headgate.model.query import Sink
from headgate.model.stream import DERIVED, Stream

_CHEAP = (exp.Connector, exp.Cast, exp.Case, exp.If, exp.Coalesce)


def cut(path: Path, columns: Sequence[str]) -> tuple[Stream, Path, Path]:
    """Return the hidden stream between, the first segment and the rest.

    The first has the conditions before the first one that calls a function; the rest has the others
    and what the query puts out. They stay in the order they were written in, so that a condition
    that guards another still does.

    Args:
        columns: of the query's stream; all of them are in the one between.

    Raises:
        QueryRefused: one of the two would be empty.
    """
    query = path.query
    if query.into is not None:
        raise QueryRefused(
            query=query.name, clause="cut", reason="is for queries whose results leave",
            fix="leave it out: what reads the stream is a segment by itself",
        )  # fmt: skip
    conditions = conditions_of(path.predicate) if path.predicate and not path.runs_whole else []
    first = list(takewhile(lambda each: not calls(each), conditions))
    rest = conditions[len(first) :]
    if not first or not (rest or any(map(calls, path.outputs))):
        raise QueryRefused(
            query=query.name, clause="cut",
            reason="is possible only between a condition without a function call and something"
            " behind it that has one, in a plain SELECT whose conditions are joined by AND",
            fix="leave it out: the query runs as one, or write such a condition first",
        )  # fmt: skip
    quoted = tuple("`" + name.replace("`", "``") + "`" for name in columns)
    kept = " AND ".join(first)
    opening = replace(
        query, name=query.name + FIRST, sql=f"SELECT * FROM {path.stream} WHERE {kept}",
        sink=Sink(), statistics=None, cut=None,
    )  # fmt: skip
    queue = Stream(name=query.name + REST, format=DERIVED)
    head = line_of(opening, path.stream, kept, quoted)
    tail = line_of(query, queue.name, " AND ".join(rest) or None, path.outputs)
    return (
        queue,
        replace(head, columns=tuple(columns), into=queue.name, first_of=query.name),
        replace(tail, columns=path.columns, longest_call=path.longest_call),
    )


def calls(text: str) -> bool:
    """Tells whether an expression calls a function."""
    tree = sqlglot.parse_one(text, read=DIALECT)
    return any(not isinstance(each, _CHEAP) for each in tree.find_all(exp.Func))
